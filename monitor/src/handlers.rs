//! The entry of all signals: reads what happened, decides whose it is, and acts.
//!
//! # Safety
//! The kernel calls [`entry`] on the thread's alternate stack with a frame of its own; the rest follows from that.
//!
//! # Signal context
//! This is it. All signals but SIGSEGV, SIGBUS and SIGTRAP are blocked. Faults happen here only in the probing copy, which
//! recovers before anything else is looked at. System calls of the thread pass while it is in a handler. No
//! thread-local storage is touched, for it may lie in the watched heap; reports, which use libc, put errno back.
#![allow(unsafe_code)]

use crate::actions;
use crate::control;
use crate::emulate;
use crate::exec;
use crate::frame::Frame;
use crate::heat;
use crate::kernel_call::{self, Place};
use crate::mappings;
use crate::memory;
use crate::patch;
use crate::pku;
use crate::process;
use crate::protect::{self, Method};
use crate::report;
use crate::rewrite;
use crate::signals;
use crate::step::{self, Fault};
use crate::string;
use crate::thread::{HandlerState, Thread};
use crate::world;
use core::sync::atomic::Ordering;
use thermalloc_sys::gate;

/// `si_code` of a system call that Syscall User Dispatch has caught.
const SYS_USER_DISPATCH: i32 = 2;

/// Handler of every signal that the monitor takes.
///
/// # Safety
/// Called by the kernel alone.
pub unsafe extern "C" fn entry(signal: i32, _info: *mut libc::c_void, ucontext: *mut libc::c_void) {
    if let Some(Method::Key(_)) = protect::method() {
        // The kernel starts handlers with all keys but 0 closed.
        pku::write(0);
    }
    // SAFETY: the kernel passes the frame's ucontext, and this is its only reference.
    let frame = unsafe { Frame::of(ucontext) };
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS)
        && frame.info.code > 0
        && (memory::recover(&mut frame.context) || string::recover(&mut frame.context))
    {
        return;
    }
    // SAFETY: a handler on the alternate stack.
    let thread = unsafe { Thread::here() };
    if patch::at_door(thread, frame) {
        return;
    }
    if thread.is_busy() {
        in_runtime(thread, frame);
        return;
    }
    thread.allow_calls();
    thread.set_handling(true);
    // SAFETY: handlers of one thread do not nest, but for the probing copy's faults, dealt with above.
    let state = unsafe { thread.in_handler() };
    act(thread, state, frame);
    let is_canonical = !state.step.is_running() && !state.call.is_running();
    // In the midst of translated code the slots hold registers, which libc's patched code would overwrite.
    if is_canonical
        && !process::is_ending()
        && report::is_due()
        && patch::place(frame.context.rip) != patch::Place::Between
    {
        report::on_time();
    }
    if let Some(info) = thread.take_late() {
        frame.info = info;
        let waiting = signals::settle(thread, state, frame);
        signals::deliver(thread, state, frame, waiting);
    }
    if thread.counts_inline() {
        patch::count(true);
    }
    frame.context.rip = patch::ahead(frame.context.rip);
    thread.set_handling(false);
    if control::dispatches() {
        thread.catch_calls();
    }
}

/// Whether the thread itself caused the signal, by the instruction at RIP.
fn is_synchronous(frame: &Frame) -> bool {
    frame.info.code > 0
        && matches!(
            frame.info.signo,
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGSYS
        )
}

/// A signal has interrupted the runtime. Accesses to watched memory are let through; what comes from outside waits; any
/// other fault is a defect of the runtime.
fn in_runtime(thread: &Thread, frame: &mut Frame) {
    if !is_synchronous(frame) {
        thread.defer(frame);
        return;
    }
    // SAFETY: faults of the runtime do not nest: what follows touches no watched memory.
    let peek = unsafe { thread.peek() };
    if frame.info.signo == libc::SIGTRAP && rewrite::is_site(frame.context.rip) {
        call_for_runtime(frame);
        return;
    }
    if patch::on_trap(frame) {
        return;
    }
    let is_peek = match frame.info.signo {
        libc::SIGSEGV => peek.on_fault(frame),
        libc::SIGTRAP => peek.on_trap(frame),
        _ => false,
    };
    if is_peek {
        return;
    }
    say_fault(frame);
    crate::actions::uncover(frame.info.signo);
}

/// One line that says where the runtime has faulted: code relative to the gate, and the address.
#[cold]
fn say_fault(frame: &Frame) {
    let mut line = *b"thermalloc: internal error: signal 00 in the runtime at gate+0x0000000000000000, address 0x0000000000000000\n";
    let signal = frame.info.signo as u64;
    put(&mut line[35..37], signal, 10);
    put(&mut line[63..79], frame.context.rip.wrapping_sub(gate::range().start as u64), 16);
    put(&mut line[91..107], frame.info.address, 16);
    gate::write_all(2, &line);
}

/// Writes a number into a field of digits.
fn put(field: &mut [u8], mut value: u64, base: u64) {
    for digit in field.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(value % base) as usize];
        value /= base;
    }
}

/// A rewritten system call that the runtime makes by way of libc: made at once.
fn call_for_runtime(frame: &mut Frame) {
    let args = frame.arguments().map(|argument| argument as usize);
    // SAFETY: the runtime vouches for its own call, as where it stands.
    let result = unsafe { gate::syscall6(frame.context.rax as i64, args) };
    frame.context.rax = result as u64;
    frame.context.rip += 1;
}

fn act(thread: &'static Thread, state: &mut HandlerState, frame: &mut Frame) {
    if patch::on_trap(frame) {
        return;
    }
    if thread.counts_inline() {
        // What the runtime accesses from here on is not the program's.
        patch::count(false);
    }
    state.emulator.settle(frame, thread.ordinal.load(Ordering::Relaxed));
    let synchronous = is_synchronous(frame);
    if synchronous && !state.step.is_running() && patch::is_between_steps(&mut state.traced, frame) {
        return;
    }
    if synchronous && serve(thread, state, frame) {
        return;
    }
    step::cancel(state, frame, thread.ordinal.load(Ordering::Relaxed));
    patch::settle(thread, frame, &mut state.callout);
    if synchronous
        && frame.info.signo == libc::SIGSYS
        && kernel_call::place(frame.context.rip) == Place::After
    {
        // A seccomp filter of the program has refused the call: it happened at the original instruction.
        frame.info.address = state.call.returns_to;
    }
    let waiting = signals::settle(thread, state, frame);
    if actions::is_toggle(frame.info.signo) {
        return control::toggle();
    }
    signals::deliver(thread, state, frame, waiting);
}

/// Deals with what the monitor itself has brought about; false if the signal is the program's.
fn serve(thread: &'static Thread, state: &mut HandlerState, frame: &mut Frame) -> bool {
    let ordinal = thread.ordinal.load(Ordering::Relaxed);
    let rip = frame.context.rip;
    match frame.info.signo {
        libc::SIGSEGV if heat::on_sheet_fault(frame.info.address as usize) => true,
        libc::SIGSEGV => step::on_fault(thread, state, frame) == Fault::Resumed || patch::go_cold(frame),
        libc::SIGTRAP if step::owns_trap(state, frame) => {
            let program_wants_it = step::finish(state, frame, ordinal);
            !program_wants_it
        }
        libc::SIGTRAP if kernel_call::place(rip) == Place::After => {
            process::call_returned(thread, state, frame);
            true
        }
        libc::SIGTRAP if patch::is_release(frame) => {
            patch::release(thread, frame);
            true
        }
        libc::SIGTRAP if rewrite::is_site(rip) => {
            frame.context.rip += 1;
            on_call(thread, state, frame, frame.context.rax as i64);
            true
        }
        libc::SIGSYS if frame.info.code == SYS_USER_DISPATCH => {
            // Code in the heap was being stepped: its `syscall` instruction has been executed.
            step::cancel(state, frame, ordinal);
            let nr = frame.info.syscall();
            patch::learn_call(thread, state, frame, nr);
            on_call(thread, state, frame, nr);
            true
        }
        _ => false,
    }
}

/// The program makes a system call.
fn on_call(thread: &Thread, state: &mut HandlerState, frame: &mut Frame, nr: i64) {
    world::wait_until_open();
    let args = frame.arguments();
    patch::before_call(nr, &args);
    // `None`: the kernel is to make it.
    let answer = match nr {
        libc::SYS_rt_sigreturn => {
            signals::return_from_handler(thread, state, frame);
            signals::deliver_kept(thread, state, frame);
            return;
        }
        libc::SYS_rt_sigaction => Some(signals::sigaction(state, &args)),
        libc::SYS_rt_sigprocmask => Some(signals::sigprocmask(state, frame)),
        libc::SYS_rt_sigpending => Some(signals::sigpending(state, &args)),
        libc::SYS_rt_sigtimedwait => signals::take_kept(state, &args),
        libc::SYS_sigaltstack => Some(signals::sigaltstack(state, frame)),
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => {
            process::begin_birth(state, frame, nr);
            return;
        }
        libc::SYS_execve | libc::SYS_execveat => {
            exec::begin(state, frame, nr);
            return;
        }
        libc::SYS_exit => process::exit_thread(thread, state, frame),
        libc::SYS_exit_group => process::exit(thread, state, frame),
        libc::SYS_mprotect
        | libc::SYS_pkey_mprotect
        | libc::SYS_munmap
        | libc::SYS_madvise
        | libc::SYS_mmap
        | libc::SYS_mremap => mappings::answer(nr, &args),
        libc::SYS_arch_prctl if emulate::is_on() => {
            if emulate::takes_gs(&args) {
                patch::stop();
            }
            emulate::arch_prctl(&args)
        }
        // The program would take the monitor's eyes away.
        libc::SYS_prctl if args[0] == PR_SET_SYSCALL_USER_DISPATCH => Some(Err(libc::EINVAL)),
        libc::SYS_seccomp => {
            control::pause_for_sandbox();
            None
        }
        libc::SYS_prctl if args[0] == libc::PR_SET_SECCOMP as u64 => {
            control::pause_for_sandbox();
            if args[1] == libc::SECCOMP_MODE_STRICT as u64 {
                // Only read, write, exit and the return from a handler are left to this thread.
                thread.end_dispatch();
            }
            None
        }
        _ => {
            state.registrations.note(nr, &args);
            None
        }
    };
    let Some(answer) = answer else {
        kernel_call::begin(state, frame, nr, gate::call());
        if nr == libc::SYS_mlockall {
            // As in the preloaded `mlockall`, for calls that do not go through it. The program's argument comes back.
            frame.context.rdi |= libc::MCL_ONFAULT as u64;
        }
        return;
    };
    let result = match answer {
        Ok(value) => value as i64,
        Err(errno) => -i64::from(errno),
    };
    kernel_call::charge(nr, &args, result, thread.ordinal.load(Ordering::Relaxed));
    frame.context.rax = result as u64;
    signals::deliver_kept(thread, state, frame);
}

const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
