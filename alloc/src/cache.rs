//! A thread's cache: for each bin an array of pointers to chunks that this thread can hand out without a
//! lock.
//!
//! A bin starts small and doubles each time that it runs empty or full, as long as the whole cache stays
//! within a budget. Empty, it takes half its limit from the central list; full, it gives its older half back.
//! Pointers lie in arrays beside the cache, not in the chunks, which may be protected.
//!
//! Another thread's cache is read in two cases only: its counts, for statistics (any value will do), and all
//! of it in the child after `fork`, where its thread does not exist. A chunk that is on its way between cache
//! and program at that moment is in one of them or lost, never in both: `push` publishes its count last, and
//! a chunk is marked live after `pop` has lowered the count.
//!
//! # Safety
//! A bin's array has room for the bin's limit, and only the owning thread changes a cache.
#![allow(unsafe_code)]

use crate::cell::{Word, Word32};
use crate::central::{self, Central, class_of};
use crate::meta::BINS;
use crate::shape::shape;

/// First limit of a bin.
const START: u32 = 8;
/// Bytes of chunks that a cache may hold by its limits, beyond one chunk a bin.
const BUDGET: usize = 4 << 20;

#[repr(C)]
struct Bin {
    count: Word32,
    limit: Word32,
    array: Word,
}

/// A thread's cache; its arrays follow it in memory.
#[repr(C, align(64))]
pub(crate) struct Cache {
    bins: [Bin; BINS],
    /// Bytes of chunks that the limits add up to.
    allowance: Word,
    /// Next in the registry, of all caches and of those without a thread.
    pub(crate) next: Word,
    pub(crate) next_idle: Word,
    /// Does a thread own it? (0 or 1)
    pub(crate) owned: Word,
}

impl Cache {
    /// A cache without room for anything.
    pub(crate) const fn closed() -> Self {
        Self {
            bins: [const { Bin { count: Word32::new(0), limit: Word32::new(0), array: Word::new(0) } }; BINS],
            allowance: Word::new(0),
            next: Word::new(0),
            next_idle: Word::new(0),
            owned: Word::new(0),
        }
    }

    /// Bytes of a cache with its arrays.
    pub(crate) fn bytes() -> usize {
        size_of::<Self>() + 2 * shape().words * size_of::<usize>()
    }

    /// Sets up the arrays behind a zeroed cache.
    pub(crate) fn lay_out(&self) {
        let shape = shape();
        let arrays = core::ptr::from_ref(self) as usize + size_of::<Self>();
        for id in 0..shape.table.classes().len() {
            for watched in [0, 1] {
                let words = watched * shape.words + shape.array[id] as usize;
                self.bins[id | (watched * crate::meta::WATCHED_BIN)]
                    .array
                    .set(arrays + words * size_of::<usize>());
            }
        }
    }

    /// Takes the chunk that was freed last.
    #[inline(always)]
    pub(crate) fn pop(&self, bin: u8) -> Option<usize> {
        let bin = &self.bins[bin as usize];
        let count = bin.count.get();
        if count == 0 {
            return None;
        }
        // SAFETY: entries below `count` are initialized.
        let chunk = unsafe { *(bin.array.get() as *const usize).add(count as usize - 1) };
        bin.count.set(count - 1);
        Some(chunk)
    }

    /// Keeps a chunk, if the bin has room.
    #[inline(always)]
    pub(crate) fn push(&self, bin: u8, chunk: usize) -> bool {
        let bin = &self.bins[bin as usize];
        let count = bin.count.get();
        if count >= bin.limit.get() {
            return false;
        }
        // SAFETY: the array has room for `limit` entries.
        unsafe { *(bin.array.get() as *mut usize).add(count as usize) = chunk };
        bin.count.publish(count + 1);
        true
    }

    /// Fills an empty bin from the central list and takes a chunk. `None`: out of memory.
    #[cold]
    pub(crate) fn refill(&self, index: u8) -> Option<usize> {
        self.widen(index);
        let bin = &self.bins[index as usize];
        let array = bin.array.get() as *mut usize;
        let want = (bin.limit.get() as usize / 2).max(1);
        let mut got = 0;
        let mut central = central::lock(index as usize);
        central.take(index as usize, want, |chunk| {
            // SAFETY: at most `limit` chunks, or one for a limit of 1, are taken.
            unsafe { *array.add(got) = chunk };
            got += 1;
        });
        // The lowest address goes out first.
        // SAFETY: `got` entries were just written.
        unsafe { core::slice::from_raw_parts_mut(array, got) }.reverse();
        bin.count.publish(got as u32);
        drop(central);
        self.pop(index)
    }

    /// Keeps a chunk for which the bin has no room: widens the bin or gives its older half back.
    #[cold]
    pub(crate) fn overflow(&self, index: u8, chunk: usize) {
        if !(self.widen(index) && self.push(index, chunk)) {
            let count = self.bins[index as usize].count.get();
            self.give_oldest(index, count - count / 2);
            self.push(index, chunk);
        }
    }

    /// Doubles a bin's limit within its room and the cache's budget. Returns whether it grew.
    fn widen(&self, index: u8) -> bool {
        let shape = shape();
        let class = class_of(index as usize);
        let bin = &self.bins[index as usize];
        let limit = bin.limit.get();
        let wider = (limit * 2).max(START).min(shape.room[class]);
        let size = shape.table.class(class).chunk_size as usize;
        let more = (wider - limit) as usize * size;
        if more > 0 && self.allowance.get() + more <= BUDGET {
            self.allowance.set(self.allowance.get() + more);
            bin.limit.set(wider);
            return true;
        }
        if limit == 0 {
            bin.limit.set(1);
        }
        limit == 0
    }

    /// Gives the `oldest` chunks of a bin to the central list.
    fn give_oldest(&self, index: u8, oldest: u32) {
        let bin = &self.bins[index as usize];
        let count = bin.count.get();
        // SAFETY: entries below `count` are initialized.
        let chunks =
            unsafe { core::slice::from_raw_parts_mut(bin.array.get() as *mut usize, count as usize) };
        let mut central = central::lock(index as usize);
        let (old, young) = chunks.split_at(oldest as usize);
        give_all(&mut central, index, old);
        let left = young.len() as u32;
        chunks.copy_within(oldest as usize.., 0);
        bin.count.publish(left);
    }

    /// Gives everything to the central lists and forgets all limits.
    pub(crate) fn empty(&self) {
        for index in 0..=u8::MAX {
            let bin = &self.bins[index as usize];
            if bin.count.get() > 0 {
                self.give_oldest(index, bin.count.get());
            }
            bin.limit.set(0);
        }
        self.allowance.set(0);
    }

    /// Chunks kept in a bin.
    pub(crate) fn count(&self, bin: usize) -> u32 {
        self.bins[bin].count.get()
    }

    /// The chunks kept in a bin.
    ///
    /// # Safety
    /// The owning thread does not use the cache meanwhile.
    pub(crate) unsafe fn chunks(&self, bin: usize) -> &[usize] {
        let bin = &self.bins[bin];
        if bin.count.get() == 0 {
            return &[];
        }
        // SAFETY: entries below `count` are initialized.
        unsafe { core::slice::from_raw_parts(bin.array.get() as *const usize, bin.count.get() as usize) }
    }
}

fn give_all(central: &mut Central, bin: u8, chunks: &[usize]) {
    for &chunk in chunks {
        central.give(bin as usize, chunk);
    }
}
