//! The program's memory, as the runtime reads and writes it: protected heap pages by way of the alias view or an
//! open window, anything else with a copy that survives a fault.
//!
//! # Safety
//! Reading and writing arbitrary addresses is what this module is for. The copy routine takes faults: the SIGSEGV
//! and SIGBUS handlers send it to its failure exit ([`recover`]). Writes go only where the program asked the
//! kernel to write.
//!
//! # Signal context
//! May run in handlers, which therefore leave SIGSEGV and SIGBUS unblocked. No allocation, no locks but the
//! page-protection spin lock, which is only ever held with signals blocked.
#![allow(unsafe_code)]

use crate::frame::Context;
use crate::protect;
use core::arch::global_asm;
use core::ops::Range;
use thermalloc_alloc as alloc;

global_asm!(
    ".pushsection .text.thermalloc_probe,\"ax\",@progbits",
    // bool thermalloc_probe_copy(to, from, len): false when either side faults.
    ".globl thermalloc_probe_copy",
    ".hidden thermalloc_probe_copy",
    "thermalloc_probe_copy:",
    // Words one by one, where there are few.
    "test edx, 7",
    "jne 2f",
    "cmp rdx, 128",
    "ja 2f",
    "test edx, edx",
    "je 3f",
    "1:",
    ".globl thermalloc_probe_load",
    ".hidden thermalloc_probe_load",
    "thermalloc_probe_load:",
    "mov rax, [rsi + rdx - 8]",
    ".globl thermalloc_probe_store",
    ".hidden thermalloc_probe_store",
    "thermalloc_probe_store:",
    "mov [rdi + rdx - 8], rax",
    "sub edx, 8",
    "jne 1b",
    "3:",
    "mov eax, 1",
    "ret",
    "2:",
    "mov rcx, rdx",
    ".globl thermalloc_probe_access",
    ".hidden thermalloc_probe_access",
    "thermalloc_probe_access:",
    "rep movsb",
    "mov eax, 1",
    "ret",
    ".globl thermalloc_probe_failed",
    ".hidden thermalloc_probe_failed",
    "thermalloc_probe_failed:",
    "xor eax, eax",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    static thermalloc_probe_load: u8;
    static thermalloc_probe_store: u8;
    static thermalloc_probe_access: u8;
    static thermalloc_probe_failed: u8;
    fn thermalloc_probe_copy(to: usize, from: usize, len: usize) -> bool;
}

/// Sends a fault of the copy routine to its failure exit; false if the fault is not the routine's.
pub fn recover(context: &mut Context) -> bool {
    let accesses = [
        &raw const thermalloc_probe_load,
        &raw const thermalloc_probe_store,
        &raw const thermalloc_probe_access,
    ];
    let ours = accesses.map(|access| access as u64).contains(&context.rip);
    if ours {
        context.rip = &raw const thermalloc_probe_failed as u64;
    }
    ours
}

/// Copies the program's memory at `address` into `into`; false if any of it is not readable.
pub fn read(address: usize, into: &mut [u8]) -> bool {
    let to = into.as_mut_ptr() as usize;
    in_pieces(address, into.len(), |piece, open| copy(to + (piece.start - address), open, piece.len()))
}

/// Copies `bytes` into the program's memory at `address`; false if any of it is not writable.
pub fn write(address: usize, bytes: &[u8]) -> bool {
    let from = bytes.as_ptr() as usize;
    in_pieces(address, bytes.len(), |piece, open| copy(open, from + (piece.start - address), piece.len()))
}

/// Reads a plain value.
pub fn read_value<T: Plain>(address: usize) -> Option<T> {
    let mut value = T::ZERO;
    // SAFETY: `T` is plain: its bytes may be written one by one.
    let bytes = unsafe { core::slice::from_raw_parts_mut((&raw mut value).cast::<u8>(), size_of::<T>()) };
    read(address, bytes).then_some(value)
}

/// Writes a plain value.
pub fn write_value<T: Plain>(address: usize, value: &T) -> bool {
    // SAFETY: `T` is plain: its bytes may be read one by one.
    let bytes = unsafe { core::slice::from_raw_parts((value as *const T).cast::<u8>(), size_of::<T>()) };
    write(address, bytes)
}

/// A type of which every pattern of bytes is a value.
///
/// # Safety
/// No padding that matters, no invalid bit patterns, no pointers that Rust follows.
pub unsafe trait Plain: Copy {
    /// All bytes zero.
    const ZERO: Self;
}

// SAFETY: an integer.
unsafe impl Plain for u8 {
    const ZERO: Self = 0;
}

// SAFETY: an integer.
unsafe impl Plain for u64 {
    const ZERO: Self = 0;
}

// SAFETY: integers and bytes.
unsafe impl<const N: usize> Plain for [u64; N] {
    const ZERO: Self = [0; N];
}

fn copy(to: usize, from: usize, len: usize) -> bool {
    // SAFETY: a fault on either side is taken; the callers name memory that the program handed to the kernel, and
    // buffers of their own.
    unsafe { thermalloc_probe_copy(to, from, len) }
}

/// Splits `[address, address + len)` where it enters and leaves the arena, and hands each piece over with the
/// address at which it can be reached now.
fn in_pieces(address: usize, len: usize, mut act: impl FnMut(Range<usize>, usize) -> bool) -> bool {
    let Some(end) = address.checked_add(len) else { return false };
    let arena = alloc::arena();
    let inside = address.max(arena.start).min(end)..end.min(arena.end).max(address);
    if inside.start >= inside.end {
        return act(address..end, address);
    }
    (address == inside.start || act(address..inside.start, address))
        && protect::window(inside.clone(), |open| act(inside.clone(), open))
        && (inside.end == end || act(inside.end..end, inside.end))
}
