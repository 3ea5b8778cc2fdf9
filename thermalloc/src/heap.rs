//! Allocation with its monitoring: where the allocator and the monitor meet.
//!
//! # Safety
//! As the allocator's own interface: `free` and `reallocate` take pointers that the program vouches for, as far as
//! misuse is not detected.
#![allow(unsafe_code)]

use core::fmt::{self, Write};
use thermalloc_alloc as alloc;
use thermalloc_alloc::{Misuse, Watch};
use thermalloc_monitor::thread::{Runtime, Thread};
use thermalloc_monitor::unwind::Caller;
use thermalloc_monitor::{control, objects};
use thermalloc_sys::gate;

/// Allocates `size` bytes for the program. Null when there is no memory, or when size and alignment overflow.
#[inline(always)]
pub fn allocate(size: usize, align: usize, zeroed: bool, caller: Caller) -> *mut u8 {
    if control::is_started() {
        allocate_monitored(size, align, zeroed, caller)
    } else {
        raw_allocate(size, align, zeroed, Watch::Unwatched)
    }
}

#[inline(always)]
fn raw_allocate(size: usize, align: usize, zeroed: bool, watch: Watch) -> *mut u8 {
    if zeroed { alloc::allocate_zeroed(size, align, watch) } else { alloc::allocate(size, align, watch) }
}

#[inline(never)]
fn allocate_monitored(size: usize, align: usize, zeroed: bool, caller: Caller) -> *mut u8 {
    let Some(thread) = idle_thread() else { return raw_allocate(size, align, zeroed, Watch::Unwatched) };
    Runtime::enter(thread).run(|| {
        let watch = watch_for(size, &caller);
        let at = raw_allocate(size, align, zeroed, watch);
        if !at.is_null() && watch == Watch::Watched {
            objects::born(thread, at as usize, size, caller);
        }
        at
    })
}

/// The calling thread, if it is one of the program's in the program's own code.
#[inline]
fn idle_thread() -> Option<&'static Thread> {
    Thread::current().filter(|thread| !thread.is_busy())
}

fn watch_for(size: usize, caller: &Caller) -> Watch {
    if objects::is_wanted(size, caller.ip) { Watch::Watched } else { Watch::Unwatched }
}

/// Frees an object; null is nothing.
///
/// # Safety
/// The program has no use for the object any more.
#[inline(always)]
pub unsafe fn free(at: *mut u8) -> Result<(), Misuse> {
    if control::is_started() {
        // SAFETY: forwarded to the caller.
        unsafe { free_monitored(at) }
    } else {
        // SAFETY: forwarded to the caller.
        unsafe { alloc::free(at) }
    }
}

#[inline(never)]
unsafe fn free_monitored(at: *mut u8) -> Result<(), Misuse> {
    let end = || {
        objects::died(at as usize);
        // SAFETY: forwarded to the caller.
        unsafe { alloc::free(at) }
    };
    match idle_thread() {
        Some(thread) => Runtime::enter(thread).run(end),
        None => end(),
    }
}

/// Changes the size of an object, in place where possible. A new object begins, with `caller` as its site. Null when
/// there is no memory: the old object then stays as it was.
///
/// # Safety
/// `at` is an object of the program's, and unless null is returned it is used no more.
#[inline(always)]
pub unsafe fn reallocate(at: *mut u8, size: usize, align: usize, caller: Caller) -> Result<*mut u8, Misuse> {
    if control::is_started() {
        // SAFETY: forwarded to the caller.
        unsafe { reallocate_monitored(at, size, align, caller) }
    } else {
        // SAFETY: forwarded to the caller.
        unsafe { alloc::reallocate(at, size, align, Watch::Unwatched) }
    }
}

#[inline(never)]
unsafe fn reallocate_monitored(
    at: *mut u8,
    size: usize,
    align: usize,
    caller: Caller,
) -> Result<*mut u8, Misuse> {
    let Some(thread) = idle_thread() else {
        // SAFETY: forwarded to the caller.
        return unsafe { alloc::reallocate(at, size, align, Watch::Unwatched) };
    };
    // SAFETY: forwarded to the caller.
    Runtime::enter(thread).run(|| unsafe { resize(thread, at, size, align, caller) })
}

/// [`reallocate`] inside the runtime.
unsafe fn resize(
    thread: &'static Thread,
    at: *mut u8,
    size: usize,
    align: usize,
    caller: Caller,
) -> Result<*mut u8, Misuse> {
    let watch = watch_for(size, &caller);
    let stays =
        (watch == Watch::Watched) == alloc::is_watched(at as usize) && (at as usize).is_multiple_of(align);
    // SAFETY: forwarded to the caller.
    if stays && unsafe { alloc::resize_in_place(at, size) } {
        objects::died(at as usize);
        objects::born(thread, at as usize, size, caller);
        return Ok(at);
    }
    // SAFETY: forwarded to the caller.
    let fresh = unsafe { alloc::duplicate(at, size, align, watch) }?;
    if !fresh.is_null() {
        objects::born(thread, fresh as usize, size, caller);
        objects::died(at as usize);
        // SAFETY: forwarded to the caller; the contents are in the new object.
        unsafe { alloc::free(at) }?;
    }
    Ok(fresh)
}

/// The program's own allocator has a pool of `length` bytes at `base`, in an object of this heap, cut into chunks: each is an object
/// named `label` (a C string) from here on.
pub fn pool(base: usize, length: usize, chunk: usize, label: usize, caller: Caller) {
    with_thread(|thread| objects::pool(thread, base..base.saturating_add(length), chunk, label, caller));
}

/// The program's own allocator has handed out `size` bytes at `at`: an object named `label` (a C string), until [`unnamed`].
pub fn named(at: usize, size: usize, label: usize, caller: Caller) {
    with_thread(|thread| objects::named(thread, at..at.saturating_add(size), label, caller));
}

/// The named object at `at` has ended.
pub fn unnamed(at: usize, caller: Caller) {
    with_thread(|thread| objects::unnamed(thread, at, caller));
}

/// Runs code of the runtime on the calling thread, if it is watched.
fn with_thread(act: impl FnOnce(&'static Thread)) {
    if let Some(thread) = idle_thread().filter(|_| control::is_started()) {
        Runtime::enter(thread).run(|| act(thread));
    }
}

/// Runs code of the runtime: its allocations are its own, its system calls pass, and signals wait.
pub fn as_runtime<R>(act: impl FnOnce() -> R) -> R {
    match idle_thread() {
        Some(thread) => Runtime::enter(thread).run(act),
        None => act(),
    }
}

/// Says on stderr, in one line, what is wrong with a pointer that `function` was handed.
#[cold]
pub fn say_misuse(function: &str, at: usize, misuse: Misuse) {
    let mut line = Line::new();
    let _ = match misuse {
        Misuse::DoubleFree => {
            writeln!(line, "thermalloc: {function}({at:#x}): double free: the object is free already")
        }
        Misuse::Interior { base } => writeln!(
            line,
            "thermalloc: {function}({at:#x}): not the start of an object: it lies {} bytes inside the one at {base:#x}",
            at - base
        ),
        Misuse::Foreign => {
            writeln!(
                line,
                "thermalloc: {function}({at:#x}): foreign pointer: no object of this heap is there"
            )
        }
    };
    gate::write_all(2, line.bytes());
}

/// A message of one line, without allocation.
struct Line {
    text: [u8; 192],
    len: usize,
}

impl Line {
    fn new() -> Self {
        Self { text: [0; 192], len: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.text[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}
