//! Signals.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

/// The kernel's `struct sigaction`: handler, flags, restorer, mask of 64 bits.
const SIGACTION: usize = 32;
/// The kernel's signal set.
const SIGSET: usize = 8;
const SIGINFO: usize = size_of::<siginfo_t>();
const STACK: usize = size_of::<stack_t>();

pub const CALLS: &[Call] = &[
    (SYS_rt_sigaction, &[In(1, SIGACTION), Out(2, SIGACTION)]),
    (SYS_rt_sigprocmask, &[In(1, SIGSET), Out(2, SIGSET)]),
    (SYS_rt_sigpending, &[OutBytes(0, 1)]),
    (SYS_rt_sigsuspend, &[In(0, SIGSET)]),
    (SYS_rt_sigtimedwait, &[In(0, SIGSET), Out(1, SIGINFO), In(2, size_of::<timespec>())]),
    (SYS_rt_sigqueueinfo, &[Special(|walk| info(walk, 2))]),
    (SYS_rt_tgsigqueueinfo, &[Special(|walk| info(walk, 3))]),
    (SYS_pidfd_send_signal, &[Special(|walk| info(walk, 2))]),
    (SYS_sigaltstack, &[In(0, STACK), Out(1, STACK)]),
    (SYS_signalfd, &[In(1, SIGSET)]),
    (SYS_signalfd4, &[In(1, SIGSET)]),
    // Reads the frame on the stack, which no argument names.
    (SYS_rt_sigreturn, &[More]),
    // Takes up a call that a stop interrupted, with that call's pointers.
    (SYS_restart_syscall, &[Anything]),
];

/// Of a `siginfo_t` the kernel reads what it knows, and the rest only for codes unknown to it.
fn info(walk: &mut Walk<'_>, at: u8) {
    const KNOWN: u64 = 48;
    walk.prepares(walk.arg(at), SIGINFO as u64, Kind::Read);
    if !walk.before() {
        walk.reads(walk.arg(at), KNOWN);
    }
}
