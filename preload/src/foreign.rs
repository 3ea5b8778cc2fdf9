//! Entry points of other allocators. A program linked to one of them calls both its own names (`mallocx`, `sdallocx`) and
//! malloc's; since malloc's are ours, the others must be too, or a pointer of one heap meets the other's free.
//!
//! jemalloc's interface: jemalloc(3), "Non-standard API". tcmalloc's: gperftools/tcmalloc.h.
//!
//! # Safety
//! As in `standard`.
#![allow(unsafe_code)]

use crate::caller::export;
use crate::standard::{allocate, release};
use crate::start;
use core::ffi::{c_char, c_void};
use libc::{c_int, size_t};
use thermalloc::heap;
use thermalloc_alloc as alloc;
use thermalloc_monitor::unwind::Caller;

const ALIGN: usize = 16;
/// MALLOCX_ZERO.
const ZERO: usize = 0x40;

/// MALLOCX_LG_ALIGN: the low six bits are the logarithm of the alignment.
fn alignment(flags: usize) -> usize {
    1usize.checked_shl((flags & 0x3f) as u32).unwrap_or(ALIGN).max(ALIGN)
}

export! {
    /// jemalloc: mallocx.
    mallocx => allocate_flags;
    /// jemalloc: rallocx.
    rallocx => reallocate_flags;
    /// tcmalloc: tc_malloc.
    tc_malloc => allocate;
    /// tcmalloc: operator new under its C name.
    tc_new => allocate;
}

/// `mallocx(size, flags)`.
extern "C" fn allocate_flags(size: usize, flags: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    start::ensure();
    heap::allocate(size, alignment(flags), flags & ZERO != 0, Caller { ip, sp, bp }) as usize
}

/// `rallocx(at, size, flags)`; bytes that are new are cleared only by `mallocx` here, so ZERO allocates anew.
extern "C" fn reallocate_flags(at: usize, size: usize, flags: usize, ip: u64, sp: u64, bp: u64) -> usize {
    let caller = Caller { ip, sp, bp };
    let align = alignment(flags);
    if flags & ZERO == 0 {
        // SAFETY: the program vouches for the pointer.
        return unsafe { heap::reallocate(at as *mut u8, size, align, caller) }.map_or(0, |at| at as usize);
    }
    let Ok(old) = alloc::usable_size(at as *const u8) else { return 0 };
    let fresh = heap::allocate(size, align, true, caller);
    if !fresh.is_null() {
        // SAFETY: both objects have at least so many bytes. The copy is the program's own access.
        unsafe { core::ptr::copy_nonoverlapping(at as *const u8, fresh, old.min(size)) };
        release("rallocx", at);
    }
    fresh as usize
}

/// jemalloc: xallocx, which only grows or shrinks in place; the usable size afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn xallocx(at: usize, _size: size_t, _extra: size_t, _flags: c_int) -> size_t {
    alloc::usable_size(at as *const u8).unwrap_or(0)
}

/// jemalloc: sallocx, the usable size.
#[unsafe(no_mangle)]
pub extern "C" fn sallocx(at: usize, _flags: c_int) -> size_t {
    alloc::usable_size(at as *const u8).unwrap_or(0)
}

/// jemalloc: nallocx, the usable size that an allocation would have.
#[unsafe(no_mangle)]
pub extern "C" fn nallocx(size: size_t, flags: c_int) -> size_t {
    heap::as_runtime(|| {
        let at = alloc::allocate(size, alignment(flags as usize), alloc::Watch::Unwatched);
        let usable = alloc::usable_size(at).unwrap_or(0);
        // SAFETY: allocated here, and nobody else knows it; null is nothing.
        let _ = unsafe { alloc::free(at) };
        usable
    })
}

/// jemalloc: dallocx.
#[unsafe(no_mangle)]
pub extern "C" fn dallocx(at: usize, _flags: c_int) {
    release("dallocx", at);
}

/// jemalloc: sdallocx.
#[unsafe(no_mangle)]
pub extern "C" fn sdallocx(at: usize, _size: size_t, _flags: c_int) {
    release("sdallocx", at);
}

/// Queries of settings that do not exist here. Their arguments are left unread, as the calling convention allows.
macro_rules! no_such_name {
    ($($(#[$about:meta])* $name:ident;)*) => {
        $($(#[$about])* #[unsafe(no_mangle)] pub extern "C" fn $name() -> c_int { libc::ENOENT })*
    };
}

no_such_name! {
    /// jemalloc: mallctl.
    mallctl;
    /// jemalloc: mallctlnametomib.
    mallctlnametomib;
    /// jemalloc: mallctlbymib.
    mallctlbymib;
}

/// jemalloc: malloc_stats_print, which has nothing to print here.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats_print(
    _write: Option<extern "C" fn(*mut c_void, *const c_char)>,
    _argument: *mut c_void,
    _options: *const c_char,
) {
}

/// tcmalloc: tc_free.
#[unsafe(no_mangle)]
pub extern "C" fn tc_free(at: usize) {
    release("tc_free", at);
}

/// tcmalloc: tc_delete.
#[unsafe(no_mangle)]
pub extern "C" fn tc_delete(at: usize) {
    release("tc_delete", at);
}
