//! The hole of page protection: while one thread steps, the page is open to all. `pp` loses accesses, `mpk` none.

use serde_json::Value;
use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::report::{Counts, number};
use thermalloc_tests::{monitored, victims};

/// What happened, and what the report says of it.
fn hammer(mode: Mode) -> (Counts, Counts) {
    let arguments = ["2", "5000"].map(str::to_owned);
    let monitored = monitored::run(mode, &[], &victims::victim("hole").program(), &arguments);
    assert_eq!(monitored.outcome.status, 0, "{}", monitored.outcome.error_text());
    let truth: Value = serde_json::from_str(&monitored.outcome.text()).expect("one line of JSON");
    let objects = monitored.reports[0].live_objects();
    let found = objects.get(&number(&truth, "address")).expect("the page is in the report").counts;
    println!("{mode}: {} of {} writes seen", found.writes, number(&truth, "writes"));
    (Counts::of(&truth), found)
}

#[test]
fn page_protection_loses_accesses_and_a_key_loses_none() {
    for mode in modes() {
        match mode {
            Mode::Off => {}
            Mode::Mpk | Mode::Emulate | Mode::Patch => {
                let (truth, found) = hammer(mode);
                assert_eq!(found, truth);
            }
            Mode::Pp => {
                // Whether an access falls into the other thread's step is chance: one attempt that loses is enough.
                let lost = (0..3).any(|_| {
                    let (truth, found) = hammer(mode);
                    assert!(found.writes <= truth.writes, "more accesses than happened");
                    found.writes < truth.writes
                });
                assert!(lost, "pp lost nothing: is it still page protection?");
            }
        }
    }
}
