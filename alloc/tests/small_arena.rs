//! Where the system grants little address space the arena is small; it fills up, says so by null, and
//! recovers.
#![allow(unsafe_code)]

use thermalloc_alloc::*;

const GIB: u64 = 1 << 30;

#[test]
fn exhaustion_is_not_the_end() {
    let limit = libc::rlimit { rlim_cur: 3 * GIB, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads a live local.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    init(&HeapConfig::DEFAULT).unwrap();
    assert_eq!(init(&HeapConfig::DEFAULT), Err(InitError::AlreadyInitialized));
    let len = arena().len() as u64;
    assert!((64 << 20..3 * GIB / 2).contains(&len), "{len}");
    for size in [100_000, 700_000, 3 << 20, 64] {
        for watch in [Watch::Watched, Watch::Unwatched] {
            exhaust(size, watch, len as usize);
        }
    }
}

fn exhaust(size: usize, watch: Watch, len: usize) {
    let most = if size < 1000 { 200_000 } else { usize::MAX };
    let objects: Vec<*mut u8> =
        (0..most).map(|_| allocate(size, 16, watch)).take_while(|object| !object.is_null()).collect();
    let taken = objects.len() * size;
    assert!(size < 1000 || taken > len / 2, "{size}: {taken} of {len} bytes used");
    check_invariants().unwrap();
    // SAFETY: the objects are not used again.
    objects.into_iter().for_each(|object| unsafe { free(object) }.unwrap());
    // A chunk in this thread's cache would pin the far end of its part of the arena.
    trim();
    check_invariants().unwrap();
}
