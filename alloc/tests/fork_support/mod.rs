//! Forks while other threads allocate, and lets child and parent use their heaps.
//!
//! # Safety
//! The child calls the allocator, raw writes and `_exit` only.
#![allow(unsafe_code, dead_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use thermalloc_alloc::*;

/// Objects of many sizes, each filled with a byte of its own.
struct Set(Vec<(*mut u8, usize, u8)>);

impl Set {
    fn new() -> Self {
        let sizes = [16, 100, 1000, 30_000, 400_000, 3 << 20];
        let object = |n: usize| {
            let size = sizes[n % sizes.len()];
            let watch = if n.is_multiple_of(2) { Watch::Watched } else { Watch::Unwatched };
            let at = allocate(size, 16, watch);
            (at, size, n as u8)
        };
        let set = Self((0..36).map(object).collect());
        set.fill(0);
        set
    }

    fn fill(&self, plus: u8) {
        for &(at, size, byte) in &self.0 {
            // SAFETY: the object is ours.
            unsafe { std::ptr::write_bytes(at, byte.wrapping_add(plus), size) };
        }
    }

    fn holds(&self, plus: u8) -> bool {
        self.0.iter().all(|&(at, size, byte)| {
            let views = [at as usize, alias_of(at as usize)];
            views.iter().all(|&view| {
                // SAFETY: the object is ours.
                let bytes = unsafe { std::slice::from_raw_parts(view as *const u8, size) };
                bytes.iter().step_by(61).all(|&found| found == byte.wrapping_add(plus))
            })
        })
    }

    fn free(&self) -> bool {
        // SAFETY: the objects are ours and not used again.
        self.0.iter().all(|&(at, ..)| unsafe { free(at) }.is_ok())
    }
}

/// In the child: 0 if all is well, else the number of what is not.
fn child(set: &Set) -> i32 {
    // SAFETY: the parent waits, and has called `fork_prepare`.
    unsafe {
        if fork_copy_alias().is_err() {
            return 1;
        }
        fork_child();
    }
    if check_invariants().is_err() {
        return 2;
    }
    if !set.holds(0) {
        return 3;
    }
    set.fill(100);
    let more = allocate(5000, 16, Watch::Watched);
    // SAFETY: a new object.
    unsafe { std::ptr::write_bytes(more, 1, 5000) };
    if !set.holds(100) || !set.free() {
        return 4;
    }
    trim();
    if check_invariants().is_err() { 5 } else { 0 }
}

fn fork_once(set: &Set) {
    fork_prepare();
    // SAFETY: the child touches the heap and nothing else that another thread may have locked.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: ends the child without running anything of the test's.
        unsafe { libc::_exit(child(set)) };
    }
    let mut status = 0;
    // SAFETY: writes a local; the locks were taken above.
    unsafe {
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        fork_parent();
    }
    assert_eq!(status, 0, "what the child found, times 256");
    assert!(set.holds(0), "the child's writes stay in the child");
}

/// Allocates and frees until told to stop, never outside the allocator for long.
fn churn(stop: &AtomicBool) {
    let mut set = [std::ptr::null_mut(); 64];
    for n in (0..usize::MAX).take_while(|_| !stop.load(Ordering::Relaxed)) {
        let place = &mut set[n % 64];
        // SAFETY: null or an object of this thread.
        unsafe { free(*place) }.unwrap();
        *place = allocate(n * 37 % 3000, 16, Watch::Watched);
    }
    // SAFETY: objects of this thread.
    set.iter().for_each(|&at| unsafe { free(at) }.unwrap());
}

/// Stops the threads, also when an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn run() {
    let stop = AtomicBool::new(false);
    let set = Set::new();
    std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(|| churn(&stop)));
        {
            let _stop = Stop(&stop);
            for _ in 0..20 {
                fork_once(&set);
            }
        }
        // The scope's own end does not wait for what runs at a thread's end: emptying its cache.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(set.holds(0) && set.free());
    check_invariants().unwrap();
}

/// What a daemon does first.
pub fn close_descriptors() {
    for fd in 3..4096 {
        // SAFETY: the test uses none of them.
        unsafe { libc::close(fd) };
    }
}
