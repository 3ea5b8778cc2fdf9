//! The hottest objects of several reports, as many as asked for, live ones first among equals.

use super::heat::coarsen;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use thermalloc_format::{Object, Report};

/// Entries of heat arrays altogether, beyond which the arrays of further objects are cut.
const ENTRIES: usize = 4 << 20;
/// To this many.
const FEW: usize = 64;

/// Order in a report.
type Rank = (Reverse<u64>, bool, u64, u64, u64);

/// Collects objects.
pub struct Objects {
    limit: usize,
    kept: BTreeMap<Rank, Object>,
    entries: usize,
    arrivals: u64,
    omitted: u64,
    live_omitted: u64,
    coarsened: u64,
}

impl Objects {
    /// Will keep so many.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: BTreeMap::new(),
            entries: 0,
            arrivals: 0,
            omitted: 0,
            live_omitted: 0,
            coarsened: 0,
        }
    }

    /// Keeps the object if it is hot enough.
    pub fn add(&mut self, mut object: Object) {
        if self.entries.saturating_add(entries(&object)) > ENTRIES {
            self.coarsened += u64::from(coarsen(&mut object.heat, FEW));
        }
        self.entries += entries(&object);
        let accesses = object.reads.saturating_add(object.writes);
        let rank = (Reverse(accesses), object.free_ns.is_some(), object.addr, object.alloc_ns, self.arrivals);
        self.arrivals += 1;
        self.kept.insert(rank, object);
        if self.kept.len() > self.limit
            && let Some((_, coldest)) = self.kept.pop_last()
        {
            self.entries -= entries(&coldest);
            self.omitted += 1;
            self.live_omitted += u64::from(coldest.free_ns.is_none());
        }
    }

    /// Hands over what was kept, hottest first, and says what was not.
    pub fn fill(self, report: &mut Report) {
        let limits = &mut report.limits;
        limits.live_objects_omitted = limits.live_objects_omitted.saturating_add(self.live_omitted);
        limits.objects_coarsened = limits.objects_coarsened.saturating_add(self.coarsened);
        report.objects_omitted = report.objects_omitted.saturating_add(self.omitted);
        report.objects = self.kept.into_values().collect();
    }
}

fn entries(object: &Object) -> usize {
    object.heat.reads.len() + object.heat.writes.len()
}
