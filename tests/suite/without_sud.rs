//! Where the kernel refuses Syscall User Dispatch, programs run as ever, and the kernel's accesses count the same.

use thermalloc_tests::modes::{Mode, modes};
use thermalloc_tests::monitored::{self, Monitored};
use thermalloc_tests::victims;

/// Victims with interrupted calls, forks, threads, and sandboxes of their own. None asks the vDSO for the time into heap
/// memory: the system call that it makes on some machines is not seen here and fails, a known limit.
const RUNNING: &[&str] = &["eintr", "fork_isolation", "fork_threads", "seccomp", "threads_exit"];

/// Victims of one thread, whose system calls on heap memory do not depend on time.
const COUNTED: &[&str] = &["masks", "syscalls_files"];

/// Runs a victim with and without the dispatch: natively, then in each mode that monitors.
fn check(name: &str, examine: impl Fn(Mode, &Monitored, &str)) {
    let launcher = victims::victim("without_sud").program();
    let program = victims::victim(name).program();
    let arguments = [program.to_str().expect("a path in UTF-8").to_owned()];
    let native = monitored::native(&launcher, &arguments);
    assert_eq!(native.status, 0, "{name} natively: {}", native.error_text());
    for mode in modes().into_iter().filter(|mode| mode.monitors()) {
        let what = format!("{name} without Syscall User Dispatch in mode {mode}");
        let monitored = monitored::run(mode, &[], &launcher, &arguments);
        monitored.outcome.assert_same(&native, &what);
        monitored::assert_reported(&monitored, mode, &what);
        assert!(monitored.reports.iter().all(|report| !report.sud()), "{what}: it was not refused");
        examine(mode, &monitored, &what);
    }
}

#[test]
fn programs_run() {
    for name in RUNNING {
        check(name, |_, _, _| ());
    }
}

#[test]
fn kernel_accesses_count_the_same() {
    for name in COUNTED {
        check(name, |mode, without, what| {
            let with = monitored::run(mode, &[], &victims::victim(name).program(), &[]);
            let [expected, counted] = [&with, without].map(kernel_accesses);
            assert_eq!(counted, expected, "{what}");
            assert!(counted.0 > 0 && counted.1 > 0, "{what}: no accesses by the kernel");
        });
    }
}

/// Reads and writes by the kernel, of all processes.
fn kernel_accesses(run: &Monitored) -> (u64, u64) {
    let sum = |key| run.reports.iter().map(|report| report.total(key)).sum();
    (sum("kernel_reads"), sum("kernel_writes"))
}
