//! What translated code finds by way of fs: the thread's bounds, sheets and spill slots.
//!
//! Static thread-local storage, so that translated code reaches it with one displacement, whatever thread runs it, and a thread
//! that is new finds zeroes: bounds that nothing is within.
//!
//! # Safety
//! Words of the calling thread.
//!
//! # Signal context
//! Plain loads and stores behind fs.
#![allow(unsafe_code)]

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 6",
    ".globl thermalloc_patch_slots",
    ".hidden thermalloc_patch_slots",
    ".type thermalloc_patch_slots, @object",
    ".size thermalloc_patch_slots, 128",
    "thermalloc_patch_slots:",
    ".zero 128",
    ".popsection",
);

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Slot {
    /// First address that is counted.
    Start = 0,
    /// Address behind the last; 0: nothing is counted.
    End = 8,
    /// From a granule to its narrow cell.
    Narrow = 16,
    /// From a granule to its wide cell.
    Wide = 24,
    /// The program's value of the scratch register.
    Scratch = 32,
    /// The program's value of rax while it holds flags.
    Rax = 40,
    /// Flags as lahf and seto leave them in rax.
    Flags = 48,
    /// The thread's block where translated code may come to the door; 0: it may not.
    Door = 56,
    /// The thread's block.
    Thread = 64,
}

/// From the thread pointer to the slots.
fn offset() -> isize {
    let offset: isize;
    // SAFETY: loads the offset of static thread-local storage, which the loader has put there.
    unsafe {
        asm!(
            "mov {}, qword ptr [rip + thermalloc_patch_slots@GOTTPOFF]",
            out(reg) offset,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    offset
}

/// The displacement of a slot behind fs.
pub fn displacement(slot: Slot) -> i32 {
    offset() as i32 + slot as i32
}

/// Reads a word of the calling thread.
pub fn get(slot: Slot) -> u64 {
    let value: u64;
    // SAFETY: the calling thread's own word.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[{1}]",
            out(reg) value,
            in(reg) offset() + slot as isize,
            options(nostack, preserves_flags, readonly),
        );
    }
    value
}

/// Writes a word of the calling thread.
pub fn set(slot: Slot, value: u64) {
    // SAFETY: the calling thread's own word.
    unsafe {
        asm!(
            "mov qword ptr fs:[{0}], {1}",
            in(reg) offset() + slot as isize,
            in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}
