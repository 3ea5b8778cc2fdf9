//! `fcntl` by command.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::describe::Arg::Special;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

pub const CALLS: &[Call] = &[(SYS_fcntl, &[Special(fcntl)])];

/// `struct f_owner_ex` and the pair of ids of F_GETOWNER_UIDS.
const OWNER: u64 = 8;
const HINT: u64 = 8;
// Commands that libc has no names for.
const F_GETSIG: i32 = 11;
const F_SETOWN_EX: i32 = 15;
const F_GETOWN_EX: i32 = 16;
const F_GETOWNER_UIDS: i32 = 17;
const F_DUPFD_QUERY: i32 = 1027;
const F_CREATED_QUERY: i32 = 1028;
const F_CANCELLK: i32 = 1029;
const F_GET_RW_HINT: i32 = 1035;
const F_SET_RW_HINT: i32 = 1036;
const F_GET_FILE_RW_HINT: i32 = 1037;
const F_SET_FILE_RW_HINT: i32 = 1038;

fn fcntl(walk: &mut Walk<'_>) {
    let at = walk.arg(2);
    let lock = size_of::<flock>() as u64;
    match walk.int(1) {
        F_GETLK | F_OFD_GETLK => walk.updates(at, lock),
        F_SETLK | F_SETLKW | F_OFD_SETLK | F_OFD_SETLKW => walk.reads(at, lock),
        F_SETOWN_EX => walk.reads(at, OWNER),
        F_GETOWN_EX | F_GETOWNER_UIDS => walk.writes(at, OWNER),
        F_GET_RW_HINT | F_GET_FILE_RW_HINT => walk.writes(at, HINT),
        F_SET_RW_HINT | F_SET_FILE_RW_HINT => walk.reads(at, HINT),
        F_DUPFD..=F_SETFL | F_SETOWN..=F_GETSIG => {}
        F_SETLEASE..=F_NOTIFY | F_DUPFD_QUERY..=F_CREATED_QUERY | F_DUPFD_CLOEXEC => {}
        F_SETPIPE_SZ..=F_GETPIPE_SZ | F_ADD_SEALS..=F_GET_SEALS | F_CANCELLK => {}
        _ => walk.unknown(),
    }
}
