//! Emulation: an instruction that faults on watched memory runs, with its operand in the alias view, in a stub; one signal
//! instead of the two of a single step, and nothing is opened, so that no other thread's access is missed.
//!
//! The processor itself does the work: the stub is the instruction, redirected, and a jump behind the original. All registers
//! are the program's. What cannot be redirected is single-stepped.
//!
//! Accesses are charged before the instruction runs. Whoever finds the thread still at its stub's first instruction, a signal or
//! a fault of the instruction itself, takes them back ([`Emulator::settle`]) and finds the thread at the original.
//!
//! # Safety
//! Stubs are the thread's own; only its handlers write them, and only while none of them runs.
//!
//! # Signal context
//! Everything here runs in handlers.
#![allow(unsafe_code)]

use crate::charged::Charged;
use crate::code;
use crate::frame::{Frame, Info};
use crate::memory;
use crate::operands::decode::MAX_LEN;
use crate::operands::{self, Class, Decoded, Registers};
use crate::protect;
use crate::redirect::{Redirected, redirect};
use crate::segments::{self, ARCH_GET_GS, ARCH_SET_GS};
use crate::step;
use crate::totals::TOTALS;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use thermalloc_alloc as alloc;

/// Stubs of a thread, and bytes of each: a redirected instruction, `jmp [rip]`, an address.
const STUBS: usize = 256;
const STUB: usize = 32;
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

static ON: AtomicBool = AtomicBool::new(false);

/// Makes the alias view reachable by the gs prefix, on the calling thread and those that it will create. False if
/// the program uses gs, or there is no alias view.
pub fn start(displacement: usize) -> bool {
    let free = displacement != 0 && segments::gs_base() == 0 && segments::set_gs_base(displacement as u64);
    ON.store(free, Ordering::Relaxed);
    free
}

/// Whether an arch_prctl sets the base of gs.
pub fn takes_gs(args: &[u64; 6]) -> bool {
    args[0] == ARCH_SET_GS
}

/// The program's view of its segment bases: that of gs is zero, until it sets one, which ends emulation in the process. `None`: the kernel is
/// to answer.
pub fn arch_prctl(args: &[u64; 6]) -> Option<Result<u64, i32>> {
    match args[0] {
        ARCH_GET_GS if memory::write_value(args[1] as usize, &0u64) => Some(Ok(0)),
        ARCH_GET_GS => Some(Err(libc::EFAULT)),
        ARCH_SET_GS => {
            ON.store(false, Ordering::Relaxed);
            None
        }
        _ => None,
    }
}

/// Whether instructions are emulated.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The instruction that a stub stands for.
#[derive(Clone, Copy)]
struct Original {
    rip: u64,
    len: u8,
    /// Zero behind `len`.
    code: [u8; MAX_LEN],
    stack: bool,
    calls: bool,
}

const NOTHING: Original = Original { rip: 0, len: 0, code: [0; MAX_LEN], stack: false, calls: false };

/// A thread's stubs, and what it has charged for the last.
pub struct Emulator {
    /// Where the stubs are; 0 before the first.
    area: usize,
    originals: [Original; STUBS],
    charged: Charged,
}

impl Default for Emulator {
    fn default() -> Self {
        Self { area: 0, originals: [NOTHING; STUBS], charged: Charged::default() }
    }
}

impl Emulator {
    /// Sends the thread to a stub for the instruction that has faulted and charges its accesses; false if it must be
    /// stepped.
    pub fn resume(
        &mut self,
        frame: &mut Frame,
        decoded: &Decoded,
        code: &[u8],
        registers: &Registers,
        thread: u32,
    ) -> bool {
        if !is_on() || !decoded.complete || !matches!(decoded.class, Class::Plain | Class::Scattered) {
            return false;
        }
        let Some(code) = code.get(..usize::from(decoded.len)) else { return false };
        let Some(stub) = self.stub(registers.rip, code) else { return false };
        let original = self.originals[stub];
        if !reaches(decoded, original.stack, registers) {
            return false;
        }
        if original.calls {
            if !call(frame, decoded, u64::from(original.len)) {
                return false;
            }
        } else {
            frame.context.rip = (self.area + stub * STUB) as u64;
        }
        self.charged.charge(decoded.accesses.iter().map(step::of_program), thread, None);
        TOTALS.emulated.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// If the thread is in a stub, puts it where it would be in the program: before the instruction, nothing charged, or
    /// behind it.
    pub fn settle(&mut self, frame: &mut Frame, thread: u32) {
        let Some(offset) = (frame.context.rip as usize).checked_sub(self.area).filter(|_| self.area != 0)
        else {
            return;
        };
        let Some(original) = self.originals.get(offset / STUB) else { return };
        if offset % STUB != 0 {
            frame.context.rip = original.rip + u64::from(original.len);
            return;
        }
        let stub = frame.context.rip;
        frame.context.rip = original.rip;
        self.charged.take_back(thread, None);
        in_program_view(&mut frame.info, stub, original.rip);
    }

    /// The index of the stub for an instruction.
    fn stub(&mut self, rip: u64, code: &[u8]) -> Option<usize> {
        let at = (rip ^ rip >> 8) as usize % STUBS;
        let known = &self.originals[at];
        if known.rip == rip && known.code[..usize::from(known.len)] == *code {
            return Some(at);
        }
        let redirected = redirect(code)?;
        if self.area == 0 {
            self.area = code::map(STUBS * STUB).ok()?;
        }
        let stub = stub_code(&redirected, rip + code.len() as u64);
        // SAFETY: the thread's own stub, in which it is not.
        unsafe { code::write(self.area + at * STUB, &stub) }.ok()?;
        let mut bytes = [0; MAX_LEN];
        bytes[..code.len()].copy_from_slice(code);
        let Redirected { stack, calls, .. } = redirected;
        self.originals[at] = Original { rip, len: code.len() as u8, code: bytes, stack, calls };
        Some(at)
    }
}

/// A fault on the alias view is one on the program's, and one of an instruction at `copy` is one at `original`.
pub fn in_program_view(info: &mut Info, copy: u64, original: u64) {
    let names_code = matches!(info.signo, libc::SIGFPE | libc::SIGILL | libc::SIGTRAP);
    if names_code && info.code > 0 && info.address == copy {
        info.address = original;
    }
    if matches!(info.signo, libc::SIGSEGV | libc::SIGBUS) && info.code > 0 {
        let address = (info.address as usize).wrapping_sub(alloc::displacement());
        if alloc::contains(address) {
            info.address = address as u64;
        }
    }
}

fn stub_code(redirected: &Redirected, next: u64) -> [u8; STUB] {
    let mut stub = [0xcc; STUB];
    let instruction = redirected.bytes();
    let (jump, target) = (instruction.len(), instruction.len() + JUMP.len());
    stub[..jump].copy_from_slice(instruction);
    stub[jump..target].copy_from_slice(&JUMP);
    stub[target..target + 8].copy_from_slice(&next.to_le_bytes());
    stub
}

/// Whether the redirected instruction does what the original would have: every access is in the alias view, but for those to a
/// stack outside.
fn reaches(decoded: &Decoded, stack: bool, registers: &Registers) -> bool {
    let arena = alloc::arena();
    let within = |range: Range<u64>| range.start as usize >= arena.start && range.end as usize <= arena.end;
    let touches = |range: &Range<u64>| (range.start as usize) < arena.end && range.end as usize > arena.start;
    if stack && arena.contains(&(registers.gpr[operands::registers::index::RSP] as usize)) {
        return false;
    }
    let mut inside = decoded.accesses.is_empty();
    for access in decoded.accesses.iter() {
        let range = access.addr..access.addr.saturating_add(access.len);
        let store = access.kind == operands::Kind::Write;
        if within(range.clone()) {
            let last = range.end - 1;
            if !protect::permits(range.start as usize, store) || !protect::permits(last as usize, store) {
                return false;
            }
            inside = true;
        } else if !stack || touches(&range) {
            return false;
        }
    }
    inside
}

/// A call through memory: the target is read and the return address pushed as the processor would.
fn call(frame: &mut Frame, decoded: &Decoded, len: u64) -> bool {
    let operand = decoded.accesses.iter().find(|access| access.kind == operands::Kind::Read);
    let Some(target) = operand.and_then(|access| memory::read_value::<u64>(access.addr as usize)) else {
        return false;
    };
    let top = frame.context.rsp.wrapping_sub(8);
    if !memory::write_value(top as usize, &(frame.context.rip + len)) {
        return false;
    }
    frame.context.rsp = top;
    frame.context.rip = target;
    true
}
