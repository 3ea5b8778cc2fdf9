//! The tables of sites and objects, by column: a file of rows would repeat every key in each.

use super::names::{Stack, Used, text};
use super::objects::Objects;
use super::pool::Packed;
use serde::Serialize;
use thermalloc_format::{Heat, Report};

/// Sites; one entry of each column for each.
#[derive(Default, Serialize)]
pub struct SiteRows {
    id: Vec<u32>,
    /// Index of the name that tells best what it is; null: unknown.
    label: Vec<Option<u32>>,
    /// Indices of all names of the stack, innermost first.
    stack: Vec<Vec<u32>>,
    allocs: Vec<u64>,
    frees: Vec<u64>,
    bytes: Vec<u64>,
    live: Vec<u64>,
    peak: Vec<u64>,
    reads: Vec<u64>,
    writes: Vec<u64>,
    read_bytes: Vec<u64>,
    write_bytes: Vec<u64>,
    threads: Vec<u32>,
    /// Accesses of an object: median, 99th percentile, maximum.
    per_object: Vec<[u64; 3]>,
    /// Lifetime in ns: freed objects, median, 99th percentile.
    lifetime: Vec<[u64; 3]>,
    /// Heat by offset, summed over listed objects.
    strip: Vec<Packed>,
}

impl SiteRows {
    /// The chosen sites.
    pub fn new(
        chosen: &[usize],
        report: &Report<Heat>,
        stacks: &[Stack],
        objects: &Objects,
        used: &mut Used<'_>,
    ) -> Self {
        let mut rows = Self::default();
        for &at in chosen {
            let (site, stack) = (&report.sites[at], &stacks[at]);
            let (accesses, lifetime) = (&site.accesses_per_object, &site.lifetime_ns);
            rows.id.push(site.id);
            rows.label.push(stack.telling.map(|name| used.index(name)));
            rows.stack.push(stack.functions.iter().map(|&name| used.index(name)).collect());
            rows.allocs.push(site.allocs);
            rows.frees.push(site.frees);
            rows.bytes.push(site.bytes);
            rows.live.push(site.live_bytes);
            rows.peak.push(site.peak_live_bytes);
            rows.reads.push(site.reads);
            rows.writes.push(site.writes);
            rows.read_bytes.push(site.read_bytes);
            rows.write_bytes.push(site.write_bytes);
            rows.threads.push(site.max_threads);
            rows.per_object.push([accesses.p50, accesses.p99, accesses.max]);
            rows.lifetime.push([lifetime.count, lifetime.p50, lifetime.p99]);
            rows.strip.push(objects.by_site.get(&site.id).map(|strip| strip.packed()).unwrap_or_default());
        }
        rows
    }
}

/// Objects; one entry of each column for each. Times in ns from the start of the program.
#[derive(Default, Serialize)]
pub struct ObjectRows {
    /// In hexadecimal: numbers of a script have 53 bits.
    addr: Vec<String>,
    label: Vec<String>,
    size: Vec<u64>,
    class: Vec<u32>,
    /// Id of the site.
    site: Vec<u32>,
    alloc: Vec<u64>,
    free: Vec<Option<u64>>,
    first: Vec<Option<u64>>,
    last: Vec<Option<u64>>,
    reads: Vec<u64>,
    writes: Vec<u64>,
    read_bytes: Vec<u64>,
    write_bytes: Vec<u64>,
    threads: Vec<u32>,
    strip: Vec<Packed>,
}

impl ObjectRows {
    /// The chosen objects.
    pub fn new(chosen: &[usize], objects: &Objects) -> Self {
        let mut rows = Self::default();
        for &at in chosen {
            let object = &objects.all[at];
            rows.addr.push(format!("{:#x}", object.addr));
            rows.label.push(text(&object.label));
            rows.size.push(object.size);
            rows.class.push(object.class);
            rows.site.push(object.site);
            rows.alloc.push(object.alloc_ns);
            rows.free.push(object.free_ns);
            rows.first.push(object.first_access_ns);
            rows.last.push(object.last_access_ns);
            rows.reads.push(object.reads);
            rows.writes.push(object.writes);
            rows.read_bytes.push(object.read_bytes);
            rows.write_bytes.push(object.write_bytes);
            rows.threads.push(object.threads);
            rows.strip.push(objects.strips[at].packed());
        }
        rows
    }
}
