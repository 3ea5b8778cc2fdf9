//! What `top --pid` shows: a few lines about the program, the hottest sites, the hottest objects.

use super::change::Change;
use crate::symbols::{Stacks, printable};
use crate::table::{Column, Label, Row, render, shorten};
use crate::top::Measures as Delta;
use crate::units::{bytes, bytes_with_unit, count, duration, heat};
use std::collections::HashMap;
use thermalloc_format::{Site, Summary};

/// Names of sites, kept from one report to the next: finding them takes longer than all else.
#[derive(Default)]
pub struct Labels(HashMap<Vec<u64>, Label>);

impl Labels {
    fn of(&mut self, site: &Site, report: &Summary, stacks: &mut Stacks<'_>) -> Label {
        let ip = |&index: &u32| report.frames.get(index as usize).map(|frame| frame.ip);
        let key: Vec<u64> = site.frames.iter().filter_map(ip).collect();
        let label = self.0.entry(key).or_insert_with(|| Label::of(stacks.telling(site)));
        Label { name: label.name.clone(), place: label.place.clone() }
    }
}

/// How much to show.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Characters of a line.
    pub width: usize,
    /// Sites, and as many objects.
    pub lines: usize,
}

/// The text; lines are no wider than asked for.
pub fn screen(report: &Summary, change: &Change<'_>, labels: &mut Labels, size: Size) -> String {
    let mut stacks = Stacks::new(report);
    let mut text = header(report, change, size.width);
    let seconds = change.elapsed_ns as f64 / 1e9;
    let ids: HashMap<u32, &Site> = report.sites.iter().map(|site| (site.id, site)).collect();
    let sites: Vec<Row> = change
        .sites
        .iter()
        .take(size.lines)
        .map(|(site, delta)| {
            let mut cells = rates(delta, seconds);
            cells.extend([bytes(site.live_bytes), count(site.allocs.saturating_sub(site.frees))]);
            Row { cells, label: labels.of(site, report, &mut stacks), ..Row::default() }
        })
        .collect();
    text += "\n";
    text += &render(
        with_rates(vec![Column::new("live B", 2), Column::new("live", 3)]),
        "site",
        &sites,
        size.width,
    );
    let objects: Vec<Row> = change
        .objects
        .iter()
        .take(size.lines)
        .map(|(object, delta)| {
            let mut cells = rates(delta, seconds);
            cells.extend([bytes(object.size), object.threads.to_string(), format!("{:#x}", object.addr)]);
            let label = ids.get(&object.site).map(|site| labels.of(site, report, &mut stacks));
            Row { cells, label: label.unwrap_or_default(), ..Row::default() }
        })
        .collect();
    text += "\n";
    let columns = vec![Column::new("size B", 0), Column::new("threads", 3), Column::text("object", 1)];
    text + &render(with_rates(columns), "of site", &objects, size.width)
}

fn with_rates(more: Vec<Column>) -> Vec<Column> {
    let rates = [Column::new("reads/s", 0), Column::new("writes/s", 0), Column::new("acc/B/s", 1)];
    rates.into_iter().chain(more).collect()
}

fn rates(delta: &Delta, seconds: f64) -> Vec<String> {
    let each = |number: u64| per_second(number, seconds);
    vec![count(each(delta.reads)), count(each(delta.writes)), heat(each(delta.accesses()), delta.bytes)]
}

fn per_second(number: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (number as f64 / seconds).round() as u64 } else { 0 }
}

fn header(report: &Summary, change: &Change<'_>, width: usize) -> String {
    let (program, totals) = (&report.program, &report.totals);
    let seconds = change.elapsed_ns as f64 / 1e9;
    let command = if program.cmdline.is_empty() { program.exe.clone() } else { program.cmdline.join(" ") };
    let lines = [
        format!("[{}] {}", program.pid, command),
        format!(
            "mode {}, running {}; the last {} are shown",
            report.config.mode,
            duration(program.elapsed_ns),
            duration(change.elapsed_ns)
        ),
        format!(
            "{} reads/s, {} writes/s; {} allocations/s, {} frees/s; {} live",
            count(per_second(change.total.reads, seconds)),
            count(per_second(change.total.writes, seconds)),
            count(per_second(change.allocs, seconds)),
            count(per_second(change.frees, seconds)),
            bytes_with_unit(totals.live_bytes)
        ),
    ];
    lines.iter().map(|line| shorten(&printable(line), width) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Sort;
    use proptest::prelude::*;
    use thermalloc_format::{Object, Program};

    proptest! {
        #[test]
        fn no_line_is_too_wide(
            counts in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>()), 0..6), elapsed_ns: u64,
            command in "\\PC{0,80}|\u{1b}\\[2J", width in 40usize..160, lines in 0usize..9,
        ) {
            let site = |&(reads, bytes, id): &(u64, u64, u32)| Site { id, reads, peak_live_bytes: bytes, frames: vec![id], ..Site::default() };
            let object = |&(writes, size, site): &(u64, u64, u32)| Object { writes, size, site, ..Object::default() };
            let report = Summary {
                program: Program { cmdline: vec![command], elapsed_ns, ..Program::default() },
                sites: counts.iter().map(site).collect(),
                objects: counts.iter().map(object).collect(),
                ..Summary::default()
            };
            let change = Change::between(None, &report, Sort::Heat);
            let text = screen(&report, &change, &mut Labels::default(), Size { width, lines });
            for line in text.lines() {
                prop_assert!(line.chars().count() <= width && !line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}
