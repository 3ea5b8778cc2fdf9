//! Extended attributes.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::{self, *};
use super::describe::Call;
use super::walk::{Walk, half_in, word_in};
use libc::*;

/// An attribute's name is at most 255 bytes (`XATTR_NAME_MAX`) and a NUL.
const fn name(at: u8) -> Arg {
    Text(at, 256)
}

const SETXATTRAT: c_long = 463;
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const REMOVEXATTRAT: c_long = 466;

pub const CALLS: &[Call] = &[
    (SYS_setxattr, &[Path(0), name(1), InBytes(2, 3)]),
    (SYS_lsetxattr, &[Path(0), name(1), InBytes(2, 3)]),
    (SYS_fsetxattr, &[name(1), InBytes(2, 3)]),
    (SETXATTRAT, &[Path(1), name(3), InBytes(4, 5), Special(setxattrat)]),
    (SYS_getxattr, &[Path(0), name(1), Filled(2, 3)]),
    (SYS_lgetxattr, &[Path(0), name(1), Filled(2, 3)]),
    (SYS_fgetxattr, &[name(1), Filled(2, 3)]),
    (GETXATTRAT, &[Path(1), name(3), InBytes(4, 5), Special(getxattrat)]),
    (SYS_listxattr, &[Path(0), Filled(1, 2)]),
    (SYS_llistxattr, &[Path(0), Filled(1, 2)]),
    (SYS_flistxattr, &[Filled(1, 2)]),
    (LISTXATTRAT, &[Path(1), Filled(3, 4)]),
    (SYS_removexattr, &[Path(0), name(1)]),
    (SYS_lremovexattr, &[Path(0), name(1)]),
    (SYS_fremovexattr, &[name(1)]),
    (REMOVEXATTRAT, &[Path(1), name(3)]),
];

fn setxattrat(walk: &mut Walk<'_>) {
    if let Some((value, size)) = value(walk) {
        walk.reads(value, size);
    }
}

fn getxattrat(walk: &mut Walk<'_>) {
    if let Some((at, size)) = value(walk) {
        walk.moves(at, size, Kind::Write);
    }
}

/// `struct xattr_args`: where the value is, how long.
fn value(walk: &mut Walk<'_>) -> Option<(u64, u64)> {
    let args = walk.bytes::<16>(walk.arg(4))?;
    Some((word_in(&args, 0), u64::from(half_in(&args, 8))))
}
