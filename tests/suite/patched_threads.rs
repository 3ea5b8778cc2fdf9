//! Threads that come to fresh code at once, under signals: in each round the program must do what it does natively, and the counts of
//! its objects must be those of mode `emulate`. Environment: `THERMALLOC_TEST_ROUNDS` (default 15).

use std::collections::{BTreeMap, HashMap};
use std::env;
use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::monitored;
use thermalloc_tests::report::Counts;
use thermalloc_tests::victims;

/// The counts of each case's object, by label and thread.
type Cases = BTreeMap<(String, u64), Counts>;

fn rounds() -> u32 {
    let rounds = env::var("THERMALLOC_TEST_ROUNDS").ok();
    rounds.map_or(15, |rounds| rounds.parse().expect("THERMALLOC_TEST_ROUNDS is a number"))
}

/// The output without what differs from run to run: addresses, and how often a handler ran.
fn stable(output: &str) -> String {
    let stable = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        ["case", label, thread, _] => format!("case {label} {thread}\n"),
        ["handled", thread, ..] => format!("handled {thread}\n"),
        _ => format!("{line}\n"),
    };
    output.lines().map(stable).collect()
}

fn round(mode: Mode, native: &str, what: &str) -> Cases {
    let monitored = monitored::run(mode, &[], &victims::victim("patched_threads").program(), &[]);
    let output = monitored.outcome.text();
    assert_eq!(monitored.outcome.status, 0, "{what}: {output}\n{}", monitored.outcome.error_text());
    assert_eq!(stable(&output), native, "{what}");
    let [report] = &monitored.reports[..] else {
        panic!("{what}: {} reports instead of one", monitored.reports.len())
    };
    let objects: HashMap<_, _> = report.live_objects();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let counts = |address: &str| objects.get(&number(address)).map(|object| object.counts);
    let mut cases = Cases::new();
    for line in output.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["case", label, thread, address] => {
                let counts = counts(address).unwrap_or_else(|| panic!("{what}: {line}: not in the report"));
                cases.insert((label.to_owned(), number(thread)), counts);
            }
            ["handled", thread, address, times] => {
                let writes = counts(address).unwrap_or_default().writes;
                assert_eq!(writes, number(times), "{what}: writes of the handler in thread {thread}");
            }
            _ => {}
        }
    }
    cases
}

fn differences(found: &Cases, expected: &Cases) -> Vec<String> {
    let differ = |(case, counts): (&(String, u64), &Counts)| {
        let expected = expected.get(case).copied().unwrap_or_default();
        (*counts != expected).then(|| format!("{case:?}: {counts:?} instead of {expected:?}"))
    };
    found.iter().filter_map(differ).collect()
}

#[test]
fn threads_at_fresh_code() {
    if !modes().contains(&Mode::Patch) {
        return;
    }
    let native = monitored::native(&victims::victim("patched_threads").program(), &[]);
    assert_eq!(native.status, 0, "natively: {}", native.error_text());
    let native = stable(&native.text());
    let expected = round(Mode::Emulate, &native, "patched_threads in mode emulate");
    assert!(expected.len() > 500, "only {} objects", expected.len());
    for number in 1..=rounds() {
        let what = format!("patched_threads in mode patch, round {number}");
        let found = round(Mode::Patch, &native, &what);
        let wrong = differences(&found, &expected);
        assert!(wrong.is_empty(), "{what}, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}
