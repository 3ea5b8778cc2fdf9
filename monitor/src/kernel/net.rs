//! Sockets, but for their options.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::{self, *};
use super::describe::Call;
use super::walk::{Walk, half_in, word_in};
use libc::*;

/// Addresses are at most a `sockaddr_storage`.
const MAX_ADDRESS: u64 = size_of::<sockaddr_storage>() as u64;
const MSGHDR: u64 = size_of::<msghdr>() as u64;
const MMSGHDR: u64 = size_of::<mmsghdr>() as u64;
/// `sendmmsg` takes no more messages than this in one go; `recvmmsg` is followed no further.
const MAX_MESSAGES: u64 = 1024;

/// A pointer to room for an address in argument 1, to its length in 2.
const ADDRESS_BACK: &[Arg] = &[Special(|walk| address_back(walk, 1))];

pub const CALLS: &[Call] = &[
    (SYS_socketpair, &[Out(3, size_of::<[c_int; 2]>())]),
    (SYS_bind, &[Special(|walk| address(walk, 1))]),
    (SYS_connect, &[Special(|walk| address(walk, 1))]),
    (SYS_accept, ADDRESS_BACK),
    (SYS_accept4, ADDRESS_BACK),
    (SYS_getsockname, ADDRESS_BACK),
    (SYS_getpeername, ADDRESS_BACK),
    (SYS_sendto, &[Sent(1, 2), Special(|walk| address(walk, 4))]),
    (SYS_recvfrom, &[Filled(1, 2), Special(|walk| address_back(walk, 4))]),
    (SYS_sendmsg, &[Special(|walk| message(walk, walk.arg(1), Direction::Send, moved(walk)))]),
    (SYS_recvmsg, &[Special(|walk| message(walk, walk.arg(1), Direction::Receive, moved(walk)))]),
    (SYS_sendmmsg, &[Special(|walk| messages(walk, Direction::Send))]),
    (SYS_recvmmsg, &[Special(|walk| messages(walk, Direction::Receive)), InOut(4, size_of::<timespec>())]),
];

/// An address that the program hands in: where it is in argument `at`, its length in the next.
fn address(walk: &mut Walk<'_>, at: u8) {
    let len = u64::from(walk.uint(at + 1));
    if len <= MAX_ADDRESS {
        walk.reads(walk.arg(at), len);
    }
}

/// An address that the kernel hands out, with its length, which says how much room there is.
fn address_back(walk: &mut Walk<'_>, at: u8) {
    let (room, len_at) = (walk.arg(at), walk.arg(at + 1));
    if room == 0 {
        return;
    }
    if let Some(len) = walk.u32_at(len_at) {
        walk.writes(room, u64::from(len).min(MAX_ADDRESS));
    }
    if walk.before() || walk.result().is_some() {
        walk.updates(len_at, 4);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Send,
    Receive,
}

/// Bytes of payload that a message may or did have.
fn moved(walk: &Walk<'_>) -> u64 {
    if walk.before() { u64::MAX } else { walk.result().unwrap_or(0) }
}

/// A message header and what hangs off it.
fn message(walk: &mut Walk<'_>, at: u64, direction: Direction, moved: u64) {
    const NAME_LEN: u64 = 8;
    const CONTROL_LEN: u64 = 40;
    const FLAGS: u64 = 48;
    walk.reads(at, MSGHDR);
    let Some(header) = walk.bytes::<{ MSGHDR as usize }>(at) else { return };
    let (name, name_len) = (word_in(&header, 0), u64::from(half_in(&header, NAME_LEN as usize)));
    let (iovecs, count) = (word_in(&header, 16), word_in(&header, 24));
    let (control, control_len) = (word_in(&header, 32), word_in(&header, CONTROL_LEN as usize));
    let name_len = name_len.min(MAX_ADDRESS);
    match direction {
        Direction::Send => {
            walk.spread(iovecs, count, Kind::Read, moved);
            walk.reads(name, name_len);
            walk.reads(control, control_len);
        }
        Direction::Receive => {
            walk.spread(iovecs, count, Kind::Write, moved);
            walk.writes(name, name_len);
            walk.writes(control, control_len);
            if name != 0 {
                walk.writes(at.saturating_add(NAME_LEN), 4);
            }
            walk.writes(at.saturating_add(CONTROL_LEN), 8);
            walk.writes(at.saturating_add(FLAGS), 4);
        }
    }
}

/// An array of headers, each followed by the number of bytes moved, which the kernel fills in. The result is the
/// number of messages; after a failure the first alone was looked at.
fn messages(walk: &mut Walk<'_>, direction: Direction) {
    let count = u64::from(walk.uint(2)).min(MAX_MESSAGES);
    let count = match walk.result() {
        Some(done) => count.min(done),
        None if walk.before() => count,
        None => count.min(1),
    };
    if walk.before() && u64::from(walk.uint(2)) > MAX_MESSAGES && direction == Direction::Receive {
        walk.partial();
    }
    for i in 0..count {
        let at = walk.arg(1).saturating_add(i * MMSGHDR);
        let len_at = at.saturating_add(MSGHDR);
        let moved = match walk.result() {
            Some(_) => u64::from(walk.u32_at(len_at).unwrap_or(0)),
            None => moved(walk),
        };
        message(walk, at, direction, moved);
        walk.writes(len_at, 4);
    }
}
