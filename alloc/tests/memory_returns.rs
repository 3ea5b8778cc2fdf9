//! Freed memory goes back to the system, beyond what is kept for reuse, and `trim` returns that too.
#![allow(unsafe_code)]

use thermalloc_alloc::*;

const MIB: usize = 1 << 20;

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn fill_and_free(size: usize, total: usize, watch: Watch) {
    let before = resident();
    let objects: Vec<*mut u8> = (0..total / size)
        .map(|_| {
            let at = allocate(size, 16, watch);
            // SAFETY: a new object.
            unsafe { std::ptr::write_bytes(at, 1, size) };
            at
        })
        .collect();
    let full = resident();
    assert!(full - before > total - total / 8, "{size}: objects take memory");
    for at in objects {
        // SAFETY: the object is not used again.
        unsafe { free(at) }.unwrap();
    }
    let freed = resident();
    assert!(freed < before + total / 2, "{size}: freed memory is given back: {before} {full} {freed}");
    assert!(trim());
    assert!(resident() < before + total / 16, "{size}: trim gives back the rest");
    check_invariants().unwrap();
}

#[test]
fn memory_returns() {
    for watch in [Watch::Unwatched, Watch::Watched] {
        for size in [64, 1000, 20_000, 400_000, 3 * MIB] {
            fill_and_free(size, 300 * MIB, watch);
        }
    }
    let statistics = stats();
    assert_eq!((statistics.in_use, statistics.spans, statistics.retained), (0, 0, 0));
    assert!(statistics.peak >= 300 * MIB);
    threads_leave_nothing();
}

/// A thousand threads that die with full caches.
fn threads_leave_nothing() {
    for _ in 0..100 {
        let threads: Vec<_> = (0..10)
            .map(|_| {
                std::thread::spawn(|| {
                    let set = [(); 500].map(|()| allocate(1000, 16, Watch::Unwatched));
                    // SAFETY: the objects are not used again.
                    set.iter().for_each(|&at| unsafe { free(at) }.unwrap());
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let statistics = stats();
    assert_eq!((statistics.in_use, statistics.cached), (0, 0), "caches are emptied when threads end");
    assert!(statistics.mapped < 20 * MIB, "{statistics:?}");
}
