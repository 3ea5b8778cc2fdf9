//! Threads that exchange objects, end in odd ways, and allocate after their end.
#![allow(unsafe_code)]

use std::sync::mpsc::sync_channel;
use thermalloc_alloc::*;

const THREADS: usize = 6;
const ROUNDS: usize = 20_000;

/// Each thread allocates and sends to the next, which checks and frees.
fn ring() {
    let (senders, inboxes): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| sync_channel::<(usize, usize)>(64)).unzip();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (n, inbox) in inboxes.into_iter().enumerate() {
            let next = senders[(n + 1) % THREADS].clone();
            threads.push(scope.spawn(move || {
                for round in 0..ROUNDS {
                    let size = 8 + (round * 131 + n * 17) % 2000;
                    let watch = if round % 2 == 0 { Watch::Watched } else { Watch::Unwatched };
                    let at = allocate(size, 16, watch) as usize;
                    // SAFETY: a new object of at least 8 bytes.
                    unsafe { (at as *mut usize).write(size) };
                    next.send((at, size)).unwrap();
                    let (at, size) = inbox.recv().unwrap();
                    // SAFETY: sent by the previous thread, which forgot it.
                    unsafe {
                        assert_eq!((at as *const usize).read(), size);
                        free(at as *mut u8).unwrap();
                    }
                }
            }));
        }
        // The scope's own end does not wait for what runs at a thread's end: emptying its cache.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    check_invariants().unwrap();
    assert_eq!(stats().in_use, 0);
}

/// `thread_exit` in the middle of a thread's life: the heap goes on working, without a cache.
fn life_after_exit() {
    std::thread::spawn(|| {
        let before = allocate(100, 16, Watch::Unwatched);
        thread_exit();
        thread_exit();
        let after = allocate_zeroed(100, 16, Watch::Unwatched);
        let large = allocate(2 << 20, 16, Watch::Unwatched);
        for at in [before, after, large] {
            // SAFETY: the object is this thread's and not used again.
            unsafe { free(at) }.unwrap();
        }
        // SAFETY: no object, so nothing is freed.
        assert_eq!(unsafe { free(after) }, Err(Misuse::DoubleFree));
    })
    .join()
    .unwrap();
    let statistics = stats();
    assert_eq!((statistics.in_use, statistics.cached), (0, 0));
    check_invariants().unwrap();
}

/// Thread-local values whose destructors allocate and free.
fn destructors() {
    struct Frees(std::cell::Cell<usize>);
    impl Drop for Frees {
        fn drop(&mut self) {
            // SAFETY: the object was allocated below.
            unsafe { free(self.0.get() as *mut u8) }.unwrap();
            let more = allocate(50, 16, Watch::Unwatched);
            // SAFETY: a new object.
            unsafe { free(more) }.unwrap();
        }
    }
    std::thread_local!(static HELD: Frees = const { Frees(std::cell::Cell::new(0)) });
    for _ in 0..50 {
        std::thread::spawn(|| HELD.with(|held| held.0.set(allocate(300, 16, Watch::Unwatched) as usize)))
            .join()
            .unwrap();
    }
    let statistics = stats();
    assert_eq!((statistics.in_use, statistics.cached), (0, 0));
}

#[test]
fn threads() {
    ring();
    life_after_exit();
    destructors();
}
