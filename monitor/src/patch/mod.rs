//! Patching: an instruction that has faulted on watched memory is rewritten to jump into a code cache, where its accesses
//! are counted inline and made through the alias view; so it never faults again.
//!
//! Modules, lowest first:
//! - `slots`: the thread's words that translated code uses.
//! - `window`: what a jump over original code may look like.
//! - `zone`: memory for translated code near a module.
//! - `region`, `liveness`: the code that is translated together, and what it needs of the registers.
//! - `door`, `callout`: from translated code into the runtime and back, for system calls and what has no inline counter.
//! - `assembler`, `emit`: translation.
//! - `settle`: from the midst of translated code back to the program's state.
//! - `state`: what has been translated and patched. This module: the handlers' side.
//!
//! # Safety
//! Code of loaded files is changed: to jumps into translations that do what it did.
//!
//! # Signal context
//! Everything here runs in handlers that have interrupted code of the program, so the private heap may be used; one thread at a
//! time, and handlers do not nest.

mod assembler;
mod callout;
mod door;
mod emit;
mod liveness;
mod region;
mod settle;
mod slots;
mod state;
mod window;
mod zone;

use crate::charged::Charged;
use crate::control;
use crate::frame::{Frame, TRAP_FLAG};
use crate::heat;
use crate::kernel_call::{self, SYSCALL_LEN};
use crate::operands::decode::MAX_LEN;
use crate::rewrite;
use crate::segments;
use crate::thread::{HandlerState, Thread};
use crate::world;
pub use callout::keep_little;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub use door::{Door, is_release, release};
use slots::Slot;
use state::State;
use thermalloc_alloc as alloc;
use thermalloc_sys::gate;
use thermalloc_sys::lock::Lock;

static ON: AtomicBool = AtomicBool::new(false);
/// Address behind the last that is counted.
static END: AtomicU64 = AtomicU64::new(0);
static STATE: Lock<Option<Box<State>>> = Lock::new(None);

/// `si_code` of a trap that an instruction has caused by itself.
const SI_KERNEL: i32 = 0x80;

/// Begins to patch. `loads`: whether loads are counted.
pub fn start(loads: bool) {
    END.store(heat::covered().end as u64, Ordering::Relaxed);
    gate::on_door(door::back() as usize);
    *STATE.lock() = Some(Box::new(State::new(loads)));
    ON.store(true, Ordering::Release);
}

/// Whether sites are patched.
pub fn is_on() -> bool {
    ON.load(Ordering::Acquire)
}

fn with_state<R>(act: impl FnOnce(&mut State) -> R) -> Option<R> {
    if !is_on() {
        return None;
    }
    STATE.lock().as_deref_mut().map(act)
}

/// Where a code address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not in translated code.
    Outside,
    /// At the copy of an instruction, with the program's state in place.
    Copy,
    /// Among what counts and keeps.
    Between,
}

/// Where a code address is.
pub fn place(rip: u64) -> Place {
    with_state(|state| state.place(rip)).unwrap_or(Place::Outside)
}

/// A fault at an address that is not the heap's: true if it was a count of something below the heap, which goes on uncounted.
pub fn go_cold(frame: &mut Frame) -> bool {
    frame.info.code > 0 && with_state(|state| state.go_cold(frame)) == Some(true)
}

/// The code at an address of a module with patches, as it was before any.
pub fn original(ip: u64) -> Option<[u8; MAX_LEN]> {
    with_state(|state| state.original(ip)).flatten()
}

/// If the thread is in translated code, puts it where it would be in the program.
pub fn settle(thread: &Thread, frame: &mut Frame, callout: &mut Charged) {
    with_state(|state| state.settle(thread, frame, callout));
}

/// A signal may have found the thread at the door, outside of the runtime: then the frame is made as if it had not come there, or had
/// left. True if the thread is to go on at once.
pub fn at_door(thread: &Thread, frame: &mut Frame) -> bool {
    door::skip(thread, frame) || {
        door::roll(thread, frame);
        false
    }
}

/// Where a thread is to run that goes on at an original address: at its translation, if a patch covers it, which saves a trap.
pub fn ahead(ip: u64) -> u64 {
    with_state(|state| state.ahead(ip)).flatten().unwrap_or(ip)
}

/// The program has made a system call by a signal: the next one from there shall go by the door. If it came from translated code, the frame
/// is made the program's.
pub fn learn_call(thread: &'static Thread, state: &mut HandlerState, frame: &mut Frame, nr: i64) {
    if !is_on() {
        return;
    }
    let ip = frame.context.rip;
    // The program stands behind its call; what stands behind the copy may be anything, for a jump needs no code.
    let is_copy = place(ip - 1) != Place::Outside;
    if is_copy {
        frame.context.rip -= 1;
        settle(thread, frame, &mut state.callout);
        frame.context.rip += SYSCALL_LEN;
    }
    // What the door does not take gains nothing. And the runtime's own allocator makes calls outside of the runtime when a thread or
    // the process ends, all to do with mappings: to patch one would allocate in the midst of that.
    let learns = kernel_call::is_for_door(nr) && (thread.counts_inline() || make_ready(thread));
    if learns && !is_copy {
        world::enter();
        enter(ip - SYSCALL_LEN);
        world::leave();
    }
}

/// A trap of the patches: a covered instruction, to which something jumped after all, or a counter that has wrapped. The frame is as the
/// kernel made it.
pub fn on_trap(frame: &mut Frame) -> bool {
    let info = &frame.info;
    let at = match (info.signo, info.code) {
        (libc::SIGTRAP, SI_KERNEL) => frame.context.rip - 1,
        (libc::SIGSEGV, SI_KERNEL) if info.address == 0 => frame.context.rip,
        _ => return false,
    };
    with_state(|state| state.on_trap(frame, at)) == Some(true)
}

/// The program steps itself (its own trap flag): true if the thread is not at an instruction of the program's that it has not seen yet.
/// `last` is where it has seen itself last.
pub fn is_between_steps(last: &mut u64, frame: &Frame) -> bool {
    if frame.info.signo != libc::SIGTRAP
        || frame.info.code == SI_KERNEL
        || frame.context.eflags & TRAP_FLAG == 0
    {
        return false;
    }
    let rip = frame.context.rip;
    let at = match with_state(|state| state.step_at(rip)) {
        None | Some(Step::Outside) => rip,
        Some(Step::At(ip)) if ip != *last => ip,
        Some(_) => return true,
    };
    *last = at;
    false
}

/// Where a single step has led.
enum Step {
    /// Not to translated code.
    Outside,
    /// To the translation of the instruction at this address.
    At(u64),
    /// Elsewhere in translated code.
    Inside,
}

/// Before a system call of the program: forgets patches in code that it unmaps, replaces, or makes writable.
pub fn before_call(nr: i64, args: &[u64; 6]) {
    if !is_on() {
        return;
    }
    let range = |start: u64, len: u64| start as usize..start.saturating_add(len) as usize;
    match nr {
        libc::SYS_munmap | libc::SYS_mremap => forget(range(args[0], args[1])),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect if args[2] & libc::PROT_WRITE as u64 != 0 => {
            forget(range(args[0], args[1]));
        }
        libc::SYS_mmap if args[3] & libc::MAP_FIXED as u64 != 0 => forget(range(args[0], args[1])),
        _ => {}
    }
}

/// The instruction at RIP has faulted on watched memory: sends the thread to its translation, which is made now if there is none. False if
/// it must be let through another way.
pub fn resume(thread: &'static Thread, state: &mut HandlerState, frame: &mut Frame, place: Place) -> bool {
    if !is_on() {
        return false;
    }
    let was_ready = thread.counts_inline();
    if !was_ready && !make_ready(thread) {
        return false;
    }
    if place != Place::Outside {
        if was_ready {
            with_state(|state| state.note(frame.context.rip));
            return false;
        }
        settle(thread, frame, &mut state.callout);
    }
    // Inside the gate, so that no fork copies half a patch.
    world::enter();
    let translation = enter(frame.context.rip);
    world::leave();
    if let Some(translation) = translation {
        frame.context.rip = translation;
    }
    translation.is_some()
}

fn enter(ip: u64) -> Option<u64> {
    if with_state(|state| state.knows(ip)) == Some(false) {
        // Not under the lock: this asks libc, whose code may be patched.
        let mappings = rewrite::executable_mappings();
        with_state(|state| state.add_zone(ip, &mappings));
    }
    with_state(|state| state.enter(ip)).flatten()
}

/// Gives a thread what translated code needs.
fn make_ready(thread: &'static Thread) -> bool {
    if alloc::contains(segments::fs_base() as usize) {
        return false;
    }
    let Some(sheet) = thread.need_sheet() else { return false };
    slots::set(Slot::Narrow, sheet.bias() as u64);
    slots::set(Slot::Wide, (sheet.bias() + sheet.wide()) as u64);
    thread.open_door();
    slots::set(Slot::Thread, thread as *const Thread as u64);
    slots::set(Slot::Start, heat::covered().start as u64);
    // It begins to count when the handler returns: what the runtime does until then is not the program's.
    thread.set_counts_inline();
    true
}

/// Whether what the calling thread does from here on is the program's, and counted. Only for threads that count inline.
pub fn count(counts: bool) {
    let counts = counts && !control::is_paused();
    slots::set(Slot::End, if counts { END.load(Ordering::Relaxed) } else { 0 });
    slots::set(Slot::Door, if counts { slots::get(Slot::Thread) } else { 0 });
}

/// Monitoring has been paused or resumed: the calling thread's translated code is told; that of others, when they enter the runtime next.
pub fn tell() {
    if Thread::current().is_some_and(Thread::counts_inline) {
        count(true);
    }
}

/// No more patches, and those that are there are taken back.
pub fn stop() {
    forget(0..usize::MAX);
    slots::set(Slot::Thread, 0);
    ON.store(false, Ordering::Release);
}

/// Executable memory is unmapped, or becomes writable.
pub fn forget(range: core::ops::Range<usize>) {
    with_state(|state| state.forget(range.start as u64..range.end as u64));
}

/// In a forked child: another thread may have held the lock when the process was copied, to look something up. Nobody
/// was changing anything: that happens inside the gate.
#[allow(unsafe_code)]
pub fn forked() {
    // SAFETY: the threads that could hold it are gone, and this one does not.
    unsafe { STATE.unlock() };
}

/// A site that could not be patched.
pub struct Refused {
    /// Its address.
    pub ip: u64,
    /// The code from there on, as long as an instruction can be.
    pub code: Vec<u8>,
    /// Why.
    pub why: &'static str,
    /// How often it has faulted.
    pub faults: u64,
}

/// Sites that could not be patched.
pub fn refused() -> Vec<Refused> {
    with_state(|state| state.refused()).unwrap_or_default()
}
