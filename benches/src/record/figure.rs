//! A line chart over two logarithmic axes as SVG text, the legend beside the lines.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
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
/// Colours that the colour-blind can tell apart too (after Paul Tol).
const PALETTE: [u32; 10] =
    [0xcc6677, 0x332288, 0x117733, 0xee7733, 0x3399cc, 0xaa4499, 0x999933, 0x882255, 0x44aa99, 0xc8a53c];

type Pixel = (i32, i32);
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

#[derive(Clone, Copy)]
pub(crate) enum Look {
    /// This crate's main line: thick and black.
    Main,
    /// Another line of this crate: the same with hollow marks.
    Ours,
    /// The palette's colour of this number.
    Coloured(usize),
    /// What is only there to compare with: dashed, without marks.
    Reference,
}

pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) look: Look,
    pub(crate) points: Vec<(f64, f64)>,
}

pub(crate) struct Axes {
    pub(crate) x: &'static str,
    pub(crate) x_label: fn(f64) -> String,
    pub(crate) y: &'static str,
}

/// Speeds by powers of two of slots.
pub(crate) const BY_SIZE: Axes =
    Axes { x: "slots", x_label: |slots| format!("2^{}", slots.log2().round()), y: "M lookups/s" };

pub(crate) fn draw(title: &str, axes: &Axes, lines: &[Line]) -> String {
    let mut svg = String::new();
    draw_to(&mut svg, title, axes, lines).expect("text takes whatever is drawn");
    svg
}

fn draw_to(svg: &mut String, title: &str, axes: &Axes, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let canvas = SVGBackend::with_string(svg, (SIZE.0 as u32, SIZE.1 as u32)).into_drawing_area();
    canvas.fill(&WHITE)?;
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0) as i32;
    let legend = SIZE.0 - SAMPLE - 24 - longest * TEXT * 48 / 100;
    let points = || lines.iter().flat_map(|line| &line.points);
    let least = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
    let (x, y) = ((least(|p| p.0) / 1.2, most(|p| p.0) * 1.2), (least(|p| p.1) / 1.2, most(|p| p.1) * 1.2));
    let plot = canvas.margin(50, 12, 12, SIZE.0 - legend + 16);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(50)
        .y_label_area_size(70)
        .build_cartesian_2d((x.0..x.1).log_scale().base(2.0), (y.0..y.1).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(GREY)
        .x_desc(axes.x)
        .x_label_formatter(&|x: &f64| (axes.x_label)(*x))
        .y_desc(axes.y)
        .y_label_formatter(&|y: &f64| format!("{}", (y * 1e3).round() / 1e3))
        .label_style(("sans-serif", TEXT, &INK))
        .axis_desc_style(("sans-serif", TEXT, &INK))
        .draw()?;
    text(&canvas, title, (16, 24), TEXT + 4)?;
    // This crate last, so that it lies above the others.
    let (ours, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| matches!(line.look, Look::Main | Look::Ours));
    for line in others.into_iter().chain(ours) {
        let points: Vec<Pixel> = line.points.iter().map(|point| chart.backend_coord(point)).collect();
        line.look.stroke(&canvas, points.clone())?;
        points.into_iter().try_for_each(|point| line.look.mark(&canvas, point))?;
    }
    for (number, line) in lines.iter().enumerate() {
        let y = 62 + number as i32 * ROW;
        line.look.stroke(&canvas, vec![(legend, y), (legend + SAMPLE, y)])?;
        line.look.mark(&canvas, (legend + SAMPLE / 2, y))?;
        text(&canvas, &line.name, (legend + SAMPLE + 8, y), TEXT)?;
    }
    canvas.present()?;
    Ok(())
}

impl Look {
    fn stroke(self, canvas: &Canvas<'_>, points: Vec<Pixel>) -> Result<(), Box<dyn Error>> {
        match self {
            Look::Main | Look::Ours => canvas.draw(&PathElement::new(points, BLACK.stroke_width(4)))?,
            Look::Coloured(number) => canvas.draw(&PathElement::new(points, colour(number).stroke_width(2)))?,
            Look::Reference => canvas.draw(&DashedPathElement::new(points, 8, 5, GREY.stroke_width(2)))?,
        }
        Ok(())
    }

    fn mark(self, canvas: &Canvas<'_>, (x, y): Pixel) -> Result<(), Box<dyn Error>> {
        match self {
            Look::Main => canvas.draw(&Circle::new((x, y), 6, BLACK.filled()))?,
            Look::Ours => {
                canvas.draw(&Circle::new((x, y), 6, BLACK.filled()))?;
                canvas.draw(&Circle::new((x, y), 4, WHITE.filled()))?;
            }
            Look::Coloured(number) => match number % 3 {
                0 => canvas.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], colour(number).filled()))?,
                1 => canvas.draw(&TriangleMarker::new((x, y), 7, colour(number).filled()))?,
                _ => canvas.draw(&Circle::new((x, y), 4, colour(number).filled()))?,
            },
            Look::Reference => {}
        }
        Ok(())
    }
}

fn colour(number: usize) -> RGBColor {
    let [_, red, green, blue] = PALETTE[number % PALETTE.len()].to_be_bytes();
    RGBColor(red, green, blue)
}

fn text(canvas: &Canvas<'_>, text: &str, at: Pixel, size: i32) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", size).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    canvas.draw(&Text::new(text.to_string(), at, style))?;
    Ok(())
}
