//! malloc and its family: C23, POSIX.1-2024 and the GNU additions, with errno as they say.
//!
//! # Safety
//! The functions are C's: pointers come from the program, and misuse that can be told is reported in one line and
//! ends the program.
#![allow(unsafe_code)]

use crate::caller::export;
use crate::start;
use libc::{c_int, size_t};
use thermalloc::heap;
use thermalloc_alloc::{self as alloc, Misuse};
use thermalloc_monitor::unwind::Caller;

/// Alignment of malloc: that of `max_align_t` on x86-64.
const ALIGN: usize = 16;
const PAGE: usize = 4096;

fn set_errno(errno: c_int) {
    // SAFETY: libc keeps an errno for each thread.
    unsafe { *libc::__errno_location() = errno };
}

/// A pointer for the program; null is ENOMEM. errno is left alone on success.
fn result(at: *mut u8) -> usize {
    if at.is_null() {
        set_errno(libc::ENOMEM);
    }
    at as usize
}

export! {
    /// C: malloc.
    malloc => allocate;
    /// C: calloc.
    calloc => allocate_array;
    /// C: realloc.
    realloc => reallocate;
    /// GNU: reallocarray.
    reallocarray => reallocate_array;
    /// Traditional: memalign.
    memalign => allocate_aligned;
    /// C: aligned_alloc.
    aligned_alloc => allocate_aligned;
    /// POSIX: posix_memalign.
    posix_memalign => allocate_aligned_into;
    /// Traditional: valloc.
    valloc => allocate_page_aligned;
    /// Traditional: pvalloc.
    pvalloc => allocate_pages;
    /// glibc's own name for malloc.
    __libc_malloc => allocate;
    /// glibc's own name for calloc.
    __libc_calloc => allocate_array;
    /// glibc's own name for realloc.
    __libc_realloc => reallocate;
    /// glibc's own name for memalign.
    __libc_memalign => allocate_aligned;
    /// glibc's own name for valloc.
    __libc_valloc => allocate_page_aligned;
    /// glibc's own name for pvalloc.
    __libc_pvalloc => allocate_pages;
}

/// `malloc(size)`.
pub extern "C" fn allocate(size: usize, _: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    start::ensure();
    result(heap::allocate(size, ALIGN, false, Caller { ip, sp, bp }))
}

/// `calloc(count, size)`.
extern "C" fn allocate_array(count: usize, size: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    start::ensure();
    let Some(bytes) = count.checked_mul(size) else { return result(core::ptr::null_mut()) };
    result(heap::allocate(bytes, ALIGN, true, Caller { ip, sp, bp }))
}

/// `realloc(at, size)`: null allocates, size 0 frees and returns null, as glibc has it.
extern "C" fn reallocate(at: usize, size: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    if at == 0 {
        return allocate(size, 0, 0, ip, sp, bp);
    }
    if size == 0 {
        release("realloc", at);
        return 0;
    }
    start::ensure();
    // SAFETY: the program vouches for the pointer.
    match unsafe { heap::reallocate(at as *mut u8, size, ALIGN, Caller { ip, sp, bp }) } {
        Ok(at) => result(at),
        Err(misuse) => refuse("realloc", at, misuse),
    }
}

/// `reallocarray(at, count, size)`.
extern "C" fn reallocate_array(at: usize, count: usize, size: usize, ip: u64, sp: u64, bp: u64) -> usize {
    match count.checked_mul(size) {
        Some(bytes) => reallocate(at, bytes, 0, ip, sp, bp),
        None => result(core::ptr::null_mut()),
    }
}

/// `memalign(align, size)` and `aligned_alloc(align, size)`: as in glibc 2.36, an alignment that is no power of two is
/// rounded up to one; EINVAL where there is none.
pub extern "C" fn allocate_aligned(align: usize, size: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    start::ensure();
    let Some(align) = align.checked_next_power_of_two() else {
        set_errno(libc::EINVAL);
        return 0;
    };
    result(heap::allocate(size, align.max(ALIGN), false, Caller { ip, sp, bp }))
}

/// `posix_memalign(into, align, size)`: returns the error and leaves errno alone.
extern "C" fn allocate_aligned_into(
    into: *mut usize,
    align: usize,
    size: usize,
    ip: u64,
    sp: u64,
    bp: u64,
) -> c_int {
    start::ensure();
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let at = heap::allocate(size, align.max(ALIGN), false, Caller { ip, sp, bp });
    if at.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the program passes a place for the pointer.
    unsafe { into.write(at as usize) };
    0
}

/// `valloc(size)`.
extern "C" fn allocate_page_aligned(size: usize, _: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    allocate_aligned(PAGE, size, 0, ip, sp, bp)
}

/// `pvalloc(size)`: whole pages.
extern "C" fn allocate_pages(size: usize, _: usize, _: usize, ip: u64, sp: u64, bp: u64) -> usize {
    match size.max(1).checked_next_multiple_of(PAGE) {
        Some(size) => allocate_aligned(PAGE, size, 0, ip, sp, bp),
        None => result(core::ptr::null_mut()),
    }
}

/// Frees for `function`; ends the program in one line on misuse. errno stays as it is.
#[inline(always)]
pub fn release(function: &str, at: usize) {
    if at == 0 {
        return;
    }
    // SAFETY: the program vouches for the pointer.
    if let Err(misuse) = unsafe { heap::free(at as *mut u8) } {
        refuse(function, at, misuse);
    }
}

#[cold]
fn refuse(function: &str, at: usize, misuse: Misuse) -> ! {
    heap::say_misuse(function, at, misuse);
    // SAFETY: ends the program as a failed assertion of its own would, its SIGABRT handler included.
    unsafe { libc::abort() }
}

/// C: free.
#[unsafe(no_mangle)]
pub extern "C" fn free(at: usize) {
    release("free", at);
}

/// Traditional: cfree.
#[unsafe(no_mangle)]
pub extern "C" fn cfree(at: usize) {
    release("cfree", at);
}

/// glibc's own name for free.
#[unsafe(no_mangle)]
pub extern "C" fn __libc_free(at: usize) {
    release("free", at);
}

/// C23: free_sized.
#[unsafe(no_mangle)]
pub extern "C" fn free_sized(at: usize, _size: size_t) {
    release("free_sized", at);
}

/// C23: free_aligned_sized.
#[unsafe(no_mangle)]
pub extern "C" fn free_aligned_sized(at: usize, _align: size_t, _size: size_t) {
    release("free_aligned_sized", at);
}

/// GNU: malloc_usable_size; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_usable_size(at: usize) -> size_t {
    if at == 0 {
        return 0;
    }
    match alloc::usable_size(at as *const u8) {
        Ok(size) => size,
        Err(misuse) => refuse("malloc_usable_size", at, misuse),
    }
}

/// GNU: malloc_trim; 1 if memory went back to the system.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: size_t) -> c_int {
    c_int::from(heap::as_runtime(alloc::trim))
}

/// GNU: mallinfo2.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let stats = heap::as_runtime(alloc::stats);
    // SAFETY: a structure of integers.
    let mut info: libc::mallinfo2 = unsafe { core::mem::zeroed() };
    info.arena = stats.slabs + stats.retained;
    info.hblks = stats.span_count;
    info.hblkhd = stats.spans;
    info.uordblks = stats.in_use;
    info.fordblks = stats.free + stats.retained;
    info.keepcost = stats.retained;
    info
}

/// GNU, superseded by mallinfo2: the same with numbers that are cut off at the end of an int.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> libc::mallinfo {
    let info = mallinfo2();
    let cut = |n: size_t| c_int::try_from(n).unwrap_or(c_int::MAX);
    libc::mallinfo {
        arena: cut(info.arena),
        ordblks: cut(info.ordblks),
        smblks: cut(info.smblks),
        hblks: cut(info.hblks),
        hblkhd: cut(info.hblkhd),
        usmblks: cut(info.usmblks),
        fsmblks: cut(info.fsmblks),
        uordblks: cut(info.uordblks),
        fordblks: cut(info.fordblks),
        keepcost: cut(info.keepcost),
    }
}

/// GNU: mallopt; this allocator has none of its parameters. 1 (success), as for parameters that have no effect.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(_parameter: c_int, _value: c_int) -> c_int {
    1
}
