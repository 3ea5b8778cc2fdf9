//! Signals of the program: their delivery, their return, and the system calls that set masks, actions and stacks.
//!
//! The monitor's entry runs on a stack of the runtime. To deliver a signal it builds, on the stack where the program
//! would have had it, the frame that the kernel would have built, and edits its own frame so that
//! returning from the entry enters the program's handler. A handler returns with rt_sigreturn, which arrives as
//! any system call: the program's frame is copied over the entry's, and returning does the rest.
//!
//! # Safety
//! Frames are plain bytes; they are copied with the probing copy.
//!
//! # Signal context
//! Everything here runs in handlers.
#![allow(unsafe_code)]

use crate::actions::{self, Action, DEFAULT, IGNORE, MAX_SIGNAL, RESERVED, bit};
use crate::frame::{DIRECTION_FLAG, Frame, Info, RESUME_FLAG, SIGINFO, Stack, TRAP_FLAG, UCONTEXT};
use crate::kernel_call::{self, Place};
use crate::memory::{self, Plain};
use crate::process;
use crate::protect;
use crate::thread::{HandlerState, Thread};
use thermalloc_sys::gate;

/// Bytes below the stack pointer that the x86-64 psABI lets a function use.
const RED_ZONE: u64 = 128;
const MIN_STACK: usize = 2048;

// SAFETY: integers; the padding words are integers too.
unsafe impl Plain for Frame {
    // SAFETY: all bytes zero is a frame.
    const ZERO: Self = unsafe { core::mem::zeroed() };
}

// SAFETY: integers.
unsafe impl Plain for Info {
    const ZERO: Self = Self::kernel(0);
}

// SAFETY: integers.
unsafe impl Plain for Stack {
    const ZERO: Self = Self::DISABLED;
}

/// Delivers the signal in `frame` as the kernel would if the monitor were not there. The frame is canonical: in program
/// code, no step or call on its way. `waiting` is the mask of the call that the signal has ended, if that call
/// waited under a mask of its own.
pub fn deliver(thread: &Thread, state: &mut HandlerState, frame: &mut Frame, waiting: Option<u64>) {
    let signal = frame.info.signo;
    let action = actions::get(signal);
    let fault = RESERVED & bit(signal) != 0 || matches!(signal, libc::SIGFPE | libc::SIGILL);
    let forced = fault && frame.info.code > 0;
    match action.handler {
        _ if !forced && state.blocked & bit(signal) != 0 => keep_blocked(state, frame),
        // A blocked or ignored fault of the program's own ends it all the same.
        _ if forced && program_mask(state, frame) & bit(signal) != 0 => process::die(thread, state, frame),
        IGNORE if forced => process::die(thread, state, frame),
        IGNORE => {}
        DEFAULT if actions::is_fatal_by_default(signal) => process::die(thread, state, frame),
        DEFAULT => {}
        _ => enter_handler(thread, state, frame, &action, waiting),
    }
}

/// An asynchronous SIGSEGV, SIGBUS, SIGTRAP or SIGSYS that the program has blocked: kept until it unblocks it.
fn keep_blocked(state: &mut HandlerState, frame: &Frame) {
    let slot = &mut state.kept[reserved_index(frame.info.signo)];
    slot.get_or_insert(frame.info);
}

fn reserved_index(signal: i32) -> usize {
    match signal {
        libc::SIGSEGV => 0,
        libc::SIGBUS => 1,
        libc::SIGTRAP => 2,
        _ => 3,
    }
}

/// The signal mask as the program believes it to be.
fn program_mask(state: &HandlerState, frame: &Frame) -> u64 {
    frame.mask | state.blocked
}

/// Sets the mask that the program asked for: the kernel's leaves out what the monitor needs.
fn set_program_mask(state: &mut HandlerState, frame: &mut Frame, mask: u64) {
    let mask = mask & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    frame.mask = mask & !RESERVED;
    state.blocked = mask & RESERVED;
}

/// Delivers the kept signals that the program has unblocked; the frame is canonical.
pub fn deliver_kept(thread: &Thread, state: &mut HandlerState, frame: &mut Frame) {
    for at in 0..state.kept.len() {
        let blocked = state.blocked;
        if let Some(info) = state.kept[at].take_if(|info| blocked & bit(info.signo) == 0) {
            frame.info = info;
            deliver(thread, state, frame, None);
        }
    }
}

fn enter_handler(
    thread: &Thread,
    state: &mut HandlerState,
    frame: &mut Frame,
    action: &Action,
    waiting: Option<u64>,
) {
    let Some(at) = push_frame(state, frame, action) else {
        // The kernel could not have built the frame either.
        frame.info = Info::kernel(libc::SIGSEGV);
        process::die(thread, state, frame);
        return;
    };
    if action.flags & libc::SA_RESETHAND as usize != 0 {
        actions::set(frame.info.signo, &Action::default());
    }
    let mut mask = waiting.unwrap_or(program_mask(state, frame)) | action.mask;
    if action.flags & libc::SA_NODEFER as usize == 0 {
        mask |= bit(frame.info.signo);
    }
    set_program_mask(state, frame, mask);
    let c = &mut frame.context;
    c.rip = action.handler as u64;
    c.rsp = at as u64;
    c.rdi = frame.info.signo as u64;
    c.rsi = (at + SIGINFO) as u64;
    c.rdx = (at + UCONTEXT) as u64;
    c.rax = 0;
    c.eflags &= !(DIRECTION_FLAG | TRAP_FLAG | RESUME_FLAG);
    frame.reset_vectors();
}

/// Writes the program's frame where the kernel would have; returns its address.
fn push_frame(state: &mut HandlerState, frame: &Frame, action: &Action) -> Option<usize> {
    let mut copy = *frame;
    copy.mask = program_mask(state, frame);
    copy.stack = state.altstack;
    copy.restorer = action.restorer;
    let sp = frame.context.rsp;
    let switches = action.flags & libc::SA_ONSTACK as usize != 0
        && state.altstack.flags & libc::SS_DISABLE == 0
        && !state.altstack.contains(sp);
    let mut at =
        if switches { state.altstack.sp + state.altstack.size } else { sp.wrapping_sub(RED_ZONE) as usize };
    let on_stack = switches || state.altstack.contains(sp);
    if switches && state.altstack.flags & SS_AUTODISARM != 0 {
        state.altstack = Stack::DISABLED;
    }
    copy.context.fpstate = 0;
    if let Some(vectors) = frame.extended() {
        at = at.checked_sub(vectors.len())? & !63;
        if !memory::write(at, vectors) {
            return None;
        }
        copy.context.fpstate = at;
    }
    at = (at.checked_sub(size_of::<Frame>())? & !15) - 8;
    // As in the kernel, a handler that overflows its alternate stack is not entered.
    if on_stack && copy.stack.flags & libc::SS_DISABLE == 0 && at < copy.stack.sp {
        return None;
    }
    memory::write_value(at, &copy).then_some(at)
}

/// Disarms the alternate stack while a handler runs on it (sigaltstack(2)).
const SS_AUTODISARM: i32 = i32::MIN;

/// rt_sigreturn of the program: its frame becomes the entry's.
pub fn return_from_handler(thread: &Thread, state: &mut HandlerState, frame: &mut Frame) {
    let at = (frame.context.rsp as usize).wrapping_sub(8);
    let Some(saved) = memory::read_value::<Frame>(at) else {
        frame.info = Info::kernel(libc::SIGSEGV);
        process::die(thread, state, frame);
        return;
    };
    let vectors_at = frame.context.fpstate;
    let segments = frame.context.segments;
    frame.context = saved.context;
    frame.context.segments = segments;
    let saved_vectors = saved.context.fpstate;
    frame.context.fpstate = vectors_at;
    if saved_vectors == 0 {
        frame.reset_vectors();
    } else if let Some(vectors) = frame.extended_mut() {
        memory::read(saved_vectors, vectors);
    }
    if protect::method().is_some() && crate::pku::xsave_offset() != 0 {
        let offset = crate::pku::xsave_offset();
        let pkru = frame.pkru(offset).unwrap_or(0);
        frame.set_pkru(offset, protect::closed_pkru(pkru));
    }
    state.altstack = saved.stack;
    set_program_mask(state, frame, saved.mask);
}

/// Makes an interrupted context canonical before a signal is delivered: a call on its way is completed or
/// taken back. Returns the mask under which the call waited, if it had one of its own.
pub fn settle(thread: &Thread, state: &mut HandlerState, frame: &mut Frame) -> Option<u64> {
    match kernel_call::place(frame.context.rip) {
        Place::Elsewhere => None,
        Place::Before => {
            process::call_taken_back(state);
            kernel_call::take_back(state, frame);
            None
        }
        Place::After => {
            let waiting = waiting_mask(state.call.nr, &state.call.args);
            process::call_returned(thread, state, frame);
            waiting
        }
    }
}

/// The mask that a waiting system call was handed.
fn waiting_mask(nr: i64, args: &[u64; 6]) -> Option<u64> {
    let at = match nr {
        libc::SYS_rt_sigsuspend => args[0],
        libc::SYS_ppoll => args[3],
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => args[4],
        libc::SYS_pselect6 => memory::read_value::<u64>(args[5] as usize).filter(|_| args[5] != 0)?,
        _ => return None,
    };
    if at == 0 { None } else { memory::read_value(at as usize) }
}

/// A system call that the monitor answers itself.
pub type Answer = Result<u64, i32>;

/// rt_sigaction.
pub fn sigaction(state: &mut HandlerState, args: &[u64; 6]) -> Answer {
    let [signal, new, old, size, ..] = *args;
    let signal = signal as i32;
    if size != 8 || !(1..=MAX_SIGNAL as i32).contains(&signal) {
        return Err(libc::EINVAL);
    }
    let untouchable = signal == libc::SIGKILL || signal == libc::SIGSTOP;
    let action = match new {
        0 => None,
        _ if untouchable => return Err(libc::EINVAL),
        at => Some(memory::read_value::<Action>(at as usize).ok_or(libc::EFAULT)?),
    };
    let before = if untouchable { Action::default() } else { actions::get(signal) };
    if let Some(mut action) = action {
        action.mask &= !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
        if state.vfork_child {
            actions::set_for_child(signal, &action);
        } else {
            actions::set(signal, &action);
        }
    }
    if old != 0 && !memory::write_value(old as usize, &before) {
        return Err(libc::EFAULT);
    }
    Ok(0)
}

/// rt_sigprocmask.
pub fn sigprocmask(state: &mut HandlerState, frame: &mut Frame) -> Answer {
    let [how, new, old, size, ..] = frame.arguments();
    if size != 8 {
        return Err(libc::EINVAL);
    }
    let before = program_mask(state, frame);
    if new != 0 {
        let set = memory::read_value::<u64>(new as usize).ok_or(libc::EFAULT)?;
        let mask = match how as i32 {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return Err(libc::EINVAL),
        };
        set_program_mask(state, frame, mask);
    }
    if old != 0 && !memory::write_value(old as usize, &before) {
        return Err(libc::EFAULT);
    }
    Ok(0)
}

/// rt_sigpending: the kernel's answer, and the signals that the monitor keeps for the program.
pub fn sigpending(state: &HandlerState, args: &[u64; 6]) -> Answer {
    let [at, size, ..] = *args;
    if size > 8 {
        return Err(libc::EINVAL);
    }
    let mut pending = 0u64;
    // SAFETY: the kernel writes one word, which is alive.
    unsafe { gate::syscall(libc::SYS_rt_sigpending, &[&raw mut pending as usize, 8]) };
    for info in state.kept.iter().flatten() {
        pending |= bit(info.signo);
    }
    let bytes = pending.to_ne_bytes();
    if memory::write(at as usize, &bytes[..size as usize]) { Ok(0) } else { Err(libc::EFAULT) }
}

/// rt_sigtimedwait: a signal that the monitor keeps for the program, if it waits for one of these.
pub fn take_kept(state: &mut HandlerState, args: &[u64; 6]) -> Option<Answer> {
    let set = memory::read_value::<u64>(args[0] as usize)?;
    let info = state.kept.iter_mut().find_map(|slot| slot.take_if(|info| set & bit(info.signo) != 0))?;
    if args[1] != 0 && !memory::write_value(args[1] as usize, &info) {
        return Some(Err(libc::EFAULT));
    }
    Some(Ok(info.signo as u64))
}

/// sigaltstack.
pub fn sigaltstack(state: &mut HandlerState, frame: &Frame) -> Answer {
    let [new, old, ..] = frame.arguments();
    let mut before = state.altstack;
    let on_it = before.contains(frame.context.rsp);
    if on_it {
        before.flags |= libc::SS_ONSTACK;
    }
    if new != 0 {
        let stack = memory::read_value::<Stack>(new as usize).ok_or(libc::EFAULT)?;
        if on_it {
            return Err(libc::EPERM);
        }
        state.altstack = match stack.flags & !SS_AUTODISARM {
            libc::SS_DISABLE => Stack::DISABLED,
            0 | libc::SS_ONSTACK if stack.size < MIN_STACK => return Err(libc::ENOMEM),
            0 | libc::SS_ONSTACK => {
                let mut armed = Stack::new(stack.sp, stack.size);
                armed.flags = stack.flags & SS_AUTODISARM;
                armed
            }
            _ => return Err(libc::EINVAL),
        };
    }
    if old != 0 && !memory::write_value(old as usize, &before) {
        return Err(libc::EFAULT);
    }
    Ok(0)
}
