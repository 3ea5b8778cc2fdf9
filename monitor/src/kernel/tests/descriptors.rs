//! One call for each kind of descriptor.

use super::Kind::{Read, Write};
use super::*;
use libc::*;

const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;
const C: u64 = 0x30_0000;

fn no_memory() -> Fake {
    Fake::default()
}

#[test]
fn every_number_is_known() {
    let unassigned = 337..424;
    for nr in (0..470).filter(|nr| !unassigned.contains(nr)) {
        assert!(crate::kernel::table::descriptors(nr).is_some(), "call {nr} is missing");
    }
}

#[test]
fn other_numbers_are_unknown() {
    for nr in [-1, 337, 423, 470, 1 << 30, i64::MAX, i64::MIN] {
        assert_eq!(ask(nr, &[A, B, C], Phase::Before, &no_memory()), (vec![], Coverage::Unknown));
    }
}

#[test]
fn filled_buffer_is_written_as_far_as_the_result_says() {
    let args = [0, A, 100];
    assert_eq!(before(SYS_read, &args, &no_memory()), [(Write, A, 100)]);
    assert_eq!(after(SYS_read, &args, 7, &no_memory()), [(Write, A, 7)]);
    assert_eq!(after(SYS_read, &args, 0, &no_memory()), []);
    assert_eq!(after(SYS_read, &args, -i64::from(EAGAIN), &no_memory()), []);
}

#[test]
fn result_beyond_the_buffer_is_cut() {
    // getxattr with room for nothing returns the length wanted.
    assert_eq!(after(SYS_fgetxattr, &[3, 0, B, 0], 40, &no_memory()), []);
    assert_eq!(after(SYS_recvfrom, &[3, A, 10, MSG_TRUNC as u64], 40, &no_memory()), [(Write, A, 10)]);
}

#[test]
fn sent_buffer_is_read_as_far_as_the_result_says() {
    assert_eq!(before(SYS_write, &[1, A, 100], &no_memory()), [(Read, A, 100)]);
    assert_eq!(after(SYS_write, &[1, A, 100], 60, &no_memory()), [(Read, A, 60)]);
}

#[test]
fn path_ends_with_its_nul() {
    let memory = no_memory().with(A, b"/etc/passwd\0junk");
    assert_eq!(before(SYS_open, &[A], &memory), [(Read, A, 12)]);
    assert_eq!(after(SYS_open, &[A], 3, &memory), [(Read, A, 12)]);
    assert_eq!(after(SYS_open, &[A], -i64::from(ENOENT), &memory), [(Read, A, 12)]);
    assert_eq!(after(SYS_open, &[A], -i64::from(EFAULT), &memory), []);
}

#[test]
fn path_without_nul_ends_where_the_kernel_gives_up() {
    let memory = no_memory().with(A + 5, &[b'x'; 6000]);
    assert_eq!(before(SYS_open, &[A + 5], &memory), [(Read, A + 5, 4096)]);
}

#[test]
fn path_that_leaves_the_mapping_is_told_as_far_as_it_goes() {
    let memory = no_memory().with(A + 4000, &[b'x'; 96]);
    let (told, coverage) = ask(SYS_open, &[A + 4000], Phase::Before, &memory);
    assert_eq!((told, coverage), (vec![(Read, A + 4000, 96)], Coverage::Partial));
}

#[test]
fn structures_in_and_out() {
    let args = [0, A, B];
    assert_eq!(before(SYS_rt_sigaction, &args, &no_memory()), [(Read, A, 32), (Write, B, 32)]);
    assert_eq!(after(SYS_rt_sigaction, &args, 0, &no_memory()), [(Read, A, 32), (Write, B, 32)]);
    assert_eq!(after(SYS_rt_sigaction, &args, -i64::from(EINVAL), &no_memory()), []);
    assert_eq!(before(SYS_sendfile, &[1, 2, A, 9], &no_memory()), [(Read, A, 8), (Write, A, 8)]);
}

#[test]
fn null_is_never_touched() {
    assert_eq!(before(SYS_rt_sigaction, &[2, 0, 0], &no_memory()), []);
    assert_eq!(before(SYS_wait4, &[1, 0, 0, 0], &no_memory()), []);
    assert_eq!(before(SYS_open, &[0], &no_memory()), []);
    assert_eq!(before(SYS_recvfrom, &[0, A, 4, 0, 0, B], &no_memory()), [(Write, A, 4)]);
}

#[test]
fn buffers_of_given_length() {
    assert_eq!(before(SYS_add_key, &[0, 0, C, 9], &no_memory()), [(Read, C, 9)]);
    assert_eq!(after(SYS_rt_sigpending, &[A, 8], 0, &no_memory()), [(Write, A, 8)]);
}

#[test]
fn arrays() {
    assert_eq!(before(SYS_semop, &[1, A, 3], &no_memory()), [(Read, A, 18)]);
    assert_eq!(before(SYS_epoll_wait, &[1, A, 8], &no_memory()), [(Write, A, 96)]);
    assert_eq!(after(SYS_epoll_wait, &[1, A, 8], 2, &no_memory()), [(Write, A, 24)]);
    let pages = [0, 2, A, B, C];
    assert_eq!(before(SYS_move_pages, &pages, &no_memory()), [(Read, A, 16), (Read, B, 8), (Write, C, 8)]);
}

#[test]
fn ranges_end_with_the_address_space() {
    let end = 0x7fff_ffff_f000;
    assert_eq!(before(SYS_read, &[0, A, u64::MAX], &no_memory()), [(Write, A, end - A)]);
    assert_eq!(before(SYS_read, &[0, end - 1, 5], &no_memory()), [(Write, end - 1, 1)]);
    assert_eq!(before(SYS_read, &[0, u64::MAX, u64::MAX], &no_memory()), []);
}

#[test]
fn calls_without_pointers_touch_nothing() {
    for nr in [SYS_close, SYS_mmap, SYS_getpid, SYS_set_robust_list, SYS_fork] {
        assert_eq!(before(nr, &[A, B, C, A, B, C], &no_memory()), []);
    }
}
