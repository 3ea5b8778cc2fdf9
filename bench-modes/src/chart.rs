//! The bar chart: each program's processor time relative to native, in each column.

use crate::columns::{COLUMNS, Column, NATIVE};
use crate::lines::{Line, Lines};
use thermalloc_bench::bars::{Bar, Bars, COLOURS, Colour, number};

/// Width of a program's bars.
const GROUP: u32 = 130;
/// Width of all else.
const MARGIN: u32 = 100;

/// The chart as SVG.
pub fn draw(lines: &Lines) -> Result<String, String> {
    let mut columns = lines.columns();
    columns.retain(|column| column.name != NATIVE);
    let programs = lines.programs(false).into_iter().chain(lines.programs(true));
    let mut groups: Vec<(&str, Vec<Bar>)> = programs
        .map(|native| {
            let found = columns.iter().filter_map(|column| lines.line(native.program, column.name));
            (native.program, found.map(|line| bar(lines, line)).collect())
        })
        .collect();
    let means = lines.means(true);
    let bars = means.iter().filter(|mean| mean.column.name != NATIVE);
    groups.push((
        "geometric mean",
        bars.map(|mean| labelled(Some(mean.cpu), mean.at_least, &mean.column)).collect(),
    ));
    groups.retain(|(_, bars)| !bars.is_empty());
    let chart = Bars {
        caption: "user and system time relative to native (logarithmic); servers: for one request, not in the mean",
        width: MARGIN + GROUP * groups.len().max(5) as u32,
        legend: columns.iter().map(|column| (column.title, colour(column))).collect(),
        groups,
    };
    chart.draw()
}

fn colour(column: &Column) -> Colour {
    let place = COLUMNS.iter().position(|other| other.name == column.name);
    COLOURS[place.unwrap_or(0) % COLOURS.len()]
}

fn bar(lines: &Lines, line: &Line) -> Bar {
    let ratio = lines.ratio(line, |run| run.cpu_s).map(|spread| spread.median);
    let bar = labelled(ratio, line.stopped(), &line.column);
    if line.failed.is_some() { Bar { words: "FAILED".into(), ..bar } } else { bar }
}

fn labelled(ratio: Option<f64>, at_least: bool, column: &Column) -> Bar {
    let bar = Bar::new(ratio, colour(column));
    match ratio {
        Some(ratio) if at_least => Bar { words: format!(">{}", number(ratio)), ..bar },
        _ => bar,
    }
}

#[cfg(test)]
mod tests {
    use crate::lines::tests::lines;

    #[test]
    fn bounds_failures_and_skips_are_written_at_their_bars() {
        let svg = super::draw(&lines()).unwrap();
        for words in ["&gt;9.00", "FAILED", "skipped", "1.50", "geometric mean", "patch --budget 5"] {
            assert!(svg.contains(words), "no {words} in {svg}");
        }
    }
}
