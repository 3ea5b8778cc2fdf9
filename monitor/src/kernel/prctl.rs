//! `prctl` and `arch_prctl` by option.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::Special;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

pub const CALLS: &[Call] = &[(SYS_prctl, &[Special(prctl)]), (SYS_arch_prctl, &[Special(arch_prctl)])];

// Options that libc has no names for, and their parts.
const PR_GET_AUXV: i32 = 0x4155_5856;
const PR_SCHED_CORE_GET: u64 = 0;
const NAME: u64 = 16;
/// Highest of the densely numbered options known here (`PR_FUTEX_HASH`).
const NEWEST: i32 = 78;

fn prctl(walk: &mut Walk<'_>) {
    let at = walk.arg(1);
    match walk.int(0) {
        PR_GET_PDEATHSIG
        | PR_GET_UNALIGN
        | PR_GET_FPEMU
        | PR_GET_FPEXC
        | PR_GET_ENDIAN
        | PR_GET_TSC
        | PR_GET_CHILD_SUBREAPER => walk.writes(at, 4),
        PR_GET_TID_ADDRESS => walk.writes(at, 8),
        PR_SET_NAME => walk.string(at, NAME - 1),
        PR_GET_NAME => walk.writes(at, NAME),
        PR_GET_AUXV => walk.moves(at, walk.arg(2), Kind::Write),
        PR_SET_SECCOMP if walk.arg(1) == 2 => walk.filter_program(walk.arg(2)),
        PR_SET_MM => set_mm(walk),
        PR_SCHED_CORE if walk.arg(1) == PR_SCHED_CORE_GET => walk.writes(walk.arg(4), 8),
        PR_SET_VMA => walk.string(walk.arg(4), 80),
        // The others take numbers and addresses alone.
        0..=NEWEST | PR_SET_PTRACER => {}
        _ => walk.unknown(),
    }
}

/// Most parts set one address; three take structures.
fn set_mm(walk: &mut Walk<'_>) {
    const AUXV: u64 = 12;
    const MAP: u64 = 14;
    const MAP_SIZE: u64 = 15;
    /// `struct prctl_mm_map`: where the vector is, how long.
    const VECTOR_AT: u64 = 88;
    let (part, at, len) = (walk.arg(1), walk.arg(2), walk.arg(3));
    match part {
        AUXV => walk.reads(at, len),
        MAP => {
            walk.reads(at, len);
            if let Some((vector, size)) = walk.pair_at(at.saturating_add(VECTOR_AT)) {
                walk.reads(vector, size & u64::from(u32::MAX));
            }
        }
        MAP_SIZE => walk.writes(at, 4),
        _ => {}
    }
}

fn arch_prctl(walk: &mut Walk<'_>) {
    /// Getters of `uapi/asm/prctl.h` that write a word: GET_FS, GET_GS, the XCOMP ones, the untag mask, the tag bits,
    /// the state of the shadow stack.
    const GETTERS: [i32; 8] = [0x1003, 0x1004, 0x1021, 0x1022, 0x1024, 0x4001, 0x4003, 0x5005];
    match walk.int(0) {
        code if GETTERS.contains(&code) => walk.writes(walk.arg(1), 8),
        0x1001..=0x1026 | 0x2001..=0x2003 | 0x4001..=0x4004 | 0x5001..=0x5005 => {}
        _ => walk.unknown(),
    }
}
