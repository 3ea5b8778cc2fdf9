//! Clocks, timers and sleeping.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

const TIMESPEC: usize = size_of::<timespec>();
const TIMEVAL: usize = size_of::<timeval>();
const ITIMERSPEC: usize = size_of::<itimerspec>();
const ITIMERVAL: usize = size_of::<itimerval>();
/// `struct timezone`, two ints; opaque in libc.
const TIMEZONE: usize = 8;
const TIMEX: usize = size_of::<timex>();

pub const CALLS: &[Call] = &[
    (SYS_time, &[Out(0, size_of::<time_t>())]),
    (SYS_gettimeofday, &[Out(0, TIMEVAL), Out(1, TIMEZONE)]),
    (SYS_settimeofday, &[In(0, TIMEVAL), In(1, TIMEZONE)]),
    (SYS_adjtimex, &[InOut(0, TIMEX)]),
    (SYS_clock_adjtime, &[InOut(1, TIMEX)]),
    (SYS_clock_gettime, &[Out(1, TIMESPEC)]),
    (SYS_clock_getres, &[Out(1, TIMESPEC)]),
    (SYS_clock_settime, &[In(1, TIMESPEC)]),
    (SYS_nanosleep, &[In(0, TIMESPEC), Special(|walk| time_left(walk, 1))]),
    (SYS_clock_nanosleep, &[In(2, TIMESPEC), Special(clock_nanosleep)]),
    (SYS_getitimer, &[Out(1, ITIMERVAL)]),
    (SYS_setitimer, &[In(1, ITIMERVAL), Out(2, ITIMERVAL)]),
    (SYS_timer_create, &[In(1, size_of::<sigevent>()), Out(2, size_of::<c_int>())]),
    (SYS_timer_settime, &[In(2, ITIMERSPEC), Out(3, ITIMERSPEC)]),
    (SYS_timer_gettime, &[Out(1, ITIMERSPEC)]),
    (SYS_timerfd_settime, &[In(2, ITIMERSPEC), Out(3, ITIMERSPEC)]),
    (SYS_timerfd_gettime, &[Out(1, ITIMERSPEC)]),
];

/// Written only when a signal ends the sleep.
fn time_left(walk: &mut Walk<'_>, at: u8) {
    if walk.before() || walk.errno() == Some(EINTR) {
        walk.tell(walk.arg(at), TIMESPEC as u64, Kind::Write);
    }
}

fn clock_nanosleep(walk: &mut Walk<'_>) {
    if walk.int(1) & TIMER_ABSTIME == 0 {
        time_left(walk, 3);
    }
}
