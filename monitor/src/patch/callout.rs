//! What translated code comes to the door for: system calls, and instructions whose accesses depend on more than their operand.
//!
//! An instruction is charged here before it runs, redirected, beside its site; or it is a short piece of work that is done here. What cannot be
//! done so takes the site's cold side, where the instruction stands as it was: it faults, or makes a system call, and a handler deals with it.
//!
//! # Safety
//! The string routines touch what the program's instruction would have touched, and survive the faults.
//!
//! # Signal context
//! Runs at the door: signals wait, no lock that a handler takes is held. [`before`] and [`retreat`] serve the door.
#![allow(unsafe_code)]

use super::door::Door;
use crate::clock;
use crate::control;
use crate::frame::{DIRECTION_FLAG, Frame};
use crate::kernel_call;
use crate::operands::decode::{kinds, touches_nothing};
use crate::operands::registers::index::{RAX, RCX, RDI, RSI};
use crate::operands::suppression::{Masking, masking};
use crate::operands::{self, Registers, StringOp, Vectors, XsaveArea, address, lanes};
use crate::protect;
use crate::report;
use crate::step;
use crate::string;
use crate::thread::{HandlerState, Thread, xsave_layout};
use crate::world;
use core::sync::atomic::{AtomicBool, Ordering};
use iced_x86::{Instruction, InstructionInfoFactory, InstructionInfoOptions, OpKind, Register};
use thermalloc_alloc as alloc;
use thermalloc_sys::gate;

/// A place in translated code from where threads come to the door. Lives as long as the process.
#[repr(C)]
pub struct Site {
    /// Whether all of the extended state must be kept meanwhile, not only what the runtime's own code changes.
    pub whole: bool,
    /// The original instruction.
    pub ip: u64,
    /// The one behind it.
    pub next: u64,
    /// What is to be done.
    pub what: What,
    /// Where the instruction stands as it was.
    pub cold: u64,
    /// Where it stands redirected; 0: nowhere.
    pub hot: u64,
    /// Where the program goes on.
    pub land: u64,
    instruction: Instruction,
}

/// What is to be done at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A system call.
    Call,
    /// The lanes of an operand that an opmask register lets through; which of them, the door's mask says.
    Lanes {
        /// Bytes of a lane.
        lane: u8,
        /// How many.
        count: u8,
        /// Whether it reads.
        reads: bool,
        /// Whether it writes.
        writes: bool,
        /// The mask register's number.
        mask: u8,
    },
    /// movs, stos or lods.
    String {
        /// Which.
        op: StringOp,
        /// Bytes of an element.
        element: u8,
        /// As often as rcx says.
        repeats: bool,
    },
    /// Any other instruction.
    Decode,
}

static KEEPS_ALL: AtomicBool = AtomicBool::new(true);

/// The runtime's own code changes no more than the low halves of the first sixteen vectors: so much is kept at the door from here on.
pub fn keep_little() {
    KEEPS_ALL.store(false, Ordering::Relaxed);
}

impl Site {
    /// A site for a system call.
    pub fn of_call(instruction: &Instruction) -> Box<Self> {
        Self::new(instruction, What::Call, false)
    }

    /// A site for an instruction that accesses memory and has no counter; none if it must fault. `loads`: whether loads are counted.
    pub fn of(
        instruction: &Instruction,
        loads: bool,
        factory: &mut InstructionInfoFactory,
    ) -> Option<Box<Self>> {
        if let Some(what) = string_of(instruction) {
            return Some(Self::new(instruction, what, false));
        }
        if !may_be_heap(instruction) || instruction.is_stack_instruction() {
            return None;
        }
        let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        let is_watched = |&kind: &operands::Kind| loads || kind == operands::Kind::Write;
        if !info.used_memory().iter().any(|memory| kinds(memory.access()).iter().any(is_watched)) {
            return None;
        }
        let lanes = lanes_of(instruction, factory);
        let needs_vectors = lanes.is_none() && uses_vectors(instruction);
        Some(Self::new(instruction, lanes.unwrap_or(What::Decode), needs_vectors))
    }

    fn new(instruction: &Instruction, what: What, needs_vectors: bool) -> Box<Self> {
        Box::new(Self {
            whole: needs_vectors || KEEPS_ALL.load(Ordering::Relaxed),
            ip: instruction.ip(),
            next: instruction.next_ip(),
            what,
            cold: 0,
            hot: 0,
            land: 0,
            instruction: *instruction,
        })
    }
}

/// Whether an instruction's one memory operand may be the heap's: it is no constant, and not on the stack.
pub fn may_be_heap(instruction: &Instruction) -> bool {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    instruction.op_kinds().filter(|&kind| kind == OpKind::Memory).count() == 1
        && !instruction.is_ip_rel_memory_operand()
        && !matches!(instruction.memory_segment(), Register::FS | Register::GS)
        && !matches!(base, Register::RSP | Register::ESP)
        && (base != Register::None || index != Register::None)
        && !touches_nothing(instruction.mnemonic())
}

fn uses_vectors(instruction: &Instruction) -> bool {
    (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .any(|operand| instruction.op_register(operand).is_vector_register())
        || instruction.is_vsib()
        || instruction.has_op_mask()
}

/// movs, stos or lods with 64-bit pointers into the flat segment.
fn string_of(instruction: &Instruction) -> Option<What> {
    let (op, element) = operands::string::string_op(instruction.mnemonic())?;
    let flat = |kind| {
        !matches!(kind, OpKind::MemorySegSI | OpKind::MemorySegESI | OpKind::MemoryESDI | OpKind::MemoryESEDI)
    };
    let is_string =
        instruction.op_kinds().any(|kind| matches!(kind, OpKind::MemorySegRSI | OpKind::MemoryESRDI));
    let repeats = instruction.has_rep_prefix();
    let known = matches!(op, StringOp::Movs | StringOp::Stos) || (op == StringOp::Lods && !repeats);
    let segment = instruction.segment_prefix();
    (known
        && is_string
        && !instruction.has_repne_prefix()
        && instruction.op_kinds().all(flat)
        && !matches!(segment, Register::FS | Register::GS))
    .then_some(What::String { op, element, repeats })
}

/// An operand of lanes under an opmask register.
fn lanes_of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<What> {
    if !instruction.has_op_mask() || instruction.is_vsib() {
        return None;
    }
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    let [memory] = info.used_memory() else { return None };
    let size = memory.memory_size();
    let Masking::Lanes { lane } = masking(instruction, size) else { return None };
    let has = |wanted| kinds(memory.access()).contains(&wanted);
    Some(What::Lanes {
        lane: lane as u8,
        count: (size.size() as u64 / lane) as u8,
        reads: has(operands::Kind::Read),
        writes: has(operands::Kind::Write),
        mask: instruction.op_mask().number() as u8,
    })
}

/// A thread has come to the door, or a system call that it has made there has returned.
pub fn act(thread: &'static Thread) {
    // SAFETY: handlers leave the thread's state alone while it is in the runtime.
    let state = unsafe { thread.in_handler() };
    let door = thread.door();
    let Some(site) = door.site() else { return };
    if state.call.is_running() {
        returned(thread, state, door, site);
    } else {
        let exit = match site.what {
            _ if control::is_paused() => site.cold,
            What::Call => call(state, door, site),
            What::String { op, element, repeats } => {
                let string = String { op, element: element.into(), repeats };
                match string.run(thread, state, door) {
                    Some(()) => site.land,
                    None => site.cold,
                }
            }
            _ => charge(thread, state, door, site),
        };
        door.leave_to(exit);
    }
    if !state.call.is_running() {
        super::count(true);
    }
}

fn call(state: &mut HandlerState, door: &Door, site: &Site) -> u64 {
    if state.borrows() || report::is_due() {
        return site.cold;
    }
    world::wait_until_open();
    let mut registers = door.registers();
    let nr = registers[RAX] as i64;
    let args = ARGUMENTS.map(|number| registers[number]);
    let Some(args) = kernel_call::begin_at_door(&mut state.call, site.next, nr, args) else {
        return site.cold;
    };
    set_arguments(&mut registers, args);
    door.set_registers(registers);
    gate::door() as u64
}

/// Registers of a system call's arguments: rdi, rsi, rdx, r10, r8, r9.
const ARGUMENTS: [usize; 6] = [7, 6, 2, 10, 8, 9];

fn set_arguments(registers: &mut [u64; 16], args: [u64; 6]) {
    for (number, argument) in ARGUMENTS.into_iter().zip(args) {
        registers[number] = argument;
    }
}

fn returned(thread: &Thread, state: &mut HandlerState, door: &Door, site: &Site) {
    let mut registers = door.registers();
    let ordinal = thread.ordinal.load(Ordering::Relaxed);
    let args = kernel_call::finish_at_door(&mut state.call, registers[RAX] as i64, ordinal);
    set_arguments(&mut registers, args);
    door.set_registers(registers);
    door.set_clobbered(site.next);
    door.leave_to(site.land);
    // A server may never allocate: this is how its heat gets its times.
    thread.collect_on_time(clock::now());
}

/// Charges an instruction's accesses, and lets it run redirected: if all of them are the heap's.
fn charge(thread: &Thread, state: &mut HandlerState, door: &Door, site: &Site) -> u64 {
    if let What::Lanes { lane, count, reads, writes, .. } = site.what {
        let addr = address::of_operand(&site.instruction, |number| door.register(number));
        // Some instructions touch lanes that are turned off, though they transfer none.
        let last = addr.saturating_add(u64::from(lane) * u64::from(count) - 1);
        if !alloc::contains(addr as usize) || !alloc::contains(last as usize) {
            return site.cold;
        }
        let mask = door.mask() & lanes::low_bits(count.into());
        let accesses = lanes::runs(addr, lane.into(), mask).flat_map(move |(addr, len)| {
            let of = move |kind| operands::Access { addr, len, kind };
            let read = reads.then(|| of(operands::Kind::Read));
            read.into_iter().chain(writes.then(|| of(operands::Kind::Write)))
        });
        return charge_all(thread, state, site, accesses);
    }
    let registers =
        Registers { gpr: door.registers(), rip: site.ip, rflags: door.flags(), fs_base: 0, gs_base: 0 };
    let vectors = XsaveArea::new(door.extended().unwrap_or(&[]), xsave_layout());
    match state.decoder.accesses(&site.instruction, &registers, &vectors as &dyn Vectors) {
        Some(accesses) if !accesses.is_empty() => charge_all(thread, state, site, accesses.iter().copied()),
        _ => site.cold,
    }
}

fn charge_all(
    thread: &Thread,
    state: &mut HandlerState,
    site: &Site,
    accesses: impl Iterator<Item = operands::Access> + Clone,
) -> u64 {
    if site.hot == 0 || !accesses.clone().all(|access| reaches(&access)) {
        return site.cold;
    }
    charge_now(thread, state, accesses);
    site.hot
}

fn charge_now(thread: &Thread, state: &mut HandlerState, accesses: impl Iterator<Item = operands::Access>) {
    let accesses = accesses.map(|access| step::of_program(&access));
    state.callout.charge(accesses, thread.ordinal.load(Ordering::Relaxed), thread.sheet());
}

/// Whether an access is to watched memory alone, which the program may so access.
fn reaches(access: &operands::Access) -> bool {
    let (first, last) = (access.addr as usize, access.addr.saturating_add(access.len - 1) as usize);
    let store = access.kind == operands::Kind::Write;
    let is_reached =
        |addr: usize| alloc::contains(addr) && alloc::is_watched(addr) && protect::permits(addr, store);
    is_reached(first) && (first >> 12 == last >> 12 || is_reached(last))
}

/// A string instruction.
struct String {
    op: StringOp,
    element: usize,
    repeats: bool,
}

impl String {
    /// Does what the instruction does; none, and nothing done that may not be done again, if it cannot.
    fn run(&self, thread: &Thread, state: &mut HandlerState, door: &Door) -> Option<()> {
        let mut registers = door.registers();
        let count = if self.repeats { registers[RCX] as usize } else { 1 };
        let len = count.checked_mul(self.element).filter(|&len| len != 0)?;
        if door.flags() & DIRECTION_FLAG != 0 {
            return None;
        }
        let (from, to) = (registers[RSI] as usize, registers[RDI] as usize);
        let reads = (self.op != StringOp::Stos).then_some((from, operands::Kind::Read));
        let writes = (self.op != StringOp::Lods).then_some((to, operands::Kind::Write));
        let mut accesses = [None; 2];
        for (access, (addr, kind)) in accesses.iter_mut().zip([reads, writes].into_iter().flatten()) {
            *access = heap_access(addr, len, kind)?;
        }
        if accesses == [None; 2] {
            return None;
        }
        let overlap = from < to.checked_add(len)? && to < from.checked_add(len)?;
        if self.op == StringOp::Movs && self.repeats && overlap {
            return None;
        }
        self.transfer(&mut registers, count)?;
        charge_now(thread, state, accesses.into_iter().flatten());
        if reads.is_some() {
            registers[RSI] += len as u64;
        }
        if writes.is_some() {
            registers[RDI] += len as u64;
        }
        if self.repeats {
            registers[RCX] = 0;
        }
        door.set_registers(registers);
        Some(())
    }

    fn transfer(&self, registers: &mut [u64; 16], count: usize) -> Option<()> {
        let from = alloc::alias_of(registers[RSI] as usize);
        let to = alloc::alias_of(registers[RDI] as usize);
        // SAFETY: what the program's own instruction would do.
        let done = unsafe {
            match self.op {
                StringOp::Stos => string::store(to, registers[RAX], count, self.element),
                StringOp::Lods => {
                    let kept = if self.element == 4 { 0 } else { registers[RAX] };
                    let mut value = kept;
                    let done = string::copy(&raw mut value as usize, from, 1, self.element);
                    registers[RAX] = value;
                    done
                }
                _ => string::copy(to, from, count, self.element),
            }
        };
        done.then_some(())
    }
}

/// An access to charge, if it is to watched memory. None if it is partly so.
fn heap_access(addr: usize, len: usize, kind: operands::Kind) -> Option<Option<operands::Access>> {
    let last = addr.checked_add(len - 1)?;
    let arena = alloc::arena();
    if last < arena.start || addr >= arena.end {
        return Some(None);
    }
    let access = operands::Access { addr: addr as u64, len: len as u64, kind };
    reaches(&access).then_some(Some(access))
}

/// A signal has found the thread at the door before the runtime: where the program stands.
pub fn before(thread: &Thread, frame: &mut Frame, has_come: bool) -> u64 {
    // SAFETY: the handler has not asked for it yet.
    let state = unsafe { thread.in_handler() };
    if state.call.is_running() || !has_come {
        return gate::door_done() as u64;
    }
    frame.context.rcx = super::slots::get(super::Slot::Scratch);
    thread.door().site().map_or(frame.context.rip, |site| site.ip)
}

/// Signals have arrived since the exit was chosen: where the program stands, nothing of what was begun being done.
pub fn retreat(thread: &Thread, exit: u64) -> u64 {
    // SAFETY: as in `act`.
    let state = unsafe { thread.in_handler() };
    let door = thread.door();
    let Some(site) = door.site() else { return exit };
    let ordinal = thread.ordinal.load(Ordering::Relaxed);
    if state.call.is_running() {
        let (nr, args) = kernel_call::take_back_at_door(&mut state.call);
        let mut registers = door.registers();
        registers[RAX] = nr as u64;
        set_arguments(&mut registers, args);
        door.set_registers(registers);
        super::count(true);
    } else if exit == site.hot {
        state.callout.take_back(ordinal, thread.sheet());
    } else if exit == site.land {
        return site.next;
    }
    site.ip
}
