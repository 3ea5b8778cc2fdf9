//! Which sites and objects a page carries one by one: the hottest, the largest, and the most telling of those that are never
//! read or never written.

use super::objects::{Objects, accesses};
use std::cmp::Reverse;
use std::collections::HashSet;
use thermalloc_format::Site;

/// Indices of the sites to carry, most accesses first. `wanted` ids come in whatever they rank.
pub fn sites(sites: &[Site], wanted: &HashSet<u32>, most: usize) -> Vec<usize> {
    let count = |site: &Site| site.reads.saturating_add(site.writes);
    let hottest = ranked(sites.len(), |at| Some(count(&sites[at])));
    let largest = ranked(sites.len(), |at| Some(sites[at].peak_live_bytes));
    let one_sided = ranked(sites.len(), |at| {
        let site = &sites[at];
        (site.reads == 0 || site.writes == 0).then_some(site.bytes)
    });
    let asked = (0..sites.len()).filter(|&at| wanted.contains(&sites[at].id)).collect();
    let mut kept =
        merged(&[(asked, most), (hottest, most * 3 / 5), (largest, most / 5), (one_sided, most / 5)]);
    kept.sort_by_key(|&at| (Reverse(count(&sites[at])), sites[at].id));
    kept
}

/// Indices of the objects to carry, most accesses first.
pub fn objects(objects: &Objects, most: usize) -> Vec<usize> {
    let all = &objects.all;
    let hottest = ranked(all.len(), |at| Some(accesses(&all[at])));
    let largest = ranked(all.len(), |at| Some(all[at].size));
    let one_sided =
        ranked(all.len(), |at| (all[at].reads == 0 || all[at].writes == 0).then_some(all[at].size));
    let mut kept = merged(&[(hottest, most * 7 / 10), (largest, most / 5), (one_sided, most / 10)]);
    kept.sort_by_key(|&at| (Reverse(accesses(&all[at])), all[at].addr, all[at].alloc_ns));
    kept
}

/// Indices, largest key first; those without a key are left out.
fn ranked(count: usize, key: impl Fn(usize) -> Option<u64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).filter(|&at| key(at).is_some()).collect();
    order.sort_by_key(|&at| (Reverse(key(at)), at));
    order
}

/// From each list as many as it may give, none twice.
fn merged(lists: &[(Vec<usize>, usize)]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let firsts = lists.iter().flat_map(|(list, most)| list.iter().take(*most));
    firsts.copied().filter(|&at| seen.insert(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_large_and_one_sided_sites_all_come_in() {
        let mut all: Vec<Site> = (0..100)
            .map(|id| Site { id, reads: 1000 + u64::from(id), writes: 1, ..Site::default() })
            .collect();
        all[3].peak_live_bytes = 1 << 30;
        all[4] = Site { id: 4, writes: 7, bytes: 1 << 20, ..Site::default() };
        let kept = sites(&all, &HashSet::from([5]), 10);
        assert!(kept.len() <= 11 && [3, 4, 5, 99].iter().all(|at| kept.contains(at)), "{kept:?}");
        assert_eq!(kept[0], 99);
    }
}
