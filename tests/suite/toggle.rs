//! SIGUSR2 stops watching and starts it again, where THERMALLOC_TOGGLE says so.

use serde_json::Value;
use thermalloc_tests::modes::modes;
use thermalloc_tests::places::Scratch;
use thermalloc_tests::report::{Counts, Report, number};
use thermalloc_tests::{monitored, process, victims};

#[test]
fn what_is_accessed_between_two_signals_does_not_count() {
    for mode in modes().into_iter().filter(|mode| mode.monitors()) {
        let scratch = Scratch::new("toggle");
        let mut command = monitored::command(mode, &[], scratch.path(), &victims::victim("toggle").program());
        let outcome = process::run(command.env("THERMALLOC_TOGGLE", "1"), monitored::limit());
        assert_eq!(outcome.status, 0, "{mode}: {}", outcome.error_text());
        let truth: Value = serde_json::from_str(&outcome.text()).expect("one line of JSON");
        let [report] = &Report::read_all(scratch.path())[..] else { panic!("{mode}: one report") };
        let objects = report.live_objects();
        let found = objects.get(&number(&truth, "address")).expect("the object is in the report").counts;
        assert_eq!(found, Counts::of(&truth), "{mode}");
        let program = report.program();
        let (watched, elapsed) = (number(program, "watched_ns"), number(program, "elapsed_ns"));
        assert!(0 < watched && watched < elapsed, "{mode}: watched {watched} of {elapsed} ns");
    }
}

#[test]
fn without_the_setting_the_signal_is_the_programs() {
    for mode in modes() {
        let native = monitored::native(&victims::victim("toggle").program(), &[]);
        let monitored = monitored::run(mode, &[], &victims::victim("toggle").program(), &[]);
        monitored.outcome.assert_same(&native, &format!("{mode}"));
    }
}
