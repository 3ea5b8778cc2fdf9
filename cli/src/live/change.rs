//! What happened between two reports of one process.

use crate::options::Sort;
use crate::top::Measures as Delta;
use std::cmp::Reverse;
use std::collections::HashMap;
use thermalloc_format::{Object, Site, Skipped, Summary};

/// What is new in a report.
pub struct Change<'a> {
    /// Time between the reports in ns; from the program's start, if there is only one.
    pub elapsed_ns: u64,
    /// Reads and writes of the whole process; bytes are those allocated.
    pub total: Delta,
    /// Objects allocated.
    pub allocs: u64,
    /// Objects freed.
    pub frees: u64,
    /// Sites with accesses, hottest first.
    pub sites: Vec<(&'a Site, Delta)>,
    /// Listed objects with accesses, hottest first.
    pub objects: Vec<(&'a Object<Skipped>, Delta)>,
}

impl<'a> Change<'a> {
    /// From one report to the next. Another program in the same process starts from nothing.
    pub fn between(old: Option<&Summary>, new: &'a Summary, sort: Sort) -> Self {
        let old = old.filter(|old| {
            let (old, new) = (&old.program, &new.program);
            old.start_unix_ns == new.start_unix_ns && old.exe == new.exe && old.elapsed_ns <= new.elapsed_ns
        });
        let nothing = Summary::default();
        let before = old.unwrap_or(&nothing);
        let (from, to) = (&before.totals, &new.totals);
        let known: HashMap<u32, &Site> = before.sites.iter().map(|site| (site.id, site)).collect();
        let sites = new.sites.iter().map(|site| {
            let past = known.get(&site.id).map_or((0, 0), |past| (past.reads, past.writes));
            (site, delta((site.reads, site.writes), past, site.peak_live_bytes))
        });
        let seen: HashMap<(u64, u64), &Object<Skipped>> =
            before.objects.iter().map(|object| ((object.addr, object.alloc_ns), object)).collect();
        let objects = new.objects.iter().map(|object| {
            let past =
                seen.get(&(object.addr, object.alloc_ns)).map_or((0, 0), |past| (past.reads, past.writes));
            (object, delta((object.reads, object.writes), past, object.size))
        });
        Self {
            elapsed_ns: new.program.elapsed_ns - before.program.elapsed_ns,
            total: delta(
                (to.reads, to.writes),
                (from.reads, from.writes),
                to.bytes.saturating_sub(from.bytes),
            ),
            allocs: to.allocs.saturating_sub(from.allocs),
            frees: to.frees.saturating_sub(from.frees),
            sites: ordered(sites, sort),
            objects: ordered(objects, sort),
        }
    }
}

fn delta(now: (u64, u64), past: (u64, u64), bytes: u64) -> Delta {
    Delta { reads: now.0.saturating_sub(past.0), writes: now.1.saturating_sub(past.1), bytes }
}

fn ordered<T>(items: impl Iterator<Item = (T, Delta)>, sort: Sort) -> Vec<(T, Delta)> {
    let mut hot: Vec<(T, Delta)> = items.filter(|(_, delta)| delta.accesses() > 0).collect();
    hot.sort_by_key(|(_, delta)| Reverse(delta.key(sort)));
    hot
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thermalloc_format::Program;

    fn summary(elapsed_ns: u64, counts: &[u64]) -> Summary {
        let site = |(id, &reads): (usize, &u64)| Site { id: id as u32, reads, ..Site::default() };
        let object = |(at, &reads): (usize, &u64)| Object { addr: at as u64, reads, ..Object::default() };
        Summary {
            program: Program { elapsed_ns, ..Program::default() },
            sites: counts.iter().enumerate().map(site).collect(),
            objects: counts.iter().enumerate().map(object).collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn what_was_hot_and_is_not_any_more_goes() {
        let (old, new) = (summary(100, &[1000, 5]), summary(300, &[1000, 9, 2]));
        let change = Change::between(Some(&old), &new, Sort::Accesses);
        assert_eq!(change.elapsed_ns, 200);
        let sites: Vec<_> = change.sites.iter().map(|(site, delta)| (site.id, delta.reads)).collect();
        assert_eq!(sites, [(1, 4), (2, 2)]);
        assert_eq!(change.objects.len(), 2);
        let first = Change::between(None, &new, Sort::Accesses);
        assert_eq!((first.elapsed_ns, first.sites.len()), (300, 3));
    }

    proptest! {
        #[test]
        fn any_two_reports_will_do(
            old in prop::collection::vec(any::<u64>(), 0..9), new in prop::collection::vec(any::<u64>(), 0..9), t: u64, u: u64,
        ) {
            let (old, new) = (summary(t, &old), summary(u, &new));
            let change = Change::between(Some(&old), &new, Sort::Heat);
            prop_assert!(change.sites.iter().all(|(_, delta)| delta.accesses() > 0));
        }
    }
}
