//! Processes: birth, programs, death, resources.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::{PATH_MAX, Walk, word_in};
use libc::*;

const RLIMIT: usize = size_of::<rlimit>();
const RUSAGE: usize = size_of::<rusage>();
const INT: u64 = size_of::<c_int>() as u64;

pub const CALLS: &[Call] = &[
    (SYS_clone, &[Special(clone)]),
    (SYS_clone3, &[Special(clone3)]),
    (SYS_execve, &[Special(|walk| exec(walk, 0))]),
    (SYS_execveat, &[Special(|walk| exec(walk, 1))]),
    // The dying thread's `clear_child_tid` word and robust futexes are written, which no argument names.
    (SYS_exit, &[More]),
    (SYS_exit_group, &[More]),
    (SYS_wait4, &[Special(wait4)]),
    (SYS_waitid, &[Special(waitid)]),
    (SYS_getrlimit, &[Out(1, RLIMIT)]),
    (SYS_setrlimit, &[In(1, RLIMIT)]),
    (SYS_prlimit64, &[In(2, RLIMIT), Out(3, RLIMIT)]),
    (SYS_getrusage, &[Out(1, RUSAGE)]),
    (SYS_times, &[Out(0, size_of::<tms>())]),
    (SYS_kcmp, &[Special(kcmp)]),
    (SYS_rseq, &[InOut(0, 32)]),
];

fn clone(walk: &mut Walk<'_>) {
    let flags = walk.arg(0);
    if flags & CLONE_PIDFD as u64 != 0 {
        parent_writes(walk, walk.arg(2));
    }
    thread_words(walk, flags, walk.arg(2), walk.arg(3));
}

fn clone3(walk: &mut Walk<'_>) {
    /// The first version of the structure, up to where the thread area is named.
    const FIRST_VERSION: u64 = 64;
    /// As far as the ids wanted for the child.
    const WITH_IDS: u64 = 80;
    /// Nesting of pid namespaces.
    const MAX_IDS: u64 = 32;
    let (at, size) = (walk.arg(0), walk.arg(1));
    if size > 4096 {
        return;
    }
    walk.reads(at, size);
    let Some(args) = walk.bytes::<{ FIRST_VERSION as usize }>(at) else { return };
    let flags = word_in(&args, 0);
    if flags & CLONE_PIDFD as u64 != 0 {
        parent_writes(walk, word_in(&args, 8));
    }
    thread_words(walk, flags, word_in(&args, 24), word_in(&args, 16));
    if size >= WITH_IDS
        && let Some((ids, count)) = walk.pair_at(at.saturating_add(FIRST_VERSION))
    {
        walk.reads(ids, count.min(MAX_IDS) * INT);
    }
}

/// The words that get the child's id. That of the child is written by the child, in the memory that it has: the
/// parent's own if it shares that.
fn thread_words(walk: &mut Walk<'_>, flags: u64, parent: u64, child: u64) {
    if flags & CLONE_PARENT_SETTID as u64 != 0 {
        parent_writes(walk, parent);
    }
    let shared = flags & CLONE_VM as u64 != 0;
    let in_child = walk.result() == Some(0);
    if flags & CLONE_CHILD_SETTID as u64 != 0 && (walk.before() || shared != in_child) {
        walk.writes(child, INT);
    }
}

/// Written before the child begins; charged to the parent.
fn parent_writes(walk: &mut Walk<'_>, at: u64) {
    if walk.result() != Some(0) {
        walk.writes(at, INT);
    }
}

/// Path, arguments and environment. After it there is only failure to tell of, from which it does not show
/// whether the strings had been read.
fn exec(walk: &mut Walk<'_>, path: u8) {
    walk.string(walk.arg(path), PATH_MAX);
    if walk.before() {
        strings(walk, walk.arg(path + 1));
        strings(walk, walk.arg(path + 2));
    }
}

/// An array of strings that ends with a null pointer.
fn strings(walk: &mut Walk<'_>, array: u64) {
    /// The kernel's own limits: on one string, on all (three quarters of 8 MiB).
    const LONGEST: u64 = 128 << 10;
    const ALL: u64 = 6 << 20;
    let mut total = 0;
    let mut at = array;
    while total < ALL {
        let Some(string) = walk.u64_at(at) else { break };
        at = at.saturating_add(8);
        if string == 0 {
            break;
        }
        let len = walk.string_len(string, LONGEST);
        walk.tell(string, len, Kind::Read);
        total += len + 8;
    }
    walk.tell(array, at.saturating_sub(array), Kind::Read);
}

/// Nothing is written where no child had anything to tell.
fn wait4(walk: &mut Walk<'_>) {
    if walk.result() != Some(0) {
        walk.writes(walk.arg(1), INT);
        walk.writes(walk.arg(3), RUSAGE as u64);
    }
}

/// Two runs of three numbers are written, whatever the outcome; the usage only with a child's news.
fn waitid(walk: &mut Walk<'_>) {
    const SECOND_RUN: u64 = 16;
    let info = walk.arg(2);
    if walk.errno() != Some(EFAULT) {
        walk.tell(info, 3 * INT, Kind::Write);
        walk.tell(info.saturating_add(SECOND_RUN), 3 * INT, Kind::Write);
    }
    let no_news = walk.result().is_some() && info != 0 && walk.u32_at(info) == Some(0);
    if !no_news {
        walk.writes(walk.arg(4), RUSAGE as u64);
    }
}

/// For one type the last argument is a structure of three numbers, not a number.
fn kcmp(walk: &mut Walk<'_>) {
    const KCMP_EPOLL_TFD: i32 = 7;
    if walk.int(2) == KCMP_EPOLL_TFD {
        walk.reads(walk.arg(4), 12);
    }
}
