//! A short soak; `THERMALLOC_SOAK_SECONDS` makes it a long one. What it may hold is filled before the clock starts, so that
//! memory must not grow from then on.

use std::env;
use std::time::Duration;
use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::places::Scratch;
use thermalloc_tests::report::Report;
use thermalloc_tests::{monitored, process, victims};

#[test]
fn threads_allocating_at_random_keep_their_contents() {
    let seconds: u64 = env::var("THERMALLOC_SOAK_SECONDS").map_or(5, |text| text.parse().expect("seconds"));
    for mode in modes() {
        let scratch = Scratch::new("soak");
        let mut command = monitored::command(mode, &[], scratch.path(), &victims::victim("soak").program());
        let outcome = process::run(
            command.arg(seconds.to_string()),
            Duration::from_secs(2 * seconds) + monitored::limit(),
        );
        println!("{mode}:\n{}", outcome.error_text());
        assert_eq!(
            (outcome.status, outcome.text().as_str()),
            (0, "ok\n"),
            "{mode}: {}",
            outcome.error_text()
        );
        let samples = memory_kib(&outcome.error_text());
        if mode == Mode::Patch {
            assert_slows(&samples, &mode.to_string());
        } else {
            assert_no_growth(&samples, &mode.to_string());
        }
        assert_eq!(Report::read_all(scratch.path()).len(), usize::from(mode.monitors()), "{mode}: reports");
    }
}

/// The memory after each tenth of the time, the start before them, as the victim prints it.
fn memory_kib(text: &str) -> Vec<u64> {
    let lines =
        text.lines().filter_map(|line| line.split_once("memory ")?.1.strip_suffix(" KiB")?.parse().ok());
    let samples: Vec<u64> = lines.collect();
    assert_eq!(samples.len(), 11, "{text}");
    samples
}

/// Compares the largest of the last third with the largest of the first: single samples go up and down by themselves.
fn assert_no_growth(samples: &[u64], what: &str) {
    const PERCENT: u64 = 12;
    let most = |part: &[u64]| *part.iter().max().expect("samples");
    let (early, late) = (most(&samples[1..=3]), most(&samples[8..=10]));
    assert!(
        late * 100 <= early * (100 + PERCENT),
        "{what}: memory grows from {early} to {late} KiB: {samples:?}"
    );
}

/// Each thread has counters of its own for all that it has ever touched, as much as the heap for each at most: memory grows towards that, slower
/// and slower.
fn assert_slows(samples: &[u64], what: &str) {
    let grown = |from: usize, to: usize| samples[to].saturating_sub(samples[from]);
    assert!(grown(7, 10) * 3 <= grown(0, 3) * 2, "{what}: memory goes on growing: {samples:?}");
}

#[test]
fn growth_is_noticed() {
    let flat = [90, 100, 104, 99, 103, 101, 104, 102, 106, 100, 108];
    assert_no_growth(&flat, "flat");
    let leak: Vec<u64> = (0..11).map(|tenth| 100 + 3 * tenth).collect();
    assert!(std::panic::catch_unwind(|| assert_no_growth(&leak, "leak")).is_err());
    assert!(std::panic::catch_unwind(|| assert_slows(&leak, "leak")).is_err());
}
