//! Asynchronous input and output: the old interface (`io_submit`) and, as far as it can be followed, io_uring.
//!
//! Buffers are told before `io_submit`, which needs them, and charged when `io_getevents` hands out the
//! completion, which says how much was moved.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::events::mask;
use super::walk::{Walk, half_in, word_in};
use libc::*;

const IOCB: u64 = 64;
const IO_EVENT: usize = 32;
/// Offset and value range of an iocb's key, which `io_submit` writes and `io_cancel` reads.
const KEY: u64 = 8;
const MAX_REQUESTS: u64 = 1 << 12;
/// `struct io_uring_params`.
const RING_PARAMS: usize = 120;
const TIMESPEC: usize = size_of::<timespec>();

pub const CALLS: &[Call] = &[
    (SYS_io_setup, &[InOut(1, size_of::<u64>())]),
    (SYS_io_submit, &[Special(io_submit)]),
    (SYS_io_cancel, &[Special(|walk| walk.reads(walk.arg(1).saturating_add(KEY), 4))]),
    (SYS_io_getevents, &[FilledArray(3, 2, IO_EVENT), Special(completions), In(4, TIMESPEC)]),
    (
        IO_PGETEVENTS,
        &[FilledArray(3, 2, IO_EVENT), Special(completions), In(4, TIMESPEC), Special(|walk| mask(walk, 5))],
    ),
    (SYS_io_uring_setup, &[InOut(1, RING_PARAMS), More]),
    (SYS_io_uring_enter, &[Anything]),
    (SYS_io_uring_register, &[Anything]),
];

const IO_PGETEVENTS: c_long = 333;

/// An array of pointers to requests. The result is the number of requests taken.
fn io_submit(walk: &mut Walk<'_>) {
    let asked = walk.arg(1);
    let count = match walk.result() {
        Some(taken) => asked.min(taken),
        None if walk.before() => asked,
        None => return,
    };
    if count > MAX_REQUESTS {
        walk.partial();
    }
    let count = count.min(MAX_REQUESTS);
    walk.reads(walk.arg(2), count * 8);
    for i in 0..count {
        let Some(request) = walk.u64_at(walk.arg(2).saturating_add(i * 8)) else { return };
        walk.reads(request, IOCB);
        walk.writes(request.saturating_add(KEY), 4);
        if walk.before() {
            buffers(walk, request, u64::MAX);
        }
    }
}

/// Each event names its request and says how many bytes were moved, or what failed.
fn completions(walk: &mut Walk<'_>) {
    let count = walk.result().unwrap_or(0).min(MAX_REQUESTS);
    for i in 0..count {
        let at = walk.arg(3).saturating_add(i * IO_EVENT as u64);
        let Some(event) = walk.bytes::<IO_EVENT>(at) else { return };
        let moved = word_in(&event, 16);
        if moved as i64 > 0 {
            buffers(walk, word_in(&event, 8), moved);
        }
    }
}

/// What the request at `at` moves.
fn buffers(walk: &mut Walk<'_>, at: u64, moved: u64) {
    let Some(request) = walk.bytes::<{ IOCB as usize }>(at) else { return };
    let (buffer, len) = (word_in(&request, 24), word_in(&request, 32));
    match half_in(&request, 16) & 0xffff {
        0 => walk.tell(buffer, len.min(moved), Kind::Write),
        1 => walk.tell(buffer, len.min(moved), Kind::Read),
        7 => walk.spread(buffer, len, Kind::Write, moved),
        8 => walk.spread(buffer, len, Kind::Read, moved),
        _ => {}
    }
}
