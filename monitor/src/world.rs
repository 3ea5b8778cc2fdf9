//! The gate to stepping: closed while the heap must stand still (fork copies it, the process is ending).
//!
//! A thread enters before it opens protected memory for a step and leaves when the step is over. Closing waits for
//! those inside; whoever wants in meanwhile waits. Since program code reaches the watched heap only through a fault,
//! closing stops all its accesses at the next one.
//!
//! # Signal context
//! Used in handlers: atomics and futex-free waiting (sched_yield), since waits last microseconds to milliseconds.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use thermalloc_sys::alone;

static CLOSED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Waits until the gate is open, and enters.
pub fn enter() {
    loop {
        wait_until_open();
        // SeqCst: a thread that enters and one that closes must not both miss the other.
        change(1);
        if !CLOSED.load(Ordering::SeqCst) {
            return;
        }
        change(-1);
    }
}

/// Leaves after [`enter`].
pub fn leave() {
    change(-1);
}

#[inline]
fn change(by: i32) {
    if alone::is() {
        INSIDE.store(INSIDE.load(Ordering::Relaxed).wrapping_add_signed(by), Ordering::Relaxed);
    } else {
        INSIDE.fetch_add(by as u32, Ordering::SeqCst);
    }
}

/// Waits until the gate is open.
pub fn wait_until_open() {
    while CLOSED.load(Ordering::SeqCst) {
        pause();
    }
}

/// Closes the gate and waits until nobody is inside; false if another thread has closed it.
///
/// Whoever is inside may wait for a lock (the dynamic loader's) whose holder waits at the gate; so after a while the
/// gate opens again for a moment, and closes anew.
pub fn close() -> bool {
    loop {
        if CLOSED.swap(true, Ordering::SeqCst) {
            return false;
        }
        for _ in 0..PATIENCE {
            if INSIDE.load(Ordering::SeqCst) == 0 {
                return true;
            }
            pause();
        }
        open();
        for _ in 0..PATIENCE {
            pause();
        }
    }
}

/// Turns at the processor that a closing thread waits for those inside.
const PATIENCE: u32 = 1000;

/// Opens the gate after [`close`].
pub fn open() {
    CLOSED.store(false, Ordering::SeqCst);
}

/// Opens the gate in a forked child, whose other threads are gone wherever they were.
pub fn forked() {
    INSIDE.store(0, Ordering::SeqCst);
    CLOSED.store(false, Ordering::SeqCst);
}

#[allow(unsafe_code)]
fn pause() {
    // SAFETY: sched_yield takes no pointers.
    unsafe { thermalloc_sys::gate::syscall(libc::SYS_sched_yield, &[]) };
}
