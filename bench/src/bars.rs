//! Grouped bars on a logarithmic axis of ratios, each with its value above it.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::Text;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Of a bar.
pub type Colour = RGBColor;

/// Colours to tell series by.
pub const COLOURS: [Colour; 6] = [
    RGBColor(153, 153, 153),
    RGBColor(78, 121, 167),
    RGBColor(225, 87, 89),
    RGBColor(89, 161, 79),
    RGBColor(176, 122, 161),
    RGBColor(242, 142, 43),
];
/// Where bars begin, so that a ratio of 1 can be seen on a logarithmic axis.
const FLOOR: f64 = 0.5;
/// Part of a group's width that its bars take.
const GROUP: f64 = 0.84;
/// Height of the picture.
const HEIGHT: u32 = 460;

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<RangedCoordf64, plotters::coord::combinators::LogCoord<f64>>,
>;
type Failure = Box<dyn std::error::Error>;

/// A bar, or the words that stand in its place.
pub struct Bar {
    /// Its height; `None`: the words stand there alone.
    pub ratio: Option<f64>,
    /// What is written above it.
    pub words: String,
    /// That of its series.
    pub colour: Colour,
}

impl Bar {
    /// A bar of its value, or "skipped".
    pub fn new(ratio: Option<f64>, colour: Colour) -> Self {
        let words = ratio.map_or("skipped".into(), number);
        Self { ratio, words, colour }
    }
}

/// A ratio in as many digits as one wants to read.
pub fn number(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

/// The whole picture.
pub struct Bars<'a> {
    /// Above it.
    pub caption: &'a str,
    /// Its width; the height is always the same.
    pub width: u32,
    /// Names of the series, with their colours.
    pub legend: Vec<(&'a str, Colour)>,
    /// Names of the groups, with their bars.
    pub groups: Vec<(&'a str, Vec<Bar>)>,
}

impl Bars<'_> {
    /// The chart as SVG.
    pub fn draw(&self) -> Result<String, String> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (self.width, HEIGHT)).into_drawing_area();
            self.paint(&root).map_err(|e| format!("cannot draw the chart: {e}"))?;
        }
        Ok(svg)
    }

    fn paint(&self, root: &DrawingArea<SVGBackend, Shift>) -> Result<(), Failure> {
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        let highest = bars.filter_map(|bar| bar.ratio).fold(10.0, f64::max);
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(root)
            .caption(self.caption, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(28)
            .y_label_area_size(48)
            .build_cartesian_2d(0.0..self.groups.len() as f64, (FLOOR..highest * 3.0).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .light_line_style(WHITE)
            .label_style(("sans-serif", 12))
            .draw()?;
        for (at, (name, bars)) in self.groups.iter().enumerate() {
            group(&mut chart, at as f64, bars)?;
            let centre = Pos::new(HPos::Center, VPos::Top);
            let style = ("sans-serif", 13).into_font().color(&BLACK).pos(centre);
            let place = chart.backend_coord(&(at as f64 + 0.5, FLOOR));
            root.draw(&Text::new(*name, (place.0, place.1 + 8), style))?;
        }
        self.explain(root)?;
        root.present()?;
        Ok(())
    }

    fn explain(&self, root: &DrawingArea<SVGBackend, Shift>) -> Result<(), Failure> {
        let mut x = 70;
        for (name, colour) in &self.legend {
            root.draw(&Rectangle::new([(x, 44), (x + 12, 56)], colour.filled()))?;
            root.draw(&Text::new(*name, (x + 17, 45), ("sans-serif", 12).into_font().color(&BLACK)))?;
            x += 45 + 7 * name.len() as i32;
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bar_has_its_words_and_what_is_skipped_says_so() {
        let bars = vec![
            Bar::new(Some(2.5), COLOURS[1]),
            Bar::new(Some(250.4), COLOURS[2]),
            Bar::new(None, COLOURS[3]),
        ];
        let chart =
            Bars { caption: "c", width: 500, legend: vec![("one", COLOURS[1])], groups: vec![("g", bars)] };
        let svg = chart.draw().unwrap();
        for words in ["2.50", "250", "skipped", "one"] {
            assert!(svg.lines().any(|line| line.trim() == words), "no {words} in {svg}");
        }
    }
}
