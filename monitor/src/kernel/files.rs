//! Calls that name files, and those that ask about them.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::{Walk, half_in};
use libc::*;

const STAT: usize = size_of::<stat>();
const STATFS: usize = size_of::<statfs>();
const TIMES: usize = 2 * size_of::<timespec>();
/// `struct ustat`: two numbers, two names of six bytes, padded.
const USTAT: usize = 32;
/// `struct cachestat_range` and `struct cachestat`: two and five u64.
const CACHESTAT_RANGE: usize = 16;
const CACHESTAT: usize = 40;
/// `struct file_handle` without the handle: its length, its type.
const HANDLE_HEADER: u64 = 8;
const MAX_HANDLE: u32 = 128;
/// `name_to_handle_at` writes a 64-bit mount id (`AT_HANDLE_MNT_ID_UNIQUE`).
const UNIQUE_MOUNT_ID: i32 = 1;
/// Longest name of a file system type, with its NUL, that `sysfs` writes.
const TYPE_NAME: u64 = 256;

const CACHESTAT_NR: c_long = 451;
const FILE_GETATTR: c_long = 468;
const FILE_SETATTR: c_long = 469;

pub const CALLS: &[Call] = &[
    (SYS_open, &[Path(0)]),
    (SYS_creat, &[Path(0)]),
    (SYS_openat, &[Path(1)]),
    (SYS_openat2, &[Path(1), InBytes(2, 3)]),
    (SYS_open_by_handle_at, &[Special(open_by_handle_at)]),
    (SYS_name_to_handle_at, &[Path(1), Special(name_to_handle_at)]),
    (SYS_memfd_create, &[Text(0, 250)]),
    (SYS_stat, &[Path(0), Out(1, STAT)]),
    (SYS_lstat, &[Path(0), Out(1, STAT)]),
    (SYS_fstat, &[Out(1, STAT)]),
    (SYS_newfstatat, &[Path(1), Out(2, STAT)]),
    (SYS_statx, &[Path(1), Out(4, size_of::<statx>())]),
    (SYS_statfs, &[Path(0), Out(1, STATFS)]),
    (SYS_fstatfs, &[Out(1, STATFS)]),
    (SYS_ustat, &[Out(1, USTAT)]),
    (SYS_sysfs, &[Special(sysfs)]),
    (CACHESTAT_NR, &[In(1, CACHESTAT_RANGE), Out(2, CACHESTAT)]),
    (FILE_GETATTR, &[Path(1), OutBytes(2, 3)]),
    (FILE_SETATTR, &[Path(1), InBytes(2, 3)]),
    (SYS_access, &[Path(0)]),
    (SYS_faccessat, &[Path(1)]),
    (SYS_faccessat2, &[Path(1)]),
    (SYS_getcwd, &[Filled(0, 1)]),
    (SYS_getdents, &[Filled(1, 2)]),
    (SYS_getdents64, &[Filled(1, 2)]),
    (SYS_readlink, &[Path(0), Filled(1, 2)]),
    (SYS_readlinkat, &[Path(1), Filled(2, 3)]),
    (SYS_lookup_dcookie, &[Filled(1, 2)]),
    (SYS_chdir, &[Path(0)]),
    (SYS_chroot, &[Path(0)]),
    (SYS_truncate, &[Path(0)]),
    (SYS_mkdir, &[Path(0)]),
    (SYS_mkdirat, &[Path(1)]),
    (SYS_mknod, &[Path(0)]),
    (SYS_mknodat, &[Path(1)]),
    (SYS_rmdir, &[Path(0)]),
    (SYS_unlink, &[Path(0)]),
    (SYS_unlinkat, &[Path(1)]),
    (SYS_link, &[Path(0), Path(1)]),
    (SYS_linkat, &[Path(1), Path(3)]),
    (SYS_symlink, &[Path(0), Path(1)]),
    (SYS_symlinkat, &[Path(0), Path(2)]),
    (SYS_rename, &[Path(0), Path(1)]),
    (SYS_renameat, &[Path(1), Path(3)]),
    (SYS_renameat2, &[Path(1), Path(3)]),
    (SYS_chmod, &[Path(0)]),
    (SYS_fchmodat, &[Path(1)]),
    (SYS_fchmodat2, &[Path(1)]),
    (SYS_chown, &[Path(0)]),
    (SYS_lchown, &[Path(0)]),
    (SYS_fchownat, &[Path(1)]),
    (SYS_utime, &[Path(0), In(1, size_of::<utimbuf>())]),
    (SYS_utimes, &[Path(0), In(1, TIMES)]),
    (SYS_futimesat, &[Path(1), In(2, TIMES)]),
    (SYS_utimensat, &[Path(1), In(2, TIMES)]),
    (SYS_inotify_add_watch, &[Path(1)]),
    (SYS_fanotify_mark, &[Path(4)]),
    (SYS_acct, &[Path(0)]),
    (SYS_uselib, &[Path(0)]),
];

fn open_by_handle_at(walk: &mut Walk<'_>) {
    let handle = walk.arg(1);
    let len = walk.u32_at(handle).unwrap_or(0).min(MAX_HANDLE);
    walk.reads(handle, HANDLE_HEADER + u64::from(len));
}

/// Header in and out, handle and mount id out. A handle too small is told by EOVERFLOW, in the header and with
/// the mount id.
fn name_to_handle_at(walk: &mut Walk<'_>) {
    let handle = walk.arg(2);
    let mount_id = if walk.int(4) & UNIQUE_MOUNT_ID == 0 { 4 } else { 8 };
    let len = walk.u32_at(handle).unwrap_or(0).min(MAX_HANDLE);
    walk.reads(handle, HANDLE_HEADER);
    if walk.errno() == Some(EOVERFLOW) {
        walk.tell(handle, HANDLE_HEADER, Kind::Write);
        walk.tell(walk.arg(3), mount_id, Kind::Write);
    } else {
        walk.writes(handle, HANDLE_HEADER + u64::from(len));
        walk.writes(walk.arg(3), mount_id);
    }
}

/// Option 1 looks a name up, 2 gives one.
fn sysfs(walk: &mut Walk<'_>) {
    match walk.int(0) {
        1 => walk.string(walk.arg(1), super::walk::PATH_MAX),
        2 if walk.before() => walk.tell(walk.arg(2), TYPE_NAME, Kind::Write),
        2 if walk.result().is_some() => {
            let len = walk.string_len(walk.arg(2), TYPE_NAME);
            walk.tell(walk.arg(2), len, Kind::Write);
        }
        _ => {}
    }
}

/// Bytes of a structure that gives its own size in the 32-bit number at `at`, at most a page.
pub fn sized(walk: &mut Walk<'_>, addr: u64, at: usize) -> u64 {
    let size = walk.bytes::<8>(addr).map_or(0, |head| half_in(&head, at));
    u64::from(size.min(4096))
}
