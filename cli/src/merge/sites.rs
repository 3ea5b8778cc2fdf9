//! Sites and classes of several reports, each once, under new ids. Sites with the same frames are one; site 0 stays what stands
//! for unknown stacks. Classes of the same chunk size are one.

use super::code::FrameIds;
use super::distributions::Sum;
use crate::measure;
use std::collections::HashMap;
use thermalloc_format::{Class, Object, Report, Site};

/// Collects sites and classes.
#[derive(Default)]
pub struct Sites {
    sites: Vec<MergedSite>,
    /// Index in `sites`.
    by_stack: HashMap<Vec<u32>, usize>,
    known_stacks: u32,
    classes: Vec<MergedClass>,
    /// Index in `classes`, which is the id, by chunk size and chunks in a slab page.
    by_chunk: HashMap<(u64, u64), usize>,
}

struct MergedSite {
    site: Site,
    accesses: Sum,
    lifetime: Sum,
}

struct MergedClass {
    class: Class,
    accesses: Sum,
}

/// New ids of one report's sites and classes.
#[derive(Default)]
pub struct Ids {
    sites: HashMap<u32, u32>,
    classes: HashMap<u32, u32>,
}

impl Ids {
    /// The site's new id; that of the unknown stack if the report has no such site.
    pub fn site(&self, id: u32) -> u32 {
        self.sites.get(&id).copied().unwrap_or(0)
    }

    /// Gives an object its new ids.
    pub fn rename(&self, object: &mut Object) {
        object.site = self.site(object.site);
        object.class = self.classes.get(&object.class).copied().unwrap_or(object.class);
    }
}

impl Sites {
    /// Adds a report's sites and classes.
    pub fn add<H>(&mut self, report: &Report<H>, frames: &FrameIds) -> Ids {
        let mut ids = Ids::default();
        for site in &report.sites {
            ids.sites.insert(site.id, self.site(site, frames.of(site)));
        }
        for class in &report.classes {
            ids.classes.insert(class.id, self.class(class));
        }
        ids
    }

    fn site(&mut self, site: &Site, frames: Vec<u32>) -> u32 {
        let next = self.sites.len();
        let index = *self.by_stack.entry(frames).or_insert_with_key(|frames| {
            self.known_stacks += u32::from(!frames.is_empty());
            let id = if frames.is_empty() { 0 } else { self.known_stacks };
            let site = Site { id, frames: frames.clone(), ..Site::default() };
            self.sites.push(MergedSite { site, accesses: Sum::default(), lifetime: Sum::default() });
            next
        });
        let merged = &mut self.sites[index];
        measure::add(&mut merged.site, site);
        merged.accesses.add(&site.accesses_per_object);
        merged.lifetime.add(&site.lifetime_ns);
        merged.site.id
    }

    fn class(&mut self, class: &Class) -> u32 {
        let next = self.classes.len();
        let index = *self.by_chunk.entry((class.chunk_size, class.per_slab)).or_insert_with_key(|key| {
            let class = Class { id: next as u32, chunk_size: key.0, per_slab: key.1, ..Class::default() };
            self.classes.push(MergedClass { class, accesses: Sum::default() });
            next
        });
        let merged = &mut self.classes[index];
        let sum = &mut merged.class;
        let pairs = [
            (&mut sum.slabs, class.slabs),
            (&mut sum.allocs, class.allocs),
            (&mut sum.frees, class.frees),
            (&mut sum.reads, class.reads),
            (&mut sum.writes, class.writes),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        merged.accesses.add(&class.accesses_per_object);
        merged.class.id
    }

    /// Hands over all of them.
    pub fn fill(self, report: &mut Report) {
        let site = |merged: MergedSite| Site {
            accesses_per_object: merged.accesses.distribution(),
            lifetime_ns: merged.lifetime.distribution(),
            ..merged.site
        };
        let class = |merged: MergedClass| Class {
            accesses_per_object: merged.accesses.distribution(),
            ..merged.class
        };
        report.sites = self.sites.into_iter().map(site).collect();
        report.classes = self.classes.into_iter().map(class).collect();
    }
}
