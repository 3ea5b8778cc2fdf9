//! A warm decoder allocates nothing, whatever it is given: it runs in signal handlers. One test binary, for the
//! global allocator counts.
//!
//! # Safety
//! The allocator forwards to the system's.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use thermalloc_monitor::operands::{DecoderState, Registers, Vectors, XsaveLayout};

struct Counting;

thread_local! {
    /// Calls by this thread: the test harness has threads of its own.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn calls() -> u64 {
    CALLS.get()
}

// SAFETY: every call is forwarded unchanged; `realloc` and `alloc_zeroed` default to these.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(calls() + 1);
        // SAFETY: forwarded.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.set(calls() + 1);
        // SAFETY: forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// All lanes on.
struct Full;

impl Vectors for Full {
    fn vector(&self, _: usize) -> [u8; 64] {
        [0xFF; 64]
    }
    fn mask(&self, _: usize) -> u64 {
        0xAAAA_AAAA_AAAA_AAAA
    }
    fn mmx(&self, _: usize) -> [u8; 8] {
        [0xFF; 8]
    }
}

/// Every opcode of every map under every prefix, with register and memory operands; and the deepest `enter`.
fn corpus(mut each: impl FnMut(&[u8])) {
    const HEADS: [&[u8]; 20] = [
        &[],
        &[0x66],
        &[0xF2],
        &[0xF3],
        &[0x48],
        &[0x67],
        &[0x0F],
        &[0x66, 0x0F],
        &[0xF2, 0x0F],
        &[0xF3, 0x0F],
        &[0x0F, 0x38],
        &[0x66, 0x0F, 0x38],
        &[0x0F, 0x3A],
        &[0x66, 0x0F, 0x3A],
        &[0x0F, 0x0F],
        &[0xC5, 0xFD],
        &[0xC4, 0xE2, 0x6D],
        &[0x8F, 0xE8, 0x78],
        &[0x62, 0xF2, 0x7D, 0x4A],
        &[0x62, 0xF1, 0x7C, 0x4A],
    ];
    for head in HEADS {
        for opcode in 0..=255 {
            for modrm in (0..=255).step_by(3) {
                let mut code = [31; 15];
                code[..head.len()].copy_from_slice(head);
                code[head.len()] = opcode;
                code[head.len() + 1] = modrm;
                each(&code);
            }
        }
    }
    each(&[0xC8, 0, 0, 31]);
}

#[test]
fn a_warm_decoder_allocates_nothing() {
    let start = calls();
    let mut state = DecoderState::new(XsaveLayout::detect());
    let warm = calls();
    assert!(warm > start, "making a decoder allocates, so the count would show it");
    let (mut decoded, mut most) = (0u64, 0);
    corpus(|code| {
        let result = state.decode(code, &Registers::default(), &Full);
        decoded += u64::from(result.len != 0);
        most = most.max(result.accesses.len());
    });
    assert_eq!(calls(), warm, "allocations by {decoded} decodes");
    assert!(decoded > 400_000 && most == 62);
}
