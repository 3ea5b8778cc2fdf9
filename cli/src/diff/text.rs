//! The comparison as tables for a terminal.

use super::compare::{Change, Comparison, Kind, Run};
use crate::table::{Column, Label, Row, render, shorten, wrap};
use crate::units::{bytes_with_unit, count, duration, heat};
use thermalloc_format::Site;

/// At most `n` sites of each kind; the unchanged are only counted. Lines have at most `width` characters.
pub fn text(comparison: &Comparison, n: usize, width: usize) -> String {
    let mut text = run("old      ", &comparison.old, width) + &run("new      ", &comparison.new, width);
    for note in &comparison.notes {
        text += &wrap("warning  ", note, width);
    }
    text += &wrap("sites    ", &counts(comparison), width);
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Unchanged) {
        let changes: Vec<&Change> = comparison.of(kind).collect();
        if changes.is_empty() {
            continue;
        }
        let shown = changes.len().min(n);
        let rest =
            if shown < changes.len() { format!(", {shown} of {}", changes.len()) } else { String::new() };
        text += &format!("\n{}\n", shorten(&format!("{}{rest}", kind.word()), width));
        text += &table(comparison, &changes[..shown], width);
    }
    text
}

fn run(label: &str, run: &Run, width: usize) -> String {
    let totals = &run.totals;
    let line = format!(
        "{}: {} reads, {} writes, {} allocations of {}, {}: {}",
        run.path,
        count(totals.reads),
        count(totals.writes),
        count(totals.allocs),
        bytes_with_unit(totals.bytes),
        duration(run.elapsed_ns),
        run.command
    );
    shorten(&format!("{label}{line}"), width) + "\n"
}

fn counts(comparison: &Comparison) -> String {
    let of = |kind: Kind| format!("{} {}", count(comparison.of(kind).count() as u64), kind.word());
    let counts: Vec<String> = Kind::ALL.into_iter().map(of).collect();
    let what = if comparison.relative { "shares of all " } else { "" };
    let threshold = comparison.threshold_percent;
    format!("{} (by {what}{}, within {threshold} %)", counts.join(", "), comparison.measure())
}

fn table(comparison: &Comparison, changes: &[&Change], width: usize) -> String {
    let columns = vec![
        Column::new("old", 0),
        Column::new("new", 0),
        Column::new("change", 0),
        Column::new("times", 2),
        Column::new("old acc/B", 1),
        Column::new("new acc/B", 1),
        Column::new("old B", 3),
        Column::new("new B", 3),
    ];
    let row = |change: &&Change| Row {
        cells: vec![
            value(comparison, change.before()),
            value(comparison, change.after()),
            signed(comparison, change.difference()),
            times(change),
            per_byte(change.old.as_ref().map(|side| &side.sum)),
            per_byte(change.new.as_ref().map(|side| &side.sum)),
            bytes(change.old.as_ref().map(|side| &side.sum)),
            bytes(change.new.as_ref().map(|side| &side.sum)),
        ],
        label: Label::of(change.shown.as_ref()),
        details: Vec::new(),
    };
    let rows: Vec<Row> = changes.iter().map(row).collect();
    render(columns, "site", &rows, width)
}

fn value(comparison: &Comparison, value: f64) -> String {
    if comparison.relative { format!("{:.2} %", value * 100.0) } else { count(value as u64) }
}

fn signed(comparison: &Comparison, difference: f64) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", value(comparison, difference.abs()))
}

fn times(change: &Change) -> String {
    match (change.before(), change.after()) {
        (0.0, _) | (_, 0.0) => "-".into(),
        (before, after) if after / before >= 10.0 => count((after / before) as u64),
        (before, after) => format!("{:.2}", after / before),
    }
}

fn per_byte(site: Option<&Site>) -> String {
    site.map_or("-".into(), |site| heat(site.reads.saturating_add(site.writes), site.bytes))
}

fn bytes(site: Option<&Site>) -> String {
    site.map_or("-".into(), |site| crate::units::bytes(site.bytes))
}
