//! Line charts as SVG text, the legend beside the lines.

mod axis;
mod look;

pub(crate) use axis::Axis;

use look::Look;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

const SIZE: (i32, i32) = (900, 480);
const TEXT: i32 = 16;
/// The legend's lines of text, and the sample beside each.
const ROW: i32 = 24;
const SAMPLE: i32 = 36;
const INK: RGBColor = RGBColor(40, 40, 40);
const GREY: RGBColor = RGBColor(110, 110, 110);

type Pixel = (i32, i32);
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

struct Line {
    name: String,
    look: Look,
    points: Vec<(f64, f64)>,
}

/// Lines over two axes.
///
/// ```ignore
/// let svg = Figure::new("Lookups by table size", Axis::log("slots"), Axis::log("M/s"))
///     .ours("this crate", points)
///     .line("a peer", points)
///     .reference("the limit", points)
///     .svg();
/// ```
pub(crate) struct Figure {
    title: String,
    x: Axis,
    y: Axis,
    lines: Vec<Line>,
}

impl Figure {
    /// A chart without lines.
    pub(crate) fn new(title: &str, x: Axis, y: Axis) -> Self {
        Figure { title: title.into(), x, y, lines: Vec::new() }
    }

    /// Adds a line of this crate: bold and black, with hollow marks if it is not the first.
    pub(crate) fn ours(self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let number = self.lines.iter().filter(|line| matches!(line.look, Look::Ours(_))).count();
        self.add(name, Look::Ours(number), points)
    }

    /// Adds a line in the next colour.
    pub(crate) fn line(self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let number = self.lines.iter().filter(|line| matches!(line.look, Look::Coloured(_))).count();
        self.coloured(number, name, points)
    }

    /// Adds a line in the colour of this number, so that a peer looks the same in several figures.
    pub(crate) fn coloured(self, number: usize, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.add(name, Look::Coloured(number), points)
    }

    /// Adds a grey line to compare with, dashed or, if it is not the first, dotted.
    pub(crate) fn reference(self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let number = self.lines.iter().filter(|line| matches!(line.look, Look::Reference(_))).count();
        self.add(name, Look::Reference(number), points)
    }

    fn add(mut self, name: &str, look: Look, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.lines.push(Line { name: name.into(), look, points: points.into_iter().collect() });
        self
    }

    /// Draws it.
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("text takes whatever is drawn");
        svg
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let canvas = SVGBackend::with_string(svg, (SIZE.0 as u32, SIZE.1 as u32)).into_drawing_area();
        canvas.fill(&WHITE)?;
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0) as i32;
        let legend = SIZE.0 - SAMPLE - 24 - longest * TEXT * 48 / 100;

        let values = |of: fn(&(f64, f64)) -> f64| self.lines.iter().flat_map(|line| &line.points).map(of);
        let x = self.x.scale(values(|point| point.0));
        let y = self.y.scale(values(|point| point.1));
        let plot = canvas.margin(50, 12, 12, SIZE.0 - legend + 16);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(50)
            .y_label_area_size(70)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .axis_style(GREY)
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .label_style(("sans-serif", TEXT, &INK))
            .axis_desc_style(("sans-serif", TEXT, &INK))
            .draw()?;
        text(&canvas, &self.title, (16, 24), TEXT + 4)?;

        // Ours last, so that it lies above the others.
        let (ours, others): (Vec<_>, Vec<_>) = self.lines.iter().partition(|line| matches!(line.look, Look::Ours(_)));
        for line in others.into_iter().chain(ours) {
            let shown = |point: &&(f64, f64)| x.shows(point.0) && y.shows(point.1);
            let points: Vec<Pixel> = line.points.iter().filter(shown).map(|point| chart.backend_coord(point)).collect();
            line.look.stroke(&canvas, points.clone())?;
            for point in points {
                line.look.mark(&canvas, point)?;
            }
        }
        for (number, line) in self.lines.iter().enumerate() {
            let y = 62 + number as i32 * ROW;
            line.look.stroke(&canvas, vec![(legend, y), (legend + SAMPLE, y)])?;
            line.look.mark(&canvas, (legend + SAMPLE / 2, y))?;
            text(&canvas, &line.name, (legend + SAMPLE + 8, y), TEXT)?;
        }
        canvas.present()?;
        Ok(())
    }
}

fn text(canvas: &Canvas<'_>, text: &str, at: Pixel, size: i32) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", size).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    canvas.draw(&Text::new(text.to_string(), at, style))?;
    Ok(())
}
