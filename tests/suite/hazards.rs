//! Programs that do what is hard to keep working under the monitor: each must print and end as without it.

use thermalloc_tests::modes::modes;
use thermalloc_tests::monitored::{self, Monitored};
use thermalloc_tests::victims::{self, Victim};

/// Runs a victim natively, where it must end as its source says, then in each mode.
fn check(name: &str) {
    let victim = victims::victim(name);
    for run in &victim.runs {
        let what = format!("{name} {}", run.arguments.join(" "));
        let native = monitored::native(&victim.program(), &run.arguments);
        assert_eq!(native.status, run.status, "{what} natively: {}\n{}", native.text(), native.error_text());
        for mode in modes() {
            let what = format!("{what} in mode {mode}");
            let monitored = monitored::run(mode, &[], &victim.program(), &run.arguments);
            monitored.outcome.assert_same(&native, &what);
            monitored::assert_reported(&monitored, mode, &what);
            check_end(&victim, &monitored, &what);
        }
    }
}

/// A program that stays in one process says in its report whether it ended by exit or by a signal.
fn check_end(victim: &Victim, monitored: &Monitored, what: &str) {
    if let ("death", [report]) = (victim.name.as_str(), &monitored.reports[..]) {
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
    alarm_malloc altstack_heap channels cpp ctor death dlopen_loop eintr fork_isolation fork_threads futex_heap
    io_uring jit jmp large masks nested_signals pages process_control raw_clone seccomp segment segv_handler spawn
    swapcontext syscalls_files syscalls_other thread_stack_heap threads_exit timer_longjmp traps surface
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
