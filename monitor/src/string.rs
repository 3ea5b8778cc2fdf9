//! The processor's string instructions on the program's memory, in code that survives a fault.
//!
//! # Safety
//! As in `memory`: the handlers send a fault of these routines to their failure exit ([`recover`]).
//!
//! # Signal context
//! A few instructions; faults are taken.
#![allow(unsafe_code)]

use crate::frame::Context;
use core::arch::global_asm;

/// Bytes from one routine to the next.
const STRIDE: usize = 16;

global_asm!(
    ".pushsection .text.thermalloc_string,\"ax\",@progbits",
    ".macro thermalloc_string instruction:vararg",
    ".p2align 4, 0xcc",
    "\\instruction",
    "mov eax, 1",
    "ret",
    ".endm",
    // bool thermalloc_string_run(to, from, count, value, routine): false when either side faults.
    ".globl thermalloc_string_run",
    ".hidden thermalloc_string_run",
    "thermalloc_string_run:",
    "mov rax, rcx",
    "mov rcx, rdx",
    "jmp r8",
    ".p2align 4, 0xcc",
    ".globl thermalloc_string_routines",
    ".hidden thermalloc_string_routines",
    "thermalloc_string_routines:",
    "thermalloc_string rep movsb",
    "thermalloc_string rep movsw",
    "thermalloc_string rep movsd",
    "thermalloc_string rep movsq",
    "thermalloc_string rep stosb",
    "thermalloc_string rep stosw",
    "thermalloc_string rep stosd",
    "thermalloc_string rep stosq",
    ".p2align 4, 0xcc",
    ".globl thermalloc_string_failed",
    ".hidden thermalloc_string_failed",
    "thermalloc_string_failed:",
    "xor eax, eax",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    static thermalloc_string_routines: u8;
    static thermalloc_string_failed: u8;
    fn thermalloc_string_run(to: usize, from: usize, count: usize, value: u64, routine: usize) -> bool;
}

/// `count` elements of `element` bytes (1, 2, 4 or 8) from `from` up to `to`; false if that faulted somewhere on the way.
///
/// # Safety
/// Memory that the program copies.
pub unsafe fn copy(to: usize, from: usize, count: usize, element: usize) -> bool {
    // SAFETY: forwarded to the caller; a fault is taken.
    unsafe { thermalloc_string_run(to, from, count, 0, routine(0, element)) }
}

/// The low `element` bytes of `value`, `count` times from `to` on; false if that faulted somewhere on the way.
///
/// # Safety
/// Memory that the program fills.
pub unsafe fn store(to: usize, value: u64, count: usize, element: usize) -> bool {
    // SAFETY: forwarded to the caller; a fault is taken.
    unsafe { thermalloc_string_run(to, 0, count, value, routine(4, element)) }
}

fn first() -> usize {
    &raw const thermalloc_string_routines as usize
}

fn routine(operation: usize, element: usize) -> usize {
    first() + (operation + element.trailing_zeros() as usize) * STRIDE
}

/// Sends a fault of a routine to the failure exit; false if the fault is not a routine's.
pub fn recover(context: &mut Context) -> bool {
    let offset = (context.rip as usize).wrapping_sub(first());
    let ours = offset < 8 * STRIDE && offset.is_multiple_of(STRIDE);
    if ours {
        context.rip = &raw const thermalloc_string_failed as u64;
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_all_sizes() {
        for element in [1, 2, 4, 8] {
            let from: Vec<u8> = (1..=64).collect();
            let mut to = vec![0u8; 64];
            let count = 24 / element;
            // SAFETY: both vectors are longer.
            assert!(unsafe { copy(to.as_mut_ptr() as usize, from.as_ptr() as usize, count, element) });
            assert_eq!((&to[..24], to[24]), (&from[..24], 0));
            // SAFETY: as above.
            assert!(unsafe { store(to.as_mut_ptr() as usize, 0x0807_0605_0403_0201, 2, element) });
            let expected: Vec<u8> = (0..2 * element).map(|at| (at % element) as u8 + 1).collect();
            assert_eq!(to[..2 * element], expected);
            assert_eq!(to[2 * element], from[2 * element]);
        }
    }
}
