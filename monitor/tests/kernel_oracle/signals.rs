//! Signals.

use crate::check::case;
use crate::stage::Stage;
use libc::*;

#[test]
fn actions_and_masks() {
    case(SYS_rt_sigaction, |s| [SIGWINCH as u64, s.zeros(32), s.room(32), 8]).holds();
    case(SYS_rt_sigprocmask, |s| [SIG_BLOCK as u64, s.words(&[0]), s.room(8), 8]).holds();
    case(SYS_rt_sigpending, |s| [s.room(8), 8]).holds();
    // The padding after the flags is part of what is copied.
    case(SYS_sigaltstack, |s| [0, s.room(24)]).loose().holds();
    case(SYS_signalfd4, |s| [u64::MAX, s.words(&[1]), 8, SFD_CLOEXEC as u64]).holds();
}

/// A signal that waits for the calling thread.
fn pending(s: &mut Stage) -> u64 {
    let mask = s.words(&[1 << (SIGUSR2 - 1)]);
    s.need(SYS_rt_sigprocmask, &[SIG_BLOCK as u64, mask, 0, 8]);
    let thread = s.need(SYS_gettid, &[]);
    s.need(SYS_tgkill, &[u64::from(std::process::id()), thread, SIGUSR2 as u64]);
    mask
}

#[test]
fn waiting_for_a_signal() {
    // Withheld output loses the signal, so that each call has one of its own.
    case(SYS_rt_sigtimedwait, |s| [pending(s), s.room(128), s.words(&[5, 0]), 8]).holds();
    case(SYS_rt_sigtimedwait, |s| [s.words(&[1 << (SIGUSR1 - 1)]), s.room(128), s.words(&[0, 0]), 8])
        .fails(EAGAIN)
        .holds();
}

#[test]
fn sending_with_a_value() {
    let own = u64::from(std::process::id());
    // Signal 0 is sent to nobody.
    let info = |s: &mut Stage| {
        let mut info = [0; 32];
        info[2] = SI_QUEUE as u32;
        s.ints(&info)
    };
    case(SYS_rt_sigqueueinfo, |s| [own, 0, info(s)]).holds();
    case(SYS_rt_tgsigqueueinfo, |s| [own, s.need(SYS_gettid, &[]), 0, info(s)]).holds();
    case(SYS_pidfd_send_signal, |s| [s.open(SYS_pidfd_open, &[own, 0]), 0, info(s), 0]).optional().holds();
}
