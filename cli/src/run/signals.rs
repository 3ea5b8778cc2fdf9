//! Signals while a program runs: all that can be passed on are held back and taken one by one by the waiting loop, so
//! nothing runs in handlers, nothing is lost between fork and exec, and the program inherits the caller's dispositions.
//! SIGINT alone has a handler (the ctrlc crate's), once the program has been started.
//!
//! # Safety
//! All calls take live locals, or no pointers.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals that the waiting loop leaves alone: those that a fault of this very program raises, those that stop it when
/// it writes to the terminal from the background, and SIGPIPE, which Rust ignores.
const LEFT_ALONE: [i32; 10] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGPIPE,
];

/// Signals that the terminal sends to all processes of the foreground group, so that the program has them already.
const OF_THE_TERMINAL: [i32; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH, libc::SIGCONT];

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Rust's start-up code ignores SIGPIPE; the program must get what the caller had, so it is noted before that.
#[used]
// SAFETY: the section holds pointers to functions without arguments that the loader calls before main.
#[unsafe(link_section = ".init_array")]
static NOTE_SIGPIPE: extern "C" fn() = note_sigpipe;

extern "C" fn note_sigpipe() {
    SIGPIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::SeqCst);
}

/// Whether the caller of this program ignored the signal.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action changes nothing; the old one goes to a live local, zeroed in case the call fails.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// What the program must be given back before exec.
#[derive(Clone, Copy)]
pub struct Inherited {
    mask: libc::sigset_t,
    child: libc::sighandler_t,
    pipe: libc::sighandler_t,
}

/// Holds all signals back and makes sure that the end of a child can be waited for.
pub fn hold() -> Inherited {
    let pipe = if SIGPIPE_WAS_IGNORED.load(Ordering::SeqCst) { libc::SIG_IGN } else { libc::SIG_DFL };
    let set = held();
    let mut mask = MaybeUninit::zeroed();
    // SAFETY: live locals; an ignored SIGCHLD would let the kernel reap the program before its status is read.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &set, mask.as_mut_ptr());
        let child = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        Inherited { mask: mask.assume_init(), child, pipe }
    }
}

impl Inherited {
    /// Undoes [`hold`] and Rust's own start-up. Called between fork and exec: system calls only.
    pub fn restore(&self) {
        // SAFETY: dispositions are SIG_DFL, SIG_IGN or the caller's; the mask is a live value.
        unsafe {
            libc::signal(libc::SIGCHLD, self.child);
            libc::signal(libc::SIGPIPE, self.pipe);
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, ptr::null_mut());
        }
    }
}

fn held() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set, sigdelset changes it.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        let mut set = set.assume_init();
        for signal in LEFT_ALONE {
            libc::sigdelset(&mut set, signal);
        }
        set
    }
}

/// Lets SIGINT through to its handler.
pub fn release_interrupt() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; unblocking one signal affects this thread alone.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
    }
}

/// A signal that arrived.
pub struct Arrival {
    /// Its number.
    pub signal: i32,
    /// The value that sigqueue(3) sent along.
    value: Option<libc::sigval>,
    /// The process that sent it; `None`: the kernel.
    sender: Option<i32>,
}

/// Waits for the next signal.
pub fn next() -> Arrival {
    let set = held();
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: both are live locals; the kernel fills in the information when it returns a signal, and the fields
        // read are those that si_code says are there.
        unsafe {
            let signal = libc::sigwaitinfo(&set, info.as_mut_ptr());
            if signal > 0 {
                let info = info.assume_init();
                let by_process = matches!(info.si_code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
                return Arrival {
                    signal,
                    value: (info.si_code == libc::SI_QUEUE).then(|| info.si_value()),
                    sender: by_process.then(|| info.si_pid()),
                };
            }
        }
    }
}

impl Arrival {
    /// Sends the signal on to the program, unless it has it already or sent it itself.
    pub fn pass_on(&self, child: i32) {
        let already = self.sender.is_none() && OF_THE_TERMINAL.contains(&self.signal);
        if already || self.sender == Some(child) {
            return;
        }
        // SAFETY: sends a signal to a child that has not been waited for, so its number is still its own.
        unsafe {
            match self.value {
                Some(value) => libc::sigqueue(child, self.signal, value),
                None => libc::kill(child, self.signal),
            };
        }
    }
}

/// Whether a Ctrl-C at the terminal reaches this program's process group, and with it the program.
pub fn in_foreground() -> bool {
    // SAFETY: opens, asks and closes; no pointers but a static string.
    unsafe {
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDONLY | libc::O_NOCTTY | libc::O_CLOEXEC);
        if terminal < 0 {
            return false;
        }
        let foreground = libc::tcgetpgrp(terminal);
        libc::close(terminal);
        foreground == libc::getpgrp()
    }
}

/// Stops this program, as its child has been stopped, until SIGCONT.
pub fn stop_too() {
    // SAFETY: SIGSTOP takes effect at once and leaves no trace.
    unsafe { libc::raise(libc::SIGSTOP) };
}
