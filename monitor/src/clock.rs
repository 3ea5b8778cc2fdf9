//! Time since the monitor started.
//!
//! # Signal context
//! clock_gettime is answered by the vDSO, or by a system call that handlers let pass.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

static START: AtomicU64 = AtomicU64::new(0);
static FROZEN: AtomicU64 = AtomicU64::new(0);
static START_UNIX: AtomicU64 = AtomicU64::new(0);

/// Starts the clock, once.
pub fn start() {
    if START.load(Ordering::Relaxed) == 0 {
        START_UNIX.store(read(libc::CLOCK_REALTIME), Ordering::Relaxed);
        START.store(read(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
    }
}

/// Starts the clock anew, in a forked child.
pub fn restart() {
    START.store(0, Ordering::Relaxed);
    start();
}

/// Stops the clock: in a strict sandbox the time-stamp counter faults (prctl(2), PR_SET_SECCOMP), and the vDSO reads it.
pub fn freeze() {
    FROZEN.store(now().max(1), Ordering::Relaxed);
}

/// Nanoseconds since [`start`].
pub fn now() -> u64 {
    let frozen = FROZEN.load(Ordering::Relaxed);
    if frozen != 0 {
        return frozen;
    }
    read(libc::CLOCK_MONOTONIC).saturating_sub(START.load(Ordering::Relaxed))
}

/// Nanoseconds of the Unix epoch at [`start`].
pub fn start_unix() -> u64 {
    START_UNIX.load(Ordering::Relaxed)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a live local.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
