//! Setting up the heap, once: by [`init`], or with the defaults by the first allocation, which may come from
//! the dynamic loader before anything else of the process runs.
//!
//! # Safety
//! The shape is set under the lock, before the heap is published.
#![allow(unsafe_code)]

use crate::classes::{ClassTable, MIN_ALIGN};
use crate::config::{HeapConfig, InitError};
use crate::{arena, shape, threads};
use core::sync::atomic::{AtomicBool, Ordering};
use thermalloc_sys::lock::Lock;

static READY: AtomicBool = AtomicBool::new(false);
static SETUP: Lock<()> = Lock::new(());

/// Sets up the heap. The first call wins, and so does an allocation made before it.
pub fn init(config: &HeapConfig) -> Result<(), InitError> {
    let _setup = SETUP.lock();
    if is_initialized() {
        return Err(InitError::AlreadyInitialized);
    }
    let table = ClassTable::new(config.preset, &config.classes).filter(|_| config.classes.align >= MIN_ALIGN);
    let table = table.ok_or(InitError::BadClasses)?;
    // SAFETY: under the lock, not ready yet. A failed attempt leaves a shape that nobody reads.
    unsafe { shape::set(&table) };
    arena::reserve(config.view, config.arena_bytes)?;
    threads::make_key();
    // Release pairs with the Acquire of `is_initialized`.
    READY.store(true, Ordering::Release);
    Ok(())
}

/// Has the heap been set up?
#[inline]
pub fn is_initialized() -> bool {
    // Acquire pairs with the Release of `init`.
    READY.load(Ordering::Acquire)
}

/// Sets up the heap with the defaults if need be. Returns whether there is one.
#[inline]
pub(crate) fn ensure() -> bool {
    is_initialized() || ensure_default()
}

#[cold]
fn ensure_default() -> bool {
    matches!(init(&HeapConfig::DEFAULT), Ok(()) | Err(InitError::AlreadyInitialized))
}

/// Holds the set-up lock until [`unlock`].
pub(crate) fn lock() {
    core::mem::forget(SETUP.lock());
}

/// # Safety
/// The calling thread (or its parent before fork) called [`lock`].
pub(crate) unsafe fn unlock() {
    // SAFETY: forwarded to the caller.
    unsafe { SETUP.unlock() };
}
