//! Address → module, for readers that take no lock: a sorted table of code ranges under a sequence lock.
//!
//! Algorithm: a seqlock (Boehm, "Can seqlocks get along with programming language memory models?", 2012) over a table of
//! fixed capacity, so that nothing is ever freed under a reader. A reader that meets a writer again and again
//! gives up: it may have interrupted that writer.
//!
//! # Signal context
//! Reading is lock-free, bounded and allocates nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Code ranges that fit. 512 KiB of address space, touched as far as used.
const CAPACITY: usize = 1 << 14;
const TRIES: usize = 1000;

/// A range of code and the module that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRange {
    pub start: u64,
    pub end: u64,
    /// Load bias of the module.
    pub base: u64,
    pub module: u32,
}

struct Row {
    start: AtomicU64,
    end: AtomicU64,
    base: AtomicU64,
    module: AtomicU64,
}

impl Row {
    const fn new() -> Self {
        Self {
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            base: AtomicU64::new(0),
            module: AtomicU64::new(0),
        }
    }
}

/// The table. One writer at a time, which the caller sees to.
pub struct Index {
    sequence: AtomicU64,
    len: AtomicUsize,
    rows: [Row; CAPACITY],
}

impl Index {
    pub const fn new() -> Self {
        Self { sequence: AtomicU64::new(0), len: AtomicUsize::new(0), rows: [const { Row::new() }; CAPACITY] }
    }

    /// How many times the table has been written: changes whenever a module comes or goes.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Acquire pairs with the Release at the end of `publish`.
        self.sequence.load(Ordering::Acquire) / 2
    }

    /// Replaces the table; ranges beyond its capacity are left out.
    pub fn publish(&self, ranges: &mut [CodeRange]) {
        ranges.sort_unstable_by_key(|range| range.start);
        let before = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(before + 1, Ordering::Relaxed);
        // Pairs with the Acquire fence of `find`: who sees a row of this table sees the odd number too.
        fence(Ordering::Release);
        for (row, range) in self.rows.iter().zip(ranges.iter()) {
            row.start.store(range.start, Ordering::Relaxed);
            row.end.store(range.end, Ordering::Relaxed);
            row.base.store(range.base, Ordering::Relaxed);
            row.module.store(u64::from(range.module), Ordering::Relaxed);
        }
        self.len.store(ranges.len().min(CAPACITY), Ordering::Relaxed);
        // Pairs with the Acquire loads of `find` and `generation`.
        self.sequence.store(before + 2, Ordering::Release);
    }

    /// The range that holds `address`.
    pub fn find(&self, address: u64) -> Option<CodeRange> {
        for _ in 0..TRIES {
            // Acquire pairs with the Release at the end of `publish`.
            let before = self.sequence.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let found = self.search(address);
                // Pairs with the Release fence of `publish`.
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    return found;
                }
            }
            std::hint::spin_loop();
        }
        None
    }

    fn search(&self, address: u64) -> Option<CodeRange> {
        let rows = self.rows.get(..self.len.load(Ordering::Relaxed))?;
        let after = rows.partition_point(|row| row.start.load(Ordering::Relaxed) <= address);
        let row = rows.get(after.checked_sub(1)?)?;
        let range = CodeRange {
            start: row.start.load(Ordering::Relaxed),
            end: row.end.load(Ordering::Relaxed),
            base: row.base.load(Ordering::Relaxed),
            module: row.module.load(Ordering::Relaxed) as u32,
        };
        (address < range.end).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicBool;

    fn range(start: u64, end: u64, module: u32) -> CodeRange {
        CodeRange { start, end, base: start, module }
    }

    proptest! {
        #[test]
        fn finds_what_a_linear_search_finds(
            bounds in proptest::collection::btree_set(0u64..1000, 0..40), probes: [u16; 32],
        ) {
            let bounds: Vec<u64> = bounds.into_iter().collect();
            let mut ranges: Vec<CodeRange> =
                bounds.chunks_exact(2).rev().zip(0..).map(|(b, i)| range(b[0], b[1], i)).collect();
            static INDEX: Index = Index::new();
            INDEX.publish(&mut ranges);
            for probe in probes.map(|p| u64::from(p) % 1100) {
                let expected = ranges.iter().find(|r| (r.start..r.end).contains(&probe)).copied();
                prop_assert_eq!(INDEX.find(probe), expected);
            }
        }
    }

    #[test]
    fn readers_never_see_half_a_table() {
        static INDEX: Index = Index::new();
        static STOP: AtomicBool = AtomicBool::new(false);
        let tables = [vec![range(0, 100, 1), range(100, 200, 2)], vec![range(50, 150, 3)]];
        INDEX.publish(&mut tables[0].clone());
        let reader = std::thread::spawn(|| {
            let mut seen = [0u32; 4];
            while !STOP.load(Ordering::Relaxed) {
                if let Some(found) = INDEX.find(75) {
                    let expected = if found.module == 3 { range(50, 150, 3) } else { range(0, 100, 1) };
                    assert_eq!(found, expected);
                    seen[found.module as usize] += 1;
                }
            }
            seen
        });
        for round in 0..200_000 {
            INDEX.publish(&mut tables[round % 2].clone());
        }
        STOP.store(true, Ordering::Relaxed);
        let seen = reader.join().expect("no torn read");
        assert!(seen[1] + seen[3] > 0);
    }
}
