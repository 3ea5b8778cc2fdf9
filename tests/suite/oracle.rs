//! Modes against each other: random programs, and programs as distributed.
//!
//! `THERMALLOC_FUZZ_SECONDS` (default 60), `THERMALLOC_FUZZ_SEED` (default: the clock), `THERMALLOC_FUZZ_CASE` (one
//! program, as a failure tells it), `THERMALLOC_FUZZ_FAILURES` (stop after so many, default 3), `THERMALLOC_FUZZ_WITHOUT`
//! (words between commas; instructions with one of them in their template are left out), `THERMALLOC_FUZZ_FINDS` (a folder
//! for what failed).

mod programs;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs};
use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::oracle::expand::Abilities;
use thermalloc_tests::oracle::fuzz::{self, Case, Findings};
use thermalloc_tests::oracle::run::Ways;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: no number")))
}

/// Those that see accesses; the first steps, and the others must count as it does.
fn monitoring() -> Vec<Mode> {
    modes().into_iter().filter(|mode| mode.monitors()).collect()
}

#[test]
fn random() {
    let modes = monitoring();
    if modes.is_empty() {
        return;
    }
    let mut abilities = Abilities::here();
    let without = env::var("THERMALLOC_FUZZ_WITHOUT").unwrap_or_default();
    abilities.without = without.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    // Mode `patch` relies on it that no code does, as the psABI has it.
    abilities.flags_cross_calls = match env::var("THERMALLOC_FUZZ_FLAGS") {
        Ok(flags) => flags != "local",
        Err(_) => !modes.contains(&Mode::Patch),
    };
    if !abilities.flags_cross_calls {
        // A jump to code that may want the flags.
        abilities.without.push("push {a64}; ret".to_owned());
    }
    let findings = match env::var("THERMALLOC_FUZZ_CASE") {
        Ok(text) => {
            let case = Case::parse(&text).expect("a case: SEED PLACE TIMER FLAVOUR WATCH");
            let mut findings = Findings::default();
            fuzz::run_batch(&[case.seed], case.circumstances, &modes, &abilities, &mut findings);
            findings
        }
        Err(_) => {
            let clock = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64;
            let seed = number("THERMALLOC_FUZZ_SEED").unwrap_or_else(clock);
            let time = Duration::from_secs(number("THERMALLOC_FUZZ_SECONDS").unwrap_or(60));
            println!("THERMALLOC_FUZZ_SEED={seed}");
            fuzz::run_for(
                time,
                seed,
                &modes,
                &abilities,
                number("THERMALLOC_FUZZ_FAILURES").unwrap_or(3) as usize,
            )
        }
    };
    println!("{modes:?}: {:?}", findings.tally);
    if let Ok(folder) = env::var("THERMALLOC_FUZZ_FINDS") {
        for (at, failure) in findings.failures.iter().enumerate() {
            fs::write(Path::new(&folder).join(format!("{}-{at}.txt", std::process::id())), failure)
                .expect("a find");
        }
    }
    if let Ok(path) = env::var("THERMALLOC_FUZZ_RESULT") {
        fs::write(&path, result(&findings)).expect("the result");
    }
    assert!(findings.failures.is_empty(), "{}", findings.failures.join("\n"));
    if let Some(suspicion) = findings.tally.suspicion() {
        panic!("{suspicion}");
    }
    assert!(findings.tally.accesses > 10 * findings.tally.programs, "the programs hardly touch the heap");
}

/// What `results/oracle.md` says.
fn result(findings: &Findings) -> String {
    let first_line = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map_or_else(
            |_| "?".to_owned(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        )
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("?");
    let Findings { tally, failures, seed, time } = findings;
    let mut text = format!(
        "Random programs, run without the monitor and in each mode: registers, flags, memory and faults must be the same, and all modes\n\
         must count the same accesses of each object and granule (`make oracle`).\n\n\
         commit {}, {}, {}, Linux {}; {} s from seed {}\n\n\
         {} programs, {} accesses in the first mode, {} failures\n\n\
         | mode | faults | single steps | emulated | patched sites |\n|---|---|---|---|---|\n",
        first_line("git", &["rev-parse", "--short=12", "HEAD"]),
        first_line("date", &["-u", "+%Y-%m-%d"]),
        cpu.trim_start_matches(['\t', ':', ' ']),
        first_line("uname", &["-r"]),
        time.as_secs(),
        seed,
        tally.programs,
        tally.accesses,
        failures.len(),
    );
    for (mode, ways) in &tally.ways {
        let Ways { faults, steps, emulated, patched_sites } = ways;
        writeln!(text, "| `{mode}` | {faults} | {steps} | {emulated} | {patched_sites} |")
            .expect("write to a String");
    }
    for failure in failures {
        write!(text, "\n```\n{failure}\n```\n").expect("write to a String");
    }
    text
}
