//! Counters that all threads share, as cheap as plain words while the process has one thread.
//!
//! A locked addition costs some twenty cycles, and an object's life takes dozens. While there is one thread nobody else
//! adds: its handlers never interrupt an addition with another one, for signals wait while the runtime counts.
//!
//! # Signal context
//! Loads, stores and atomic additions.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};
use thermalloc_sys::alone;

/// Atomic operations whose order with others matters to no more than acquire and release.
pub trait Counter {
    /// Of the counter's type.
    type Value;

    /// Adds, modulo the size of the type; returns what was there.
    fn plus(&self, value: Self::Value) -> Self::Value;
    /// Subtracts likewise.
    fn minus(&self, value: Self::Value) -> Self::Value;
    /// Takes all.
    fn take(&self) -> Self::Value;
}

macro_rules! counter {
    ($atomic:ty, $value:ty) => {
        impl Counter for $atomic {
            type Value = $value;

            #[inline]
            fn plus(&self, value: $value) -> $value {
                if !alone::is() {
                    return self.fetch_add(value, AcqRel);
                }
                let old = self.load(Relaxed);
                self.store(old.wrapping_add(value), Relaxed);
                old
            }

            #[inline]
            fn minus(&self, value: $value) -> $value {
                self.plus(value.wrapping_neg())
            }

            #[inline]
            fn take(&self) -> $value {
                if !alone::is() {
                    return self.swap(0, AcqRel);
                }
                let old = self.load(Relaxed);
                if old != 0 {
                    self.store(0, Relaxed);
                }
                old
            }
        }
    };
}

counter!(AtomicU64, u64);
counter!(AtomicU32, u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_wrap_and_takes_empty() {
        for value in [0, 1, u64::MAX, 1 << 40] {
            let counter = AtomicU64::new(5);
            assert_eq!(counter.plus(value), 5);
            assert_eq!(counter.minus(value), 5u64.wrapping_add(value));
            assert_eq!((counter.take(), counter.take()), (5, 0));
        }
    }
}
