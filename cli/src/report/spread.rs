//! When an object was accessed, as far as a report tells: it has the first and last access of each object, and the accesses
//! over time of each site. An object's accesses are spread between its first and last in proportion to its site's accesses in
//! that time: exact where a site has one object, an estimate elsewhere.

use super::axis::Axis;
use std::collections::HashMap;
use thermalloc_format::{Object, Skipped, Timeline};

/// Accesses over time, of sites and of objects.
pub struct Spread {
    /// Accesses of a site in each column of the axis.
    sites: HashMap<u32, Vec<f64>>,
    /// The columns.
    pub axis: Axis,
}

impl Spread {
    /// From a report's timeline.
    pub fn new(timeline: &Timeline, elapsed_ns: u64) -> Self {
        let axis = Axis::new(timeline, elapsed_ns);
        let mut sites: HashMap<u32, Vec<f64>> = HashMap::new();
        for site in &timeline.sites {
            let row = sites.entry(site.site).or_insert_with(|| vec![0.0; axis.columns()]);
            for counts in [&site.reads, &site.writes] {
                for (interval, &count) in counts.iter().enumerate().take(timeline.t_ns.len()) {
                    row[axis.column_of(interval)] += count as f64;
                }
            }
        }
        Self { sites, axis }
    }

    /// A site's accesses in each column; `None`: the timeline leaves it out.
    pub fn site(&self, id: u32) -> Option<&[f64]> {
        self.sites.get(&id).map(Vec::as_slice)
    }

    /// The share of an object's accesses in each column; they add up to 1.
    pub fn object(&self, object: &Object<Skipped>) -> Vec<f64> {
        let first = object.first_access_ns.unwrap_or(object.alloc_ns);
        let last = object.last_access_ns.or(object.free_ns).unwrap_or(self.axis.end_ns).max(first);
        let overlaps: Vec<f64> =
            (0..self.axis.columns()).map(|column| self.axis.overlap(column, first, last)).collect();
        let weighted = self.site(object.site).map(|counts| {
            counts.iter().zip(&overlaps).map(|(count, overlap)| count * overlap).collect::<Vec<_>>()
        });
        weighted.and_then(normalised).or_else(|| normalised(overlaps)).unwrap_or_else(|| {
            let columns = self.axis.columns();
            vec![1.0 / columns as f64; columns]
        })
    }
}

/// Divided by the sum; `None` if that is zero.
fn normalised(weights: Vec<f64>) -> Option<Vec<f64>> {
    let sum: f64 = weights.iter().sum();
    (sum > 0.0 && sum.is_finite()).then(|| weights.iter().map(|weight| weight / sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thermalloc_format::SiteTimeline;

    fn timeline(counts: Vec<u64>) -> Timeline {
        let t_ns = (0..counts.len() as u64).map(|at| at * 100).collect();
        let sites = vec![SiteTimeline { site: 1, reads: counts, writes: vec![] }];
        Timeline { interval_ns: 100, t_ns, sites }
    }

    #[test]
    fn the_only_object_of_a_site_follows_it() {
        let spread = Spread::new(&timeline(vec![30, 0, 10, 60]), 400);
        let object =
            Object { site: 1, first_access_ns: Some(0), last_access_ns: Some(399), ..Object::default() };
        let shares = spread.object(&object);
        for (share, expected) in shares.iter().zip([0.3, 0.0, 0.1, 0.6]) {
            assert!((share - expected).abs() < 0.01, "{shares:?}");
        }
    }

    #[test]
    fn an_object_is_cold_outside_its_time() {
        let spread = Spread::new(&timeline(vec![5, 5, 5, 5]), 400);
        let object =
            Object { site: 1, first_access_ns: Some(110), last_access_ns: Some(190), ..Object::default() };
        assert_eq!(spread.object(&object), [0.0, 1.0, 0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn shares_add_up_to_one(
            counts in prop::collection::vec(any::<u64>(), 0..300), interval: u64, elapsed: u64,
            t_ns in prop::collection::vec(any::<u64>(), 0..300),
            first: Option<u64>, last: Option<u64>, alloc_ns: u64, site in 0u32..2,
        ) {
            let sites = vec![SiteTimeline { site: 1, reads: counts.clone(), writes: counts }];
            let spread = Spread::new(&Timeline { interval_ns: interval, t_ns, sites }, elapsed);
            let object = Object { site, first_access_ns: first, last_access_ns: last, alloc_ns, ..Object::default() };
            let sum: f64 = spread.object(&object).iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        }
    }
}
