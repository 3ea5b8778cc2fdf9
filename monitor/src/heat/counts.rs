//! Reads, writes and their bytes, as a value and as atomics.
//!
//! # Signal context
//! Atomic additions only.

use super::region::Zeroed;
use crate::access::Kind;
use crate::counter::Counter;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Accesses and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

impl Counts {
    /// Adds accesses of so many bytes in all, modulo 2^64.
    pub fn add(&mut self, kind: Kind, accesses: u64, bytes: u64) {
        let (count, sum) = match kind {
            Kind::Read => (&mut self.reads, &mut self.read_bytes),
            Kind::Write => (&mut self.writes, &mut self.write_bytes),
        };
        *count += accesses;
        *sum = sum.wrapping_add(bytes);
    }

    pub fn accesses(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes = self.read_bytes.wrapping_add(other.read_bytes);
        self.write_bytes = self.write_bytes.wrapping_add(other.write_bytes);
    }
}

/// [`Counts`] that many threads add to.
#[derive(Default)]
pub(super) struct AtomicCounts {
    reads: AtomicU64,
    writes: AtomicU64,
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
}

// SAFETY: atomic integers.
#[allow(unsafe_code)]
unsafe impl Zeroed for AtomicCounts {
    fn zero(&self) {
        self.take();
    }
}

impl AtomicCounts {
    /// Adds accesses of so many bytes in all, modulo 2^64. AcqRel pairs with `take`: whoever adds after a `take` sees
    /// what its thread did before.
    pub fn charge(&self, kind: Kind, accesses: u64, bytes: u64) {
        let (count, sum) = match kind {
            Kind::Read => (&self.reads, &self.read_bytes),
            Kind::Write => (&self.writes, &self.write_bytes),
        };
        count.plus(accesses);
        sum.plus(bytes);
    }

    /// Adds many.
    pub fn add(&self, counts: &Counts) {
        for (counter, value) in [
            (&self.reads, counts.reads),
            (&self.writes, counts.writes),
            (&self.read_bytes, counts.read_bytes),
            (&self.write_bytes, counts.write_bytes),
        ] {
            if value != 0 {
                counter.plus(value);
            }
        }
    }

    pub fn load(&self) -> Counts {
        Counts {
            reads: self.reads.load(Relaxed),
            writes: self.writes.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            write_bytes: self.write_bytes.load(Relaxed),
        }
    }

    /// Takes everything counted so far, exactly once.
    pub fn take(&self) -> Counts {
        Counts {
            reads: self.reads.take(),
            writes: self.writes.take(),
            read_bytes: self.read_bytes.take(),
            write_bytes: self.write_bytes.take(),
        }
    }
}
