//! System V semaphores, shared memory and message queues; POSIX message queues.
//!
//! # Signal context
//! As [`walk`](super::walk).

use super::Kind;
use super::describe::Arg::*;
use super::describe::Call;
use super::walk::{Walk, half_in, word_in};
use libc::*;

const SEMBUF: usize = size_of::<sembuf>();
const TIMESPEC: usize = size_of::<timespec>();
const MQ_ATTR: usize = size_of::<mq_attr>();

pub const CALLS: &[Call] = &[
    (SYS_semop, &[InArray(1, 2, SEMBUF)]),
    (SYS_semtimedop, &[InArray(1, 2, SEMBUF), In(3, TIMESPEC)]),
    (SYS_semctl, &[Special(semctl)]),
    (SYS_shmctl, &[Special(shmctl)]),
    (SYS_msgctl, &[Special(msgctl)]),
    (SYS_msgsnd, &[Special(msgsnd)]),
    (SYS_msgrcv, &[Special(msgrcv)]),
    (SYS_mq_open, &[Path(0), In(3, MQ_ATTR)]),
    (SYS_mq_unlink, &[Path(0)]),
    (SYS_mq_timedsend, &[InBytes(1, 2), In(4, TIMESPEC)]),
    (SYS_mq_timedreceive, &[Filled(1, 2), Out(3, size_of::<c_uint>()), In(4, TIMESPEC)]),
    (SYS_mq_notify, &[Special(mq_notify)]),
    (SYS_mq_getsetattr, &[In(1, MQ_ATTR), Out(2, MQ_ATTR)]),
];

// Commands that libc has no names for.
const SEM_STAT_ANY: i32 = 20;
const SHM_STAT_ANY: i32 = 15;
const MSG_STAT_ANY: i32 = 13;

fn semctl(walk: &mut Walk<'_>) {
    /// SEMMSL, most semaphores in a set, of 16 bits each; how many there are only the kernel knows.
    const MOST_VALUES: u64 = 32_000 * 2;
    let at = walk.arg(3);
    let set = size_of::<semid_ds>() as u64;
    match walk.int(2) {
        IPC_STAT | SEM_STAT | SEM_STAT_ANY => walk.writes(at, set),
        IPC_SET => walk.reads(at, set),
        IPC_INFO | SEM_INFO => walk.writes(at, size_of::<seminfo>() as u64),
        GETALL => walk.prepares(at, MOST_VALUES, Kind::Write),
        SETALL => walk.prepares(at, MOST_VALUES, Kind::Read),
        IPC_RMID | GETPID | GETVAL | GETNCNT | GETZCNT | SETVAL => {}
        _ => walk.partial(),
    }
}

fn shmctl(walk: &mut Walk<'_>) {
    /// `struct shminfo64` and `struct shm_info`.
    const LIMITS: u64 = 72;
    const USAGE: u64 = 48;
    let at = walk.arg(2);
    let segment = size_of::<shmid_ds>() as u64;
    match walk.int(1) {
        IPC_STAT | SHM_STAT | SHM_STAT_ANY => walk.writes(at, segment),
        IPC_SET => walk.reads(at, segment),
        IPC_INFO => walk.writes(at, LIMITS),
        SHM_INFO => walk.writes(at, USAGE),
        IPC_RMID | SHM_LOCK | SHM_UNLOCK => {}
        _ => walk.partial(),
    }
}

fn msgctl(walk: &mut Walk<'_>) {
    let at = walk.arg(2);
    let queue = size_of::<msqid_ds>() as u64;
    match walk.int(1) {
        IPC_STAT | MSG_STAT | MSG_STAT_ANY => walk.writes(at, queue),
        IPC_SET => walk.reads(at, queue),
        IPC_INFO | MSG_INFO => walk.writes(at, size_of::<msginfo>() as u64),
        IPC_RMID => {}
        _ => walk.partial(),
    }
}

/// A message is its type, a word, and its text.
fn msgsnd(walk: &mut Walk<'_>) {
    walk.reads(walk.arg(1), walk.arg(2).saturating_add(8));
}

/// The result is the length of the text.
fn msgrcv(walk: &mut Walk<'_>) {
    let text = walk.result().map_or(walk.arg(2), |len| len.min(walk.arg(2)));
    walk.writes(walk.arg(1), text.saturating_add(8));
}

/// A notification by thread comes with a cookie of 32 bytes.
fn mq_notify(walk: &mut Walk<'_>) {
    const EVENT: usize = size_of::<sigevent>();
    const COOKIE: u64 = 32;
    walk.reads(walk.arg(1), EVENT as u64);
    if let Some(event) = walk.bytes::<EVENT>(walk.arg(1))
        && half_in(&event, 12) == SIGEV_THREAD as u32
    {
        walk.reads(word_in(&event, 0), COOKIE);
    }
}

const SEM_STAT: i32 = 18;
const SEM_INFO: i32 = 19;
const SHM_STAT: i32 = 13;
const SHM_INFO: i32 = 14;
const MSG_STAT: i32 = 11;
const MSG_INFO: i32 = 12;
const SIGEV_THREAD: i32 = 2;
const IPC_INFO: i32 = 3;
