//! Semaphores, shared memory, message queues.

use crate::check::case;
use crate::stage::Stage;
use libc::*;

fn semaphores(s: &mut Stage) -> u64 {
    let id = s.need(SYS_semget, &[IPC_PRIVATE as u64, 3, 0o600]);
    s.finally(SYS_semctl, &[id, 0, IPC_RMID as u64]);
    id
}

fn queue(s: &mut Stage) -> u64 {
    let id = s.need(SYS_msgget, &[IPC_PRIVATE as u64, 0o600]);
    s.finally(SYS_msgctl, &[id, IPC_RMID as u64]);
    id
}

fn segment(s: &mut Stage) -> u64 {
    let id = s.need(SYS_shmget, &[IPC_PRIVATE as u64, 4096, 0o600]);
    s.finally(SYS_shmctl, &[id, IPC_RMID as u64]);
    id
}

#[test]
fn semaphore_sets() {
    let up = |s: &mut Stage, sem: u8| s.bytes(&[sem, 0, 1, 0, 0, 0, sem, 0, 1, 0, 0, 0]);
    case(SYS_semop, |s| [semaphores(s), up(s, 1), 2]).holds();
    case(SYS_semtimedop, |s| [semaphores(s), up(s, 2), 2, s.words(&[1, 0])]).holds();
    case(SYS_semctl, |s| [semaphores(s), 0, IPC_STAT as u64, s.room(size_of::<semid_ds>())]).holds();
    case(SYS_semctl, |s| [semaphores(s), 0, 19, s.room(size_of::<seminfo>())]).holds();
    case(SYS_semctl, |s| [semaphores(s), 0, SETALL as u64, s.bytes(&[1, 0, 2, 0, 3, 0])]).holds();
}

#[test]
fn shared_segments() {
    case(SYS_shmctl, |s| [segment(s), IPC_STAT as u64, s.room(size_of::<shmid_ds>())]).holds();
    case(SYS_shmctl, |s| [segment(s), 3, s.room(72)]).holds();
    case(SYS_shmctl, |s| [segment(s), 14, s.room(48)]).holds();
    case(SYS_shmctl, |s| {
        let (id, settings) = (segment(s), s.zeros(size_of::<shmid_ds>()));
        s.need(SYS_shmctl, &[id, IPC_STAT as u64, settings]);
        [id, IPC_SET as u64, settings]
    })
    .holds();
}

#[test]
fn message_queues() {
    let message = |s: &mut Stage| s.words(&[7, 0x1234_5678]);
    case(SYS_msgsnd, |s| [queue(s), message(s), 6, 0]).holds();
    case(SYS_msgrcv, |s| {
        let (id, message) = (queue(s), message(s));
        s.need(SYS_msgsnd, &[id, message, 6, 0]);
        [id, s.room(30), 22, 0, 0]
    })
    .holds();
    case(SYS_msgrcv, |s| [queue(s), s.room(30), 22, 0, IPC_NOWAIT as u64]).fails(ENOMSG).holds();
    case(SYS_msgctl, |s| [queue(s), IPC_STAT as u64, s.room(size_of::<msqid_ds>())]).holds();
    case(SYS_msgctl, |s| [queue(s), 12, s.room(size_of::<msginfo>())]).holds();
}

/// A queue without a name, with room for four messages of 16 bytes, and one in it.
fn posix_queue(s: &mut Stage) -> u64 {
    let mut side = Stage::new(0);
    let name = format!("kernel-oracle-{}-{:?}", std::process::id(), std::thread::current().id());
    let name = side.text(&name.replace(['(', ')'], ""));
    let attributes = side.words(&[0, 4, 16, 0, 0, 0, 0, 0]);
    let flags = (O_CREAT | O_RDWR | O_NONBLOCK) as u64;
    let fd = s.open(SYS_mq_open, &[name, flags, 0o600, attributes]);
    side.need(SYS_mq_unlink, &[name]);
    let text = side.bytes(b"posted");
    side.need(SYS_mq_timedsend, &[fd, text, 6, 3, 0]);
    fd
}

#[test]
fn posix_message_queues() {
    case(SYS_mq_open, |s| [s.text("kernel-oracle-missing"), O_RDONLY as u64, 0, s.zeros(64)])
        .fails(ENOENT)
        .optional()
        .holds();
    case(SYS_mq_timedsend, |s| [posix_queue(s), s.bytes(b"second"), 6, 1, s.words(&[1 << 33, 0])]).holds();
    case(SYS_mq_timedreceive, |s| [posix_queue(s), s.room(16), 16, s.room(4), s.words(&[1 << 33, 0])])
        .holds();
    case(SYS_mq_getsetattr, |s| [posix_queue(s), s.zeros(64), s.room(64)]).holds();
    case(SYS_mq_notify, |s| {
        let mut event = [0; 16];
        event[3] = SIGEV_NONE as u32;
        [posix_queue(s), s.ints(&event)]
    })
    .holds();
}
