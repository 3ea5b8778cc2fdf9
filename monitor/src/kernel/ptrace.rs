//! `ptrace` by request. Only the tracer's memory is told.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::Special;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

pub const CALLS: &[Call] = &[(SYS_ptrace, &[Special(ptrace)])];

const GETREGSET: i32 = 0x4204;
const SETREGSET: i32 = 0x4205;
const PEEKSIGINFO: i32 = 0x4209;
const GETSIGMASK: i32 = 0x420a;
const SETSIGMASK: i32 = 0x420b;
const GET_SYSCALL_INFO: i32 = 0x420e;
const GET_RSEQ_CONFIGURATION: i32 = 0x420f;
const SET_DISPATCH: i32 = 0x4210;
const GET_DISPATCH: i32 = 0x4211;
const SET_SYSCALL_INFO: i32 = 0x4212;

fn ptrace(walk: &mut Walk<'_>) {
    let registers = size_of::<user_regs_struct>() as u64;
    let float_registers = size_of::<user_fpregs_struct>() as u64;
    let info = size_of::<siginfo_t>() as u64;
    let (addr, data) = (walk.arg(2), walk.arg(3));
    match walk.int(0) as c_uint {
        PTRACE_PEEKTEXT | PTRACE_PEEKDATA | PTRACE_PEEKUSER | PTRACE_GETEVENTMSG => walk.writes(data, 8),
        PTRACE_GETREGS => walk.writes(data, registers),
        PTRACE_SETREGS => walk.reads(data, registers),
        PTRACE_GETFPREGS => walk.writes(data, float_registers),
        PTRACE_SETFPREGS => walk.reads(data, float_registers),
        PTRACE_GETSIGINFO => walk.writes(data, info),
        PTRACE_SETSIGINFO => walk.reads(data, info),
        PTRACE_TRACEME | PTRACE_POKETEXT | PTRACE_POKEDATA | PTRACE_POKEUSER | PTRACE_CONT | PTRACE_KILL
        | PTRACE_SINGLESTEP | PTRACE_ATTACH | PTRACE_DETACH | PTRACE_SYSCALL | PTRACE_SETOPTIONS
        | PTRACE_SEIZE | PTRACE_INTERRUPT | PTRACE_LISTEN => {}
        request => newer(walk, request as i32, addr, data),
    }
}

/// Requests in which the address gives a size, or a description of what is wanted.
fn newer(walk: &mut Walk<'_>, request: i32, addr: u64, data: u64) {
    match request {
        GETREGSET => register_set(walk, data, Kind::Write),
        SETREGSET => register_set(walk, data, Kind::Read),
        GETSIGMASK | GET_DISPATCH => walk.writes(data, addr),
        SETSIGMASK | SET_DISPATCH | SET_SYSCALL_INFO => walk.reads(data, addr),
        GET_SYSCALL_INFO | GET_RSEQ_CONFIGURATION => walk.moves(data, addr, Kind::Write),
        PEEKSIGINFO => {
            /// Offset, flags, number wanted.
            const WANTED: u64 = 16;
            walk.reads(addr, WANTED);
            let wanted = walk.u32_at(addr.saturating_add(12)).unwrap_or(0);
            let count = walk.result().unwrap_or(u64::from(wanted));
            walk.writes(data, count.saturating_mul(size_of::<siginfo_t>() as u64));
        }
        _ => walk.unknown(),
    }
}

/// An iovec, whose length becomes that of the set.
fn register_set(walk: &mut Walk<'_>, iovec: u64, kind: Kind) {
    walk.reads(iovec, 16);
    if let Some((base, len)) = walk.pair_at(iovec) {
        match kind {
            Kind::Read => walk.reads(base, len),
            Kind::Write => walk.writes(base, len),
        }
    }
    walk.writes(iovec.saturating_add(8), 8);
}
