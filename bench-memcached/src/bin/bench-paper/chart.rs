//! The bar chart: each row's time relative to native in each scope, with the paper's numbers beside ours.

use crate::measure::Run;
use crate::results::Results;
use crate::rows::ROWS;
use crate::table::paper_words;
use thermalloc_bench::bars::{Bar, Bars, COLOURS};

/// Width of the picture.
const WIDTH: u32 = 1000;

/// The chart as SVG.
pub fn draw(results: &Results) -> Result<String, String> {
    // The paper's bars, then one colour for each scope.
    let names = std::iter::once("paper (writes to slab pages)").chain(results.scopes.iter().map(|s| s.name));
    let groups = ROWS.iter().map(|row| (row.name, bars(results, row.name)));
    let chart = Bars {
        caption: "memcached: server time a request, relative to native (logarithmic)",
        width: WIDTH,
        legend: names.zip(COLOURS).collect(),
        groups: groups.filter(|(_, bars)| !bars.is_empty()).collect(),
    };
    chart.draw()
}

fn bars(results: &Results, name: &str) -> Vec<Bar> {
    let ours = results.scopes.iter().zip(&COLOURS[1..]).filter_map(|(scope, colour)| {
        let line = results.line(name, scope.name)?;
        Some(Bar::new(results.ratio(line, Run::cpu_us).map(|spread| spread.median), *colour))
    });
    let paper = results.scopes.first().and_then(|scope| {
        let line = results.line(name, scope.name)?;
        let ratio = line.row.paper?;
        Some(Bar { ratio: Some(ratio), words: paper_words(line, ratio), colour: COLOURS[0] })
    });
    paper.into_iter().chain(ours).collect()
}
