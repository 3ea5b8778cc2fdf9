//! The monitor's hooks keep watched memory inaccessible, and the heap works all the same.
#![allow(unsafe_code)]

mod support;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Elsewhere, Model, Op};
use thermalloc_alloc::*;

static COMMITTED: AtomicUsize = AtomicUsize::new(0);
static RELEASED: AtomicUsize = AtomicUsize::new(0);
static OPENED: AtomicUsize = AtomicUsize::new(0);
static INSIDE: AtomicUsize = AtomicUsize::new(0);

fn protect(range: Range<usize>, protection: i32) {
    let start = range.start & !4095;
    let len = range.end.next_multiple_of(4096) - start;
    // SAFETY: pages of the arena.
    assert_eq!(unsafe { libc::mprotect(start as *mut _, len, protection) }, 0);
}

static HOOKS: Hooks = Hooks {
    committed: |range| {
        COMMITTED.fetch_add(range.len(), Ordering::Relaxed);
        assert!(range.start.is_multiple_of(SLOT_BYTES) && range.end.is_multiple_of(SLOT_BYTES));
        protect(range, libc::PROT_NONE);
    },
    released: |range| {
        RELEASED.fetch_add(range.len(), Ordering::Relaxed);
        assert!(range.start.is_multiple_of(SLOT_BYTES));
        protect(range, libc::PROT_READ | libc::PROT_WRITE);
    },
    open: |range| {
        OPENED.fetch_add(1, Ordering::Relaxed);
        protect(range, libc::PROT_READ | libc::PROT_WRITE);
    },
    close: |range| protect(range, libc::PROT_NONE),
    inside: |act| {
        INSIDE.fetch_add(1, Ordering::Relaxed);
        act();
    },
};

/// Is an address readable? Asked of the kernel, which reports what a load would raise.
fn readable(at: usize) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: a pipe of our own; write(2) fails with EFAULT instead of faulting.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let readable = libc::write(pipe[1], at as *const _, 1) == 1;
        libc::close(pipe[0]);
        libc::close(pipe[1]);
        readable
    }
}

#[test]
fn protected_memory_is_left_alone() {
    let early = allocate(100, 16, Watch::Watched);
    let large = allocate(3 << 20, 16, Watch::Watched);
    assert!(readable(early as usize) && readable(large as usize));
    assert!(install_hooks(&HOOKS));
    assert!(!install_hooks(&HOOKS), "the first hooks stay");
    assert!(!readable(early as usize) && !readable(large as usize + (2 << 20)), "what exists is protected");
    assert!(COMMITTED.load(Ordering::Relaxed) >= 4 << 20);

    let unwatched = allocate(100, 16, Watch::Unwatched);
    assert!(readable(unwatched as usize));
    let elsewhere = Elsewhere::start();
    let mut objects = Vec::new();
    for n in 0..3000 {
        let size = n * 7919 % 60_000 + n % 7 * 100_000;
        let at = if n % 3 == 0 {
            allocate_zeroed(size, 16, Watch::Watched)
        } else {
            allocate(size, 16, Watch::Watched)
        };
        assert!(!readable(at as usize), "a watched object is protected from the start");
        objects.push(at);
        if n % 2 == 0 {
            let at = objects.swap_remove(n * 31 % objects.len());
            // SAFETY: the object is ours.
            let moved = unsafe { reallocate(at, size * 2, 16, Watch::Watched) }.unwrap();
            assert!(!readable(moved as usize));
            // SAFETY: the object is not used again.
            unsafe { free(moved) }.unwrap();
        }
    }
    check_invariants().unwrap();
    let before = INSIDE.load(Ordering::Relaxed);
    std::thread::spawn(|| assert!(!allocate(100, 16, Watch::Unwatched).is_null())).join().unwrap();
    assert_eq!(INSIDE.load(Ordering::Relaxed), before + 1, "the end of a thread is the hook's to guard");
    // SAFETY: the objects are not used again.
    objects.drain(..).for_each(|at| unsafe { free(at) }.unwrap());
    trim();
    assert!(OPENED.load(Ordering::Relaxed) > 0 && RELEASED.load(Ordering::Relaxed) > 0);
    let mut model = Model::default();
    for which in 0..100 {
        model.step(Op::Allocate { size: which * 100, align: 16, watch: false, zeroed: true }, &elsewhere);
    }
    model.free_all();
    check_invariants().unwrap();
}
