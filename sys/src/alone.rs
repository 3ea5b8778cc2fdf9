//! Whether the process has one thread, as far as the runtime is concerned: then locked operations are not needed.
//!
//! # Signal context
//! A load.

use core::sync::atomic::{AtomicBool, Ordering};

static ALONE: AtomicBool = AtomicBool::new(false);

/// The process has one thread, which calls this, or is about to have more. Nobody says so: there may be several.
pub fn set(alone: bool) {
    ALONE.store(alone, Ordering::Relaxed);
}

/// Whether the process has one thread. A program's handlers count as its thread: what relies on this must not be interrupted by
/// one that does the same.
#[inline]
pub fn is() -> bool {
    ALONE.load(Ordering::Relaxed)
}
