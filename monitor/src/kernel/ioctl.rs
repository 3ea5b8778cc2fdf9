//! `ioctl` by request: terminals, sockets, files. For others the size and direction that well-formed requests
//! carry are told, as a part of what may be touched.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::Special;
use super::describe::Call;
use super::walk::Walk;
use libc::{SYS_ioctl, c_ulong};

pub const CALLS: &[Call] = &[(SYS_ioctl, &[Special(ioctl)])];

/// What a request does with its argument.
#[derive(Clone, Copy)]
enum Argument {
    /// Not a pointer.
    Plain,
    In(u64),
    Out(u64),
    InOut(u64),
}
use Argument::*;

/// The kernel's `struct termios` and `struct termio`, smaller than libc's.
const TERMIOS: u64 = 36;
const TERMIO: u64 = 18;
const WINSIZE: u64 = 8;
/// `struct ifreq`, `struct arpreq`.
const IFREQ: u64 = 40;
const ARPREQ: u64 = 68;

/// Requests whose number does not say what they do, or says it wrongly.
fn known(request: u32) -> Option<Argument> {
    terminal(request).or_else(|| file(request)).or_else(|| socket(request))
}

/// Requests of terminals and of every descriptor (0x54xx).
fn terminal(request: u32) -> Option<Argument> {
    Some(match request {
        // TCGETS, TCSETS, TCSETSW, TCSETSF; the same with termio.
        0x5401 => Out(TERMIOS),
        0x5402..=0x5404 => In(TERMIOS),
        0x5405 => Out(TERMIO),
        0x5406..=0x5408 => In(TERMIO),
        // TCSBRK, TCXONC, TCFLSH, TIOCEXCL, TIOCNXCL, TIOCSCTTY.
        0x5409..=0x540e => Plain,
        // TIOCGPGRP, TIOCSPGRP, TIOCOUTQ, TIOCSTI, TIOCGWINSZ, TIOCSWINSZ.
        0x540f | 0x5411 => Out(4),
        0x5410 => In(4),
        0x5412 => In(1),
        0x5413 => Out(WINSIZE),
        0x5414 => In(WINSIZE),
        // TIOCMGET, TIOCMBIS, TIOCMBIC, TIOCMSET, TIOCGSOFTCAR, TIOCSSOFTCAR, FIONREAD.
        0x5415 | 0x5419 | 0x541b => Out(4),
        0x5416..=0x5418 | 0x541a => In(4),
        // TIOCCONS, TIOCPKT, FIONBIO, TIOCNOTTY, TIOCSETD, TIOCGETD, TCSBRKP.
        0x541d | 0x5422 | 0x5425 => Plain,
        0x5420 | 0x5421 | 0x5423 => In(4),
        0x5424 => Out(4),
        // TIOCSBRK, TIOCCBRK, TIOCGSID, TIOCVHANGUP, TIOCGPTPEER.
        0x5427 | 0x5428 | 0x5437 | 0x5441 => Plain,
        0x5429 => Out(4),
        // FIONCLEX, FIOCLEX, FIOASYNC, TIOCMIWAIT, FIOQSIZE.
        0x5450 | 0x5451 | 0x545c => Plain,
        0x5452 => In(4),
        0x5460 => Out(8),
        _ => return None,
    })
}

/// Requests of files and block devices.
fn file(request: u32) -> Option<Argument> {
    Some(match request {
        // FIGETBSZ. (1 is FIBMAP for regular files, and the devices' own elsewhere.)
        0x0002 => Out(4),
        // FICLONE takes a descriptor; FS_IOC_GETFLAGS and its like move an int, though their number says long.
        0x4004_9409 => Plain,
        0x8008_6601 | 0x8008_7601 => Out(4),
        0x4008_6602 | 0x4008_7602 => In(4),
        // BLKROGET, BLKRAGET, BLKGETSIZE, BLKSSZGET, BLKBSZGET.
        0x125e | 0x1268 => Out(4),
        0x1263 | 0x1260 => Out(8),
        0x8008_1270 => Out(4),
        _ => return None,
    })
}

/// Requests of sockets (0x89xx), without those that lead to further memory.
fn socket(request: u32) -> Option<Argument> {
    Some(match request {
        // FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP, SIOCATMARK.
        0x8901 | 0x8902 => In(4),
        0x8903..=0x8905 => Out(4),
        // SIOCGSTAMP, SIOCGSTAMPNS.
        0x8906 | 0x8907 => Out(16),
        // SIOCGIFNAME, SIOCGIFFLAGS and the other getters of one interface, SIOCGIFCOUNT, SIOCGIFTXQLEN.
        0x8910 | 0x8913 | 0x8915 | 0x8917 | 0x8919 | 0x891b | 0x891d | 0x891f | 0x8921 => InOut(IFREQ),
        0x8925 | 0x8927 | 0x8929 | 0x8933 | 0x8935 | 0x8938 | 0x8942 => InOut(IFREQ),
        // SIOCSIFFLAGS and the other setters.
        0x8911 | 0x8914 | 0x8916 | 0x8918 | 0x891a | 0x891c | 0x891e | 0x8920 | 0x8922..=0x8924 => In(IFREQ),
        0x8926 | 0x8930..=0x8932 | 0x8934 | 0x8936 | 0x8937 | 0x8943 => In(IFREQ),
        // SIOCDARP, SIOCGARP, SIOCSARP.
        0x8953 | 0x8955 => In(ARPREQ),
        0x8954 => InOut(ARPREQ),
        _ => return None,
    })
}

fn ioctl(walk: &mut Walk<'_>) {
    let (request, at) = (walk.uint(1), walk.arg(2));
    match known(request).or_else(|| faithful(request)) {
        Some(Plain) => {}
        Some(In(size)) => walk.reads(at, size),
        Some(Out(size)) => walk.writes(at, size),
        Some(InOut(size)) => walk.updates(at, size),
        None => nested(walk, request, at),
    }
}

/// Requests that do what their number says, no more: TCGETS2 and its like, pseudo-terminals (type `T`), FICLONERANGE,
/// FIFREEZE, FITRIM, labels, block device sizes, times of real-time clocks.
fn faithful(request: u32) -> Option<Argument> {
    const TERMINAL: u32 = b'T' as u32;
    let listed = matches!(
        request,
        0x4020_940d | 0xc004_5877 | 0xc004_5878 | 0xc018_5879 | 0x8100_9431 | 0x4100_9432 | 0x8008_1272
    );
    ((request >> 8) & 0xff == TERMINAL && request >> 16 != 0 || listed).then(|| by_number(request))
}

/// What the direction and size in a well-formed request say (`uapi/asm-generic/ioctl.h`).
fn by_number(request: u32) -> Argument {
    let size = u64::from((request >> 16) & 0x3fff);
    match request >> 30 {
        0 => Plain,
        1 => In(size),
        2 => Out(size),
        _ => InOut(size),
    }
}

/// Requests that lead to further memory, or may.
fn nested(walk: &mut Walk<'_>, request: u32, at: u64) {
    match request {
        SIOCGIFCONF => interfaces(walk, at),
        FS_IOC_FIEMAP => extents(walk, at),
        _ => {
            match by_number(request) {
                Plain => return walk.unknown(),
                In(size) => walk.reads(at, size),
                Out(size) => walk.writes(at, size),
                InOut(size) => walk.updates(at, size),
            }
            walk.partial();
        }
    }
}

const SIOCGIFCONF: u32 = 0x8912;
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

/// A length, which becomes that of the answer, and a pointer to room for it.
fn interfaces(walk: &mut Walk<'_>, at: u64) {
    const CONF: u64 = 16;
    walk.reads(at, CONF);
    if let Some((len, room)) = walk.pair_at(at) {
        walk.writes(room, len & u64::from(u32::MAX));
    }
    walk.writes(at, CONF);
}

/// A header that says how much room follows for extents, then how many are there.
fn extents(walk: &mut Walk<'_>, at: u64) {
    const HEADER: u64 = 32;
    const EXTENT: u64 = 56;
    const MAPPED: u64 = 20;
    const ROOM: u64 = 24;
    walk.updates(at, HEADER);
    let count_at = if walk.before() { ROOM } else { MAPPED };
    let room = u64::from(walk.u32_at(at.saturating_add(ROOM)).unwrap_or(0));
    let count = u64::from(walk.u32_at(at.saturating_add(count_at)).unwrap_or(0)).min(room);
    if walk.before() || walk.result().is_some() {
        walk.tell(at.saturating_add(HEADER), count * EXTENT, Kind::Write);
    }
}

const _: () = assert!(size_of::<c_ulong>() == 8, "the sizes above are those of x86-64");
