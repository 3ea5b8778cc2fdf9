//! Around `fork`: all locks are taken before it, in the order set-up, registry, bins, pool, and released on
//! both sides; the child takes over what the caches of the parent's other threads held.
//!
//! # Safety
//! Locks are released only by whoever took them (or its copy in the child).
#![allow(unsafe_code)]

use crate::meta::BINS;
use crate::{central, init, pool, threads};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CHILD: AtomicBool = AtomicBool::new(false);

/// Is this process the child of a `fork` that the heap lived through?
pub(crate) fn happened() -> bool {
    CHILD.load(Relaxed)
}

/// Before `fork`: takes every lock, so that the child's copy of the heap is consistent. Allocate nothing
/// until [`fork_parent`] or [`fork_child`].
pub fn fork_prepare() {
    init::lock();
    threads::lock();
    for bin in 0..BINS {
        core::mem::forget(central::lock(bin));
    }
    pool::lock();
}

/// In the parent after `fork`.
///
/// # Safety
/// The calling thread called [`fork_prepare`].
pub unsafe fn fork_parent() {
    // SAFETY: taken by `fork_prepare`.
    unsafe {
        pool::unlock();
        for bin in (0..BINS).rev() {
            central::unlock(bin);
        }
        threads::unlock();
        init::unlock();
    }
}

/// In the child after `fork`. With an alias view, [`fork_copy_alias`](crate::fork_copy_alias) comes first.
///
/// # Safety
/// The thread of the parent that called `fork` had called [`fork_prepare`].
pub unsafe fn fork_child() {
    // SAFETY: forwarded to the caller. Nobody waits in the child, and waking nobody is harmless.
    unsafe { fork_parent() };
    CHILD.store(true, Relaxed);
    threads::adopt_all();
}
