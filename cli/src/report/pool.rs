//! Heat by offset in few cells. A cell shows the hottest granule of its part, so that a small hot spot in a large cold object
//! stays visible.

use super::level::{encode, level};
use serde::Serialize;
use thermalloc_format::Heat;

/// Cells at most.
pub const CELLS: usize = 64;

/// Reads and writes by offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strip {
    /// Bytes of a cell; 0 if there are no cells.
    pub cell: u64,
    /// Reads of the hottest granule of each cell.
    pub reads: Vec<u64>,
    /// Writes of the hottest granule of each cell; as long as `reads`.
    pub writes: Vec<u64>,
}

impl Strip {
    /// The heat of one object. Cells are a power of two of granules.
    pub fn of(heat: &Heat) -> Self {
        let granules = heat.reads.len().max(heat.writes.len());
        let per_cell = granules.div_ceil(CELLS).max(1).next_power_of_two();
        let pooled = |counts: &[u64]| {
            let cells = granules.div_ceil(per_cell);
            let hottest = |cell: usize| {
                let part = counts.iter().skip(cell * per_cell).take(per_cell);
                part.copied().max().unwrap_or(0)
            };
            (0..cells).map(hottest).collect()
        };
        let cell = if granules == 0 { 0 } else { heat.granule.max(1).saturating_mul(per_cell as u64) };
        Self { cell, reads: pooled(&heat.reads), writes: pooled(&heat.writes) }
    }

    /// Adds another object's heat, first byte on first byte.
    pub fn add(&mut self, other: &Self) {
        if other.cell == 0 {
            return;
        }
        let cell = self.cell.max(other.cell);
        let mut other = other.clone();
        self.coarsen(cell);
        other.coarsen(cell);
        self.cell = cell;
        for (sums, counts) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            if sums.len() < counts.len() {
                sums.resize(counts.len(), 0);
            }
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// Makes cells as large as `cell` bytes. Cells whose sizes do not divide are taken to lie where they begin.
    fn coarsen(&mut self, cell: u64) {
        if self.cell == 0 || self.cell >= cell {
            return;
        }
        let place = |index: usize| (index as u64).saturating_mul(self.cell) / cell;
        for counts in [&mut self.reads, &mut self.writes] {
            let mut pooled: Vec<u64> = Vec::new();
            for (index, &count) in counts.iter().enumerate() {
                let at = place(index) as usize;
                if pooled.len() <= at {
                    pooled.resize(at + 1, 0);
                }
                pooled[at] = pooled[at].max(count);
            }
            *counts = pooled;
        }
        self.cell = cell;
    }

    /// For the page: levels, see [`super::level`].
    pub fn packed(&self) -> Packed {
        let levels = |counts: &[u64]| encode(counts.iter().map(|&count| level(count as f64)));
        Packed { cell: self.cell, reads: levels(&self.reads), writes: levels(&self.writes) }
    }
}

/// A strip as the page carries it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Packed {
    /// Bytes of a cell.
    pub cell: u64,
    /// Two characters for each cell.
    pub reads: String,
    /// Two characters for each cell.
    pub writes: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heat(granule: u64, reads: &[u64], writes: &[u64]) -> Heat {
        Heat { granule, reads: reads.to_vec(), writes: writes.to_vec() }
    }

    #[test]
    fn a_hot_granule_survives_pooling_and_adding() {
        let mut reads = vec![0; 4096];
        reads[2048] = 7;
        let mut strip = Strip::of(&heat(16, &reads, &[]));
        assert_eq!((strip.cell, strip.reads.len(), strip.reads[32]), (1024, 64, 7));
        strip.add(&Strip::of(&heat(16, &[1, 9, 2], &[3])));
        assert_eq!((strip.reads[0], strip.writes[0], strip.reads[32]), (9, 3, 7));
    }

    proptest! {
        #[test]
        fn bounded_and_the_hottest_stays(
            granule: u64, reads in prop::collection::vec(any::<u64>(), 0..500),
            writes in prop::collection::vec(any::<u64>(), 0..500), other_granule: u64,
            other in prop::collection::vec(0u64..9, 0..200),
        ) {
            let mut strip = Strip::of(&heat(granule, &reads, &writes));
            prop_assert!(strip.reads.len() <= CELLS && strip.reads.len() == strip.writes.len());
            prop_assert_eq!(strip.reads.iter().max().copied().unwrap_or(0), reads.iter().max().copied().unwrap_or(0));
            strip.add(&Strip::of(&heat(other_granule, &other, &[])));
            prop_assert!(strip.reads.len() <= CELLS);
            prop_assert!(strip.reads.iter().max().copied().unwrap_or(0) >= other.iter().max().copied().unwrap_or(0));
        }
    }
}
