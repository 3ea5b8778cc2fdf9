//! Accesses by offset as DHAT has them: for sites all of whose objects have the same small size, one number for each byte.
//! Only reports whose granule is a byte have them.

use std::collections::HashMap;
use thermalloc_format::{Heat, Object, Site};

/// DHAT's limit: larger objects have no histogram.
const LARGEST: u64 = 1024;
/// Stands for this many accesses or more; the viewer refuses more.
const MOST: u64 = 0xFFFF;

/// Sums over objects, by site.
#[derive(Default)]
pub struct Histograms {
    sums: HashMap<u32, Vec<u64>>,
}

impl Histograms {
    /// Adds an object's heat.
    pub fn add(&mut self, object: &Object) {
        if object.heat.granule != 1 || object.size > LARGEST {
            return;
        }
        let sums = self.sums.entry(object.site).or_default();
        for offset in 0..object.size as usize {
            if sums.len() <= offset {
                sums.push(0);
            }
            sums[offset] = sums[offset].saturating_add(accesses(&object.heat, offset));
        }
    }

    /// The site's histogram, if all its objects have the same size, run-length encoded: a negative number is how often the
    /// next one is repeated.
    pub fn encoded(&self, site: &Site) -> Option<Vec<i64>> {
        let sums = self.sums.get(&site.id)?;
        let same_size = site.allocs.checked_mul(sums.len() as u64) == Some(site.bytes);
        (same_size && !sums.is_empty()).then(|| encode(sums))
    }
}

fn accesses(heat: &Heat, offset: usize) -> u64 {
    let of = |counts: &[u64]| counts.get(offset).copied().unwrap_or(0);
    of(&heat.reads).saturating_add(of(&heat.writes))
}

fn encode(sums: &[u64]) -> Vec<i64> {
    let mut encoded = Vec::new();
    for run in sums.chunk_by(|a, b| a.min(&MOST) == b.min(&MOST)) {
        if run.len() > 1 {
            encoded.push(-(run.len() as i64));
        }
        encoded.push(run[0].min(MOST) as i64);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object(size: u64, reads: &[u64]) -> Object {
        let heat = Heat { granule: 1, reads: reads.to_vec(), writes: vec![1] };
        Object { size, site: 3, heat, ..Object::default() }
    }

    #[test]
    fn sums_of_objects_of_one_size() {
        let mut histograms = Histograms::default();
        histograms.add(&object(4, &[1, 0, 0, 70_000]));
        histograms.add(&object(4, &[5]));
        let site = |allocs, bytes| Site { id: 3, allocs, bytes, ..Site::default() };
        assert_eq!(histograms.encoded(&site(2, 8)), Some(vec![8, -2, 0, 0xFFFF]));
        assert_eq!(histograms.encoded(&site(3, 13)), None);
        histograms.add(&object(4, &[u64::MAX, u64::MAX]));
        assert_eq!(histograms.encoded(&site(3, 12)), Some(vec![-2, 0xFFFF, 0, 0xFFFF]));
    }

    #[test]
    fn coarse_granules_say_nothing_of_bytes() {
        let mut histograms = Histograms::default();
        let coarse = Heat { granule: 16, reads: vec![1], writes: vec![] };
        histograms.add(&Object { size: 16, site: 3, heat: coarse, ..Object::default() });
        assert_eq!(histograms.encoded(&Site { id: 3, allocs: 1, bytes: 16, ..Site::default() }), None);
    }

    proptest! {
        #[test]
        fn decodes_to_what_was_encoded(sums in prop::collection::vec(prop_oneof![0u64..3, 0xFFF0u64..0x1_0010], 0..40)) {
            let mut decoded = Vec::new();
            let mut encoded = encode(&sums).into_iter();
            while let Some(number) = encoded.next() {
                if number < 0 {
                    let value = encoded.next().unwrap();
                    decoded.extend((0..-number).map(|_| value as u64));
                } else {
                    decoded.push(number as u64);
                }
            }
            prop_assert_eq!(decoded, sums.iter().map(|sum| *sum.min(&MOST)).collect::<Vec<_>>());
        }
    }
}
