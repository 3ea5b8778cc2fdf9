//! From the midst of translated code back to the program's state.
//!
//! # Safety
//! Counters of the calling thread's own sheet.
//!
//! # Signal context
//! Runs in handlers; no locks, no allocation.
#![allow(unsafe_code)]

use super::emit::{Bump, Piece};
use super::slots::{self, Slot};
use crate::access::{Access, By, Kind};
use crate::clock;
use crate::frame::Context;
use crate::heat;
use crate::operands::address::of_operand;
use crate::step;
use core::sync::atomic::{AtomicU32, Ordering};
use thermalloc_alloc as alloc;

/// Puts a thread that is inside a piece before its original instruction.
pub fn restore(piece: &Piece, offset: u32, context: &mut Context) {
    if piece.flags.contains(&offset) {
        context.eflags = context.eflags & !0x8d5 | flags(slots::get(Slot::Flags));
    }
    if piece.rax.contains(&offset) {
        context.rax = slots::get(Slot::Rax);
    }
    if piece.spilled.contains(&offset) {
        *register_mut(context, piece.scratch) = slots::get(Slot::Scratch);
    }
    if piece.pushed.contains(&offset) {
        context.rsp += 8;
    }
    context.rip = piece.ip;
    for (done, bump) in piece.bumps.iter().flatten() {
        if let Some(operand) = piece.operand.as_ref().filter(|_| *done <= offset) {
            take_back(bump, of_operand(operand, |number| context.registers()[number]));
        }
    }
}

/// A return address has been pushed, but its call was not made: where the stack lies in the heap, a step has charged that.
pub fn take_back_push(rsp: u64, ordinal: u32) {
    let access = Access { addr: rsp as usize, len: 8, kind: Kind::Write, by: By::Program };
    if step::is_watched(access.addr, access.len, access.kind) && alloc::is_watched(access.addr) {
        heat::uncharge(&access, ordinal, clock::now());
    }
}

/// RFLAGS out of what lahf and seto have left in rax.
fn flags(rax: u64) -> u64 {
    (rax >> 8 & 0xd5) | (rax & 1) << 11
}

/// Takes back what an access to `address` has counted, but was not made.
fn take_back(bump: &Bump, address: u64) {
    let bias = slots::get(if bump.wide { Slot::Wide } else { Slot::Narrow });
    let counter = (address & !15).wrapping_add(bias) + u64::from(bump.offset);
    // SAFETY: the counter of the calling thread that the translated code has just written.
    let counter = unsafe { AtomicU32::from_ptr(counter as *mut u32) };
    counter.fetch_sub(bump.by as u32, Ordering::Relaxed);
}

/// A general register by number.
pub fn register(context: &Context, number: u8) -> u64 {
    context.registers()[usize::from(number & 15)]
}

fn register_mut(c: &mut Context, number: u8) -> &mut u64 {
    match number & 15 {
        0 => &mut c.rax,
        1 => &mut c.rcx,
        2 => &mut c.rdx,
        3 => &mut c.rbx,
        4 => &mut c.rsp,
        5 => &mut c.rbp,
        6 => &mut c.rsi,
        7 => &mut c.rdi,
        8 => &mut c.r8,
        9 => &mut c.r9,
        10 => &mut c.r10,
        11 => &mut c.r11,
        12 => &mut c.r12,
        13 => &mut c.r13,
        14 => &mut c.r14,
        _ => &mut c.r15,
    }
}
