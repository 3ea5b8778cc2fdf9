//! What DHAT knows of blocks over time, from the listed objects: when the heap was largest, what was alive then, and how
//! many blocks a site had when it had most bytes. Exact if all objects are listed.

use std::collections::HashMap;
use thermalloc_format::Object;

/// Blocks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

impl Alive {
    fn change(&mut self, change: &Change) {
        if change.begins {
            self.bytes = self.bytes.saturating_add(change.bytes);
            self.blocks += 1;
        } else {
            self.bytes = self.bytes.saturating_sub(change.bytes);
            self.blocks = self.blocks.saturating_sub(1);
        }
    }
}

/// A block begins or ends. In order of time; what ends at the same time as something begins ends first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    time: u64,
    begins: bool,
    site: u32,
    bytes: u64,
}

/// Collects objects.
#[derive(Default)]
pub struct Lifetimes {
    changes: Vec<Change>,
    /// Sums of the births of the objects that are alive, and their number, by site.
    births: HashMap<u32, (u128, u64)>,
}

/// What was collected comes to this.
#[derive(Default)]
pub struct Summary {
    /// When the heap was largest, in ns.
    pub peak_ns: u64,
    /// What was alive then, by site.
    pub at_peak: HashMap<u32, Alive>,
    /// What each site had when it had most bytes.
    pub largest: HashMap<u32, Alive>,
    births: HashMap<u32, (u128, u64)>,
}

impl Lifetimes {
    /// Adds an object.
    pub fn add(&mut self, object: &Object) {
        let (site, bytes) = (object.site, object.size);
        self.changes.push(Change { time: object.alloc_ns, begins: true, site, bytes });
        match object.free_ns {
            // A block that ends before it begins is none.
            Some(time) => self.changes.push(Change {
                time: time.max(object.alloc_ns.saturating_add(1)),
                begins: false,
                site,
                bytes,
            }),
            None => {
                let (sum, count) = self.births.entry(site).or_default();
                *sum += u128::from(object.alloc_ns);
                *count += 1;
            }
        }
    }

    /// Plays it all back.
    pub fn summary(mut self) -> Summary {
        self.changes.sort_unstable();
        let mut summary = Summary { births: self.births, ..Summary::default() };
        let (mut all, mut most) = (Alive::default(), 0);
        let mut sites: HashMap<u32, Alive> = HashMap::new();
        // What lies before this index is what has led to the peak.
        let mut peak = 0;
        for (index, change) in self.changes.iter().enumerate() {
            all.change(change);
            let site = sites.entry(change.site).or_default();
            site.change(change);
            let largest = summary.largest.entry(change.site).or_default();
            if site.bytes > largest.bytes {
                *largest = *site;
            }
            if all.bytes > most {
                (most, peak, summary.peak_ns) = (all.bytes, index + 1, change.time);
            }
        }
        for change in &self.changes[..peak] {
            summary.at_peak.entry(change.site).or_default().change(change);
        }
        summary
    }
}

impl Summary {
    /// How long the site's listed objects that are alive have lived at `now`, in ns altogether.
    pub fn ages(&self, site: u32, now: u64) -> u128 {
        let (sum, count) = self.births.get(&site).copied().unwrap_or_default();
        (u128::from(now) * u128::from(count)).saturating_sub(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(site: u32, size: u64, alloc_ns: u64, free_ns: Option<u64>) -> Object {
        Object { site, size, alloc_ns, free_ns, ..Object::default() }
    }

    #[test]
    fn the_peak_and_what_was_alive_then() {
        let mut lifetimes = Lifetimes::default();
        // Bytes alive: 10 from 1 on, 30 from 2 to 4, 10, 15 from 5 on; site 2 has two blocks of 10 from 2 to 3.
        for object in [
            object(1, 10, 1, None),
            object(2, 10, 2, Some(4)),
            object(2, 10, 2, Some(4)),
            object(1, 5, 5, None),
        ] {
            lifetimes.add(&object);
        }
        let summary = lifetimes.summary();
        assert_eq!(summary.peak_ns, 2);
        assert_eq!(summary.at_peak[&1], Alive { bytes: 10, blocks: 1 });
        assert_eq!(summary.at_peak[&2], Alive { bytes: 20, blocks: 2 });
        assert_eq!(summary.largest[&1], Alive { bytes: 15, blocks: 2 });
        assert_eq!(summary.ages(1, 9), 8 + 4);
        assert_eq!(summary.ages(7, 9), 0);
    }

    #[test]
    fn impossible_times_do_no_harm() {
        let mut lifetimes = Lifetimes::default();
        for object in
            [object(1, u64::MAX, 9, Some(3)), object(1, u64::MAX, u64::MAX, Some(0)), object(1, 1, 0, None)]
        {
            lifetimes.add(&object);
        }
        let summary = lifetimes.summary();
        assert_eq!(summary.largest[&1].bytes, u64::MAX);
        assert_eq!(summary.ages(1, 0), 0);
    }
}
