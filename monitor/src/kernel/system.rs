//! The machine: its name and state, kernel modules, tracing, booting.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::files::sized;
use super::walk::{PATH_MAX, Walk};
use libc::*;

/// Uprobe trampolines: `uretprobe` and `uprobe` read and write the caller's stack.
const URETPROBE: c_long = 335;
const UPROBE: c_long = 336;

pub const CALLS: &[Call] = &[
    (SYS_uname, &[Out(0, size_of::<utsname>())]),
    (SYS_sysinfo, &[Out(0, size_of::<sysinfo>())]),
    (SYS_sethostname, &[InBytes(0, 1)]),
    (SYS_setdomainname, &[InBytes(0, 1)]),
    (SYS_syslog, &[Special(syslog)]),
    (SYS_reboot, &[Special(reboot)]),
    (SYS_init_module, &[InBytes(0, 1), Text(2, PATH_MAX), More]),
    (SYS_finit_module, &[Text(1, PATH_MAX), More]),
    (SYS_delete_module, &[Text(0, 64)]),
    (SYS_kexec_load, &[InArray(2, 1, 32), More]),
    (SYS_kexec_file_load, &[InBytes(3, 2)]),
    (SYS_perf_event_open, &[Special(perf_event_open)]),
    (SYS_bpf, &[Special(bpf)]),
    (URETPROBE, &[Anything]),
    (UPROBE, &[Anything]),
];

/// Actions 2, 3 and 4 read the log.
fn syslog(walk: &mut Walk<'_>) {
    if (2..=4).contains(&walk.int(0)) {
        walk.moves(walk.arg(1), walk.arg(2), Kind::Write);
    }
}

/// One command takes a string for the boot loader.
fn reboot(walk: &mut Walk<'_>) {
    if walk.int(2) == LINUX_REBOOT_CMD_RESTART2 {
        walk.string(walk.arg(3), 256);
    }
}

/// The attributes give their size after their type; the size wanted is written where that one does not do.
fn perf_event_open(walk: &mut Walk<'_>) {
    const FIRST_VERSION: u64 = 64;
    const SIZE_AT: u64 = 4;
    let at = walk.arg(0);
    let size = match sized(walk, at, SIZE_AT as usize) {
        0 => FIRST_VERSION,
        size => size,
    };
    walk.reads(at, size);
    if walk.before() || walk.errno() == Some(E2BIG) {
        walk.tell(at.saturating_add(SIZE_AT), 4, Kind::Write);
    }
}

/// Commands name programs, keys, values and logs in their attributes; only these are told.
fn bpf(walk: &mut Walk<'_>) {
    walk.reads(walk.arg(1), u64::from(walk.uint(2)).min(4096));
    walk.prepares(walk.arg(1), u64::from(walk.uint(2)).min(4096), Kind::Write);
    walk.partial();
}
