//! From the number of a system call to its descriptors: one array, put together by the compiler from the subjects'
//! tables.
//!
//! # Signal context
//! One bounds-checked look-up.

use super::describe::{Arg, Call};
use super::{
    aio, credentials, events, fcntl, files, futex, io, ioctl, ipc, mount, net, plain, prctl, process, ptrace,
    sched, signal, sockopt, system, time, vm, xattr,
};

/// One more than the newest call known (`file_setattr`, Linux 6.17).
pub const END: usize = 470;

const SUBJECTS: &[&[Call]] = &[
    aio::CALLS,
    credentials::CALLS,
    events::CALLS,
    fcntl::CALLS,
    files::CALLS,
    futex::CALLS,
    io::CALLS,
    ioctl::CALLS,
    ipc::CALLS,
    mount::CALLS,
    net::CALLS,
    prctl::CALLS,
    process::CALLS,
    ptrace::CALLS,
    sched::CALLS,
    signal::CALLS,
    sockopt::CALLS,
    system::CALLS,
    time::CALLS,
    vm::CALLS,
    xattr::CALLS,
];

static TABLE: [Option<&[Arg]>; END] = build();

/// The descriptors of call `nr`, or `None` if nothing is known about it.
pub fn descriptors(nr: i64) -> Option<&'static [Arg]> {
    usize::try_from(nr).ok().and_then(|nr| TABLE.get(nr)).copied().flatten()
}

const fn build() -> [Option<&'static [Arg]>; END] {
    let mut table: [Option<&[Arg]>; END] = [None; END];
    let mut subject = 0;
    while subject < SUBJECTS.len() {
        let calls = SUBJECTS[subject];
        let mut i = 0;
        while i < calls.len() {
            let nr = calls[i].0 as usize;
            assert!(table[nr].is_none(), "a call stands in two tables");
            table[nr] = Some(calls[i].1);
            i += 1;
        }
        subject += 1;
    }
    let mut i = 0;
    while i < plain::CALLS.len() {
        let nr = plain::CALLS[i] as usize;
        assert!(table[nr].is_none(), "a call stands in two tables");
        table[nr] = Some(&[]);
        i += 1;
    }
    table
}
