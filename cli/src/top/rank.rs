//! The first N by a key, in memory for N. Equal keys go by id, so that the order does not depend on the input's.

use crate::options::Sort;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a line is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Read accesses.
    pub reads: u64,
    /// Write accesses.
    pub writes: u64,
    /// Bytes that they went to: allocated, at the peak, or of the object.
    pub bytes: u64,
}

impl Measures {
    /// Reads and writes.
    pub fn accesses(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// A number that orders as `sort` says; heat is in accesses per 2^-64 byte.
    pub fn key(&self, sort: Sort) -> u128 {
        match sort {
            Sort::Accesses => self.accesses().into(),
            Sort::Reads => self.reads.into(),
            Sort::Writes => self.writes.into(),
            Sort::Bytes => self.bytes.into(),
            Sort::Heat => (u128::from(self.accesses()) << 64).checked_div(self.bytes.into()).unwrap_or(0),
        }
    }
}

/// The first N of what has been pushed.
pub struct First<T> {
    limit: usize,
    sort: Sort,
    /// Largest key first, then smallest id, then order of arrival.
    kept: BTreeMap<(Reverse<u128>, u64, u64), T>,
    arrivals: u64,
}

impl<T> First<T> {
    /// An empty ranking that will keep `limit` items.
    pub fn new(limit: usize, sort: Sort) -> Self {
        Self { limit, sort, kept: BTreeMap::new(), arrivals: 0 }
    }

    /// Keeps the item if it is among the first.
    pub fn push(&mut self, measures: Measures, id: u64, item: T) {
        self.kept.insert((Reverse(measures.key(self.sort)), id, self.arrivals), item);
        self.arrivals += 1;
        if self.kept.len() > self.limit {
            self.kept.pop_last();
        }
    }

    /// In order.
    pub fn into_vec(self) -> Vec<T> {
        self.kept.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measures(reads: u64, writes: u64, bytes: u64) -> Measures {
        Measures { reads, writes, bytes }
    }

    #[test]
    fn each_key_orders_by_its_own_measure() {
        let items = [measures(9, 0, 100), measures(1, 7, 2), measures(0, 8, 0)];
        let first = |sort| {
            let mut first = First::new(1, sort);
            for (id, item) in items.into_iter().enumerate() {
                first.push(item, id as u64, id);
            }
            first.into_vec()[0]
        };
        let sorts = [Sort::Accesses, Sort::Reads, Sort::Writes, Sort::Bytes, Sort::Heat];
        assert_eq!(sorts.map(first), [0, 0, 2, 0, 1]);
    }

    proptest! {
        #[test]
        fn same_as_sorting(counts in prop::collection::vec(0u64..9, 0..50), limit in 0usize..60) {
            let mut first = First::new(limit, Sort::Reads);
            for (id, &reads) in counts.iter().enumerate() {
                first.push(measures(reads, 0, 1), id as u64, id);
            }
            let mut sorted: Vec<usize> = (0..counts.len()).collect();
            sorted.sort_by_key(|&id| (Reverse(counts[id]), id));
            sorted.truncate(limit);
            prop_assert_eq!(first.into_vec(), sorted);
        }
    }
}
