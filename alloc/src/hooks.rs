//! What the monitor wants to know and do while it protects the program view. Absent hooks are no-ops.
//!
//! # Safety
//! The pointer is null or came from a `&'static Hooks`.
//!
//! # Signal context
//! [`hooks`] may be called anywhere.
#![allow(unsafe_code)]

use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Functions of the monitor. They are called with internal locks held or from within `malloc`: they must
/// neither allocate nor free through this allocator.
#[derive(Debug)]
pub struct Hooks {
    /// A watched range of slots (program view) is in use from now on, or was mapped afresh: protect it.
    /// Called before any pointer into it is handed out; may be called again for a range that is protected
    /// already.
    pub committed: fn(Range<usize>),
    /// The memory of a watched range was given back: end its protection, for its slots may next be unwatched
    /// ones. If they are watched again, [`committed`](Self::committed) comes again first.
    pub released: fn(Range<usize>),
    /// Private view: lets the calling thread read and write a watched range (any bytes, not whole pages).
    pub open: fn(Range<usize>),
    /// Ends what [`open`](Self::open) began.
    pub close: fn(Range<usize>),
    /// Runs a function of the allocator's that libc has called, as if the program had called malloc.
    pub inside: fn(fn()),
}

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(core::ptr::null_mut());

/// Installs the monitor's hooks for good and calls `committed` for each watched range that is in use already.
/// Returns false if hooks were installed before; the first ones stay.
pub fn install_hooks(hooks: &'static Hooks) -> bool {
    let hooks = core::ptr::from_ref(hooks).cast_mut();
    // Release pairs with the Acquire of `hooks`.
    let installed =
        HOOKS.compare_exchange(core::ptr::null_mut(), hooks, Ordering::Release, Ordering::Relaxed).is_ok();
    if installed {
        crate::pool::announce_all();
    }
    installed
}

/// The installed hooks.
#[inline]
pub(crate) fn hooks() -> Option<&'static Hooks> {
    // Acquire pairs with the Release of `install_hooks`.
    let hooks = HOOKS.load(Ordering::Acquire);
    // SAFETY: null, or a `&'static Hooks`.
    unsafe { hooks.as_ref() }
}
