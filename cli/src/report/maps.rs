//! The heat map: time across; sites, classes or addresses down; accesses per byte and second in each cell. Wherever several
//! things share a row, the row shows the hottest of them, never a mean.

use super::level::{encode, level};
use super::names::text;
use super::objects::{Objects, PAGE, Part, accesses};
use super::spread::Spread;
use serde::Serialize;
use std::collections::HashMap;
use thermalloc_format::{Report, Site};

/// Rows at most.
pub const ROWS: usize = 120;

/// The heat map in its three views.
#[derive(Clone, Debug, Serialize)]
pub struct HeatMap {
    /// Start of each column, in ns.
    pub starts_ns: Vec<u64>,
    /// End of the last column, in ns.
    pub end_ns: u64,
    /// By site, by class, by address.
    pub views: Vec<View>,
}

/// One view.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// `site`, `class` or `address`.
    pub by: &'static str,
    /// The rows, in their order.
    pub rows: Vec<Row>,
    /// Rates, row by row, two characters each; see [`super::level`].
    pub cells: String,
}

/// What a row stands for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// What to call it, if it is no site.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Id of the site, or of the hottest one in the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<u32>,
    /// Bytes that it stands for.
    pub bytes: u64,
    /// Accesses.
    pub accesses: u64,
}

/// All three views.
pub fn heat_map<H>(report: &Report<H>, objects: &Objects) -> HeatMap {
    let spread = Spread::new(&report.timeline, report.program.elapsed_ns);
    let views = vec![
        by_site(&report.sites, &spread),
        by_class(report, objects, &spread),
        by_address(objects, &spread),
    ];
    HeatMap { starts_ns: spread.axis.starts().to_vec(), end_ns: spread.axis.end_ns, views }
}

/// Rates of one row, of which each cell keeps the highest.
struct Cells(Vec<f64>);

impl Cells {
    fn new(spread: &Spread) -> Self {
        Self(vec![0.0; spread.axis.columns()])
    }

    /// Takes accesses per byte in each column.
    fn raise(&mut self, spread: &Spread, per_byte: impl Iterator<Item = f64>) {
        for (column, (cell, value)) in self.0.iter_mut().zip(per_byte).enumerate() {
            *cell = cell.max(value / spread.axis.seconds(column));
        }
    }
}

fn view(by: &'static str, rows: Vec<(Row, Cells)>) -> View {
    let cells = encode(rows.iter().flat_map(|(_, cells)| cells.0.iter().map(|&rate| level(rate))));
    View { by, rows: rows.into_iter().map(|(row, _)| row).collect(), cells }
}

fn by_site(sites: &[Site], spread: &Spread) -> View {
    let count = |site: &Site| site.reads.saturating_add(site.writes);
    let mut order: Vec<&Site> = sites.iter().filter(|site| spread.site(site.id).is_some()).collect();
    order.sort_by_key(|site| (std::cmp::Reverse(count(site)), site.id));
    let shown = if order.len() > ROWS { ROWS - 1 } else { order.len() };
    let mut rows = Vec::new();
    for chunk in order[..shown].chunks(1).chain([&order[shown..]]).filter(|chunk| !chunk.is_empty()) {
        let mut cells = Cells::new(spread);
        let mut row = Row { site: Some(chunk[0].id), ..Row::default() };
        for site in chunk {
            let bytes = site.peak_live_bytes.max(1);
            let counts = spread.site(site.id).unwrap_or_default();
            cells.raise(spread, counts.iter().map(|count| count / bytes as f64));
            row.bytes = row.bytes.saturating_add(bytes);
            row.accesses = row.accesses.saturating_add(count(site));
        }
        if chunk.len() > 1 {
            row.label = format!("the hottest of {} further sites", chunk.len());
        }
        rows.push((row, cells));
    }
    view("site", rows)
}

fn by_class<H>(report: &Report<H>, objects: &Objects, spread: &Spread) -> View {
    let chunks: HashMap<u32, u64> = report.classes.iter().map(|class| (class.id, class.chunk_size)).collect();
    let mut rows: HashMap<u32, (Row, Cells, u64)> = HashMap::new();
    for object in &objects.all {
        let count = accesses(object);
        let (row, cells, hottest) =
            rows.entry(object.class).or_insert_with(|| (Row::default(), Cells::new(spread), 0));
        row.bytes = row.bytes.saturating_add(object.size);
        row.accesses = row.accesses.saturating_add(count);
        if row.site.is_none() || count > *hottest {
            (row.site, *hottest) = (Some(object.site), count);
        }
        let per_byte = count as f64 / object.size.max(1) as f64;
        cells.raise(spread, spread.object(object).into_iter().map(|share| share * per_byte));
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    let chunk_size = |id: &u32| chunks.get(id).copied().unwrap_or(0);
    // Objects with pages of their own are the largest.
    rows.sort_by_key(|(id, _)| (chunk_size(id) == 0, chunk_size(id), *id));
    rows.truncate(ROWS);
    let labelled = rows.into_iter().map(|(id, (row, cells, _))| {
        let label = match chunk_size(&id) {
            0 => format!("class {id}: whole pages"),
            size => format!("class {id}: chunks of {size} B"),
        };
        (Row { label, ..row }, cells)
    });
    view("class", labelled.collect())
}

fn by_address(objects: &Objects, spread: &Spread) -> View {
    let mut pages: Vec<u64> = objects.parts.iter().map(|part| part.page).collect();
    pages.sort_unstable();
    pages.dedup();
    let per_row = pages.len().div_ceil(ROWS).max(1);
    let count = pages.len().div_ceil(per_row);
    let mut rows: Vec<(Row, Cells, f64)> =
        (0..count).map(|_| (Row::default(), Cells::new(spread), -1.0)).collect();
    let mut ends = vec![0; count];
    let mut share = (u32::MAX, Vec::new());
    for part in &objects.parts {
        let place = pages.binary_search(&part.page).unwrap_or_else(|place| place) / per_row;
        let Some(((row, cells, hottest), object)) =
            rows.get_mut(place).zip(objects.all.get(part.object as usize))
        else {
            continue;
        };
        if share.0 != part.object {
            share = (part.object, spread.object(object));
        }
        cells.raise(spread, share.1.iter().map(|share| share * f64::from(part.peak)));
        row.accesses = row.accesses.saturating_add(part.accesses as u64);
        ends[place] = ends[place].max(end_of(part));
        if part.accesses > *hottest {
            (row.site, *hottest) = (Some(object.site), part.accesses);
        }
    }
    let labelled = rows.into_iter().enumerate().map(|(at, (row, cells, _))| {
        let held = &pages[at * per_row..((at + 1) * per_row).min(pages.len())];
        let label = format!("{:#x} to {:#x}", held[0].saturating_mul(PAGE), ends[at]);
        let bytes = (held.len() as u64).saturating_mul(PAGE);
        (Row { label: text(&label), bytes, ..row }, cells)
    });
    view("address", labelled.collect())
}

/// The first address behind a part's pages.
fn end_of(part: &Part) -> u64 {
    part.page.saturating_add(part.pages).saturating_mul(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thermalloc_format::{Heat, Object, Timeline};

    /// One hot granule in a gigabyte of cold objects must be as hot in its row as it is alone.
    #[test]
    fn a_hot_spot_in_a_cold_region_keeps_its_rate() {
        let mut objects = Objects::default();
        for at in 0..100_000u64 {
            let hot = at == 54_321;
            let reads = if hot { vec![0, 0, 1_600, 0] } else { vec![0, 0, 0, 1] };
            let sum = reads.iter().sum();
            let heat = Heat { granule: 16, reads, writes: vec![0; 4] };
            let last = Some(1_000_000_000);
            objects.push(Object {
                addr: at * 8192,
                size: 64,
                site: u32::from(hot),
                reads: sum,
                heat,
                first_access_ns: Some(0),
                last_access_ns: last,
                ..Object::default()
            });
        }
        let report: Report = Report {
            program: thermalloc_format::Program { elapsed_ns: 1_000_000_000, ..Default::default() },
            timeline: Timeline { interval_ns: 1_000_000_000, t_ns: vec![0], sites: vec![] },
            ..Report::default()
        };
        let map = heat_map(&report, &objects);
        let address = &map.views[2];
        assert!(address.rows.len() <= ROWS);
        let hottest = address.rows.iter().position(|row| row.site == Some(1)).unwrap();
        let cell = &address.cells[2 * hottest..2 * hottest + 2];
        assert_eq!(cell, encode([level(100.0)]));
    }
}
