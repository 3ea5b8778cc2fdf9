//! Waiting for descriptors: poll, select, epoll.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::{Outcome, Walk, word_in};
use libc::*;

const EVENT: usize = size_of::<epoll_event>();
const TIMESPEC: usize = size_of::<timespec>();
/// Most descriptors that `poll` can be handed (`NR_OPEN`, the default of `fs.nr_open`).
const MAX_FDS: u64 = 1 << 20;

pub const CALLS: &[Call] = &[
    (SYS_poll, &[Special(poll_fds)]),
    (SYS_ppoll, &[Special(poll_fds), Special(|walk| time_left(walk, 2)), InBytes(3, 4)]),
    (SYS_select, &[Special(select_sets), Special(|walk| time_left(walk, 4))]),
    (
        SYS_pselect6,
        &[Special(select_sets), Special(|walk| time_left(walk, 4)), Special(|walk| mask(walk, 5))],
    ),
    (SYS_epoll_ctl, &[Special(epoll_ctl)]),
    (SYS_epoll_wait, &[FilledArray(1, 2, EVENT)]),
    (SYS_epoll_pwait, &[FilledArray(1, 2, EVENT), InBytes(4, 5)]),
    (SYS_epoll_pwait2, &[FilledArray(1, 2, EVENT), In(3, TIMESPEC), InBytes(4, 5)]),
];

/// Whether a call that waits got as far as its end, be it by a signal.
fn waited(walk: &Walk<'_>) -> bool {
    matches!(walk.outcome(), Outcome::Before | Outcome::Done(_) | Outcome::Tried(EINTR))
}

/// Reads the array; writes back each `revents`, also when a signal ends the wait.
fn poll_fds(walk: &mut Walk<'_>) {
    const POLLFD: u64 = size_of::<pollfd>() as u64;
    const REVENTS: u64 = 6;
    let (at, count) = (walk.arg(0), u64::from(walk.uint(1)));
    if count > MAX_FDS {
        return walk.partial();
    }
    walk.reads(at, count * POLLFD);
    if walk.before() {
        walk.tell(at, count * POLLFD, Kind::Write);
    } else if waited(walk) {
        for i in 0..count {
            walk.tell(at.saturating_add(i * POLLFD + REVENTS), 2, Kind::Write);
        }
    }
}

/// Three sets of bits, in whole words.
fn select_sets(walk: &mut Walk<'_>) {
    let bytes = u64::from(walk.uint(0)).div_ceil(64) * 8;
    if walk.int(0) > 0 {
        for at in 1..4 {
            walk.updates(walk.arg(at), bytes);
        }
    }
}

/// A timeout into which the kernel writes what is left of it, also when a signal ends the wait.
fn time_left(walk: &mut Walk<'_>, at: u8) {
    let at = walk.arg(at);
    walk.reads(at, TIMESPEC as u64);
    if waited(walk) {
        walk.tell(at, TIMESPEC as u64, Kind::Write);
    }
}

/// A structure that holds the address and the size of a signal mask.
pub fn mask(walk: &mut Walk<'_>, at: u8) {
    let at = walk.arg(at);
    walk.reads(at, 16);
    if let Some(pair) = walk.bytes::<16>(at) {
        walk.reads(word_in(&pair, 0), word_in(&pair, 8));
    }
}

fn epoll_ctl(walk: &mut Walk<'_>) {
    if walk.int(1) != EPOLL_CTL_DEL {
        walk.reads(walk.arg(3), EVENT as u64);
    }
}
