//! The program's signal actions, as it believes them to be in force, and what the kernel is told instead.
//!
//! The kernel's action is the monitor's entry for every signal that the program handles (the monitor moves the
//! frame to where the program would have had it), for the signals that the monitor itself needs, and for
//! signals whose default action ends the process (so that the report is written first). Only what the kernel
//! ignores, stops or continues by itself is left to it.
//!
//! # Safety
//! Installing actions is this module's purpose; the entry and the gate's restorer are code of the runtime.
//!
//! # Signal context
//! The table is read and written in handlers: each word is an atomic, and a change of an action, which is rare,
//! holds a spin lock that a handler only takes for its own thread's system call, with signals blocked.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use thermalloc_sys::gate::{self, syscall};

/// Highest signal number.
pub const MAX_SIGNAL: usize = 64;
/// SIG_DFL and SIG_IGN as the kernel knows them.
pub const DEFAULT: usize = 0;
/// See [`DEFAULT`].
pub const IGNORE: usize = 1;

const SA_RESTORER: usize = 0x0400_0000;
const ONSTACK: usize = libc::SA_ONSTACK as usize;
const SIGINFO: usize = libc::SA_SIGINFO as usize;
const NODEFER: usize = libc::SA_NODEFER as usize;
/// Flags of the program that the kernel must know: whether calls restart, and what becomes of children.
const PASSED: usize = libc::SA_RESTART as usize | libc::SA_NOCLDSTOP as usize | libc::SA_NOCLDWAIT as usize;

/// `struct sigaction` as the kernel has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Handler, [`DEFAULT`] or [`IGNORE`].
    pub handler: usize,
    /// `SA_*`.
    pub flags: usize,
    /// Where the handler returns to.
    pub restorer: usize,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

// SAFETY: four integers without padding.
unsafe impl crate::memory::Plain for Action {
    const ZERO: Self = Self { handler: 0, flags: 0, restorer: 0, mask: 0 };
}

/// Bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Signals that the monitor itself lives on: never blocked in the kernel's masks, always handled.
pub const RESERVED: u64 = bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGTRAP) | bit(libc::SIGSYS);

/// What a handler of the monitor leaves unblocked: the faults that its own probing of memory may raise, and the traps of
/// rewritten system calls that it makes by way of libc.
const HANDLER_OPEN: u64 = bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGTRAP);

/// A handler as the kernel calls it.
pub type Entry = unsafe extern "C" fn(i32, *mut libc::c_void, *mut libc::c_void);

static TABLE: [[AtomicUsize; 4]; MAX_SIGNAL + 1] =
    [const { [const { AtomicUsize::new(0) }; 4] }; MAX_SIGNAL + 1];
static ENTRY: AtomicUsize = AtomicUsize::new(0);
/// The signal that the monitor keeps for itself, as the program's user has asked; 0: none.
static TOGGLE: AtomicI32 = AtomicI32::new(0);
static CHANGING: AtomicBool = AtomicBool::new(false);

/// The monitor keeps a signal for itself. Before [`take_over`].
pub fn reserve_toggle(signal: i32) {
    TOGGLE.store(signal, Ordering::Relaxed);
}

/// Whether the monitor keeps a signal for itself by [`reserve_toggle`].
pub fn is_toggle(signal: i32) -> bool {
    TOGGLE.load(Ordering::Relaxed) == signal
}

/// What the program has set for a signal.
pub fn get(signal: i32) -> Action {
    let [handler, flags, restorer, mask] = &TABLE[signal as usize];
    Action {
        handler: handler.load(Ordering::Relaxed),
        flags: flags.load(Ordering::Relaxed),
        restorer: restorer.load(Ordering::Relaxed),
        mask: mask.load(Ordering::Relaxed) as u64,
    }
}

/// Remembers what the program has set for a signal and tells the kernel what follows from it.
pub fn set(signal: i32, action: &Action) {
    // Acquire and Release pair with each other: changes of table and kernel go together.
    while CHANGING.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    let [handler, flags, restorer, mask] = &TABLE[signal as usize];
    handler.store(action.handler, Ordering::Relaxed);
    flags.store(action.flags, Ordering::Relaxed);
    restorer.store(action.restorer, Ordering::Relaxed);
    mask.store(action.mask as usize, Ordering::Relaxed);
    tell_kernel(signal, action);
    CHANGING.store(false, Ordering::Release);
}

/// Puts the monitor between the program and all its signals; what is in force now becomes the program's.
pub fn take_over(entry: Entry) {
    ENTRY.store(entry as usize, Ordering::Relaxed);
    for signal in 1..=MAX_SIGNAL as i32 {
        if signal == libc::SIGKILL || signal == libc::SIGSTOP {
            continue;
        }
        let mut old = Action::default();
        kernel_action(signal, None, Some(&mut old));
        set(signal, &old);
    }
}

/// Tells the kernel the program's own actions again, before the process image is replaced: exec keeps what is ignored.
pub fn expose_ignored() {
    for signal in 1..=MAX_SIGNAL as i32 {
        // Not SIGTRAP: the trap that follows an exec that fails would be fatal.
        if RESERVED & bit(signal) != 0 && signal != libc::SIGTRAP && get(signal).handler == IGNORE {
            kernel_action(signal, Some(&get(signal)), None);
        }
    }
}

/// Undoes [`expose_ignored`] when the exec has failed.
pub fn cover_ignored() {
    for signal in 1..=MAX_SIGNAL as i32 {
        if RESERVED & bit(signal) != 0 {
            tell_kernel(signal, &get(signal));
        }
    }
}

/// Gives every signal back to the program's own action, when monitoring ends.
pub fn give_back() {
    for signal in 1..=MAX_SIGNAL as i32 {
        if signal != libc::SIGKILL && signal != libc::SIGSTOP {
            kernel_action(signal, Some(&get(signal)), None);
        }
    }
}

/// In a forked child: nobody is changing an action.
pub fn forked() {
    CHANGING.store(false, Ordering::Relaxed);
}

/// Resets every handler of the program, in a child that was asked for with CLONE_CLEAR_SIGHAND.
pub fn clear() {
    for signal in handled() {
        set(signal, &Action::default());
    }
}

/// [`clear`] in a vfork child: the kernel alone is told.
pub fn clear_for_child() {
    for signal in handled() {
        set_for_child(signal, &Action::default());
    }
}

fn handled() -> impl Iterator<Item = i32> {
    (1..=MAX_SIGNAL as i32).filter(|&signal| get(signal).handler > IGNORE)
}

/// Sets the kernel's default action, for the signal that is to end the process.
pub fn uncover(signal: i32) {
    kernel_action(signal, Some(&Action::default()), None);
}

/// In a vfork child, whose actions are its own while the table is its parent's: the kernel alone is told.
pub fn set_for_child(signal: i32, action: &Action) {
    if RESERVED & bit(signal) == 0 && action.handler <= IGNORE {
        kernel_action(signal, Some(action), None);
    }
}

/// Whether a signal's default action ends the process.
pub fn is_fatal_by_default(signal: i32) -> bool {
    !matches!(
        signal,
        libc::SIGCHLD
            | libc::SIGCONT
            | libc::SIGURG
            | libc::SIGWINCH
            | libc::SIGSTOP
            | libc::SIGTSTP
            | libc::SIGTTIN
            | libc::SIGTTOU
    )
}

fn tell_kernel(signal: i32, action: &Action) {
    let handled = action.handler > IGNORE;
    let ends = action.handler == DEFAULT && is_fatal_by_default(signal);
    if !handled && !ends && RESERVED & bit(signal) == 0 && !is_toggle(signal) {
        kernel_action(signal, Some(action), None);
        return;
    }
    let nested = if HANDLER_OPEN & bit(signal) != 0 { NODEFER } else { 0 };
    // Calls go on as if the signal had not been.
    let restarts = if is_toggle(signal) { libc::SA_RESTART as usize } else { 0 };
    let ours = Action {
        handler: ENTRY.load(Ordering::Relaxed),
        flags: (action.flags & PASSED) | restarts | ONSTACK | SIGINFO | SA_RESTORER | nested,
        restorer: gate::restorer(),
        mask: !HANDLER_OPEN,
    };
    kernel_action(signal, Some(&ours), None);
}

fn kernel_action(signal: i32, new: Option<&Action>, old: Option<&mut Action>) {
    let new = new.map_or(0, |action| action as *const Action as usize);
    let old = old.map_or(0, |action| action as *mut Action as usize);
    // SAFETY: both are null or live actions of the kernel's layout.
    unsafe { syscall(libc::SYS_rt_sigaction, &[signal as usize, new, old, 8]) };
}
