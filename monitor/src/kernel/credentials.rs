//! Who the process is, what it may do.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

const ID: usize = size_of::<uid_t>();
/// `PATH_BENEATH` rules are 12 bytes, those about ports 16.
const PATH_RULE: u64 = 12;
const PORT_RULE: u64 = 16;

const LSM_GET_SELF_ATTR: c_long = 459;
const LSM_SET_SELF_ATTR: c_long = 460;
const LSM_LIST_MODULES: c_long = 461;

pub const CALLS: &[Call] = &[
    (SYS_getresuid, &[Out(0, ID), Out(1, ID), Out(2, ID)]),
    (SYS_getresgid, &[Out(0, ID), Out(1, ID), Out(2, ID)]),
    (SYS_getgroups, &[FilledArray(1, 0, ID)]),
    (SYS_setgroups, &[InArray(1, 0, ID)]),
    (SYS_capget, &[Special(capget)]),
    (SYS_capset, &[Special(capset)]),
    (SYS_landlock_create_ruleset, &[InBytes(0, 1)]),
    (SYS_landlock_add_rule, &[Special(add_rule)]),
    (SYS_seccomp, &[Special(seccomp)]),
    (LSM_GET_SELF_ATTR, &[Special(get_self_attr)]),
    (LSM_SET_SELF_ATTR, &[InBytes(1, 2)]),
    (LSM_LIST_MODULES, &[Special(list_modules)]),
    (SYS_add_key, &[Text(0, 32), Text(1, 4096), InBytes(2, 3)]),
    (SYS_request_key, &[Text(0, 32), Text(1, 4096), Text(2, 4096)]),
    (SYS_keyctl, &[Anything]),
];

/// Bytes of capability sets in the version that the header names: three masks for each 32 capabilities.
fn capability_sets(walk: &mut Walk<'_>) -> u64 {
    const VERSION_1: u32 = 0x1998_0330;
    if walk.u32_at(walk.arg(0)) == Some(VERSION_1) { 12 } else { 24 }
}

/// The version is corrected where it is unknown, whether or not the call then fails.
fn capget(walk: &mut Walk<'_>) {
    let header = walk.arg(0);
    let sets = capability_sets(walk);
    walk.reads(header, 8);
    if walk.before() || walk.errno() == Some(EINVAL) {
        walk.tell(header, 4, Kind::Write);
    }
    walk.writes(walk.arg(1), sets);
}

fn capset(walk: &mut Walk<'_>) {
    let sets = capability_sets(walk);
    walk.reads(walk.arg(0), 8);
    walk.prepares(walk.arg(0), 4, Kind::Write);
    walk.reads(walk.arg(1), sets);
}

fn add_rule(walk: &mut Walk<'_>) {
    const PATH_BENEATH: i32 = 1;
    let size = if walk.int(1) == PATH_BENEATH { PATH_RULE } else { PORT_RULE };
    walk.reads(walk.arg(2), size);
}

fn seccomp(walk: &mut Walk<'_>) {
    const SET_MODE_STRICT: i32 = 0;
    const SET_MODE_FILTER: i32 = 1;
    const GET_ACTION_AVAIL: i32 = 2;
    const GET_NOTIF_SIZES: i32 = 3;
    match walk.int(0) {
        SET_MODE_STRICT => {}
        SET_MODE_FILTER => walk.filter_program(walk.arg(2)),
        GET_ACTION_AVAIL => walk.reads(walk.arg(2), 4),
        GET_NOTIF_SIZES => walk.writes(walk.arg(2), 6),
        _ => walk.unknown(),
    }
}

/// Room for what is written, and a size that says how much room there is, then how much was needed. With a flag the
/// room holds a filter first.
fn get_self_attr(walk: &mut Walk<'_>) {
    let len = u64::from(walk.u32_at(walk.arg(2)).unwrap_or(0));
    walk.prepares(walk.arg(1), len, Kind::Read);
    walk.writes(walk.arg(1), len);
    size_back(walk, walk.arg(2));
}

/// The result is the number of ids, of eight bytes.
fn list_modules(walk: &mut Walk<'_>) {
    let room = u64::from(walk.u32_at(walk.arg(1)).unwrap_or(0));
    let len = walk.result().map_or(room, |ids| ids.saturating_mul(8).min(room));
    walk.writes(walk.arg(0), len);
    size_back(walk, walk.arg(1));
}

/// A size that is read, and written also where it was too small.
fn size_back(walk: &mut Walk<'_>, at: u64) {
    if walk.errno() == Some(E2BIG) {
        walk.tell(at, 4, Kind::Read);
        walk.tell(at, 4, Kind::Write);
    } else {
        walk.updates(at, 4);
    }
}
