//! Counters of the whole process: the object `totals` of heat.json.
//!
//! # Signal context
//! Atomic additions only.
//!
//! All counters are independent sums, hence `Relaxed` throughout: they order nothing, and whoever reads them for an
//! exact report has joined or stopped the threads that count by other means.

use crate::access::{By, Kind};
use crate::counter::Counter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thermalloc_format as format;

/// The counters; the names are those of heat.json.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "each field is documented where heat.json is")]
pub struct Totals {
    pub allocs: AtomicU64,
    pub frees: AtomicU64,
    pub bytes: AtomicU64,
    pub live_bytes: AtomicU64,
    pub peak_live_bytes: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub read_bytes: AtomicU64,
    pub write_bytes: AtomicU64,
    pub kernel_reads: AtomicU64,
    pub kernel_writes: AtomicU64,
    pub unattributed: AtomicU64,
    pub unattributed_bytes: AtomicU64,
    pub faults: AtomicU64,
    pub steps: AtomicU64,
    pub emulated: AtomicU64,
    pub patched_sites: AtomicU64,
    pub syscalls: AtomicU64,
}

/// The process's own.
pub static TOTALS: Totals = Totals::new();

impl Totals {
    /// All zero.
    pub const fn new() -> Self {
        Self {
            allocs: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
            peak_live_bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            write_bytes: AtomicU64::new(0),
            kernel_reads: AtomicU64::new(0),
            kernel_writes: AtomicU64::new(0),
            unattributed: AtomicU64::new(0),
            unattributed_bytes: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            emulated: AtomicU64::new(0),
            patched_sites: AtomicU64::new(0),
            syscalls: AtomicU64::new(0),
        }
    }

    /// Counts an allocation of `size` bytes.
    pub fn born(&self, size: u64) {
        self.allocs.plus(1);
        self.bytes.plus(size);
        let live = self.live_bytes.plus(size).wrapping_add(size);
        raise(&self.peak_live_bytes, live);
    }

    /// Counts the free of an object of `size` bytes.
    pub fn died(&self, size: u64) {
        self.frees.plus(1);
        self.live_bytes.minus(size);
    }

    /// Counts accesses of so many bytes in all, modulo 2^64.
    pub fn accessed(&self, kind: Kind, by: By, accesses: u64, total: u64) {
        let (count, bytes, kernel) = match kind {
            Kind::Read => (&self.reads, &self.read_bytes, &self.kernel_reads),
            Kind::Write => (&self.writes, &self.write_bytes, &self.kernel_writes),
        };
        count.plus(accesses);
        bytes.plus(total);
        if by == By::Kernel {
            kernel.plus(accesses);
        }
    }

    /// Of the accesses counted, so many have no owner.
    pub fn orphaned(&self, accesses: u64, bytes: u64) {
        self.unattributed.plus(accesses);
        self.unattributed_bytes.plus(bytes);
    }

    /// In the child of a fork: everything starts again, but what is alive stays alive.
    pub fn forked(&self) {
        self.for_each(|counter| {
            if !std::ptr::eq(counter, &self.live_bytes) {
                counter.store(0, Relaxed);
            }
        });
        self.peak_live_bytes.store(self.live_bytes.load(Relaxed), Relaxed);
    }

    /// The values now.
    pub fn snapshot(&self) -> format::Totals {
        format::Totals {
            allocs: self.allocs.load(Relaxed),
            frees: self.frees.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            live_bytes: self.live_bytes.load(Relaxed),
            peak_live_bytes: self.peak_live_bytes.load(Relaxed),
            reads: self.reads.load(Relaxed),
            writes: self.writes.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            write_bytes: self.write_bytes.load(Relaxed),
            kernel_reads: self.kernel_reads.load(Relaxed),
            kernel_writes: self.kernel_writes.load(Relaxed),
            unattributed: self.unattributed.load(Relaxed),
            unattributed_bytes: self.unattributed_bytes.load(Relaxed),
            faults: self.faults.load(Relaxed),
            steps: self.steps.load(Relaxed),
            emulated: self.emulated.load(Relaxed),
            patched_sites: self.patched_sites.load(Relaxed),
            syscalls: self.syscalls.load(Relaxed),
        }
    }

    fn for_each(&self, each: impl FnMut(&AtomicU64)) {
        let accesses = [&self.reads, &self.writes, &self.read_bytes, &self.write_bytes];
        let kernel = [&self.kernel_reads, &self.kernel_writes, &self.unattributed, &self.unattributed_bytes];
        let objects = [&self.allocs, &self.frees, &self.bytes, &self.live_bytes, &self.peak_live_bytes];
        let traps = [&self.faults, &self.steps, &self.emulated, &self.patched_sites, &self.syscalls];
        accesses.into_iter().chain(kernel).chain(objects).chain(traps).for_each(each);
    }
}

/// `counter = max(counter, value)`, without a locked instruction where nothing changes.
pub fn raise(counter: &AtomicU64, value: u64) {
    if counter.load(Relaxed) < value {
        counter.fetch_max(value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_keeps_what_is_alive() {
        let totals = Totals::new();
        totals.born(100);
        totals.born(50);
        totals.died(100);
        totals.accessed(Kind::Write, By::Kernel, 1, 8);
        totals.faults.plus(3);
        assert_eq!(totals.snapshot().peak_live_bytes, 150);
        totals.forked();
        let expected = format::Totals { live_bytes: 50, peak_live_bytes: 50, ..Default::default() };
        assert_eq!(totals.snapshot(), expected);
    }
}
