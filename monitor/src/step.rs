//! Single step: lets the instruction that faulted run once with its pages open, and charges what it accessed.
//!
//! The way of MemTracker (Wang et al., Computer Engineering & Science 46(1), 2024): open, set the trap flag, run one
//! instruction, close in the SIGTRAP handler. Two things differ. The accesses are decoded before the
//! instruction runs, so that every operand is seen, not only the first that faults. And a `rep` string
//! instruction runs whole, in a copy of it that ends in a trap, instead of trapping once for each element.
//!
//! # Safety
//! The only unsafe thing here is naming the string stubs' addresses.
//!
//! # Signal context
//! Everything here runs in handlers. Asynchronous signals are blocked from the fault to the trap.
#![allow(unsafe_code)]

use crate::access::{Access, By, Kind};
use crate::clock;
use crate::control;
use crate::emulate;
use crate::frame::{Frame, TRAP_FLAG};
use crate::heat;
use crate::memory;
use crate::operands::access::CAPACITY;
use crate::operands::decode::MAX_LEN;
use crate::operands::{
    self, Accesses, Class, Decoded, DecoderState, Registers, RepString, StringOp, XsaveArea,
};
use crate::patch::{self, Place};
use crate::protect::{self, Method};
use crate::rep;
use crate::segments;
use crate::thread::{HandlerState, Thread};
use crate::totals::TOTALS;
use crate::world;
use core::ops::Range;
use core::sync::atomic::Ordering;
use thermalloc_alloc as alloc;

/// Signals that stay deliverable during a step: those that an instruction itself can raise.
const SYNCHRONOUS: u64 = 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGTRAP - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGSYS - 1);

/// Ranges that one instruction can have open: its operands, and pages that faulted besides.
const MAX_OPENED: usize = CAPACITY + 24;

/// `si_code` of a fault that the page's protection has caused.
const SEGV_ACCERR: i32 = 2;
/// `si_code` of a breakpoint instruction. A trap that the trap flag has caused has a code of its own, TRAP_TRACE, but some
/// virtual machines lose the bit that tells (BS of DR6), and then it is TRAP_BRKPT.
const SI_KERNEL: i32 = 0x80;

/// Bits of a page-fault error code.
const FAULT_STORE: u64 = 1 << 1;
const FAULT_FETCH: u64 = 1 << 4;

/// An instruction on its way.
pub struct Step {
    running: Option<Running>,
    accesses: [Access; CAPACITY],
    count: usize,
    opened: [(usize, usize); MAX_OPENED],
    opened_count: usize,
}

#[derive(Clone, Copy)]
struct Running {
    rip: u64,
    mask: u64,
    /// The program single-steps itself.
    traced: bool,
    pushes_flags: bool,
    /// A gather or scatter, which may stop between two lanes.
    scattered: bool,
    string: Option<StringRun>,
}

/// A `rep` string instruction that runs in its stub.
#[derive(Clone, Copy)]
struct StringRun {
    string: RepString,
    stub: rep::Stub,
    before: Registers,
    next: u64,
    /// What the stub's source and destination pointers are ahead of the program's: operands in the alias view need no
    /// page opened.
    ahead: [u64; 2],
}

impl StringRun {
    /// Adds to or takes from the pointers what they are ahead.
    fn shift(&self, frame: &mut Frame, by: fn(u64, u64) -> u64) {
        frame.context.rsi = by(frame.context.rsi, self.ahead[0]);
        frame.context.rdi = by(frame.context.rdi, self.ahead[1]);
    }

    /// Whether an operand of this kind is accessed in the program view.
    fn opens(&self, kind: Kind) -> bool {
        match (self.string.op, kind) {
            // Which of two loads it is does not show: either in the program view opens.
            (StringOp::Cmps, _) => self.ahead.contains(&0),
            (StringOp::Lods, _) | (StringOp::Movs, Kind::Read) => self.ahead[0] == 0,
            (StringOp::Stos | StringOp::Scas | StringOp::Movs, _) => self.ahead[1] == 0,
        }
    }

    /// What has been accessed by now.
    fn done(&self, frame: &Frame) -> Accesses {
        self.string.done_ranges(&self.before, &registers_of(frame))
    }
}

/// How far the pointers of a string instruction are to go ahead: to the alias view, where instructions are emulated and the
/// operand lies wholly in the arena.
fn ahead(string: &RepString, registers: &Registers) -> [u64; 2] {
    if !emulate::is_on() {
        return [0, 0];
    }
    let arena = alloc::arena();
    let displacement = alloc::displacement() as u64;
    let within = |access: &operands::Access| {
        access.addr as usize >= arena.start && access.addr.saturating_add(access.len) as usize <= arena.end
    };
    let ranges = string.max_ranges(registers);
    let mut ranges = ranges.iter();
    let mut of = |uses: bool| if uses && ranges.next().is_some_and(within) { displacement } else { 0 };
    let source = of(matches!(string.op, StringOp::Movs | StringOp::Lods | StringOp::Cmps));
    [source, of(string.op != StringOp::Lods)]
}

/// An access of the decoder's as the accounts take it.
pub fn of_program(access: &operands::Access) -> Access {
    let kind = match access.kind {
        operands::Kind::Read => Kind::Read,
        operands::Kind::Write => Kind::Write,
    };
    Access { addr: access.addr as usize, len: access.len as usize, kind, by: By::Program }
}

impl Default for Step {
    fn default() -> Self {
        let nothing = Access { addr: 0, len: 0, kind: Kind::Read, by: By::Program };
        Self {
            running: None,
            accesses: [nothing; CAPACITY],
            count: 0,
            opened: [(0, 0); MAX_OPENED],
            opened_count: 0,
        }
    }
}

/// What a fault turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The instruction has been let run.
    Resumed,
    /// Not an access to watched memory: the program's own fault.
    Foreign,
}

impl Step {
    /// Whether an instruction is on its way.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn open(&mut self, range: Range<usize>) -> bool {
        if self.opened_count == MAX_OPENED {
            return false;
        }
        protect::open(range.clone());
        self.opened[self.opened_count] = (range.start, range.end);
        self.opened_count += 1;
        true
    }

    fn has_opened(&self, address: usize) -> bool {
        let page = address & !(thermalloc_sys::mem::PAGE - 1);
        self.opened[..self.opened_count].iter().any(|&(start, end)| start < page + 4096 && page < end)
    }

    fn note(&mut self, access: Access) {
        if self.count < CAPACITY {
            self.accesses[self.count] = access;
            self.count += 1;
        }
    }
}

/// Whether an access of this kind to this address is one that the monitor makes fault.
pub fn is_watched(address: usize, len: usize, kind: Kind) -> bool {
    let extent = protect::watched_extent();
    (kind == Kind::Write || protect::watches_loads())
        && address < extent.end
        && address.saturating_add(len) > extent.start
}

/// Decides what a SIGSEGV is; if it is an access to watched memory, lets the instruction run.
pub fn on_fault(thread: &'static Thread, state: &mut HandlerState, frame: &mut Frame) -> Fault {
    let address = frame.info.address as usize;
    let store = frame.context.err & FAULT_STORE != 0;
    let fetch = frame.context.err & FAULT_FETCH != 0;
    let page_fault = matches!(frame.info.code, 1 | 2 | 4);
    if !page_fault || !protect::watched_extent().contains(&address) || !alloc::is_watched(address) {
        return Fault::Foreign;
    }
    if !fetch && !protect::permits(address, store) {
        // Without the key it would have been this.
        frame.info.code = SEGV_ACCERR;
        return Fault::Foreign;
    }
    if control::is_paused() {
        // The thread still has the key closed, or has seen the page closed, from before the pause.
        if let Some(Method::Key(_)) = protect::method() {
            let offset = crate::pku::xsave_offset();
            let pkru = frame.pkru(offset).unwrap_or(0);
            frame.set_pkru(offset, protect::opened_pkru(pkru));
        }
        return Fault::Resumed;
    }
    if protect::is_wide_open() && !state.step.is_running() {
        // Opened since the fault.
        return Fault::Resumed;
    }
    TOTALS.faults.fetch_add(1, Ordering::Relaxed);
    if state.step.is_running() {
        return also_open(&mut state.step, address);
    }
    let place = patch::place(frame.context.rip);
    if !fetch && patch::resume(thread, state, frame, place) {
        return Fault::Resumed;
    }
    if place == Place::Between && emulate_original(thread, state, frame) {
        return Fault::Resumed;
    }
    let thread = thread.ordinal.load(Ordering::Relaxed);
    let registers = registers_of(frame);
    let (decoded, code) = decode(&mut state.decoder, frame, &registers);
    if place == Place::Between {
        // Translated code accesses the thread's own words, which lie in the heap.
        begin(state, frame, address, fetch, &registers, &decoded);
        state.step.count = 0;
    } else if fetch || !state.emulator.resume(frame, &decoded, &code, &registers, thread) {
        begin(state, frame, address, fetch, &registers, &decoded);
    }
    Fault::Resumed
}

/// A step has met a page that it has not opened: code in the heap, or an operand that the decoder does not know.
fn also_open(step: &mut Step, address: usize) -> Fault {
    let string = step.running.is_some_and(|running| running.string.is_some());
    if step.has_opened(address) && !string {
        return Fault::Foreign;
    }
    if string {
        // The range is charged from the registers; keep no more than this page open.
        step.close_all();
    }
    if step.open(address..address + 1) { Fault::Resumed } else { Fault::Foreign }
}

/// A fault in the midst of translated code: emulates the original instruction instead, if that can be done.
fn emulate_original(thread: &Thread, state: &mut HandlerState, frame: &mut Frame) -> bool {
    // With a stack in the heap it cannot, and settling takes back what has been counted.
    if alloc::contains(frame.context.rsp as usize) {
        return false;
    }
    let before = frame.context;
    patch::settle(thread, frame, &mut state.callout);
    let ordinal = thread.ordinal.load(Ordering::Relaxed);
    let registers = registers_of(frame);
    let emulated = patch::original(frame.context.rip).is_some_and(|code| {
        let vectors = XsaveArea::new(frame.extended().unwrap_or(&[]), crate::thread::xsave_layout());
        let decoded = state.decoder.decode(&code, &registers, &vectors);
        state.emulator.resume(frame, &decoded, &code, &registers, ordinal)
    });
    if !emulated {
        frame.context = before;
    }
    emulated
}

fn begin(
    state: &mut HandlerState,
    frame: &mut Frame,
    address: usize,
    fetch: bool,
    registers: &Registers,
    decoded: &Decoded,
) {
    world::enter();
    let step = &mut state.step;
    step.count = 0;
    step.opened_count = 0;
    let traced = frame.context.eflags & TRAP_FLAG != 0;
    let mut running = Running {
        rip: frame.context.rip,
        mask: frame.mask,
        traced,
        pushes_flags: decoded.class == Class::PushFlags,
        scattered: decoded.class == Class::Scattered,
        string: None,
    };
    if let Class::RepString(string) = decoded.class
        && let Some(stub) = rep::stub(&string)
    {
        let next = frame.context.rip + u64::from(decoded.len);
        running.string =
            Some(StringRun { string, stub, before: *registers, next, ahead: ahead(&string, registers) });
    }
    for access in decoded.accesses.iter().map(of_program) {
        if is_watched(access.addr, access.len, access.kind) {
            if running.string.is_none_or(|run| run.opens(access.kind)) {
                step.open(access.addr..access.addr.saturating_add(access.len));
            }
            if running.string.is_none() {
                step.note(access);
            }
        }
    }
    if !step.has_opened(address) && running.string.is_none_or(|run| run.ahead == [0, 0]) {
        // Where the decoder knows all accesses, this is a touch without a transfer: a cache-line flush, say.
        step.open(address..address + 1);
        let unknown = !decoded.complete || decoded.class == Class::Invalid;
        if !fetch && running.string.is_none() && unknown {
            let kind = if frame.context.err & FAULT_STORE != 0 { Kind::Write } else { Kind::Read };
            step.note(Access { addr: address, len: 1, kind, by: By::Program });
        }
    }
    if let Some(Method::Key(_)) = protect::method() {
        let offset = crate::pku::xsave_offset();
        let pkru = frame.pkru(offset).unwrap_or(0);
        frame.set_pkru(offset, protect::opened_pkru(pkru));
    }
    frame.mask |= !SYNCHRONOUS;
    match running.string {
        Some(run) => {
            frame.context.rip = run.stub.start;
            run.shift(frame, u64::wrapping_add);
            frame.context.eflags &= !TRAP_FLAG;
        }
        None => frame.context.eflags |= TRAP_FLAG,
    }
    step.running = Some(running);
}

/// Whether the trap flag has been set by a step and not by the program.
pub fn owns_trap(state: &HandlerState, frame: &Frame) -> bool {
    match state.step.running {
        Some(Running { string: Some(run), .. }) => frame.context.rip == run.stub.trapped,
        Some(_) => frame.info.code != SI_KERNEL,
        None => false,
    }
}

/// The instruction has run: closes, charges, restores. True if the program wants the trap too.
pub fn finish(state: &mut HandlerState, frame: &mut Frame, thread: u32) -> bool {
    let Some(running) = state.step.running else { return false };
    if let Some(run) = running.string {
        run.shift(frame, u64::wrapping_sub);
        for access in run.done(frame).iter().map(of_program) {
            if is_watched(access.addr, access.len, access.kind) {
                state.step.note(access);
            }
        }
        frame.context.rip = run.next;
    } else if running.scattered && frame.context.rip == running.rip {
        keep_done_lanes(state, frame);
    } else if running.pushes_flags {
        hide_trap_flag(frame, running.traced);
    }
    state.step.close_all();
    let now = clock::now();
    for access in &state.step.accesses[..state.step.count] {
        heat::charge(access, thread, now);
    }
    restore(&mut state.step, frame, &running);
    TOTALS.steps.fetch_add(1, Ordering::Relaxed);
    running.traced
}

/// The instruction has faulted for a reason of its own: closes and puts the program back before it.
pub fn cancel(state: &mut HandlerState, frame: &mut Frame, thread: u32) {
    let Some(running) = state.step.running else { return };
    if let Some(run) = running.string {
        // As on the bare machine, the elements done so far stay done and the registers say how many.
        run.shift(frame, u64::wrapping_sub);
        let now = clock::now();
        for access in run.done(frame).iter().map(of_program) {
            if is_watched(access.addr, access.len, access.kind) {
                heat::charge(&access, thread, now);
            }
        }
        frame.context.rip = running.rip;
    }
    state.step.close_all();
    restore(&mut state.step, frame, &running);
}

impl Step {
    fn close_all(&mut self) {
        for &(start, end) in &self.opened[..self.opened_count] {
            protect::close(start..end);
        }
        self.opened_count = 0;
    }
}

fn restore(step: &mut Step, frame: &mut Frame, running: &Running) {
    step.running = None;
    frame.mask = running.mask;
    if running.traced {
        frame.context.eflags |= TRAP_FLAG;
    } else {
        frame.context.eflags &= !TRAP_FLAG;
    }
    if let Some(Method::Key(_)) = protect::method() {
        // What the instruction itself has made of the register stays, but for the monitor's key.
        let offset = crate::pku::xsave_offset();
        let pkru = frame.pkru(offset).unwrap_or(0);
        frame.set_pkru(offset, protect::closed_pkru(pkru));
    }
    world::leave();
}

/// A gather or scatter has stopped at a fault after some lanes, whose mask bits it has cleared: what the
/// registers still ask for has not been accessed yet. The rest faults again.
fn keep_done_lanes(state: &mut HandlerState, frame: &Frame) {
    let (rest, _) = decode(&mut state.decoder, frame, &registers_of(frame));
    let watched = rest.accesses.iter().map(of_program).filter(|a| is_watched(a.addr, a.len, a.kind));
    state.step.count = state.step.count.saturating_sub(watched.count());
}

/// A pushf under single step has pushed the trap flag that the program did not set.
fn hide_trap_flag(frame: &Frame, traced: bool) {
    if traced {
        return;
    }
    let at = frame.context.rsp as usize;
    let mut second = [0u8];
    if memory::read(at + 1, &mut second) {
        second[0] &= !((TRAP_FLAG >> 8) as u8);
        memory::write(at + 1, &second);
    }
}

fn decode(state: &mut DecoderState, frame: &Frame, registers: &Registers) -> (Decoded, [u8; MAX_LEN]) {
    let mut code = [0u8; MAX_LEN];
    let rip = frame.context.rip as usize;
    let to_page_end = (thermalloc_sys::mem::PAGE - rip % thermalloc_sys::mem::PAGE).min(code.len());
    let mut len = 0;
    if memory::read(rip, &mut code[..to_page_end]) {
        len = to_page_end;
        if len < code.len() && memory::read(rip + len, &mut code[to_page_end..]) {
            len = code.len();
        }
    }
    let vectors = XsaveArea::new(frame.extended().unwrap_or(&[]), crate::thread::xsave_layout());
    (state.decode(&code[..len], registers, &vectors), code)
}

/// The registers that operands are computed from.
pub fn registers_of(frame: &Frame) -> Registers {
    let c = &frame.context;
    Registers {
        gpr: c.registers(),
        rip: c.rip,
        rflags: c.eflags,
        fs_base: segments::fs_base(),
        gs_base: segments::gs_base(),
    }
}
