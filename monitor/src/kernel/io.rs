//! Moving bytes through descriptors.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::Walk;
use libc::*;

pub const CALLS: &[Call] = &[
    (SYS_read, &[Filled(1, 2)]),
    (SYS_pread64, &[Filled(1, 2)]),
    (SYS_readv, &[FilledVec(1, 2)]),
    (SYS_preadv, &[FilledVec(1, 2)]),
    (SYS_preadv2, &[FilledVec(1, 2)]),
    (SYS_write, &[Sent(1, 2)]),
    (SYS_pwrite64, &[Sent(1, 2)]),
    (SYS_writev, &[SentVec(1, 2)]),
    (SYS_pwritev, &[SentVec(1, 2)]),
    (SYS_pwritev2, &[SentVec(1, 2)]),
    (SYS_splice, &[InOut(1, size_of::<loff_t>()), InOut(3, size_of::<loff_t>())]),
    (SYS_copy_file_range, &[InOut(1, size_of::<loff_t>()), InOut(3, size_of::<loff_t>())]),
    (SYS_sendfile, &[InOut(2, size_of::<off_t>())]),
    (SYS_vmsplice, &[Special(vmsplice)]),
    (SYS_pipe, &[Out(0, size_of::<[c_int; 2]>())]),
    (SYS_pipe2, &[Out(0, size_of::<[c_int; 2]>())]),
    (SYS_getrandom, &[Filled(0, 1)]),
    (SYS_process_vm_readv, &[Special(process_vm_readv)]),
    (SYS_process_vm_writev, &[Special(process_vm_writev)]),
];

/// Into a pipe it reads the vectors, out of one it writes them; only the descriptor knows.
fn vmsplice(walk: &mut Walk<'_>) {
    walk.iovecs(walk.arg(1), walk.arg(2), Kind::Read);
    if walk.before() {
        walk.iovecs(walk.arg(1), walk.arg(2), Kind::Write);
    }
}

fn process_vm_readv(walk: &mut Walk<'_>) {
    walk.iovecs(walk.arg(1), walk.arg(2), Kind::Write);
    remote(walk, Kind::Read);
}

fn process_vm_writev(walk: &mut Walk<'_>) {
    walk.iovecs(walk.arg(1), walk.arg(2), Kind::Read);
    remote(walk, Kind::Write);
}

/// The other side of the copy is ours too where the process addressed is this one. Before the call any process is
/// taken for ours: it may be named by one of its threads, and opening too much does no harm.
fn remote(walk: &mut Walk<'_>, kind: Kind) {
    let own = walk.own_pid();
    if walk.before() || own != 0 && own == walk.int(0) {
        walk.iovecs(walk.arg(3), walk.arg(4), kind);
    } else {
        walk.reads(walk.arg(3), walk.arg(4).min(1024) * 16);
    }
}
