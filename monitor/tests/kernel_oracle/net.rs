//! Sockets.

use crate::check::case;
use crate::stage::Stage;
use libc::*;

/// 127.0.0.1 and no port: as the words of a `sockaddr_in`.
const LOOPBACK: [u32; 4] = [AF_INET as u32, 0x0100_007f, 0, 0];

fn socket(s: &mut Stage, kind: i32) -> u64 {
    s.open(SYS_socket, &[AF_INET as u64, (kind | SOCK_NONBLOCK) as u64, 0])
}

/// A socket bound to a free port of the loopback interface, and its address.
fn bound(s: &mut Stage, kind: i32) -> (u64, [u32; 4]) {
    let mut side = Stage::new(0);
    let (fd, address, len) = (socket(s, kind), side.ints(&LOOPBACK), side.ints(&[16, 0]));
    side.need(SYS_bind, &[fd, address, 16]);
    side.need(SYS_getsockname, &[fd, address, len]);
    let words = [side.word(address), side.word(address + 8)];
    (fd, [words[0] as u32, (words[0] >> 32) as u32, words[1] as u32, (words[1] >> 32) as u32])
}

/// A datagram socket that `count` datagrams of six bytes wait for.
fn mailbox(s: &mut Stage, count: usize) -> u64 {
    let (fd, address) = bound(s, SOCK_DGRAM);
    let mut side = Stage::new(0);
    let (text, to) = (side.bytes(b"letter"), side.ints(&address));
    for _ in 0..count {
        side.need(SYS_sendto, &[fd, text, 6, 0, to, 16]);
    }
    fd
}

fn listener(s: &mut Stage) -> u64 {
    let (fd, address) = bound(s, SOCK_STREAM);
    let mut side = Stage::new(0);
    side.need(SYS_listen, &[fd, 1]);
    let client = s.open(SYS_socket, &[AF_INET as u64, SOCK_STREAM as u64, 0]);
    let to = side.ints(&address);
    side.need(SYS_connect, &[client, to, 16]);
    fd
}

#[test]
fn addresses_in() {
    case(SYS_bind, |s| [socket(s, SOCK_DGRAM), s.ints(&LOOPBACK), 16]).holds();
    case(SYS_connect, |s| {
        let (_, address) = bound(s, SOCK_DGRAM);
        [socket(s, SOCK_DGRAM), s.ints(&address), 16]
    })
    .holds();
    case(SYS_connect, |s| {
        let (_, address) = bound(s, SOCK_STREAM);
        [s.open(SYS_socket, &[AF_INET as u64, SOCK_STREAM as u64, 0]), s.ints(&address), 16]
    })
    .fails(ECONNREFUSED)
    .holds();
}

#[test]
fn addresses_out() {
    for nr in [SYS_accept, SYS_accept4] {
        // The end of an internet address is unused, and sent as zeros.
        case(nr, |s| [listener(s), s.room(16), s.ints(&[16]), 0]).holds();
        case(nr, |s| [listener(s), 0, s.ints(&[16]), 0]).holds();
    }
    case(SYS_getsockname, |s| [bound(s, SOCK_DGRAM).0, s.room(16), s.ints(&[16])]).holds();
    case(SYS_getsockname, |s| [bound(s, SOCK_DGRAM).0, s.room(128), s.ints(&[128])]).holds();
    case(SYS_getpeername, |s| {
        let ends = s.zeros(8);
        s.need(SYS_socketpair, &[AF_UNIX as u64, SOCK_STREAM as u64, 0, ends]);
        let both = s.word(ends);
        s.finally(SYS_close, &[both & 0xffff_ffff]);
        s.finally(SYS_close, &[both >> 32]);
        [both & 0xffff_ffff, s.room(2), s.ints(&[2])]
    })
    .holds();
    case(SYS_socketpair, |s| [AF_UNIX as u64, SOCK_STREAM as u64, 0, s.room(8)]).holds();
}

#[test]
fn single_datagrams() {
    case(SYS_sendto, |s| {
        let (fd, address) = bound(s, SOCK_DGRAM);
        [fd, s.bytes(b"letter"), 6, 0, s.ints(&address), 16]
    })
    .holds();
    case(SYS_recvfrom, |s| [mailbox(s, 1), s.room(10), 10, 0, s.room(16), s.ints(&[16])]).holds();
    case(SYS_recvfrom, |s| [mailbox(s, 1), s.room(3), 3, MSG_TRUNC as u64, 0, 0]).holds();
    case(SYS_recvfrom, |s| [mailbox(s, 0), s.room(3), 3, 0, s.room(16), s.ints(&[16])]).fails(EAGAIN).holds();
}

/// Words of a message header with two buffers.
fn header(s: &mut Stage, name: u64, buffers: [u64; 2], control: (u64, u64)) -> [u64; 7] {
    let name_len = if name == 0 { 0 } else { 16 };
    let iovecs = s.words(&[buffers[0], 2, buffers[1], 8]);
    [name, name_len, iovecs, 2, control.0, control.1, 0x7e7e_7e7e]
}

fn outgoing(s: &mut Stage, address: [u32; 4]) -> [u64; 7] {
    let (name, buffers) = (s.ints(&address), [s.bytes(b"ab"), s.bytes(b"cdefghij")]);
    header(s, name, buffers, (0, 0))
}

fn incoming(s: &mut Stage, control: (u64, u64)) -> [u64; 7] {
    let (name, buffers) = (s.room(16), [s.room(2), s.room(8)]);
    header(s, name, buffers, control)
}

#[test]
fn messages() {
    case(SYS_sendmsg, |s| {
        let (fd, address) = bound(s, SOCK_DGRAM);
        let header = outgoing(s, address);
        [fd, s.words(&header), 0]
    })
    .holds();
    case(SYS_recvmsg, |s| {
        let header = incoming(s, (0, 0));
        [mailbox(s, 1), s.words(&header), 0]
    })
    .holds();
    case(SYS_recvmsg, |s| {
        let header = incoming(s, (0, 0));
        [mailbox(s, 0), s.words(&header), 0]
    })
    .fails(EAGAIN)
    .holds();
}

#[test]
fn control_messages() {
    // The address that a datagram was sent to comes with it: a header of 16 bytes, 12 of contents, 4 of padding.
    case(SYS_recvmsg, |s| {
        let fd = mailbox(s, 0);
        let mut side = Stage::new(0);
        let one = side.ints(&[1]);
        side.need(SYS_setsockopt, &[fd, IPPROTO_IP as u64, IP_PKTINFO as u64, one, 4]);
        let (to, len) = (side.zeros(16), side.ints(&[16]));
        side.need(SYS_getsockname, &[fd, to, len]);
        let text = side.bytes(b"letter");
        side.need(SYS_sendto, &[fd, text, 6, 0, to, 16]);
        let control = s.room(64);
        let header = incoming(s, (control, 64));
        [fd, s.words(&header), 0]
    })
    .loose()
    .holds();
    case(SYS_sendmsg, |s| {
        let (fd, address) = bound(s, SOCK_DGRAM);
        let mut header = outgoing(s, address);
        let info = [28, IPPROTO_IP as u64 | (IP_PKTINFO as u64) << 32, 0, 0];
        (header[4], header[5], header[6]) = (s.words(&info), 32, 0);
        [fd, s.words(&header), 0]
    })
    .holds();
}

#[test]
fn several_messages() {
    case(SYS_sendmmsg, |s| {
        let (fd, address) = bound(s, SOCK_DGRAM);
        let (one, two) = (outgoing(s, address), outgoing(s, address));
        let words = [&one[..], &[0x7e7e], &two[..], &[0x7e7e]].concat();
        [fd, s.words(&words), 2, 0]
    })
    .holds();
    case(SYS_recvmmsg, |s| {
        let (one, two) = (incoming(s, (0, 0)), incoming(s, (0, 0)));
        let words = [&one[..], &[0x7e7e], &two[..], &[0x7e7e]].concat();
        [mailbox(s, 2), s.words(&words), 2, 0, s.words(&[5, 0])]
    })
    .holds();
}

#[test]
fn options() {
    let socket_level = SOL_SOCKET as u64;
    case(SYS_setsockopt, |s| [socket(s, SOCK_DGRAM), socket_level, SO_RCVBUF as u64, s.ints(&[9999]), 4])
        .holds();
    case(SYS_getsockopt, |s| [socket(s, SOCK_DGRAM), socket_level, SO_TYPE as u64, s.room(4), s.ints(&[4])])
        .holds();
    case(SYS_getsockopt, |s| {
        [socket(s, SOCK_DGRAM), socket_level, SO_TYPE as u64, s.room(64), s.ints(&[64])]
    })
    .holds();
    let program = |s: &mut Stage| {
        // Two instructions: load an immediate, return it.
        let instructions = s.words(&[0x0000_0007_0000_0000, 0x0000_ffff_0000_0006]);
        s.words(&[2, instructions])
    };
    case(SYS_setsockopt, |s| [socket(s, SOCK_DGRAM), socket_level, SO_ATTACH_FILTER as u64, program(s), 16])
        .holds();
    case(SYS_getsockopt, |s| {
        let (fd, filter) = (socket(s, SOCK_DGRAM), program(s));
        s.need(SYS_setsockopt, &[fd, socket_level, SO_ATTACH_FILTER as u64, filter, 16]);
        [fd, socket_level, SO_GET_FILTER as u64, s.room(16), s.ints(&[2])]
    })
    .holds();
}
