//! Mounts, quotas and swap.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::files::sized;
use super::walk::{PATH_MAX, Walk, half_in};
use libc::*;

const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;
const OPEN_TREE_ATTR: c_long = 467;

pub const CALLS: &[Call] = &[
    (SYS_mount, &[Path(0), Path(1), Text(2, PATH_MAX), In(4, 4096)]),
    (SYS_umount2, &[Path(0)]),
    (SYS_pivot_root, &[Path(0), Path(1)]),
    (SYS_swapon, &[Path(0)]),
    (SYS_swapoff, &[Path(0)]),
    (SYS_open_tree, &[Path(1)]),
    (OPEN_TREE_ATTR, &[Path(1), InBytes(3, 4)]),
    (SYS_move_mount, &[Path(1), Path(3)]),
    (SYS_mount_setattr, &[Path(1), InBytes(3, 4)]),
    (SYS_fsopen, &[Text(0, PATH_MAX)]),
    (SYS_fspick, &[Path(1)]),
    (SYS_fsconfig, &[Special(fsconfig)]),
    (STATMOUNT, &[Special(statmount)]),
    (LISTMOUNT, &[Special(request), FilledArray(1, 2, size_of::<u64>())]),
    (SYS_quotactl, &[Special(quotactl)]),
    (SYS_quotactl_fd, &[Special(quotactl_fd)]),
];

/// Keys and string values are at most 256 bytes.
fn fsconfig(walk: &mut Walk<'_>) {
    const SET_STRING: i32 = 1;
    const SET_BINARY: i32 = 2;
    const SET_PATH: i32 = 3;
    const SET_PATH_EMPTY: i32 = 4;
    walk.string(walk.arg(2), 256);
    match walk.int(1) {
        SET_STRING => walk.string(walk.arg(3), 256),
        SET_BINARY => walk.reads(walk.arg(3), u64::from(walk.uint(4))),
        SET_PATH | SET_PATH_EMPTY => walk.string(walk.arg(3), PATH_MAX),
        _ => {}
    }
}

/// `struct mnt_id_req`, which begins with its size.
fn request(walk: &mut Walk<'_>) {
    let size = sized(walk, walk.arg(0), 0);
    walk.reads(walk.arg(0), size);
}

/// The answer begins with its size, strings included.
fn statmount(walk: &mut Walk<'_>) {
    request(walk);
    let (answer, room) = (walk.arg(1), walk.arg(2));
    match walk.result() {
        None => walk.writes(answer, room),
        Some(_) => {
            let size = walk.bytes::<4>(answer).map_or(0, |head| half_in(&head, 0));
            walk.writes(answer, room.min(u64::from(size)));
        }
    }
}

fn quotactl(walk: &mut Walk<'_>) {
    walk.string(walk.arg(1), PATH_MAX);
    quota(walk, walk.uint(0) >> 8);
}

fn quotactl_fd(walk: &mut Walk<'_>) {
    quota(walk, walk.uint(1) >> 8);
}

/// Commands and structures of `uapi/linux/quota.h`; those of XFS are not known here.
fn quota(walk: &mut Walk<'_>, command: u32) {
    /// `struct if_dqblk`: eight u64 and a u32, padded; `struct if_nextdqblk` has the same size.
    const BLOCK: u64 = 72;
    /// `struct if_dqinfo`: two u64, two u32.
    const INFO: u64 = 24;
    let at = walk.arg(3);
    match command {
        0x80_0001 | 0x80_0003 => {}
        0x80_0002 => walk.string(at, PATH_MAX),
        0x80_0004 => walk.writes(at, 4),
        0x80_0005 => walk.writes(at, INFO),
        0x80_0006 => walk.reads(at, INFO),
        0x80_0007 | 0x80_0009 => walk.writes(at, BLOCK),
        0x80_0008 => walk.reads(at, BLOCK),
        _ => {
            walk.prepares(at, 4096, Kind::Write);
            walk.partial();
        }
    }
}
