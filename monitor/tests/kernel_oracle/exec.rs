//! Birth and death of processes.

use crate::check::case;
use crate::stage::Stage;
use libc::*;
use thermalloc_monitor::kernel::Kind;

/// A child that has exited, for `wait` to collect.
fn child(s: &mut Stage) -> u64 {
    let pid = fork_that_exits();
    // Collects the child where the call under test did not.
    s.later(move || collect(pid));
    pid
}

#[allow(unsafe_code)]
fn fork_that_exits() -> u64 {
    // SAFETY: the child makes one system call.
    unsafe {
        match fork() {
            0 => _exit(3),
            pid => pid as u64,
        }
    }
}

#[allow(unsafe_code)]
fn collect(pid: u64) {
    // SAFETY: no status is asked for; that there is no such child any more is fine.
    unsafe { waitpid(pid as i32, std::ptr::null_mut(), 0) };
}

#[test]
fn waiting_for_children() {
    let usage = size_of::<rusage>();
    case(SYS_wait4, |s| [child(s), s.room(4), 0, s.room(usage)]).holds();
    case(SYS_waitid, |s| [u64::from(P_PID), child(s), s.room(128), WEXITED as u64, s.room(usage)]).holds();
    let nobody = 0x3fff_ffff;
    case(SYS_waitid, |s| [u64::from(P_PID), nobody, s.room(128), WEXITED as u64, s.room(usage)])
        .fails(ECHILD)
        .holds();
}

#[test]
fn running_a_program() {
    let strings = |s: &mut Stage, texts: [&str; 2]| {
        let pointers = texts.map(|text| s.text(text));
        s.words(&[pointers[0], pointers[1], 0])
    };
    case(SYS_execve, |s| [s.text("/bin/true"), strings(s, ["true", "x"]), strings(s, ["A=1", "B=2"])])
        .in_child()
        .holds();
    case(SYS_execveat, |s| {
        [0, s.text("/bin/true"), strings(s, ["true", "x"]), strings(s, ["A=1", "B=2"]), 0]
    })
    .in_child()
    .holds();
    case(SYS_execve, |s| [s.path("missing"), strings(s, ["true", "x"]), strings(s, ["A=1", "B=2"])])
        .fails(ENOENT)
        .in_child()
        .holds();
}

#[test]
fn words_of_a_new_process() {
    let flags = (CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD) as u64;
    // The kernel is silent where it cannot tell the parent; the child's word is in the child's memory.
    case(SYS_clone, |s| [flags, 0, s.room(4), s.room(4), 0]).silent(Kind::Write).holds();
    let flags = (CLONE_PIDFD | SIGCHLD) as u64;
    case(SYS_clone, |s| [flags, 0, s.room(4), 0, 0]).holds();
    case(SYS_clone3, |s| {
        let (pidfd, child, parent) = (s.room(4), s.room(4), s.room(4));
        let flags = (CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID) as u64;
        let args = [flags, pidfd, child, parent, SIGCHLD as u64, 0, 0, 0, 0, 0, 0];
        [s.words(&args), 88]
    })
    .silent(Kind::Write)
    .holds();
}
