//! The granule counters: how often each stretch of an object was read and written.
//!
//! An object's counters begin at its offset in the arena divided by 16, the least distance of two objects, and number
//! `capacity / granule`; so no two objects ever share one, however large the granule, and no lookup is needed.
//! With the default granule of 16 bytes this is the plain displacement `(address - arena) / 16`.
//!
//! # Signal context
//! `charge` and `undo` are called in handlers: atomics only.

use super::coarsen;
use super::region::{Region, Zeroed};
use crate::access::Kind;
use crate::counter::Counter;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use thermalloc_alloc::Object;
use thermalloc_format::Heat;
use thermalloc_sys::mem::Errno;

/// Smallest granule, and the alignment of objects, in bytes.
pub(super) const LEAST: usize = 16;
/// Largest granule in bytes.
pub(super) const LARGEST: usize = 4096;

/// Counters of one granule.
struct Granule {
    reads: AtomicU64,
    writes: AtomicU64,
}

// SAFETY: atomic integers.
#[allow(unsafe_code)]
unsafe impl Zeroed for Granule {
    fn zero(&self) {
        // Pages never touched stay untouched.
        for counter in [&self.reads, &self.writes] {
            if counter.load(Relaxed) != 0 {
                counter.store(0, Relaxed);
            }
        }
    }
}

impl Granule {
    fn counter(&self, kind: Kind) -> &AtomicU64 {
        match kind {
            Kind::Read => &self.reads,
            Kind::Write => &self.writes,
        }
    }
}

/// Granules that share a mark: a page of counters.
const STRETCH: usize = 256;

/// Whether any granule of a stretch may have been counted: what lets a huge object of which little was touched be
/// collected without a look at all its counters.
struct Mark(AtomicBool);

// SAFETY: an atomic boolean.
#[allow(unsafe_code)]
unsafe impl Zeroed for Mark {
    fn zero(&self) {
        if self.0.load(Relaxed) {
            self.0.store(false, Relaxed);
        }
    }
}

/// Accesses to an object that still lie in a thread's sheet.
pub(super) struct Uncollected {
    pub offset: usize,
    pub len: usize,
    pub kind: Kind,
    pub count: u64,
}

/// The counters of an arena.
pub(super) struct Shadow {
    granules: Region<Granule>,
    marks: Region<Mark>,
    arena_start: usize,
    shift: u32,
}

impl Shadow {
    /// `granule` is a power of two from [`LEAST`] to [`LARGEST`].
    pub fn new(arena: &Range<usize>, granule: usize) -> Result<Self, Errno> {
        Ok(Self {
            granules: Region::new(arena.len().div_ceil(LEAST))?,
            marks: Region::new(arena.len().div_ceil(LEAST).div_ceil(STRETCH))?,
            arena_start: arena.start,
            shift: granule.clamp(LEAST, LARGEST).next_power_of_two().trailing_zeros(),
        })
    }

    /// Counts `count` accesses to `len` bytes, one at least, from `offset` on.
    pub fn charge(&self, object: &Object, offset: usize, len: usize, kind: Kind, count: u64) {
        let touched = self.touched(object, offset, len);
        for mark in self.marks.slice(stretches(&touched)) {
            if !mark.0.load(Relaxed) {
                mark.0.store(true, Relaxed);
            }
        }
        for granule in self.granules.slice(touched) {
            granule.counter(kind).plus(count);
        }
    }

    /// Takes back a charge to an object that turned out to be dead.
    pub fn undo(&self, object: &Object, offset: usize, len: usize, kind: Kind, count: u64) {
        for granule in self.granules.slice(self.touched(object, offset, len)) {
            // Zero: the counters were cleared after the charge.
            let _ =
                granule.counter(kind).fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(count)));
        }
    }

    /// The counts of an object of `size` bytes in at most `limit` entries; none if all are zero. Counts beyond `size`
    /// (the program may use a chunk's slack) lengthen the arrays. `more` is what has not been charged here yet.
    pub fn collect(&self, object: &Object, size: u64, limit: usize, more: &[Uncollected]) -> Heat {
        let all = self.all(object);
        let last_more = more.iter().map(|more| self.touched(object, more.offset, more.len).end - 1).max();
        let last = self.marked(&all).rev().find_map(|stretch| self.last_hot(stretch)).max(last_more);
        let Some(last) = last else {
            return Heat { granule: 1 << self.shift, ..Heat::default() };
        };
        let last = last - all.start;
        let len = all.len().min((size as usize).div_ceil(1 << self.shift).max(last + 1));
        let factor = coarsen::factor(len, limit);
        let (mut reads, mut writes) = (vec![0; len.div_ceil(factor)], vec![0; len.div_ceil(factor)]);
        for stretch in self.marked(&(all.start..all.start + len)) {
            let first = stretch.start - all.start;
            for (at, granule) in self.granules.slice(stretch).iter().enumerate() {
                reads[(first + at) / factor] += granule.reads.load(Relaxed);
                writes[(first + at) / factor] += granule.writes.load(Relaxed);
            }
        }
        for more in more {
            let counts = if more.kind == Kind::Read { &mut reads } else { &mut writes };
            for granule in self.touched(object, more.offset, more.len) {
                counts[(granule - all.start) / factor] += more.count;
            }
        }
        Heat { granule: (factor as u64) << self.shift, reads, writes }
    }

    /// The marked stretches of a range of granules, as ranges of granules.
    fn marked(&self, granules: &Range<usize>) -> impl DoubleEndedIterator<Item = Range<usize>> {
        let Range { start, end } = *granules;
        let range = stretches(granules);
        let marks = self.marks.slice(range.clone());
        let marked = range.zip(marks).filter(|(_, mark)| mark.0.load(Relaxed));
        marked.map(move |(at, _)| (at * STRETCH).max(start)..((at + 1) * STRETCH).min(end))
    }

    /// The last granule of a range that was counted.
    fn last_hot(&self, granules: Range<usize>) -> Option<usize> {
        let is_hot = |granule: &Granule| granule.reads.load(Relaxed) | granule.writes.load(Relaxed) != 0;
        let start = granules.start;
        self.granules.slice(granules).iter().rposition(is_hot).map(|at| start + at)
    }

    /// Bytes that a pair of counters stands for.
    pub fn granule(&self) -> u64 {
        1 << self.shift
    }

    /// Zeroes an object's counters.
    pub fn clear(&self, object: &Object) {
        // A mark may be a neighbour's too, and stays: it only costs a look.
        for stretch in self.marked(&self.all(object)) {
            self.granules.clear(stretch);
        }
    }

    /// Zeroes `len` bytes' worth of counters, whoever they belong to.
    pub fn clear_range(&self, offset: usize, len: usize) {
        let granules = offset / LEAST..offset.saturating_add(len).div_ceil(LEAST);
        self.marks.clear(granules.start.div_ceil(STRETCH)..granules.end / STRETCH);
        self.granules.clear(granules);
    }

    /// Zeroes everything.
    pub fn clear_all(&self) {
        self.granules.clear(0..self.granules.len());
        self.marks.clear(0..self.marks.len());
    }

    /// Indices of an object's counters.
    fn all(&self, object: &Object) -> Range<usize> {
        let first = object.base.wrapping_sub(self.arena_start) / LEAST;
        first..first.saturating_add(object.capacity.div_ceil(1 << self.shift))
    }

    /// Indices of the granules of a, a + g, a + 2g, ... below a + n.
    fn touched(&self, object: &Object, offset: usize, len: usize) -> Range<usize> {
        let all = self.all(object);
        let first = all.start + (offset >> self.shift);
        first..(first + (len.saturating_sub(1) >> self.shift) + 1).min(all.end)
    }
}

/// Stretches that a range of granules lies in.
fn stretches(granules: &Range<usize>) -> Range<usize> {
    granules.start / STRETCH..granules.end.div_ceil(STRETCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thermalloc_alloc::ClassId;

    const ARENA: Range<usize> = 0x10_0000_0000..0x10_0100_0000;

    fn object(base: usize, capacity: usize) -> Object {
        let base = ARENA.start + base;
        Object { base, capacity, class: ClassId(0), slot: 0, index: 0, watched: true, live: true }
    }

    proptest! {
        #[test]
        fn granules_follow_the_rule(
            shift in 4u32..12,
            accesses in proptest::collection::vec((0usize..5000, 1usize..5000, any::<bool>()), 0..30),
        ) {
            let g = 1usize << shift;
            let shadow = Shadow::new(&ARENA, g).unwrap();
            let (before, it, after) = (object(0, 4096), object(4096, 5008), object(9104, 48));
            let mut model = [vec![0u64; 5008usize.div_ceil(g)], vec![0u64; 5008usize.div_ceil(g)]];
            for (offset, len, write) in accesses {
                let len = len.min(5008 - offset);
                let kind = if write { Kind::Write } else { Kind::Read };
                shadow.charge(&it, offset, len, kind, 1);
                for byte in (offset..offset + len).step_by(g) {
                    model[usize::from(write)][byte / g] += 1;
                }
            }
            let heat = shadow.collect(&it, 5000, usize::MAX, &[]);
            let touched = model.iter().flatten().any(|&count| count != 0);
            prop_assert_eq!(&heat.reads, if touched { &model[0] } else { &heat.reads });
            prop_assert_eq!(&heat.writes, if touched { &model[1] } else { &heat.writes });
            prop_assert_eq!(heat.reads.is_empty(), !touched);
            for neighbour in [before, after] {
                prop_assert!(shadow.collect(&neighbour, 48, 64, &[]).reads.is_empty());
            }
            let total = |heat: &Heat| heat.reads.iter().chain(&heat.writes).sum::<u64>();
            let coarse = shadow.collect(&it, 5000, 7, &[]);
            prop_assert!(coarse.reads.len() <= 7);
            prop_assert_eq!(total(&coarse), total(&heat));
            shadow.clear(&it);
            prop_assert!(shadow.collect(&it, 5000, 64, &[]).reads.is_empty());
        }
    }

    #[test]
    fn slack_beyond_the_size_lengthens_the_arrays() {
        let shadow = Shadow::new(&ARENA, 16).unwrap();
        let it = object(0, 96);
        shadow.charge(&it, 0, 1, Kind::Write, 1);
        assert_eq!(shadow.collect(&it, 33, 4096, &[]).writes, [1, 0, 0]);
        shadow.charge(&it, 79, 1, Kind::Write, 1);
        assert_eq!(shadow.collect(&it, 33, 4096, &[]).writes, [1, 0, 0, 0, 1]);
        shadow.undo(&it, 79, 1, Kind::Write, 1);
        shadow.undo(&it, 79, 1, Kind::Write, 1);
        assert_eq!(shadow.collect(&it, 33, 4096, &[]).writes, [1, 0, 0]);
    }
}
