//! The bar chart: each row's time relative to native in each scope, with the paper's numbers beside ours.

use crate::measure::Run;
use crate::results::Results;
use crate::table::paper_words;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::Text;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height of the picture.
const SIZE: (u32, u32) = (1000, 460);
/// The paper's bars, then one colour for each scope.
const COLOURS: [RGBColor; 4] =
    [RGBColor(153, 153, 153), RGBColor(78, 121, 167), RGBColor(225, 87, 89), RGBColor(89, 161, 79)];
/// Where bars begin, so that a ratio of 1 can be seen on a logarithmic axis.
const FLOOR: f64 = 0.5;
/// Part of a row's width that its bars take.
const GROUP: f64 = 0.84;

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<RangedCoordf64, plotters::coord::combinators::LogCoord<f64>>,
>;
type Failure = Box<dyn std::error::Error>;

/// A bar, or the words that stand in its place.
struct Bar {
    ratio: Option<f64>,
    words: String,
    colour: RGBColor,
}

/// The chart as SVG.
pub fn draw(results: &Results) -> Result<String, String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        paint(&root, results).map_err(|e| format!("cannot draw the chart: {e}"))?;
    }
    Ok(svg)
}

fn groups(results: &Results) -> Vec<(&'static str, Vec<Bar>)> {
    crate::rows::ROWS
        .iter()
        .map(|row| (row.name, bars(results, row.name)))
        .filter(|(_, bars)| !bars.is_empty())
        .collect()
}

fn bars(results: &Results, name: &str) -> Vec<Bar> {
    let ours = results.scopes.iter().zip(&COLOURS[1..]).filter_map(|(scope, colour)| {
        let line = results.line(name, scope.name)?;
        let ratio = results.ratio(line, Run::cpu_us).map(|spread| spread.median);
        let words = ratio.map_or("skipped".into(), |ratio| {
            if ratio < 100.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
        });
        Some(Bar { ratio, words, colour: *colour })
    });
    let paper = results.scopes.first().and_then(|scope| {
        let line = results.line(name, scope.name)?;
        let ratio = line.row.paper?;
        Some(Bar { ratio: Some(ratio), words: paper_words(line, ratio), colour: COLOURS[0] })
    });
    paper.into_iter().chain(ours).collect()
}

fn paint(root: &DrawingArea<SVGBackend, Shift>, results: &Results) -> Result<(), Failure> {
    let groups = groups(results);
    let highest = groups.iter().flat_map(|(_, bars)| bars).filter_map(|bar| bar.ratio).fold(10.0, f64::max);
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(root)
        .caption("memcached: server time a request, relative to native (logarithmic)", ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..groups.len() as f64, (FLOOR..highest * 3.0).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .label_style(("sans-serif", 12))
        .draw()?;
    for (at, (name, bars)) in groups.iter().enumerate() {
        group(&mut chart, at as f64, bars)?;
        let centre = Pos::new(HPos::Center, VPos::Top);
        let style = ("sans-serif", 13).into_font().color(&BLACK).pos(centre);
        let place = chart.backend_coord(&(at as f64 + 0.5, FLOOR));
        root.draw(&Text::new(*name, (place.0, place.1 + 8), style))?;
    }
    legend(root, results)?;
    root.present()?;
    Ok(())
}

fn group(chart: &mut Chart, left: f64, bars: &[Bar]) -> Result<(), Failure> {
    let width = GROUP / bars.len() as f64;
    for (at, bar) in bars.iter().enumerate() {
        let from = left + (1.0 - GROUP) / 2.0 + at as f64 * width;
        let top = bar.ratio.unwrap_or(FLOOR);
        let corners = [(from, FLOOR), (from + width * 0.92, top)];
        chart.draw_series([Rectangle::new(corners, bar.colour.filled())])?;
        let style = ("sans-serif", 10).into_font().color(&BLACK);
        let (style, place) = match bar.ratio {
            Some(_) => (style.pos(Pos::new(HPos::Center, VPos::Bottom)), (from + width * 0.46, top * 1.04)),
            // Upright, so that neighbours do not overlap.
            None => (
                style
                    .transform(FontTransform::Rotate270)
                    .color(&bar.colour)
                    .pos(Pos::new(HPos::Left, VPos::Center)),
                (from + width * 0.46, FLOOR * 1.08),
            ),
        };
        chart.draw_series([Text::new(bar.words.clone(), place, style)])?;
    }
    Ok(())
}

fn legend(root: &DrawingArea<SVGBackend, Shift>, results: &Results) -> Result<(), Failure> {
    let names =
        std::iter::once("paper (writes to slab pages)").chain(results.scopes.iter().map(|scope| scope.name));
    let mut x = 70;
    for (name, colour) in names.zip(COLOURS) {
        root.draw(&Rectangle::new([(x, 44), (x + 12, 56)], colour.filled()))?;
        root.draw(&Text::new(name, (x + 17, 45), ("sans-serif", 12).into_font().color(&BLACK)))?;
        x += 45 + 7 * name.len() as i32;
    }
    Ok(())
}
