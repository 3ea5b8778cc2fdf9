//! Signals.

use crate::check::case;
use crate::stage::Stage;
use libc::*;
use thermalloc_monitor::kernel::Kind;

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

extern "C" fn ignore(_: i32) {}

/// From now on the calling thread is interrupted every few milliseconds.
#[allow(unsafe_code)]
fn interrupted(s: &mut Stage) {
    let mut side = Stage::new(0);
    // SAFETY: the handler does nothing; nobody else in this program uses the signal.
    unsafe {
        let mut action: sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        assert_eq!(sigaction(SIGRTMIN(), &raw const action, std::ptr::null_mut()), 0);
    }
    let thread = side.need(SYS_gettid, &[]) as u32;
    let mut event = [0; 16];
    (event[2], event[3], event[4]) = (SIGRTMIN() as u32, SIGEV_THREAD_ID as u32, thread);
    let (event, id) = (side.ints(&event), side.zeros(8));
    side.need(SYS_timer_create, &[CLOCK_MONOTONIC as u64, event, id]);
    let (id, interval) = (side.word(id), side.words(&[0, 5_000_000, 0, 5_000_000]));
    s.finally(SYS_timer_delete, &[id]);
    side.need(SYS_timer_settime, &[id, 0, interval, 0]);
}

#[test]
fn interrupted_calls() {
    let minute = [60, 0];
    case(SYS_nanosleep, |s| {
        interrupted(s);
        [s.words(&minute), s.room(16)]
    })
    .fails(EINTR)
    .holds();
    case(SYS_clock_nanosleep, |s| {
        interrupted(s);
        [CLOCK_MONOTONIC as u64, 0, s.words(&minute), s.room(16)]
    })
    .fails(EINTR)
    .holds();
    case(SYS_rt_sigsuspend, |s| {
        interrupted(s);
        [s.words(&[0]), 8]
    })
    .fails(EINTR)
    .holds();
    let wanted = |s: &mut Stage| {
        let [reader, _] = s.pipe(b"");
        s.ints(&[reader as u32, POLLIN as u32 | 0x7777_0000])
    };
    case(SYS_poll, |s| {
        interrupted(s);
        [wanted(s), 1, 60_000]
    })
    .fails(EINTR)
    .holds();
    // That the time left cannot be written goes unsaid.
    case(SYS_ppoll, |s| {
        interrupted(s);
        [wanted(s), 1, s.words(&minute), s.words(&[0]), 8]
    })
    .fails(EINTR)
    .silent(Kind::Write)
    .holds();
    case(SYS_select, |s| {
        interrupted(s);
        [0, 0, 0, 0, s.words(&[60, 0])]
    })
    .fails(EINTR)
    .silent(Kind::Write)
    .holds();
    case(SYS_futex, |s| {
        interrupted(s);
        [s.ints(&[1]), FUTEX_WAIT as u64, 1, 0]
    })
    .fails(EINTR)
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
