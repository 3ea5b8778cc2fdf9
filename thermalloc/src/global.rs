//! [`Thermalloc`]: the `#[global_allocator]` of a Rust program.
//!
//! # Safety
//! GlobalAlloc's contract is met by the allocator's. While the calling thread runs code of the runtime, whose
//! collections come here too, memory is taken from mimalloc; an address tells which of the two owns it.
#![allow(unsafe_code)]

use crate::heap;
use core::alloc::{GlobalAlloc, Layout};
use core::arch::naked_asm;
use mimalloc::MiMalloc;
use thermalloc_alloc::{self as alloc, Misuse};
use thermalloc_monitor::thread::Thread;
use thermalloc_monitor::unwind::Caller;
use thermalloc_sys::gate;

/// The allocator of a program whose heap is to be watched: `#[global_allocator] static HEAP: Thermalloc = Thermalloc;`.
/// Before [`crate::start`], and in mode `off`, it is the plain slab allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thermalloc;

fn is_runtime() -> bool {
    Thread::current().is_some_and(Thread::is_busy)
}

// SAFETY: blocks are disjoint, aligned and at least as large as asked for; errors are null; nothing unwinds.
unsafe impl GlobalAlloc for Thermalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_runtime() {
            // SAFETY: forwarded to the caller.
            return unsafe { MiMalloc.alloc(layout) };
        }
        // SAFETY: the shim takes plain numbers.
        unsafe { allocate(layout.size(), layout.align(), 0) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_runtime() {
            // SAFETY: forwarded to the caller.
            return unsafe { MiMalloc.alloc_zeroed(layout) };
        }
        // SAFETY: the shim takes plain numbers.
        unsafe { allocate(layout.size(), layout.align(), 1) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if !alloc::contains(at as usize) {
            // SAFETY: not of the arena, so it came from mimalloc.
            return unsafe { MiMalloc.dealloc(at, layout) };
        }
        // SAFETY: forwarded to the caller.
        if let Err(misuse) = unsafe { heap::free(at) } {
            refuse(at, misuse);
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !alloc::contains(at as usize) {
            // SAFETY: not of the arena, so it came from mimalloc.
            return unsafe { MiMalloc.realloc(at, layout, size) };
        }
        // SAFETY: forwarded to the caller.
        unsafe { reallocate(at, size, layout.align()) }
    }
}

#[cold]
fn refuse(at: *mut u8, misuse: Misuse) -> ! {
    heap::say_misuse("dealloc", at as usize, misuse);
    gate::abort()
}

/// Allocates with the return address and stack of its caller as those of the allocation.
#[unsafe(naked)]
unsafe extern "C" fn allocate(size: usize, align: usize, zeroed: usize) -> *mut u8 {
    naked_asm!(
        "mov rcx, [rsp]",
        "lea r8, [rsp + 8]",
        "mov r9, rbp",
        "jmp {}",
        sym allocate_for,
    )
}

extern "C" fn allocate_for(size: usize, align: usize, zeroed: usize, ip: u64, sp: u64, bp: u64) -> *mut u8 {
    heap::allocate(size, align, zeroed != 0, Caller { ip, sp, bp })
}

/// Reallocates with the return address and stack of its caller as those of the allocation.
#[unsafe(naked)]
unsafe extern "C" fn reallocate(at: *mut u8, size: usize, align: usize) -> *mut u8 {
    naked_asm!(
        "mov rcx, [rsp]",
        "lea r8, [rsp + 8]",
        "mov r9, rbp",
        "jmp {}",
        sym reallocate_for,
    )
}

unsafe extern "C" fn reallocate_for(
    at: *mut u8,
    size: usize,
    align: usize,
    ip: u64,
    sp: u64,
    bp: u64,
) -> *mut u8 {
    // SAFETY: forwarded to the caller.
    match unsafe { heap::reallocate(at, size, align, Caller { ip, sp, bp }) } {
        Ok(at) => at,
        Err(misuse) => refuse(at, misuse),
    }
}
