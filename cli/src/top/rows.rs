//! The table of sites, classes or objects.

use super::rank::{First, Measures};
use super::strip;
use crate::options::{By, TopOptions};
use crate::symbols::Stacks;
use crate::table::{Column, Label, Row, render, wrap};
use crate::units::{bytes, count, heat};
use std::collections::HashMap;
use thermalloc_format::{Class, Object, Report, Site};

/// Characters of a heat strip, as a share of the terminal's width.
const STRIP_SHARE: usize = 6;
const STRIP_MOST: usize = 32;

/// The table that the options ask for.
pub fn rows(report: &Report, options: &TopOptions, width: usize, stacks: &mut Stacks<'_>) -> String {
    match options.by {
        By::Site => sites(report, options, width, stacks),
        By::Class => classes(report, options, width),
        By::Object => objects(report, options, width, stacks),
    }
}

fn sites(report: &Report, options: &TopOptions, width: usize, stacks: &mut Stacks<'_>) -> String {
    let mut first = First::new(options.n, options.sort);
    for site in &report.sites {
        first.push(site_measures(site), site.id.into(), site);
    }
    let columns = vec![
        Column::new("reads", 0),
        Column::new("writes", 0),
        Column::new("acc/B", 1),
        Column::new("bytes B", 0),
        Column::new("objects", 2),
        Column::new("live B", 4),
        Column::new("threads", 3),
        Column::new("id", 5),
    ];
    let row = |site: &Site| Row {
        cells: vec![
            count(site.reads),
            count(site.writes),
            heat(site_measures(site).accesses(), site.bytes),
            bytes(site.bytes),
            count(site.allocs),
            bytes(site.live_bytes),
            threads(site.max_threads),
            site.id.to_string(),
        ],
        label: Label::of(stacks.telling(site)),
        details: details(site, options, stacks),
    };
    let rows: Vec<Row> = first.into_vec().into_iter().map(row).collect();
    render(columns, "site", &rows, width)
}

fn classes(report: &Report, options: &TopOptions, width: usize) -> String {
    let mut first = First::new(options.n, options.sort);
    for class in &report.classes {
        first.push(class_measures(class), class.id.into(), class);
    }
    let columns = vec![
        Column::new("class", 0),
        Column::new("chunk B", 0),
        Column::new("per slab", 4),
        Column::new("slabs", 3),
        Column::new("objects", 0),
        Column::new("in use", 0),
        Column::new("reads", 0),
        Column::new("writes", 0),
        Column::new("acc/B", 1),
        Column::new("acc/obj p50", 2),
        Column::new("p99", 2),
        Column::new("max", 5),
    ];
    let row = |class: &Class| Row {
        cells: vec![
            class.id.to_string(),
            chunk_name(class.chunk_size),
            count(class.per_slab),
            count(class.slabs),
            count(class.allocs),
            count(class.allocs.saturating_sub(class.frees)),
            count(class.reads),
            count(class.writes),
            heat(class_measures(class).accesses(), class_measures(class).bytes),
            count(class.accesses_per_object.p50),
            count(class.accesses_per_object.p99),
            count(class.accesses_per_object.max),
        ],
        ..Row::default()
    };
    let rows: Vec<Row> = first.into_vec().into_iter().map(row).collect();
    render(columns, "", &rows, width)
}

/// The objects are those that were kept while reading, in their order.
fn objects(report: &Report, options: &TopOptions, width: usize, stacks: &mut Stacks<'_>) -> String {
    let sites: HashMap<u32, &Site> = report.sites.iter().map(|site| (site.id, site)).collect();
    let chunks: HashMap<u32, u64> = report.classes.iter().map(|class| (class.id, class.chunk_size)).collect();
    let peak = report.objects.iter().map(|object| strip::peak(&object.heat)).max().unwrap_or(0);
    let strip_width = (width / STRIP_SHARE).min(STRIP_MOST);
    let columns = vec![
        Column::text("address", 0),
        Column::new("size B", 0),
        Column::new("chunk B", 3),
        Column::new("reads", 0),
        Column::new("writes", 0),
        Column::new("acc/B", 4),
        Column::new("threads", 5),
        Column::text("state", 2),
        Column::text("heat", 1),
    ];
    let mut row = |object: &Object| {
        let mut cells = object_cells(object, chunks.get(&object.class).copied());
        cells.push(strip::strip(&object.heat, peak, strip_width));
        let site = sites.get(&object.site);
        Row {
            cells,
            label: Label::of(site.and_then(|site| stacks.telling(site))),
            details: site.map(|site| details(site, options, stacks)).unwrap_or_default(),
        }
    };
    let rows: Vec<Row> = report.objects.iter().map(&mut row).collect();
    let legend = format!(
        "from the object's first byte to its last, the hottest granule of each part, logarithmic; █ = {} accesses",
        count(peak)
    );
    render(columns, "site", &rows, width) + &wrap("heat     ", &legend, width)
}

/// All cells but the heat strip.
fn object_cells(object: &Object, chunk: Option<u64>) -> Vec<String> {
    vec![
        format!("{:#x}", object.addr),
        bytes(object.size),
        chunk.map_or("?".into(), chunk_name),
        count(object.reads),
        count(object.writes),
        heat(object.reads.saturating_add(object.writes), object.size),
        threads(object.threads),
        if object.free_ns.is_some() { "freed".into() } else { "live".into() },
    ]
}

/// Objects above the largest class have pages of their own.
fn chunk_name(chunk: u64) -> String {
    if chunk == 0 { "pages".into() } else { bytes(chunk) }
}

/// The runtime tells up to 63 threads apart.
fn threads(number: u32) -> String {
    if number >= 64 { "64+".into() } else { number.to_string() }
}

fn site_measures(site: &Site) -> Measures {
    Measures { reads: site.reads, writes: site.writes, bytes: site.bytes }
}

fn class_measures(class: &Class) -> Measures {
    let bytes = class.chunk_size.saturating_mul(class.allocs);
    Measures { reads: class.reads, writes: class.writes, bytes }
}

fn details(site: &Site, options: &TopOptions, stacks: &mut Stacks<'_>) -> Vec<Label> {
    if !options.stacks {
        return Vec::new();
    }
    stacks.functions(site).into_iter().map(|function| Label::of(Some(function))).collect()
}
