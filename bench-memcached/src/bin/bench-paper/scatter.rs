//! A plot of points with logarithmic axes.

use plotters::prelude::*;

/// Width and height of the picture.
const SIZE: (u32, u32) = (640, 480);
const COLOUR: RGBColor = RGBColor(78, 121, 167);

/// What to draw.
pub struct Scatter<'a> {
    /// Above the plot.
    pub title: &'a str,
    /// Below the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis.
    pub y: &'a str,
    /// All above 0.
    pub points: &'a [(f64, f64)],
}

impl Scatter<'_> {
    /// The plot as SVG.
    pub fn draw(&self) -> Result<String, String> {
        let mut svg = String::new();
        self.paint(&mut svg).map_err(|e| format!("cannot draw the plot: {e}"))?;
        Ok(svg)
    }

    fn paint(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let range = |values: &dyn Fn(&(f64, f64)) -> f64| {
            let least = self.points.iter().map(values).fold(f64::INFINITY, f64::min);
            let most = self.points.iter().map(values).fold(1.0, f64::max);
            (least.min(most) / 1.5..most * 1.5).log_scale()
        };
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, ("sans-serif", 15))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(range(&|p| p.0), range(&|p| p.1))?;
        chart.configure_mesh().light_line_style(WHITE).x_desc(self.x).y_desc(self.y).draw()?;
        chart.draw_series(self.points.iter().map(|&point| Circle::new(point, 3, COLOUR.filled())))?;
        root.present()?;
        drop(chart);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Scatter;

    #[test]
    fn each_point_is_drawn() {
        let points = [(1.0, 2.0), (10.0, 30.0), (100.0, 250.0)];
        let svg = Scatter { title: "t", x: "x", y: "y", points: &points }.draw().unwrap();
        assert_eq!(svg.matches("<circle").count(), 3);
    }
}
