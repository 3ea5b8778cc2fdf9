//! Heat by offset in fewer entries.

use thermalloc_format::Heat;

/// Sums neighbours until at most `limit` entries are left; says whether it had to.
pub fn coarsen(heat: &mut Heat, limit: usize) -> bool {
    let mut coarser = false;
    while heat.reads.len().max(heat.writes.len()) > limit.max(1) {
        halve(&mut heat.reads);
        halve(&mut heat.writes);
        heat.granule = heat.granule.saturating_mul(2);
        coarser = true;
    }
    coarser
}

fn halve(counts: &mut Vec<u64>) {
    let pairs = counts.chunks(2);
    *counts = pairs.map(|pair| pair.iter().fold(0, |sum: u64, count| sum.saturating_add(*count))).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_offsets_stay() {
        let mut heat = Heat { granule: 16, reads: vec![1, 2, 3, 4, 5], writes: vec![0, 9] };
        assert!(coarsen(&mut heat, 2));
        assert_eq!(heat, Heat { granule: 64, reads: vec![10, 5], writes: vec![9] });
        assert!(!coarsen(&mut heat, 2));
    }
}
