//! Windows: the allocator's own access to object memory, which happens only when it clears (calloc) and
//! copies (realloc).
//!
//! With an alias view a window is the alias. In the private view it is the memory itself, which the monitor
//! is asked to open for this thread if it is protected.
//!
//! # Safety
//! Callers own the objects that they clear and copy.
#![allow(unsafe_code)]

use crate::config::Watch;
use crate::hooks::{Hooks, hooks};
use crate::meta::{ANNOUNCED, HEAP, Kind};
use core::ops::Range;

struct Window {
    range: Range<usize>,
    hooks: Option<&'static Hooks>,
}

impl Window {
    fn open(at: usize, len: usize) -> Self {
        let range = at..at + len;
        let protected = HEAP.displacement.get() == 0 && is_announced(at);
        let hooks = if protected { hooks() } else { None };
        if let Some(hooks) = hooks {
            (hooks.open)(range.clone());
        }
        Self { range, hooks }
    }

    fn pointer(&self) -> *mut u8 {
        (self.range.start + HEAP.displacement.get()) as *mut u8
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(hooks) = self.hooks {
            (hooks.close)(self.range.clone());
        }
    }
}

/// May the memory at an address be protected by the monitor?
fn is_announced(at: usize) -> bool {
    let entry = HEAP.slot(HEAP.slot_of(at));
    let head = if entry.kind() == Kind::Tail { HEAP.slot(entry.head.get()) } else { entry };
    head.watch() == Watch::Watched && head.has(ANNOUNCED)
}

/// Writes zeroes.
///
/// # Safety
/// The range lies in one run of committed slots, and nobody else uses it.
pub(crate) unsafe fn clear(at: usize, len: usize) {
    if len == 0 {
        return;
    }
    let window = Window::open(at, len);
    // SAFETY: writable through the window; the caller owns it.
    unsafe { core::ptr::write_bytes(window.pointer(), 0, len) };
}

/// Copies an object's bytes.
///
/// # Safety
/// As [`clear`], for both ranges, which do not overlap.
pub(crate) unsafe fn copy(from: usize, to: usize, len: usize) {
    let source = Window::open(from, len);
    let target = Window::open(to, len);
    // SAFETY: readable and writable through the windows; the caller owns both.
    unsafe { core::ptr::copy_nonoverlapping(source.pointer(), target.pointer(), len) };
}
