//! What is kept of each object when it passes by: its record, its heat by offset in few cells, its accesses by page.

use super::pool::Strip;
use std::collections::HashMap;
use thermalloc_format::{Heat, Object, Skipped};

/// Bytes of a page of the placement curve and of the heat map by address.
pub const PAGE: u64 = 4096;
/// Objects kept one by one; reports list the hottest first.
pub const MOST_OBJECTS: usize = 1_000_000;
/// Parts of objects kept; beyond them an object is one part.
const MOST_PARTS: usize = 8_000_000;

/// The accesses to one object's bytes in one page, or in a run of pages where a granule is larger than a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Index of the object.
    pub object: u32,
    /// Number of the first page: address / 4096.
    pub page: u64,
    /// Pages.
    pub pages: u64,
    /// Accesses.
    pub accesses: f64,
    /// Accesses for each byte of the hottest granule.
    pub peak: f32,
}

/// The objects of a report.
#[derive(Default)]
pub struct Objects {
    /// Their records.
    pub all: Vec<Object<Skipped>>,
    /// Heat by offset; parallel to `all`.
    pub strips: Vec<Strip>,
    /// Accesses by page.
    pub parts: Vec<Part>,
    /// Heat by offset, summed over the objects of a site.
    pub by_site: HashMap<u32, Strip>,
    /// Objects that found no room.
    pub dropped: u64,
}

impl Objects {
    /// Takes one object.
    pub fn push(&mut self, object: Object<Heat>) {
        if self.all.len() == MOST_OBJECTS {
            self.dropped += 1;
            return;
        }
        let strip = Strip::of(&object.heat);
        self.by_site.entry(object.site).or_default().add(&strip);
        self.add_parts(&object);
        self.strips.push(strip);
        self.all.push(without_heat(object));
    }

    fn add_parts(&mut self, object: &Object<Heat>) {
        let index = self.all.len() as u32;
        let accesses = accesses(object) as f64;
        let heat = &object.heat;
        let granules = heat.reads.len().max(heat.writes.len());
        let count = |at: usize| {
            let of = |counts: &[u64]| counts.get(at).copied().unwrap_or(0) as f64;
            of(&heat.reads) + of(&heat.writes)
        };
        let sum: f64 = (0..granules).map(count).sum();
        let granule = heat.granule.max(1);
        if sum == 0.0 || self.parts.len() + granules > MOST_PARTS {
            let peak = accesses / object.size.max(1) as f64;
            self.parts.push(Part { accesses, peak: peak as f32, ..span(index, object.addr, object.size) });
            return;
        }
        let start = self.parts.len();
        for at in 0..granules {
            let address = object.addr.saturating_add(granule.saturating_mul(at as u64));
            // An access that spans granules counts in each of them, so their sum may be larger.
            let share = count(at) / sum * accesses;
            let part = Part {
                accesses: share,
                peak: (count(at) / granule as f64) as f32,
                ..span(index, address, granule.min(object.size.max(1)))
            };
            match self.parts[start..].last_mut() {
                Some(last) if last.pages == 1 && last.page == part.page && part.pages <= 2 => {
                    last.accesses += part.accesses;
                    last.peak = last.peak.max(part.peak);
                }
                // A granule that crosses into the next page is charged to the page of its first byte.
                _ => self.parts.push(Part { pages: if granule <= PAGE { 1 } else { part.pages }, ..part }),
            }
        }
    }
}

/// The pages of some bytes.
fn span(object: u32, address: u64, size: u64) -> Part {
    let (page, last) = (address / PAGE, address.saturating_add(size.max(1) - 1) / PAGE);
    Part { object, page, pages: last - page + 1, accesses: 0.0, peak: 0.0 }
}

/// Reads and writes.
pub fn accesses<H>(object: &Object<H>) -> u64 {
    object.reads.saturating_add(object.writes)
}

fn without_heat(object: Object<Heat>) -> Object<Skipped> {
    Object {
        addr: object.addr,
        size: object.size,
        class: object.class,
        site: object.site,
        alloc_ns: object.alloc_ns,
        free_ns: object.free_ns,
        reads: object.reads,
        writes: object.writes,
        read_bytes: object.read_bytes,
        write_bytes: object.write_bytes,
        threads: object.threads,
        first_access_ns: object.first_access_ns,
        last_access_ns: object.last_access_ns,
        label: object.label,
        heat: Skipped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object(addr: u64, size: u64, granule: u64, reads: Vec<u64>) -> Object<Heat> {
        let sum = reads.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
        Object { addr, size, reads: sum, heat: Heat { granule, reads, writes: vec![] }, ..Object::default() }
    }

    #[test]
    fn parts_follow_pages() {
        let mut objects = Objects::default();
        let mut reads = vec![0; 512];
        (reads[0], reads[255], reads[256]) = (5, 1, 64);
        objects.push(object(0x10000, 8192, 16, reads));
        let parts: Vec<_> = objects.parts.iter().map(|part| (part.page, part.pages, part.accesses)).collect();
        assert_eq!(parts, [(16, 1, 6.0), (17, 1, 64.0)]);
        assert_eq!(objects.parts[1].peak, 4.0);
    }

    #[test]
    fn granules_larger_than_pages_are_runs() {
        let mut objects = Objects::default();
        objects.push(object(0, 1 << 20, 1 << 16, vec![10; 16]));
        assert_eq!(objects.parts.len(), 16);
        assert!(objects.parts.iter().all(|part| part.pages == 16 && part.accesses == 10.0));
    }

    proptest! {
        #[test]
        fn no_access_is_lost(
            addr: u64, size: u64, granule: u64, reads in prop::collection::vec(0u64..1000, 0..300), total in 0u64..10_000,
        ) {
            let mut objects = Objects::default();
            let mut object = object(addr, size, granule, reads);
            object.reads = total;
            objects.push(object);
            let sum: f64 = objects.parts.iter().map(|part| part.accesses).sum();
            prop_assert!((sum - total as f64).abs() < 1e-6 * total as f64 + 1e-9, "{sum} {total}");
        }
    }
}
