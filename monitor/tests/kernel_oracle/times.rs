//! Clocks and timers.

use crate::check::case;
use crate::stage::Stage;
use libc::*;

#[test]
fn clocks() {
    case(SYS_clock_gettime, |s| [CLOCK_MONOTONIC as u64, s.room(16)]).holds();
    case(SYS_clock_getres, |s| [CLOCK_MONOTONIC as u64, s.room(16)]).holds();
    case(SYS_gettimeofday, |s| [s.room(16), s.room(8)]).holds();
    case(SYS_time, |s| [s.room(8)]).holds();
    case(SYS_adjtimex, |s| [s.zeros(size_of::<timex>())]).holds();
    case(SYS_clock_adjtime, |s| [CLOCK_REALTIME as u64, s.zeros(size_of::<timex>())]).holds();
}

#[test]
fn sleeping() {
    case(SYS_nanosleep, |s| [s.words(&[0, 1]), s.room(16)]).holds();
    case(SYS_clock_nanosleep, |s| [CLOCK_MONOTONIC as u64, 0, s.words(&[0, 1]), s.room(16)]).holds();
}

fn timer(s: &mut Stage) -> u64 {
    let mut side = Stage::new(0);
    let id = side.zeros(8);
    side.need(SYS_timer_create, &[CLOCK_MONOTONIC as u64, 0, id]);
    let id = side.word(id);
    s.finally(SYS_timer_delete, &[id]);
    id
}

#[test]
fn timers() {
    case(SYS_timer_create, |s| {
        let mut event = [0; 16];
        event[3] = SIGEV_NONE as u32;
        [CLOCK_MONOTONIC as u64, s.ints(&event), s.room(4)]
    })
    .holds();
    case(SYS_timer_settime, |s| [timer(s), 0, s.words(&[0, 0, 0, 0]), s.room(32)]).holds();
    case(SYS_timer_gettime, |s| [timer(s), s.room(32)]).holds();
    let descriptor = |s: &mut Stage| s.open(SYS_timerfd_create, &[CLOCK_MONOTONIC as u64, 0]);
    case(SYS_timerfd_settime, |s| [descriptor(s), 0, s.words(&[0, 0, 900, 0]), s.room(32)]).holds();
    case(SYS_timerfd_gettime, |s| [descriptor(s), s.room(32)]).holds();
    case(SYS_getitimer, |s| [ITIMER_VIRTUAL as u64, s.room(32)]).holds();
    case(SYS_setitimer, |s| [ITIMER_VIRTUAL as u64, s.zeros(32), s.room(32)]).holds();
}
