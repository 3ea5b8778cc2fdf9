//! A short soak; `THERMALLOC_SOAK_SECONDS` makes it a long one.

use std::env;
use std::time::Duration;
use thermalloc_tests::modes::modes;
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
        assert_eq!(Report::read_all(scratch.path()).len(), usize::from(mode.monitors()), "{mode}: reports");
    }
}
