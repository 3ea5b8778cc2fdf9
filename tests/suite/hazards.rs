//! Programs that do what is hard to keep working under the monitor: each must print and end as without it.

use thermalloc_tests::modes::modes;
use thermalloc_tests::monitored::{self, Monitored};
use thermalloc_tests::victims::{self, Victim};

/// Runs a victim natively, where it must end as its source says, then in each mode.
fn check(name: &str) {
    let victim = victims::victim(name);
    let settings: Vec<&str> = victim.settings.iter().map(String::as_str).collect();
    for run in &victim.runs {
        let what = format!("{name} {}", run.arguments.join(" "));
        let native = monitored::native(&victim.program(), &run.arguments);
        assert_eq!(native.status, run.status, "{what} natively: {}\n{}", native.text(), native.error_text());
        for mode in modes() {
            let what = format!("{what} in mode {mode}");
            let monitored = monitored::run(mode, &settings, &victim.program(), &run.arguments);
            monitored.outcome.assert_same(&native, &what);
            monitored::assert_reported(&monitored, mode, &what);
            check_end(&victim, &monitored, &what);
        }
    }
}

/// A program that stays in one process says in its report whether it ended by exit or by a signal, even if a report was
/// due by the clock at that moment.
fn check_end(victim: &Victim, monitored: &Monitored, what: &str) {
    if let ("death" | "interval", [report]) = (victim.name.as_str(), &monitored.reports[..]) {
        let by_signal = monitored.outcome.status > 128;
        assert_eq!(report.end(), if by_signal { "signal" } else { "exit" }, "{what}");
    }
}

macro_rules! hazards {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        /// Victims that the list has.
        const LISTED: &[&str] = &[$(stringify!($name)),*];
    };
}

hazards! {
    alarm_malloc altstack_heap channels clone_processes core_size cpp ctor death dlopen_loop eintr exit_signals fork_busy
    fork_isolation fork_threads futex_heap idle interval io_uring jit jmp large loader_lock many_plugins masks nested_signals odd_calls pages
    process_control raw_clone sandbox seccomp segment segv_handler spawn spawn_openings stack_memory surface
    swapcontext syscalls_files syscalls_other thread_stack_heap threads_exit timer_longjmp traps
}

#[test]
fn every_victim_is_tested() {
    let elsewhere = ["misuse", "soak"];
    let untested: Vec<String> = victims::all()
        .into_iter()
        .filter(|victim| !victim.helper && !LISTED.contains(&victim.name.as_str()))
        .map(|victim| victim.name)
        .filter(|name| !elsewhere.contains(&name.as_str()))
        .collect();
    assert!(untested.is_empty(), "victims without a test: {untested:?}");
}
