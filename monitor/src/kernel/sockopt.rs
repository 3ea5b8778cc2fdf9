//! Socket options.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::Special;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

pub const CALLS: &[Call] =
    &[(SYS_setsockopt, &[Special(setsockopt)]), (SYS_getsockopt, &[Special(getsockopt)])];

const SO_ATTACH_REUSEPORT_CBPF: i32 = 51;
const TCP_ZEROCOPY_RECEIVE: i32 = 35;
const SO_ORIGINAL_DST: i32 = 80;
/// The kernel takes no options longer than this from a program.
const MAX_OPTION: u64 = i32::MAX as u64;

/// Whether options at this level hold no pointers.
fn flat(level: i32, option: i32) -> bool {
    match level {
        // From 64 on, iptables, arptables, ebtables and their like talk to the kernel; for IPv6 only here and there.
        SOL_IP => option < 64 || option == SO_ORIGINAL_DST,
        SOL_IPV6 => !matches!(option, 64 | 65 | 128..),
        SOL_TCP => option != TCP_ZEROCOPY_RECEIVE,
        SOL_SOCKET | SOL_UDP | SOL_RAW | SOL_PACKET | SOL_NETLINK | SOL_ALG | SOL_TLS => true,
        _ => false,
    }
}

fn setsockopt(walk: &mut Walk<'_>) {
    let (level, option) = (walk.int(1), walk.int(2));
    let (at, len) = (walk.arg(3), u64::from(walk.uint(4)));
    if len > MAX_OPTION {
        return;
    }
    if level == SOL_SOCKET && matches!(option, SO_ATTACH_FILTER | SO_ATTACH_REUSEPORT_CBPF) {
        return walk.filter_program(at);
    }
    walk.reads(at, len);
    if !flat(level, option) {
        walk.partial();
    }
}

/// The length says how much room there is, then how much was needed. Some options are read first.
fn getsockopt(walk: &mut Walk<'_>) {
    let (level, option) = (walk.int(1), walk.int(2));
    let (at, len_at) = (walk.arg(3), walk.arg(4));
    // SO_GET_FILTER counts in instructions of eight bytes.
    let unit = if level == SOL_SOCKET && option == SO_GET_FILTER { 8 } else { 1 };
    let len = u64::from(walk.u32_at(len_at).unwrap_or(0));
    if len <= MAX_OPTION {
        walk.prepares(at, len * unit, Kind::Read);
        walk.writes(at, len * unit);
    }
    walk.updates(len_at, 4);
    if !flat(level, option) {
        walk.partial();
    }
}

const SOL_RAW: i32 = 255;
