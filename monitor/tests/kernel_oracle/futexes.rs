//! Futex operations.

use crate::check::case;
use libc::*;

const FUTEX_WAKE_NR: c_long = 454;
const FUTEX_WAIT_NR: c_long = 455;
const PRIVATE: i32 = FUTEX_PRIVATE_FLAG;

#[test]
fn waiting() {
    for flag in [0, PRIVATE] {
        case(SYS_futex, |s| [s.ints(&[1]), (FUTEX_WAIT | flag) as u64, 2, s.words(&[1, 0])])
            .fails(EAGAIN)
            .holds();
        case(SYS_futex, |s| [s.ints(&[1]), (FUTEX_WAIT | flag) as u64, 1, s.words(&[0, 1000])])
            .fails(ETIMEDOUT)
            .holds();
        let operation = (FUTEX_WAIT_BITSET | flag) as u64;
        case(SYS_futex, |s| [s.ints(&[1]), operation, 1, s.words(&[0, 1000]), 0, 1]).fails(ETIMEDOUT).holds();
    }
}

#[test]
fn waking() {
    for flag in [0, PRIVATE] {
        case(SYS_futex, |s| [s.ints(&[1]), (FUTEX_WAKE | flag) as u64, 1]).holds();
        case(SYS_futex, |s| [s.ints(&[1]), (FUTEX_REQUEUE | flag) as u64, 1, 1, s.ints(&[2])]).holds();
        case(SYS_futex, |s| [s.ints(&[1]), (FUTEX_CMP_REQUEUE | flag) as u64, 1, 1, s.ints(&[2]), 1]).holds();
        // Add 5 to the second word; wake there too if it was 7.
        let sum = 1 << 28 | 5 << 12 | 7;
        case(SYS_futex, |s| [s.ints(&[1]), (FUTEX_WAKE_OP | flag) as u64, 1, 1, s.ints(&[2]), sum]).holds();
    }
}

#[test]
fn owners() {
    case(SYS_futex, |s| [s.ints(&[0]), (FUTEX_TRYLOCK_PI | PRIVATE) as u64]).holds();
    case(SYS_futex, |s| {
        [s.ints(&[0]), (FUTEX_LOCK_PI | PRIVATE) as u64, 0, s.words(&[i64::MAX as u64 >> 1, 0])]
    })
    .holds();
    case(SYS_futex, |s| {
        let word = s.ints(&[0]);
        s.need(SYS_futex, &[word, (FUTEX_LOCK_PI | PRIVATE) as u64]);
        [word, (FUTEX_UNLOCK_PI | PRIVATE) as u64]
    })
    .holds();
}

#[test]
fn newer_calls() {
    const SIZE_U32: u64 = 2;
    const FUTEX2_PRIVATE: u64 = 128;
    let flags = SIZE_U32 | FUTEX2_PRIVATE;
    case(SYS_futex_waitv, |s| {
        let (one, two) = (s.ints(&[1]), s.ints(&[1]));
        [s.words(&[1, one, flags, 2, two, flags]), 2, 0, s.words(&[1, 0]), CLOCK_MONOTONIC as u64]
    })
    .fails(EAGAIN)
    .optional()
    .holds();
    case(FUTEX_WAKE_NR, |s| [s.ints(&[1]), 1, 1, SIZE_U32]).optional().holds();
    case(FUTEX_WAIT_NR, |s| [s.ints(&[1]), 2, 1, flags, s.words(&[1, 0]), CLOCK_MONOTONIC as u64])
        .fails(EAGAIN)
        .optional()
        .holds();
}
