//! Futexes: which words an operation looks at.
//!
//! Operations that only name a word still need its page, unless the futex is private: the kernel identifies a
//! shared word by the memory behind it.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::{Walk, half_in, word_in};
use libc::*;

const WORD: u64 = 4;
const TIMESPEC: u64 = size_of::<timespec>() as u64;
/// `struct futex_waitv`: value, address, flags.
const WAITV: u64 = 24;
const MAX_WAITERS: u32 = 128;
const FUTEX_LOCK_PI2: i32 = 13;

const FUTEX_WAKE_NR: c_long = 454;
const FUTEX_WAIT_NR: c_long = 455;
const FUTEX_REQUEUE_NR: c_long = 456;

pub const CALLS: &[Call] = &[
    (SYS_futex, &[Special(futex)]),
    (SYS_futex_waitv, &[Special(|walk| waiters(walk, walk.uint(1))), In(3, TIMESPEC as usize)]),
    (FUTEX_WAKE_NR, &[Special(|walk| walk.prepares(walk.arg(0), WORD, Kind::Write))]),
    (FUTEX_WAIT_NR, &[In(0, WORD as usize), In(4, TIMESPEC as usize)]),
    (FUTEX_REQUEUE_NR, &[Special(|walk| waiters(walk, 2))]),
    (SYS_get_robust_list, &[Out(1, size_of::<u64>()), Out(2, size_of::<u64>())]),
];

fn futex(walk: &mut Walk<'_>) {
    let (word, timeout, other) = (walk.arg(0), walk.arg(3), walk.arg(4));
    // Naming a shared word may break copy-on-write, hence `Write`.
    walk.prepares(word, WORD, Kind::Write);
    match walk.int(1) & FUTEX_CMD_MASK {
        FUTEX_WAIT | FUTEX_WAIT_BITSET => {
            walk.reads(word, WORD);
            walk.reads(timeout, TIMESPEC);
        }
        FUTEX_WAKE | FUTEX_WAKE_BITSET => {}
        FUTEX_REQUEUE => walk.prepares(other, WORD, Kind::Write),
        FUTEX_CMP_REQUEUE => {
            walk.reads(word, WORD);
            walk.prepares(other, WORD, Kind::Write);
        }
        FUTEX_WAKE_OP => walk.updates(other, WORD),
        FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
            walk.updates(word, WORD);
            walk.reads(timeout, TIMESPEC);
        }
        FUTEX_TRYLOCK_PI | FUTEX_UNLOCK_PI => walk.updates(word, WORD),
        FUTEX_WAIT_REQUEUE_PI => {
            walk.reads(word, WORD);
            walk.reads(timeout, TIMESPEC);
            walk.updates(other, WORD);
        }
        FUTEX_CMP_REQUEUE_PI => {
            walk.reads(word, WORD);
            walk.updates(other, WORD);
        }
        // FUTEX_FD is gone; newer operations are not known here.
        _ => walk.partial(),
    }
}

/// An array of words to look at.
fn waiters(walk: &mut Walk<'_>, count: u32) {
    if count > MAX_WAITERS {
        return;
    }
    walk.reads(walk.arg(0), u64::from(count) * WAITV);
    for i in 0..u64::from(count) {
        let Some(waiter) = walk.bytes::<{ WAITV as usize }>(walk.arg(0).saturating_add(i * WAITV)) else {
            return;
        };
        let size = 1 << (half_in(&waiter, 16) & 3);
        walk.prepares(word_in(&waiter, 8), size, Kind::Write);
        walk.reads(word_in(&waiter, 8), size);
    }
}
