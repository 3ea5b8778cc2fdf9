//! `thermalloc doctor`: what this machine can do and why not, one line each.

use crate::failure::Failure;
use crate::library;
use crate::machine::{facts, modes, probe};
use crate::options::DoctorOptions;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Address space that the runtime reserves, roughly, in bytes.
const ARENA: usize = 1 << 40;
/// The kernel's own default of vm.max_map_count.
const USUAL_MAPS: u64 = 65530;
/// First kernels with protection keys and with Syscall User Dispatch.
const KERNEL_PKEYS: (u32, u32) = (4, 9);
const KERNEL_DISPATCH: (u32, u32) = (5, 11);

/// One line of the examination.
#[derive(Serialize)]
struct Finding {
    name: &'static str,
    ok: bool,
    reason: String,
    /// Empty when there is nothing to do.
    advice: &'static str,
}

impl Finding {
    fn new(name: &'static str, ok: bool, reason: impl Into<String>, advice: &'static str) -> Self {
        Self { name, ok, reason: reason.into(), advice: if ok { "" } else { advice } }
    }

    /// The reason of a success is given; that of a failure comes with it.
    fn tried<E: ToString>(
        name: &'static str,
        result: Result<(), E>,
        good: &str,
        advice: &'static str,
    ) -> Self {
        match result {
            Ok(()) => Self::new(name, true, good, advice),
            Err(error) => Self::new(name, false, error.to_string(), advice),
        }
    }
}

/// The whole examination.
#[derive(Serialize)]
struct Examination {
    cpu: String,
    kernel: String,
    findings: Vec<Finding>,
    /// What `--mode auto` picks.
    auto: &'static str,
}

/// Prints the examination; status 0 if programs can be monitored here, else 1.
pub fn doctor(options: &DoctorOptions) -> Result<u8, Failure> {
    let examination = examine();
    let text = if options.json { json(&examination)? } else { text(&examination) };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(Failure::own(format!("cannot write to stdout ({error}); check where it goes")));
        }
        _ => {}
    }
    let essential = |finding: &Finding| matches!(finding.name, "library" | "architecture") && !finding.ok;
    Ok(u8::from(examination.auto == "off" || examination.findings.iter().any(essential)))
}

fn json(examination: &Examination) -> Result<String, Failure> {
    serde_json::to_string_pretty(examination)
        .map(|text| text + "\n")
        .map_err(|error| Failure::own(format!("cannot write JSON ({error}); leave --json out")))
}

fn text(examination: &Examination) -> String {
    let mut text = format!("cpu     {}\nkernel  {}\n\n", examination.cpu, examination.kernel);
    for finding in &examination.findings {
        let answer = if finding.ok { "yes" } else { "no" };
        text += &format!("{answer:3} {:14} — {}", finding.name, finding.reason);
        if !finding.advice.is_empty() {
            text += &format!(" — {}", finding.advice);
        }
        text.push('\n');
    }
    text + &format!("\n--mode auto picks: {}\n", examination.auto)
}

fn examine() -> Examination {
    let unknown = || "unknown".to_owned();
    let kernel = facts::line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown);
    let mut findings = vec![architecture()];
    findings.extend(kernel_features(&kernel));
    findings.extend(memory());
    findings.push(the_library());
    findings.extend(the_modes());
    Examination {
        cpu: facts::field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
        kernel,
        findings,
        auto: modes::auto(),
    }
}

fn architecture() -> Finding {
    let machine = facts::line("/proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.into());
    let ok = machine == "x86_64";
    Finding::new("architecture", ok, format!("this machine is {machine}"), "use an x86-64 machine")
}

fn kernel_features(release: &str) -> Vec<Finding> {
    let version = facts::version(release);
    let since = |first| version.is_none_or(|version| version >= first);
    let keys = modes::keys();
    let keys_advice = match (facts::protection_keys().cpu, since(KERNEL_PKEYS)) {
        (false, _) => "use --mode pp, or a machine whose /proc/cpuinfo lists pku",
        (_, false) => "use --mode pp, or a kernel from 4.9 on",
        _ => "use --mode pp, or allow pkey_alloc, pkey_free and pkey_mprotect in the sandbox",
    };
    let dispatch_advice = if since(KERNEL_DISPATCH) {
        "allow prctl(PR_SET_SYSCALL_USER_DISPATCH) in the sandbox"
    } else {
        "use a kernel from 5.11 on"
    };
    vec![
        Finding::tried("pku", keys.as_ref().map(drop), &free(&keys), keys_advice),
        Finding::tried(
            "single step",
            probe::single_step(),
            "the trap flag works",
            "leave the sandbox or emulator; without it only --mode off works",
        ),
        Finding::tried(
            "sud",
            probe::syscall_user_dispatch(),
            "Syscall User Dispatch works, so the kernel's accesses are seen",
            dispatch_advice,
        ),
        seccomp(),
        Finding::tried(
            "membarrier",
            probe::core_barrier(),
            "SYNC_CORE works",
            "nothing: only rewriting code needs it, which this version does not do",
        ),
    ]
}

fn free(keys: &Result<i32, String>) -> String {
    match keys {
        Ok(1) => "one protection key is free".into(),
        Ok(count) => format!("{count} protection keys are free"),
        Err(_) => String::new(),
    }
}

/// A filter is no fault in itself: what it forbids shows in the trials.
fn seccomp() -> Finding {
    let mode = facts::field("/proc/self/status", "Seccomp").unwrap_or_default();
    let (ok, reason) = match mode.as_str() {
        "0" | "" => (true, "no seccomp filter"),
        _ => (false, "a seccomp filter is active, and may forbid what the lines around this one say no to"),
    };
    Finding::new("no seccomp", ok, reason, "if one of them matters, run without the filter")
}

fn memory() -> Vec<Finding> {
    let overcommit = facts::line("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    let maps = facts::line("/proc/sys/vm/max_map_count").and_then(|text| text.parse().ok()).unwrap_or(0);
    vec![
        Finding::tried(
            "memfd",
            probe::anonymous_file(),
            "memory can be mapped twice, so --view alias works",
            "use --view private",
        ),
        Finding::tried(
            "address space",
            probe::address_space(ARENA),
            &format!("1 TiB can be reserved; {}", address_space_limit()),
            "raise RLIMIT_AS: ulimit -v unlimited",
        ),
        Finding::new(
            "overcommit",
            overcommit != "2",
            format!("vm.overcommit_memory is {overcommit}"),
            "set it to 0 or 1 if the program runs out of memory: sysctl vm.overcommit_memory=0",
        ),
        Finding::new(
            "mappings",
            maps >= USUAL_MAPS,
            format!("vm.max_map_count is {maps}"),
            "raise it: sysctl vm.max_map_count=65530",
        ),
        huge_pages(),
    ]
}

fn address_space_limit() -> String {
    match facts::address_space_limit() {
        Some(bytes) => format!("RLIMIT_AS is {bytes} B"),
        None => "RLIMIT_AS is unlimited".into(),
    }
}

/// For information: the runtime works with any setting.
fn huge_pages() -> Finding {
    let setting = |name: &str| {
        let text = facts::line(&format!("/sys/kernel/mm/transparent_hugepage/{name}"));
        text.map_or("missing".to_owned(), |text| facts::selected(&text).to_owned())
    };
    let reason = format!(
        "any setting will do; private memory: {}, shared: {}",
        setting("enabled"),
        setting("shmem_enabled")
    );
    Finding::new("huge pages", true, reason, "")
}

fn the_library() -> Finding {
    match library::find() {
        Ok(path) => Finding::new("library", true, path.display().to_string(), ""),
        Err(message) => {
            // The message of `run` says both what is wrong and what to do.
            let reason = message.split(';').next().unwrap_or_default();
            Finding::new("library", false, reason, "set THERMALLOC_LIB to its path, or build it: make build")
        }
    }
}

fn the_modes() -> [Finding; 3] {
    [
        Finding::new("mode off", true, "the allocator alone needs nothing special", ""),
        Finding::tried(
            "mode pp",
            modes::pp(),
            "page protection and single step; exact for one thread at a time",
            "use --mode off",
        ),
        Finding::tried(
            "mode mpk",
            modes::mpk(),
            "protection keys and single step; exact for all threads",
            "use --mode pp",
        ),
    ]
}
