//! Scheduling and processor affinity.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::files::sized;
use super::walk::Walk;
use libc::*;

const PARAM: usize = size_of::<sched_param>();

pub const CALLS: &[Call] = &[
    (SYS_sched_setparam, &[In(1, PARAM)]),
    (SYS_sched_getparam, &[Out(1, PARAM)]),
    (SYS_sched_setscheduler, &[In(2, PARAM)]),
    (SYS_sched_rr_get_interval, &[Out(1, size_of::<timespec>())]),
    (SYS_sched_setaffinity, &[InBytes(2, 1)]),
    (SYS_sched_getaffinity, &[Filled(2, 1)]),
    (SYS_sched_setattr, &[Special(sched_setattr)]),
    (SYS_sched_getattr, &[OutBytes(1, 2)]),
    (SYS_getcpu, &[Out(0, size_of::<c_uint>()), Out(1, size_of::<c_uint>())]),
];

/// The structure begins with its size, for which 0 stands for the first version's. The size wanted is written where
/// the one given does not do.
fn sched_setattr(walk: &mut Walk<'_>) {
    const FIRST_VERSION: u64 = 48;
    let at = walk.arg(1);
    let size = match sized(walk, at, 0) {
        0 => FIRST_VERSION,
        size => size,
    };
    walk.reads(at, size);
    if walk.before() || walk.errno() == Some(E2BIG) {
        walk.tell(at, 4, Kind::Write);
    }
}
