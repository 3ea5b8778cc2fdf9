//! The hottest dead objects: bounded in number and in bytes, the coldest make room.
//!
//! Most deaths are cold; they cost one load of the threshold.

use super::freeze::Freeze;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thermalloc_format::Object;
use thermalloc_sys::lock::Lock;

/// An object, ordered by its accesses, then by age: of equals the later dies first.
#[derive(Clone, Debug)]
struct Dead {
    accesses: u64,
    order: Reverse<u64>,
    object: Object,
}

impl Dead {
    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of::<u64>() * (self.object.heat.reads.len() + self.object.heat.writes.len())
    }
}

impl PartialEq for Dead {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Dead {}

impl PartialOrd for Dead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dead {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.accesses, self.order).cmp(&(other.accesses, other.order))
    }
}

#[derive(Default)]
struct Kept {
    /// The coldest on top.
    heap: BinaryHeap<Reverse<Dead>>,
    bytes: usize,
    offered: u64,
}

/// The objects kept.
pub(super) struct Hottest {
    /// Objects with no more accesses than this are not kept.
    threshold: AtomicU64,
    kept: Lock<Option<Kept>>,
    max_objects: usize,
    max_bytes: usize,
}

impl Hottest {
    pub const fn new(max_objects: usize, max_bytes: usize) -> Self {
        let threshold = AtomicU64::new(if max_objects == 0 { u64::MAX } else { 0 });
        Self { threshold, kept: Lock::new(None), max_objects, max_bytes }
    }

    /// Whether an object with so many accesses would be kept. A hint: others may be offered meanwhile.
    pub fn wants(&self, accesses: u64) -> bool {
        accesses > self.threshold.load(Relaxed)
    }

    /// Keeps the object if it is among the hottest. Not for handlers: takes a lock and allocates.
    pub fn offer(&self, object: Object) {
        let accesses = object.reads.saturating_add(object.writes);
        let mut kept = self.kept.lock();
        let kept = kept.get_or_insert_default();
        kept.offered += 1;
        let dead = Dead { accesses, order: Reverse(kept.offered), object };
        kept.bytes += dead.bytes();
        kept.heap.push(Reverse(dead));
        while kept.heap.len() > self.max_objects || (kept.bytes > self.max_bytes && kept.heap.len() > 1) {
            let Some(Reverse(coldest)) = kept.heap.pop() else { break };
            kept.bytes -= coldest.bytes();
            self.threshold.fetch_max(coldest.accesses, Relaxed);
        }
    }

    /// Copies of the objects kept, in no order.
    pub fn snapshot(&self) -> Vec<Object> {
        let kept = self.kept.lock();
        kept.iter().flat_map(|kept| &kept.heap).map(|Reverse(dead)| dead.object.clone()).collect()
    }

    /// Forgets all.
    pub fn clear(&self) {
        *self.kept.lock() = None;
        self.threshold.store(if self.max_objects == 0 { u64::MAX } else { 0 }, Relaxed);
    }
}

impl Freeze for Hottest {
    fn freeze(&self) {
        self.kept.freeze();
    }

    fn thaw(&self) {
        self.kept.thaw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thermalloc_format::Heat;

    fn object(reads: u64, entries: usize) -> Object {
        Object { reads, heat: Heat { reads: vec![1; entries], ..Heat::default() }, ..Object::default() }
    }

    proptest! {
        #[test]
        fn the_hottest_are_kept(heats in proptest::collection::vec(1u64..50, 0..200), max in 1usize..20) {
            let hottest = Hottest::new(max, usize::MAX);
            for &heat in &heats {
                if hottest.wants(heat) {
                    hottest.offer(object(heat, 1));
                }
            }
            let mut expected = heats;
            expected.sort_unstable_by_key(|heat| Reverse(*heat));
            expected.truncate(max);
            let mut kept: Vec<_> = hottest.snapshot().iter().map(|object| object.reads).collect();
            kept.sort_unstable_by_key(|heat| Reverse(*heat));
            prop_assert_eq!(kept, expected);
        }
    }

    #[test]
    fn bytes_are_bounded_too() {
        let hottest = Hottest::new(usize::MAX, 100_000);
        for heat in 1..1000 {
            hottest.offer(object(heat, 1000));
        }
        let kept = hottest.snapshot();
        assert!((1..=12).contains(&kept.len()), "{}", kept.len());
        assert!(kept.iter().all(|object| object.reads >= 988));
        assert!(!hottest.wants(900));
        hottest.clear();
        assert!(hottest.wants(1) && hottest.snapshot().is_empty());
    }
}
