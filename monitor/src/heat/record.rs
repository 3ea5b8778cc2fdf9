//! What is known of the object in a chunk.
//!
//! A chunk's record belongs to one object after the other. An access is charged when it has completed, so a charge
//! may be late: the object may have been freed meanwhile by a thread that saw the access's effect. No count may get
//! lost then, and none may count twice. The protocol: the end of an object first makes the record dead, then takes
//! its counts; a charge adds first, then looks whether the record is still alive, and if not takes back what it
//! finds. Each count is taken once, for `take` swaps.
//!
//! # Signal context
//! `charge` is called in handlers: atomics only.

use super::counts::{AtomicCounts, Counts};
use super::region::{Region, Zeroed};
use super::stacks::SiteId;
use super::{CHUNKS, SLOT};
use crate::access::Kind;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use thermalloc_alloc::Object;
use thermalloc_sys::mem::Errno;

/// One chunk's record; 80 bytes.
#[derive(Default)]
pub(super) struct Record {
    counts: AtomicCounts,
    size: AtomicU64,
    alloc_ns: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    threads: AtomicU64,
    /// Site id plus one; zero: no object.
    site: AtomicU32,
}

const _: () = assert!(size_of::<Record>() <= 96);

/// An object's life so far: a record's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub size: u64,
    pub site: SiteId,
    pub alloc_ns: u64,
    /// First and last access; 0: none.
    pub first_ns: u64,
    pub last_ns: u64,
    /// Bit of each thread ordinal that accessed it; bit 63: 63 and above.
    pub threads: u64,
    pub counts: Counts,
}

// SAFETY: all fields are atomics.
#[allow(unsafe_code)]
unsafe impl Zeroed for Record {
    fn zero(&self) {
        self.site.store(0, Relaxed);
        self.reset();
        self.size.store(0, Relaxed);
        self.alloc_ns.store(0, Relaxed);
    }
}

impl Record {
    /// The site of the object that is alive here.
    pub fn site(&self) -> Option<SiteId> {
        // Acquire pairs with the Release of `begin`: the record's fields are this object's.
        self.site.load(Acquire).checked_sub(1).map(SiteId)
    }

    /// An object begins. Returns late charges to the one before it.
    pub fn begin(&self, size: u64, site: SiteId, now_ns: u64) -> Counts {
        let late = self.reset();
        self.size.store(size, Relaxed);
        self.alloc_ns.store(now_ns, Relaxed);
        self.site.store(site.0 + 1, SeqCst);
        late
    }

    /// The object ends.
    pub fn end(&self) -> Option<Life> {
        // Before `take` in the order of each counter's modifications; see the protocol above.
        let site = SiteId(self.site.swap(0, SeqCst).checked_sub(1)?);
        Some(self.life(site, self.counts.take()))
    }

    /// The object as it is now.
    pub fn peek(&self) -> Option<Life> {
        self.site().map(|site| self.life(site, self.counts.load()))
    }

    /// Counts accesses of so many bytes in all. Returns the counts that turned out to have no owner.
    pub fn charge(&self, kind: Kind, count: u64, bytes: u64, thread: u32, now_ns: u64) -> Counts {
        let bit = bit_of(thread);
        if self.threads.load(Relaxed) & bit == 0 {
            self.threads.fetch_or(bit, Relaxed);
        }
        let now_ns = now_ns.max(1);
        if self.first_ns.load(Relaxed) == 0 {
            let _ = self.first_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
        }
        crate::totals::raise(&self.last_ns, now_ns);
        self.counts.charge(kind, count, bytes);
        if self.site.load(SeqCst) == 0 { self.counts.take() } else { Counts::default() }
    }

    /// Forgets all accesses; returns their counts.
    pub fn reset(&self) -> Counts {
        self.first_ns.store(0, Relaxed);
        self.last_ns.store(0, Relaxed);
        self.threads.store(0, Relaxed);
        self.counts.take()
    }

    fn life(&self, site: SiteId, counts: Counts) -> Life {
        Life {
            size: self.size.load(Relaxed),
            site,
            alloc_ns: self.alloc_ns.load(Relaxed),
            first_ns: self.first_ns.load(Relaxed),
            last_ns: self.last_ns.load(Relaxed),
            threads: self.threads.load(Relaxed),
            counts,
        }
    }
}

/// A thread's bit in the set of those that accessed an object; the last stands for all beyond.
pub(super) fn bit_of(thread: u32) -> u64 {
    1 << thread.min(63)
}

impl Life {
    /// Adds accesses that have not been charged to the record yet.
    pub fn add(&mut self, kind: Kind, count: u64, bytes: u64, thread: u32, now_ns: u64) {
        let mut counts = Counts::default();
        counts.add(kind, count, bytes);
        self.add_all(&counts, bit_of(thread), now_ns);
    }

    /// As [`add`](Self::add), for accesses of several kinds and threads.
    pub fn add_all(&mut self, counts: &Counts, threads: u64, now_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
        self.last_ns = self.last_ns.max(now_ns);
        self.counts += *counts;
        self.threads |= threads;
    }
}

/// The records of an arena: one for each chunk that a slot can have.
pub(super) struct Records(Region<Record>);

impl Records {
    pub fn new(arena_bytes: usize) -> Result<Self, Errno> {
        let slots = arena_bytes.div_ceil(SLOT);
        Region::new(slots.checked_mul(CHUNKS).ok_or(Errno(libc::ENOMEM))?).map(Self)
    }

    pub fn of(&self, object: &Object) -> Option<&Record> {
        self.0.get((object.slot as usize).checked_mul(CHUNKS)?.checked_add(object.index as usize)?)
    }

    /// Forgets a slot whose objects are all dead, and gives its memory back.
    pub fn release(&self, slot: u32) {
        let first = slot as usize * CHUNKS;
        self.0.clear(first..first + CHUNKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_charge_is_returned_once() {
        let record = Record::default();
        record.begin(40, SiteId(5), 100);
        assert_eq!(record.charge(Kind::Read, 1, 8, 2, 110), Counts::default());
        let life = record.end().unwrap();
        assert_eq!((life.size, life.site, life.counts.reads, life.threads), (40, SiteId(5), 1, 4));
        assert_eq!(
            record.charge(Kind::Write, 1, 4, 0, 120),
            Counts { writes: 1, write_bytes: 4, ..Counts::default() }
        );
        assert_eq!(record.end(), None);
        assert_eq!(record.begin(1, SiteId(0), 130), Counts::default());
        assert_eq!(record.peek().unwrap().counts, Counts::default());
    }

    #[test]
    fn threads_beyond_the_bitmap_share_its_last_bit() {
        let record = Record::default();
        record.begin(1, SiteId(0), 0);
        for thread in [0, 62, 63, 64, u32::MAX] {
            record.charge(Kind::Read, 1, 1, thread, 5);
        }
        let life = record.peek().unwrap();
        assert_eq!((life.threads.count_ones(), life.counts.reads), (3, 5));
    }

    #[test]
    fn counts_are_conserved_while_an_object_dies_under_charges() {
        let record = &Record::default();
        let (mut owned, mut orphaned) = (0, 0);
        std::thread::scope(|scope| {
            let chargers: Vec<_> = (0..3)
                .map(|thread| {
                    let charge = move |_| record.charge(Kind::Read, 1, 1, thread, 1).reads;
                    scope.spawn(move || (0..50_000).map(charge).sum::<u64>())
                })
                .collect();
            while chargers.iter().any(|charger| !charger.is_finished()) {
                orphaned += record.begin(1, SiteId(0), 0).reads;
                owned += record.end().unwrap().counts.reads;
            }
            orphaned += chargers.into_iter().map(|charger| charger.join().unwrap()).sum::<u64>();
        });
        assert_eq!(owned + orphaned + record.reset().reads, 150_000);
    }
}
