//! Where the kernel refuses Syscall User Dispatch, programs run as ever, and the kernel's accesses still count.

use thermalloc_tests::modes::modes;
use thermalloc_tests::report::Report;
use thermalloc_tests::{monitored, victims};

/// Victims of many system calls on heap memory, signals, forks and threads.
const SELECTION: &[&str] = &[
    "eintr",
    "fork_isolation",
    "fork_threads",
    "futex_heap",
    "masks",
    "seccomp",
    "syscalls_files",
    "threads_exit",
];

#[test]
fn programs_run_and_kernel_accesses_count() {
    let launcher = victims::victim("without_sud").program();
    for name in SELECTION {
        let program = victims::victim(name).program();
        let arguments = [program.to_str().expect("a path in UTF-8").to_owned()];
        let native = monitored::native(&launcher, &arguments);
        assert_eq!(native.status, 0, "{name} natively: {}", native.error_text());
        for mode in modes() {
            let what = format!("{name} without Syscall User Dispatch in mode {mode}");
            let monitored = monitored::run(mode, &[], &launcher, &arguments);
            monitored.outcome.assert_same(&native, &what);
            monitored::assert_reported(&monitored, mode, &what);
            if mode.monitors() {
                assert_counted(&monitored.reports, &what);
            }
        }
    }
}

fn assert_counted(reports: &[Report], what: &str) {
    // The launcher's own report, of before, ends with its exec.
    let (launchers, own): (Vec<&Report>, Vec<&Report>) =
        reports.iter().partition(|report| report.end() == "exec");
    assert!(
        launchers.iter().all(|report| report.sud()),
        "{what}: this machine has no Syscall User Dispatch at all"
    );
    assert!(!own.is_empty() && own.iter().all(|report| !report.sud()), "{what}: it was not refused");
    let kernel: u64 =
        own.iter().map(|report| report.total("kernel_reads") + report.total("kernel_writes")).sum();
    assert!(kernel > 0, "{what}: no access by the kernel was counted");
}
