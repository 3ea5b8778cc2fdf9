//! Heat by page of 4 KiB. A page takes memory from the first allocation on it to the last end; its heat is that of the listed
//! objects' parts that lie on it. Pages that are equally hot because one entry of a heat array covers them stay together.

use super::axis::Span;
use super::traffic::Traffic;
use std::collections::HashMap;
use thermalloc_format::{Heat, Object};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// What is known of a page, or of a run of pages.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Accesses.
    pub traffic: Traffic,
    /// When something lives on it.
    pub span: Span,
    /// The site that has most to do with it, and how much that is.
    pub site: (u32, f64),
}

/// Collects pages.
#[derive(Debug, Default)]
pub struct Pages {
    /// By the first page's number and the number of pages.
    pages: HashMap<(u64, u64), Page>,
}

impl Pages {
    /// Adds an object that is accessed so much and lives so long.
    pub fn add(&mut self, object: &Object, traffic: Traffic, span: Span) {
        let Heat { granule, reads, writes } = &object.heat;
        let count = |counts: &[u64], index: usize| counts.get(index).map_or(0.0, |&count| count as f64);
        let entries = reads.len().max(writes.len());
        let accesses = |index: usize| count(reads, index) + count(writes, index);
        let sum: f64 = (0..entries).map(accesses).sum();
        if sum == 0.0 {
            self.spread(object, 0, object.size, traffic, span);
            return;
        }
        for index in (0..entries).filter(|&index| accesses(index) > 0.0) {
            let start = granule.saturating_mul(index as u64).min(object.size.saturating_sub(1));
            let end = start.saturating_add((*granule).max(1)).min(object.size.max(start + 1));
            self.spread(object, start, end, traffic.part(accesses(index) / sum), span);
        }
    }

    /// Shares out what happens to the object's bytes from `start` to `end`: to the first page, the last, and those between.
    fn spread(&mut self, object: &Object, start: u64, end: u64, traffic: Traffic, span: Span) {
        let (start, end) = (object.addr.saturating_add(start), object.addr.saturating_add(end));
        let last = end.saturating_sub(1).max(start);
        let length = (last - start) as f64 + 1.0;
        let (first_page, last_page) = (start / PAGE, last / PAGE);
        if first_page == last_page {
            self.page((first_page, 1), object.site, traffic, span);
            return;
        }
        let head = ((first_page + 1) * PAGE - start) as f64 / length;
        let tail = (last - last_page * PAGE) as f64 + 1.0;
        let tail = tail / length;
        self.page((first_page, 1), object.site, traffic.part(head), span);
        self.page((last_page, 1), object.site, traffic.part(tail), span);
        if last_page - first_page > 1 {
            let middle = (first_page + 1, last_page - first_page - 1);
            self.page(middle, object.site, traffic.part((1.0 - head - tail).max(0.0)), span);
        }
    }

    fn page(&mut self, key: (u64, u64), site: u32, traffic: Traffic, span: Span) {
        let accesses = traffic.reads + traffic.writes;
        let page =
            self.pages.entry(key).or_insert(Page { traffic: Traffic::default(), span, site: (site, 0.0) });
        page.traffic += traffic;
        page.span = Span { first: page.span.first.min(span.first), last: page.span.last.max(span.last) };
        if accesses > page.site.1 {
            page.site = (site, accesses);
        }
    }

    /// All of them, by address: first byte, bytes, and what is known.
    pub fn sorted(&self) -> Vec<(u64, u64, Page)> {
        let mut pages: Vec<((u64, u64), Page)> = self.pages.iter().map(|(key, page)| (*key, *page)).collect();
        pages.sort_unstable_by_key(|(key, _)| *key);
        pages
            .into_iter()
            .map(|((page, count), known)| (page * PAGE, count.saturating_mul(PAGE), known))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPAN: Span = Span { first: 2, last: 3 };

    #[test]
    fn parts_go_to_their_pages() {
        let mut pages = Pages::default();
        let heat = Heat { granule: 4096, reads: vec![10, 0, 30], writes: vec![] };
        let object = Object { addr: 0x1800, size: 3 * 4096, site: 5, heat, ..Object::default() };
        pages.add(&object, Traffic { reads: 80.0, ..Traffic::default() }, SPAN);
        let found: Vec<(u64, f64)> =
            pages.sorted().iter().map(|(at, _, page)| (*at, page.traffic.reads)).collect();
        assert_eq!(found, [(0x1000, 10.0), (0x2000, 10.0), (0x3000, 30.0), (0x4000, 30.0)]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            addr: u64, size: u64, granule: u64, reads in prop::collection::vec(any::<u64>(), 0..6),
        ) {
            let mut pages = Pages::default();
            let heat = Heat { granule, reads, writes: vec![1] };
            let object = Object { addr, size, heat, ..Object::default() };
            pages.add(&object, Traffic { reads: 1000.0, ..Traffic::default() }, SPAN);
            let sum: f64 = pages.sorted().iter().map(|(_, _, page)| page.traffic.reads).sum();
            prop_assert!((sum - 1000.0).abs() < 1e-3, "{}", sum);
        }
    }
}
