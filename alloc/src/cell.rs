//! Relaxed cells: words that are loaded and stored plainly, and that other threads and signal handlers may
//! read at any time. Whoever *writes* a cell owns it (by a lock, or because the object is its own); no
//! ordering is implied.
//!
//! # Signal context
//! Loads and stores of one word: may be used in a handler.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

macro_rules! cell {
    ($(#[$doc:meta])* $name:ident, $atomic:ty, $word:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub(crate) struct $name($atomic);

        impl $name {
            #[inline(always)]
            pub(crate) fn get(&self) -> $word {
                self.0.load(Relaxed)
            }

            #[inline(always)]
            pub(crate) fn set(&self, value: $word) {
                self.0.store(value, Relaxed)
            }
        }
    };
}

cell!(/// A byte.
    Byte, AtomicU8, u8);
cell!(/// A 32-bit word.
    Word32, AtomicU32, u32);
cell!(/// A 64-bit word.
    Word64, AtomicU64, u64);
cell!(/// An address or a count of bytes.
    Word, AtomicUsize, usize);

impl Byte {
    /// A store that comes after all earlier ones, for whoever sees it.
    #[inline(always)]
    pub(crate) fn set_last(&self, value: u8) {
        self.0.store(value, core::sync::atomic::Ordering::Release);
    }
}

impl Word {
    pub(crate) const fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }
}

impl Word64 {
    #[cfg(test)]
    pub(crate) const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
}

impl Word32 {
    pub(crate) const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    #[inline(always)]
    pub(crate) fn add(&self, more: u32) {
        self.set(self.get().wrapping_add(more));
    }

    #[inline(always)]
    pub(crate) fn sub(&self, less: u32) {
        self.set(self.get().wrapping_sub(less));
    }

    /// Publishes what was stored before, for a reader that acquires (see `cache`).
    #[inline(always)]
    pub(crate) fn publish(&self, value: u32) {
        self.0.store(value, core::sync::atomic::Ordering::Release);
    }
}
