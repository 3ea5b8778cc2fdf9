//! Heat by offset within an object, in one line of blocks: from the first byte to the last, on a logarithmic scale.

use thermalloc_format::Heat;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Stands for bytes that were never accessed.
const COLD: char = '·';

/// The hottest granule's accesses, for the scale.
pub fn peak(heat: &Heat) -> u64 {
    (0..granules(heat)).map(|index| accesses(heat, index)).max().unwrap_or(0)
}

/// At most `width` characters; a full block stands for `peak` accesses of a granule. A character shows the hottest of
/// its granules, so that a small hot spot in a large cold object does not vanish.
pub fn strip(heat: &Heat, peak: u64, width: usize) -> String {
    let granules = granules(heat);
    let cells = granules.min(width);
    (0..cells)
        .map(|cell| {
            let (start, end) = (share(cell, granules, cells), share(cell + 1, granules, cells));
            block((start..end).map(|index| accesses(heat, index)).max().unwrap_or(0), peak)
        })
        .collect()
}

fn share(cell: usize, granules: usize, cells: usize) -> usize {
    (cell as u128 * granules as u128 / cells as u128) as usize
}

fn granules(heat: &Heat) -> usize {
    heat.reads.len().max(heat.writes.len())
}

fn accesses(heat: &Heat, index: usize) -> u64 {
    let of = |counts: &[u64]| counts.get(index).copied().unwrap_or(0);
    of(&heat.reads).saturating_add(of(&heat.writes))
}

fn block(accesses: u64, peak: u64) -> char {
    if accesses == 0 {
        return COLD;
    }
    let share = (accesses as f64).ln_1p() / (peak.max(accesses) as f64).ln_1p();
    let level = (share * BLOCKS.len() as f64).ceil() as usize;
    BLOCKS[level.clamp(1, BLOCKS.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heat(reads: &[u64], writes: &[u64]) -> Heat {
        Heat { granule: 16, reads: reads.to_vec(), writes: writes.to_vec() }
    }

    #[test]
    fn a_hot_spot_does_not_vanish() {
        let mut reads = vec![0; 10_000];
        reads[5_000] = 1;
        let heat = heat(&reads, &[]);
        let strip = strip(&heat, peak(&heat), 10);
        assert_eq!(strip, "·····█····");
    }

    #[test]
    fn hotter_is_higher_and_an_object_without_heat_is_empty() {
        let heat = heat(&[0, 1, 50, 1000], &[0, 0, 50, 9000]);
        let strip: Vec<char> = strip(&heat, 10_000, 8).chars().collect();
        assert_eq!(strip[0], COLD);
        assert!(strip[1] < strip[2] && strip[2] < strip[3], "{strip:?}");
        assert_eq!(strip[3], '█');
        assert_eq!(super::strip(&self::heat(&[], &[]), 1, 8), "");
    }

    proptest! {
        #[test]
        fn never_wider_and_never_hides_heat(
            reads in prop::collection::vec(any::<u64>(), 0..80),
            writes in prop::collection::vec(any::<u64>(), 0..80),
            peak: u64,
            width in 1usize..40,
        ) {
            let heat = heat(&reads, &writes);
            let strip = strip(&heat, peak, width);
            prop_assert!(strip.chars().count() <= width);
            let hot = reads.iter().chain(&writes).any(|&count| count > 0);
            prop_assert_eq!(strip.chars().any(|c| c != COLD), hot);
        }
    }
}
