//! Arguments that lead to further memory, and calls that are told apart by a command.

use super::Kind::{Read, Write};
use super::*;
use libc::*;

const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;
const C: u64 = 0x30_0000;
const D: u64 = 0x40_0000;
const E: u64 = 0x50_0000;

fn iovecs() -> Fake {
    Fake::default().words(A, &[B, 10, C, 0, D, 20])
}

#[test]
fn bytes_moved_are_spread_over_the_iovecs() {
    let args = [3, A, 3];
    assert_eq!(before(SYS_readv, &args, &iovecs()), [(Read, A, 48), (Write, B, 10), (Write, D, 20)]);
    assert_eq!(after(SYS_readv, &args, 15, &iovecs()), [(Read, A, 48), (Write, B, 10), (Write, D, 5)]);
    assert_eq!(after(SYS_writev, &args, 4, &iovecs()), [(Read, A, 48), (Read, B, 4)]);
    assert_eq!(after(SYS_writev, &args, -i64::from(EAGAIN), &iovecs()), [(Read, A, 48)]);
    assert_eq!(before(SYS_writev, &[3, A, 1025], &iovecs()), []);
}

#[test]
fn vectors_that_cannot_be_read_leave_the_answer_partial() {
    let (told, coverage) = ask(SYS_readv, &[3, E, 2], Phase::Before, &iovecs());
    assert_eq!((told, coverage), (vec![(Read, E, 32)], Coverage::Partial));
}

fn message() -> Fake {
    // name, its length, iovecs, their number, control, its length, flags; then the length of an mmsghdr.
    iovecs().words(E, &[0x60_0000, 16, A, 3, 0x70_0000, 32, 0, 12])
}

#[test]
fn message_headers() {
    let args = [3, E, 0];
    let sent = [(Read, E, 56), (Read, A, 48), (Read, B, 10), (Read, 0x60_0000, 16), (Read, 0x70_0000, 32)];
    assert_eq!(after(SYS_sendmsg, &args, 10, &message()), sent);
    let received = [
        (Read, E, 56),
        (Read, A, 48),
        (Write, B, 10),
        (Write, D, 2),
        (Write, 0x60_0000, 16),
        (Write, 0x70_0000, 32),
        (Write, E + 8, 4),
        (Write, E + 40, 8),
        (Write, E + 48, 4),
    ];
    assert_eq!(after(SYS_recvmsg, &args, 12, &message()), received);
    let mut several = received.to_vec();
    several.push((Write, E + 56, 4));
    assert_eq!(after(SYS_recvmmsg, &[3, E, 1, 0, 0], 1, &message()), several);
    assert_eq!(after(SYS_recvmsg, &args, -i64::from(EAGAIN), &message()), [(Read, E, 56), (Read, A, 48)]);
}

#[test]
fn socket_addresses_come_with_their_length() {
    let memory = Fake::default().with(B, &16u32.to_ne_bytes());
    let all = [(Write, A, 16), (Read, B, 4), (Write, B, 4)];
    assert_eq!(before(SYS_accept, &[3, A, B], &memory), all);
    assert_eq!(after(SYS_getsockname, &[3, A, B], 0, &memory), all);
    assert_eq!(before(SYS_connect, &[3, A, 28], &memory), [(Read, A, 28)]);
    assert_eq!(before(SYS_connect, &[3, A, 129], &memory), []);
}

#[test]
fn program_arguments_and_their_strings() {
    let memory = Fake::default()
        .with(A, b"/bin/true\0")
        .words(B, &[D, 0])
        .words(C, &[D + 2, D + 4, 0])
        .with(D, b"t\0a\0bc\0");
    let told = before(SYS_execve, &[A, B, C], &memory);
    let expected =
        [(Read, A, 10), (Read, D, 2), (Read, B, 16), (Read, D + 2, 2), (Read, D + 4, 3), (Read, C, 24)];
    assert_eq!(told, expected);
    assert_eq!(after(SYS_execve, &[A, B, C], -i64::from(ENOENT), &memory), [(Read, A, 10)]);
}

#[test]
fn poll_writes_the_answers_alone() {
    let args = [A, 2, 0];
    assert_eq!(before(SYS_poll, &args, &Fake::default()), [(Read, A, 16), (Write, A, 16)]);
    let answered = [(Read, A, 16), (Write, A + 6, 2), (Write, A + 14, 2)];
    assert_eq!(after(SYS_poll, &args, 1, &Fake::default()), answered);
    assert_eq!(after(SYS_poll, &args, -i64::from(EINTR), &Fake::default()), answered);
}

#[test]
fn select_rounds_to_words() {
    let told = before(SYS_select, &[65, A, 0, B, C], &Fake::default());
    let expected =
        [(Read, A, 16), (Write, A, 16), (Read, B, 16), (Write, B, 16), (Read, C, 16), (Write, C, 16)];
    assert_eq!(told, expected);
    assert_eq!(before(SYS_select, &[u64::from(u32::MAX), A, 0, 0, 0], &Fake::default()), []);
}

#[test]
fn futex_operations() {
    let none = Fake::default();
    let wait = [A, (FUTEX_WAIT | FUTEX_PRIVATE_FLAG) as u64, 1, B];
    assert_eq!(after(SYS_futex, &wait, -i64::from(EAGAIN), &none), [(Read, A, 4), (Read, B, 16)]);
    let wake = [A, FUTEX_WAKE as u64, 1, 7, 8];
    assert_eq!(before(SYS_futex, &wake, &none), [(Write, A, 4)]);
    assert_eq!(after(SYS_futex, &wake, 0, &none), []);
    // The fourth argument is a number here.
    let requeue = [A, FUTEX_CMP_REQUEUE as u64, 1, 0x77_0000, B];
    assert_eq!(after(SYS_futex, &requeue, 0, &none), [(Read, A, 4)]);
}

#[test]
fn threads_words_by_flags() {
    let none = Fake::default();
    let flags = (CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) as u64;
    let args = [flags, D, A, B, C];
    assert_eq!(before(SYS_clone, &args, &none), [(Write, A, 4), (Write, B, 4)]);
    assert_eq!(after(SYS_clone, &args, 77, &none), [(Write, A, 4), (Write, B, 4)]);
    assert_eq!(after(SYS_clone, &args, 0, &none), []);
    let forked = [CLONE_CHILD_SETTID as u64, 0, A, B, C];
    assert_eq!(after(SYS_clone, &forked, 77, &none), []);
    assert_eq!(after(SYS_clone, &forked, 0, &none), [(Write, B, 4)]);
}

#[test]
fn requests_of_ioctl() {
    let none = Fake::default();
    assert_eq!(before(SYS_ioctl, &[0, TCGETS, A], &none), [(Write, A, 36)]);
    assert_eq!(before(SYS_ioctl, &[0, 0x4004_9409, 7], &none), []);
    assert_eq!(before(SYS_ioctl, &[0, 0x802c_542a, A], &none), [(Write, A, 44)]);
    // A request of the KVM device, of which only the number is known.
    let kvm = ask(SYS_ioctl, &[0, 0x8004_ae86, A], Phase::Before, &none);
    assert_eq!(kvm, (vec![(Write, A, 4)], Coverage::Partial));
    let bare = ask(SYS_ioctl, &[0, 0x1234, A], Phase::Before, &none);
    assert_eq!(bare, (vec![], Coverage::Unknown));
}

#[test]
fn remote_memory_is_ours_only_where_the_process_is() {
    let mut memory = iovecs().words(E, &[0x60_0000, 30]);
    let args = [500, A, 3, E, 1];
    assert_eq!(before(SYS_process_vm_readv, &args, &memory).last(), Some(&(Read, 0x60_0000, 30)));
    memory.own_pid = 501;
    assert_eq!(before(SYS_process_vm_readv, &args, &memory).last(), Some(&(Read, 0x60_0000, 30)));
    assert_eq!(after(SYS_process_vm_readv, &args, 12, &memory).last(), Some(&(Read, E, 16)));
    memory.own_pid = 500;
    assert_eq!(after(SYS_process_vm_readv, &args, 12, &memory).last(), Some(&(Read, 0x60_0000, 12)));
}

#[test]
fn requests_are_charged_when_they_complete() {
    let memory =
        Fake::default().words(A, &[B]).words(B, &[0, 0, 0, C, 512, 0, 0, 0]).words(D, &[0, B, 100, 0]);
    let submit = [9, 1, A];
    let told = before(SYS_io_submit, &submit, &memory);
    assert_eq!(told, [(Read, A, 8), (Read, B, 64), (Write, B + 8, 4), (Write, C, 512)]);
    assert_eq!(after(SYS_io_submit, &submit, 1, &memory), told[..3]);
    let told = after(SYS_io_getevents, &[9, 1, 4, D, 0], 1, &memory);
    assert_eq!(told, [(Write, D, 32), (Write, C, 100)]);
}

#[test]
fn sleep_left_over_is_written_on_interruption_only() {
    let none = Fake::default();
    assert_eq!(after(SYS_nanosleep, &[A, B], 0, &none), [(Read, A, 16)]);
    assert_eq!(after(SYS_nanosleep, &[A, B], -i64::from(EINTR), &none), [(Read, A, 16), (Write, B, 16)]);
}

#[test]
fn filters_hang_off_their_program() {
    let memory = Fake::default().words(A, &[3, B]);
    let args = [3, SOL_SOCKET as u64, SO_ATTACH_FILTER as u64, A, 16];
    assert_eq!(before(SYS_setsockopt, &args, &memory), [(Read, A, 16), (Read, B, 24)]);
    let nat = ask(SYS_setsockopt, &[3, SOL_IP as u64, 64, A, 100], Phase::Before, &memory);
    assert_eq!(nat, (vec![(Read, A, 100)], Coverage::Partial));
}

#[test]
fn zeroed_structures_lead_nowhere() {
    let memory = Fake::default().zeros(A, 128);
    assert_eq!(before(SYS_sendmsg, &[3, A, 0], &memory), [(Read, A, 56)]);
    assert_eq!(before(SYS_clone3, &[A, 88], &memory), [(Read, A, 88)]);
}
