//! The central lists: for each bin (class and watch) the slab pages that have free chunks. Threads' caches
//! take chunks from here and give them back in batches.
//!
//! A chunk is in one of four places: *fresh* (never handed out since the slab was set up), *free* (its bit is
//! set), in a thread's cache, or live. `used` counts the last two. Low chunks are handed out first, so that a
//! slab touches few pages.
//!
//! Locks: a bin's lock, then the pool's.
//!
//! # Safety
//! Unsafe only in releasing a lock around `fork`, which is forwarded to the caller.

use crate::bits;
use crate::config::Watch;
use crate::meta::{HEAP, Kind, NO_SLOT, SLABBED, SLOT_BYTES, SLOT_SHIFT, Slot, WATCHED_BIN};
use crate::pool::{self, Request};
use crate::shape::table;
use thermalloc_sys::lock::{Guard, Lock};

/// A bin's slab pages with free chunks, and the number of all its slab pages.
pub(crate) struct Central {
    first: u32,
    pub(crate) slabs: u32,
    /// Chunks in use or in caches.
    pub(crate) used: usize,
}

/// On a cache line of its own.
#[repr(align(64))]
struct Padded(Lock<Central>);

static CENTRAL: [Padded; crate::meta::BINS] =
    [const { Padded(Lock::new(Central { first: NO_SLOT, slabs: 0, used: 0 })) }; crate::meta::BINS];

/// Takes a bin's lock.
pub(crate) fn lock(bin: usize) -> Guard<'static, Central> {
    CENTRAL[bin].0.lock()
}

/// Releases a lock whose guard was forgotten.
///
/// # Safety
/// As [`Lock::unlock`].
#[allow(unsafe_code)]
pub(crate) unsafe fn unlock(bin: usize) {
    // SAFETY: forwarded to the caller.
    unsafe { CENTRAL[bin].0.unlock() };
}

/// The class of a bin.
#[inline]
pub(crate) fn class_of(bin: usize) -> usize {
    bin & (WATCHED_BIN - 1)
}

fn watch_of(bin: usize) -> Watch {
    Watch::from_bool(bin & WATCHED_BIN != 0)
}

impl Central {
    /// Takes up to `most` chunks and hands their addresses to `accept`, low ones of a slab page first.
    /// Returns how many; 0 when memory is exhausted.
    pub(crate) fn take(&mut self, bin: usize, most: usize, mut accept: impl FnMut(usize)) -> usize {
        let mut taken = 0;
        while taken < most {
            if self.first == NO_SLOT {
                // Something is better than nothing, and a new slab for the rest of a batch would be waste.
                if taken > 0 || !self.add_slab(bin) {
                    break;
                }
            }
            let slab = self.first;
            taken += take_from(slab, bin, most - taken, &mut accept);
            if is_exhausted(HEAP.slot(slab), bin) {
                self.unlist(slab);
            }
        }
        self.used += taken;
        taken
    }

    /// Takes chunks back. An empty slab page returns to the pool.
    pub(crate) fn give(&mut self, bin: usize, chunk: usize) {
        let slab = HEAP.slot_of(chunk);
        let entry = HEAP.slot(slab);
        let index = table().class(class_of(bin)).index_of(chunk & (SLOT_BYTES - 1));
        let Some(word) = bits::insert(HEAP.free_bits(slab), index) else {
            debug_assert!(false, "a chunk was given back twice");
            return;
        };
        entry.bits.add(1);
        entry.used.sub(1);
        entry.scan.set(entry.scan.get().min(word));
        self.used -= 1;
        if entry.used.get() == 0 {
            self.remove_slab(slab, bin);
        } else if entry.listed.get() == 0 {
            self.list(slab);
        }
    }

    fn add_slab(&mut self, bin: usize) -> bool {
        let request = Request {
            kind: Kind::Slab,
            slots: 1,
            align: SLOT_BYTES,
            watch: watch_of(bin),
            bytes: SLOT_BYTES,
        };
        let Some(slab) = pool::take(&request) else { return false };
        let entry = HEAP.slot(slab);
        entry.used.set(0);
        entry.fresh.set(0);
        entry.bits.set(0);
        entry.scan.set(0);
        entry.raise(SLABBED);
        HEAP.bin((slab as usize) << SLOT_SHIFT).set(bin as u8);
        self.list(slab);
        self.slabs += 1;
        true
    }

    fn remove_slab(&mut self, slab: u32, bin: usize) {
        let entry = HEAP.slot(slab);
        if entry.listed.get() != 0 {
            self.unlist(slab);
        }
        self.slabs -= 1;
        let fresh = entry.fresh.get();
        bits::clear_below(HEAP.free_bits(slab), fresh);
        let touched = fresh as usize * table().class(class_of(bin)).chunk_size as usize;
        entry.touched.set(entry.touched.get().max(touched));
        pool::release(slab);
    }

    fn list(&mut self, slab: u32) {
        let entry = HEAP.slot(slab);
        entry.listed.set(1);
        entry.previous.set(NO_SLOT);
        entry.next.set(self.first);
        if self.first != NO_SLOT {
            HEAP.slot(self.first).previous.set(slab);
        }
        self.first = slab;
    }

    fn unlist(&mut self, slab: u32) {
        let entry = HEAP.slot(slab);
        entry.listed.set(0);
        let (next, previous) = (entry.next.get(), entry.previous.get());
        match previous {
            NO_SLOT => self.first = next,
            previous => HEAP.slot(previous).next.set(next),
        }
        if next != NO_SLOT {
            HEAP.slot(next).previous.set(previous);
        }
    }
}

fn is_exhausted(entry: &Slot, bin: usize) -> bool {
    entry.bits.get() == 0 && entry.fresh.get() == table().class(class_of(bin)).per_slab
}

/// Takes freed chunks, then fresh ones.
fn take_from(slab: u32, bin: usize, most: usize, accept: &mut impl FnMut(usize)) -> usize {
    let entry = HEAP.slot(slab);
    let class = table().class(class_of(bin));
    let size = class.chunk_size as usize;
    let start = HEAP.slot_addr(slab);
    let freed = most.min(entry.bits.get() as usize);
    if freed > 0 {
        let scan = bits::remove_first(HEAP.free_bits(slab), entry.scan.get(), freed, |index| {
            accept(start + index as usize * size);
        });
        entry.scan.set(scan);
        entry.bits.sub(freed as u32);
    }
    let first = entry.fresh.get();
    let fresh = (most - freed).min((class.per_slab - first) as usize);
    for index in first as usize..first as usize + fresh {
        accept(start + index * size);
    }
    entry.fresh.set(first + fresh as u32);
    entry.used.add((freed + fresh) as u32);
    freed + fresh
}

/// Takes a single chunk, for threads without a cache.
pub(crate) fn take_one(bin: u8) -> Option<usize> {
    let mut chunk = None;
    lock(bin as usize).take(bin as usize, 1, |addr| chunk = Some(addr));
    chunk
}
