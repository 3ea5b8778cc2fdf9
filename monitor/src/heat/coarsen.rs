//! Arrays of counts, made shorter by summing neighbours: small hot spots in large cold objects stay visible.

use thermalloc_format::Heat;

/// The power of two by which entries must be summed so that at most `limit` are left.
pub(super) fn factor(entries: usize, limit: usize) -> usize {
    entries.div_ceil(limit.max(1)).next_power_of_two()
}

/// Sums entries so that at most `limit` are left; says whether it had to.
pub(super) fn coarsen(heat: &mut Heat, limit: usize) -> bool {
    let factor = factor(heat.reads.len().max(heat.writes.len()), limit);
    if factor == 1 {
        return false;
    }
    let sum = |counts: &[u64]| -> Vec<u64> {
        counts
            .chunks(factor)
            .map(|chunk| chunk.iter().fold(0, |sum, count| count.saturating_add(sum)))
            .collect()
    };
    (heat.reads, heat.writes) = (sum(&heat.reads), sum(&heat.writes));
    heat.granule = heat.granule.saturating_mul(factor as u64);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn coarsening_conserves_sums_and_positions(
            counts in proptest::collection::vec((0u64..1000, 0u64..1000), 0..300),
            limit in 1usize..64,
        ) {
            let (reads, writes): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
            let before = Heat { granule: 16, reads, writes };
            let mut after = before.clone();
            let coarsened = coarsen(&mut after, limit);
            prop_assert!(after.reads.len() <= limit && after.writes.len() <= limit);
            prop_assert_eq!(coarsened, before.reads.len() > limit);
            prop_assert!((after.granule / 16).is_power_of_two());
            let factor = (after.granule / 16) as usize;
            for (short, long) in [(&after.reads, &before.reads), (&after.writes, &before.writes)] {
                prop_assert_eq!(short.len(), long.len().div_ceil(factor));
                for (index, sum) in short.iter().enumerate() {
                    let part = long.iter().skip(index * factor).take(factor).sum::<u64>();
                    prop_assert_eq!(*sum, part);
                }
            }
            // No coarser than necessary.
            prop_assert!(factor == 1 || before.reads.len().div_ceil(factor / 2) > limit);
        }
    }
}
