//! A mutual-exclusion lock of four bytes: never allocates, never touches thread-local storage, makes its futex
//! calls through the [`gate`](crate::gate), and can be taken before `fork` and released on both sides of it.
//!
//! Algorithm: the three-state mutex of Drepper, "Futexes Are Tricky" (2011), section 5.
//!
//! # Safety
//! The guard gives out `&mut T` only while the state word is held; `Sync` follows from that.
//!
//! # Signal context
//! Not for handlers: the interrupted code may hold the lock.
#![allow(unsafe_code)]

use crate::alone;
use crate::gate::syscall;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
const SPINS: u32 = 100;

/// A value behind a lock.
pub struct Lock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the state word lets one thread at a time reach the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free and takes it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if alone::is() && self.state.load(Ordering::Relaxed) == FREE {
            self.state.store(HELD, Ordering::Relaxed);
            return Guard(self);
        }
        // Acquire pairs with the Release of `unlock`.
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        Guard(self)
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire pairs with the Release of `unlock`.
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| Guard(self))
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            core::hint::spin_loop();
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
        }
        // Acquire pairs with the Release of `unlock`.
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, CONTENDED);
        }
    }

    /// Releases a lock that [`core::mem::forget`] left held, as the handlers around `fork` do.
    ///
    /// # Safety
    /// The calling thread (or its parent before `fork`) took the lock and has no guard left.
    pub unsafe fn unlock(&self) {
        if alone::is() && self.state.load(Ordering::Relaxed) == HELD {
            self.state.store(FREE, Ordering::Relaxed);
            return;
        }
        // Release pairs with the Acquire of `lock`.
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            self.futex(libc::FUTEX_WAKE, 1);
        }
    }

    fn futex(&self, op: i32, value: u32) {
        let word = &raw const self.state as usize;
        // SAFETY: the kernel reads one aligned live word.
        unsafe {
            syscall(libc::SYS_futex, &[word, (op | libc::FUTEX_PRIVATE_FLAG) as usize, value as usize, 0])
        };
    }
}

/// Access to the value of a held [`Lock`]; releases it when dropped.
pub struct Guard<'a, T>(&'a Lock<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and the guard is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard held the lock and is gone.
        unsafe { self.0.unlock() }
    }
}
