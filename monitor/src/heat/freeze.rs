//! Locks across `fork`: the parent takes them all, so that the child's copy is consistent, and both sides release them.
//!
//! # Safety
//! `thaw` releases locks that `freeze` has left taken.
#![allow(unsafe_code)]

use thermalloc_sys::lock::Lock;

/// Something with locks.
pub(super) trait Freeze {
    /// Takes all locks and leaves them taken.
    fn freeze(&self);
    /// Releases them, in the parent and in the child. Call once after each `freeze`.
    fn thaw(&self);
}

impl<T: Send> Freeze for Lock<T> {
    fn freeze(&self) {
        std::mem::forget(self.lock());
    }

    fn thaw(&self) {
        // SAFETY: `freeze` took the lock and has forgotten its guard.
        unsafe { self.unlock() }
    }
}
