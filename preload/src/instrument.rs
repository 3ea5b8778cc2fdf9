//! What `thermalloc.h` declares, and what binaries built by `thermalloc-cc` refer to; all of it weakly, so that they run
//! without this library too.
//!
//! # Safety
//! C entry points: the program vouches for its pointers.
#![allow(unsafe_code)]

use crate::caller::export;
use core::ffi::{CStr, c_char, c_int};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use thermalloc::heap;
use thermalloc_monitor::instrument::{self, Module};
use thermalloc_monitor::thread::Thread;
use thermalloc_monitor::unwind::Caller;

export! {
    /// `void thermalloc_object(void *ptr, size_t size, const char *label)`
    thermalloc_object => named;
    /// `void thermalloc_free(void *ptr)`
    thermalloc_free => unnamed;
}

extern "C" fn named(at: usize, size: usize, label: usize, ip: u64, sp: u64, bp: u64) -> usize {
    heap::named(at, size, label, Caller { ip, sp, bp });
    0
}

extern "C" fn unnamed(at: usize, _: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    heap::unnamed(at, Caller { ip, sp, bp });
    0
}

/// `void thermalloc_pool(void *base, size_t length, size_t chunk_size, const char *label)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thermalloc_pool(base: usize, length: usize, chunk: usize, label: usize) {
    core::arch::naked_asm!("mov r8, [rsp]", "lea r9, [rsp + 8]", "jmp {}", sym pool)
}

extern "C" fn pool(base: usize, length: usize, chunk: usize, label: usize, ip: u64, sp: u64) {
    // Without its frame pointer a caller is found by its unwind tables alone.
    heap::pool(base, length, chunk, label, Caller { ip, sp, bp: 0 });
}

/// `int thermalloc_start(void)`: goes on after `thermalloc_stop`. 0, or -1 where nothing is monitored.
#[unsafe(no_mangle)]
pub extern "C" fn thermalloc_start() -> c_int {
    thermalloc_monitor::control::resume();
    if thermalloc::is_running() { 0 } else { -1 }
}

/// `void thermalloc_stop(void)`: accesses go unwatched until `thermalloc_start`.
#[unsafe(no_mangle)]
pub extern "C" fn thermalloc_stop() {
    thermalloc::stop();
}

/// `int thermalloc_snapshot(const char *path)`: writes the report as it stands; null: where the settings say. 0, or -1.
///
/// # Safety
/// `path` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thermalloc_snapshot(path: *const c_char) -> c_int {
    // SAFETY: the program vouches for the string; it is copied, for it may lie in the watched heap.
    let path = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }.to_owned());
    let path = path.as_ref().map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
    if thermalloc::report(path).is_ok() { 0 } else { -1 }
}

/// An instrumented binary has been loaded.
///
/// # Safety
/// `module` lives until [`thermalloc_instrument_detach`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thermalloc_instrument_attach(module: *const Module) {
    crate::start::ensure();
    // SAFETY: forwarded to the caller.
    heap::as_runtime(|| unsafe { instrument::attach(module) });
}

/// It is about to be unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn thermalloc_instrument_detach(module: *const Module) {
    heap::as_runtime(|| instrument::detach(module));
}

/// What the calling thread adds to the address of a granule to reach its counters; never 0.
#[unsafe(no_mangle)]
pub extern "C" fn thermalloc_instrument_thread() -> usize {
    Thread::current().map_or(1, instrument::bias)
}

/// Word `which` (0 to 3) of the cell at `cell` has wrapped.
#[unsafe(no_mangle)]
pub extern "C" fn thermalloc_instrument_overflow(cell: usize, which: u32) {
    if let Some(thread) = Thread::current() {
        instrument::on_wrap(thread, cell + 4 * which as usize);
    }
}

/// An access that has no counter. `kinds`: 1 read, 2 write, 3 both.
#[unsafe(no_mangle)]
pub extern "C" fn thermalloc_instrument_access(address: usize, length: usize, kinds: u32) {
    if let Some(thread) = Thread::current().filter(|thread| !thread.is_busy()) {
        instrument::charge(thread, address, length, kinds);
    }
}
