//! Calls that move bytes.

use crate::check::case;
use crate::stage::Stage;
use libc::*;
use thermalloc_monitor::kernel::Kind;

#[test]
fn read() {
    case(SYS_read, |s| [s.pipe(b"some bytes")[0], s.room(10), 10]).holds();
    case(SYS_read, |s| [s.pipe(b"few")[0], s.room(9000), 9000]).holds();
    case(SYS_pread64, |s| [s.file(), s.room(8), 8, 2]).holds();
}

#[test]
fn read_vectors() {
    for nr in [SYS_readv, SYS_preadv, SYS_preadv2] {
        case(nr, |s| {
            let (a, b, fd) = (s.room(3), s.room(6), s.file());
            [fd, s.words(&[a, 3, b, 6]), 2, 0, 0, 0]
        })
        .holds();
    }
}

#[test]
fn write() {
    case(SYS_write, |s| [s.pipe(b"")[1], s.bytes(b"some bytes"), 10]).holds();
    case(SYS_pwrite64, |s| [s.file(), s.bytes(&[7; 5000]), 5000, 2]).holds();
}

#[test]
fn write_vectors() {
    for nr in [SYS_writev, SYS_pwritev, SYS_pwritev2] {
        case(nr, |s| {
            let (a, b, fd) = (s.bytes(b"abc"), s.bytes(b"defghi"), s.file());
            [fd, s.words(&[a, 3, b, 6]), 2, 0, 0, 0]
        })
        .holds();
    }
}

#[test]
fn between_descriptors() {
    case(SYS_sendfile, |s| [s.pipe(b"")[1], s.file(), s.words(&[2]), 9]).holds();
    case(SYS_splice, |s| [s.file(), s.words(&[2]), s.pipe(b"")[1], 0, 4, 0]).holds();
    case(SYS_splice, |s| [s.pipe(b"abcd")[0], 0, s.file(), s.words(&[2]), 4, 0]).holds();
    case(SYS_copy_file_range, |s| [s.file(), s.words(&[0]), s.file(), s.words(&[100]), 9, 0])
        .optional()
        .holds();
    case(SYS_tee, |s| [s.pipe(b"abcd")[0], s.pipe(b"")[1], 4, 0]).holds();
}

#[test]
fn vmsplice_into_a_pipe() {
    case(SYS_vmsplice, |s| {
        let (a, b) = (s.bytes(b"abc"), s.bytes(b"defghi"));
        [s.pipe(b"")[1], s.words(&[a, 3, b, 6]), 2, 0]
    })
    .holds();
}

#[test]
fn pipes_and_random_bytes() {
    case(SYS_pipe2, |s| [s.room(8), O_CLOEXEC as u64]).holds();
    // Two random bytes in turn may equal the filling.
    case(SYS_getrandom, |s| [s.room(100), 100, 0]).loose().holds();
}

#[test]
fn own_memory_by_way_of_the_process() {
    let own = u64::from(std::process::id());
    case(SYS_process_vm_readv, |s| {
        let (to, from) = (s.room(7), s.bytes(b"seventy"));
        [own, s.words(&[to, 7]), 1, s.words(&[from, 7]), 1, 0]
    })
    .holds();
    case(SYS_process_vm_writev, |s| {
        let (from, to) = (s.bytes(b"seventy"), s.room(7));
        [own, s.words(&[from, 7]), 1, s.words(&[to, 7]), 1, 0]
    })
    .holds();
}

/// A context for asynchronous requests, and a request to write five bytes to a file.
fn request(s: &mut Stage) -> [u64; 2] {
    let at = s.words(&[0]);
    s.need(SYS_io_setup, &[4, at]);
    let context = s.word(at);
    s.finally(SYS_io_destroy, &[context]);
    let (fd, buffer) = (s.file(), s.bytes(b"12345"));
    let request = s.words(&[0, 0, 1 | fd << 32, buffer, 5, 0, 0, 0]);
    [context, s.words(&[request])]
}

#[test]
fn asynchronous_requests() {
    case(SYS_io_submit, |s| {
        let [context, requests] = request(s);
        [context, 1, requests]
    })
    .holds();
    // The buffer is charged now, though it was read when the request was made.
    case(SYS_io_getevents, |s| {
        let [context, requests] = request(s);
        s.need(SYS_io_submit, &[context, 1, requests]);
        [context, 1, 1, s.room(32), s.words(&[5, 0])]
    })
    .silent(Kind::Read)
    .holds();
}
