//! Waiting for descriptors, and what `fcntl` and `ioctl` say about them.

use crate::check::case;
use crate::stage::Stage;
use libc::*;
use thermalloc_monitor::kernel::Kind;

const EPOLL_FLAGS: u64 = 0;

#[test]
fn poll() {
    let fds = |s: &mut Stage| {
        let [reader, writer] = s.pipe(b"x");
        let (wanted, garbage) = (POLLIN as u32 | POLLOUT as u32, 0x7777_0000);
        s.ints(&[reader as u32, wanted | garbage, writer as u32, wanted | garbage])
    };
    case(SYS_poll, |s| [fds(s), 2, 0]).holds();
    // The time left is written silently, and only if there was any.
    case(SYS_ppoll, |s| [fds(s), 2, s.words(&[5, 0]), s.words(&[0]), 8]).silent(Kind::Write).holds();
    case(SYS_ppoll, |s| [fds(s), 2, 0, 0, 0]).holds();
}

#[test]
fn select() {
    let sets = |s: &mut Stage| {
        let [reader, _] = s.pipe(b"x");
        assert!(reader < 256);
        let mut bits = [0; 4];
        bits[(reader / 64) as usize] = 1 << (reader % 64);
        (reader + 1, s.words(&bits[..=(reader / 64) as usize]))
    };
    case(SYS_select, |s| {
        let (count, set) = sets(s);
        [count, set, 0, 0, s.words(&[5, 0])]
    })
    .silent(Kind::Write)
    .holds();
    case(SYS_select, |s| {
        let (count, set) = sets(s);
        [count, set, 0, 0, 0]
    })
    .holds();
    case(SYS_pselect6, |s| {
        let (count, set) = sets(s);
        let mask = s.words(&[0]);
        [count, set, 0, 0, s.words(&[5, 0]), s.words(&[mask, 8])]
    })
    .silent(Kind::Write)
    .holds();
}

fn epoll(s: &mut Stage) -> u64 {
    let (epoll, [reader, _]) = (s.open(SYS_epoll_create1, &[EPOLL_FLAGS]), s.pipe(b"x"));
    let event = s.ints(&[EPOLLIN as u32, 1, 2]);
    s.need(SYS_epoll_ctl, &[epoll, EPOLL_CTL_ADD as u64, reader, event]);
    epoll
}

#[test]
fn epoll_calls() {
    case(SYS_epoll_ctl, |s| {
        let (epoll, reader) = (s.open(SYS_epoll_create1, &[EPOLL_FLAGS]), s.pipe(b"x")[0]);
        [epoll, EPOLL_CTL_ADD as u64, reader, s.ints(&[EPOLLIN as u32, 1, 2])]
    })
    .holds();
    case(SYS_epoll_wait, |s| [epoll(s), s.room(24), 2, 0]).holds();
    case(SYS_epoll_pwait, |s| [epoll(s), s.room(24), 2, 0, s.words(&[0]), 8]).holds();
    case(SYS_epoll_pwait2, |s| [epoll(s), s.room(24), 2, s.words(&[0, 0]), s.words(&[0]), 8]).holds();
}

#[test]
fn locks_and_owners() {
    let whole_file = |s: &mut Stage, kind: i32| s.words(&[kind as u64, 0, 0, 0]);
    for command in [F_GETLK, F_OFD_GETLK, F_SETLK, F_OFD_SETLK] {
        case(SYS_fcntl, |s| [s.file(), command as u64, whole_file(s, F_WRLCK)]).holds();
    }
    const F_SETOWN_EX: u64 = 15;
    const F_GETOWN_EX: u64 = 16;
    const F_GETOWNER_UIDS: u64 = 17;
    const F_GET_RW_HINT: u64 = 1035;
    const F_SET_RW_HINT: u64 = 1036;
    case(SYS_fcntl, |s| [s.file(), F_SETOWN_EX, s.ints(&[1, std::process::id()])]).holds();
    case(SYS_fcntl, |s| [s.file(), F_GETOWN_EX, s.room(8)]).holds();
    case(SYS_fcntl, |s| [s.file(), F_GETOWNER_UIDS, s.room(8)]).optional().holds();
    case(SYS_fcntl, |s| [s.file(), F_GET_RW_HINT, s.room(8)]).holds();
    case(SYS_fcntl, |s| [s.file(), F_SET_RW_HINT, s.words(&[1])]).holds();
    case(SYS_fcntl, |s| [s.file(), F_DUPFD_CLOEXEC as u64, 300]).holds();
}

fn terminal(s: &mut Stage) -> u64 {
    let path = s.text("/dev/ptmx");
    s.open(SYS_open, &[path, (O_RDWR | O_NOCTTY) as u64])
}

fn has_terminals() -> bool {
    let has = std::fs::OpenOptions::new().read(true).write(true).open("/dev/ptmx").is_ok();
    if !has {
        println!("SKIP terminals: no /dev/ptmx");
    }
    has
}

#[test]
fn terminals() {
    if !has_terminals() {
        return;
    }
    case(SYS_ioctl, |s| [terminal(s), TCGETS, s.room(36)]).holds();
    case(SYS_ioctl, |s| {
        let (fd, settings) = (terminal(s), s.zeros(36));
        s.need(SYS_ioctl, &[fd, TCGETS, settings]);
        [fd, TCSETS, settings]
    })
    .holds();
    case(SYS_ioctl, |s| [terminal(s), 0x802c_542a, s.room(44)]).holds();
    // The second half of a termio is filled as far as it has members.
    case(SYS_ioctl, |s| [terminal(s), 0x5405, s.room(18)]).loose().holds();
    case(SYS_ioctl, |s| [terminal(s), TIOCGWINSZ, s.room(8)]).holds();
    case(SYS_ioctl, |s| [terminal(s), TIOCSWINSZ, s.ints(&[80, 25])]).holds();
    case(SYS_ioctl, |s| [terminal(s), 0x8004_5430, s.room(4)]).holds();
    case(SYS_ioctl, |s| [terminal(s), TIOCGETD, s.room(4)]).holds();
    case(SYS_ioctl, |s| [terminal(s), TIOCOUTQ, s.room(4)]).holds();
}

#[test]
fn requests_to_any_descriptor() {
    case(SYS_ioctl, |s| [s.pipe(b"abc")[0], FIONREAD, s.room(4)]).holds();
    case(SYS_ioctl, |s| [s.pipe(b"abc")[0], FIONBIO, s.ints(&[1])]).holds();
    case(SYS_ioctl, |s| [s.pipe(b"abc")[0], FIOASYNC, s.ints(&[0])]).holds();
    case(SYS_ioctl, |s| [s.pipe(b"abc")[0], FIOCLEX, s.bytes(b"x")]).holds();
    case(SYS_ioctl, |s| [s.file(), 0x5460, s.room(8)]).optional().holds();
    case(SYS_ioctl, |s| [s.file(), 2, s.room(4)]).optional().holds();
    case(SYS_ioctl, |s| [s.file(), 0x8008_6601, s.room(4)]).optional().holds();
    case(SYS_ioctl, |s| {
        let request = [0, u64::MAX, 0, 2, 0x7e7e, 0x7e7e, 0x7e7e, 0x7e7e, 0, 0, 0];
        [s.file(), 0xc020_660b, s.words(&request)]
    })
    .optional()
    .holds();
}

#[test]
fn interfaces() {
    const SIOCGIFCONF: u64 = 0x8912;
    const SIOCGIFFLAGS: u64 = 0x8913;
    const SIOCGIFINDEX: u64 = 0x8933;
    const SIOCGIFNAME: u64 = 0x8910;
    let socket = |s: &mut Stage| s.open(SYS_socket, &[AF_INET as u64, SOCK_DGRAM as u64, 0]);
    let loopback = |s: &mut Stage| {
        let mut request = [0x6d; 40];
        request[..3].copy_from_slice(b"lo\0");
        s.bytes(&request)
    };
    case(SYS_ioctl, |s| [socket(s), SIOCGIFINDEX, loopback(s)]).holds();
    case(SYS_ioctl, |s| [socket(s), SIOCGIFFLAGS, loopback(s)]).holds();
    case(SYS_ioctl, |s| {
        let mut request = [0x6d6d_6d6d; 10];
        request[4] = 1;
        [socket(s), SIOCGIFNAME, s.ints(&request)]
    })
    .holds();
    // As many interfaces are written as there are.
    case(SYS_ioctl, |s| {
        let room = s.room(400);
        [socket(s), SIOCGIFCONF, s.words(&[400, room])]
    })
    .loose()
    .holds();
}
