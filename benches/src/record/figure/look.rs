//! How lines look.

use super::{Canvas, GREY, Pixel};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::error::Error;

/// Colours that the colour-blind can tell apart too (after Paul Tol); ours is black.
const PALETTE: [RGBColor; 10] = [
    RGBColor(204, 102, 119),
    RGBColor(51, 34, 136),
    RGBColor(17, 119, 51),
    RGBColor(238, 119, 51),
    RGBColor(51, 153, 204),
    RGBColor(170, 68, 153),
    RGBColor(153, 153, 51),
    RGBColor(136, 34, 85),
    RGBColor(68, 170, 153),
    RGBColor(200, 165, 60),
];

/// How a line looks.
#[derive(Clone, Copy)]
pub(super) enum Look {
    /// Ours: thick and black; all but the first have hollow marks.
    Ours(usize),
    /// The palette's colour of this number.
    Coloured(usize),
    /// What is only there to compare with: dashed, the second one dotted, without marks.
    Reference(usize),
}

impl Look {
    fn colour(self) -> RGBColor {
        match self {
            Look::Ours(_) => BLACK,
            Look::Coloured(number) => PALETTE[number % PALETTE.len()],
            Look::Reference(_) => GREY,
        }
    }

    /// Draws the line through these points.
    pub(super) fn stroke(self, canvas: &Canvas<'_>, points: Vec<Pixel>) -> Result<(), Box<dyn Error>> {
        let colour = self.colour();
        match self {
            Look::Ours(_) => canvas.draw(&PathElement::new(points, colour.stroke_width(4)))?,
            Look::Coloured(_) => canvas.draw(&PathElement::new(points, colour.stroke_width(2)))?,
            Look::Reference(number) => {
                let dash = if number == 0 { 8 } else { 2 };
                canvas.draw(&DashedPathElement::new(points, dash, 5, colour.stroke_width(2)))?;
            }
        }
        Ok(())
    }

    /// Draws the mark at a point.
    pub(super) fn mark(self, canvas: &Canvas<'_>, (x, y): Pixel) -> Result<(), Box<dyn Error>> {
        let polygon = |corners: &[Pixel]| {
            let corners: Vec<Pixel> = corners.iter().map(|corner| (x + corner.0, y + corner.1)).collect();
            canvas.draw(&Polygon::new(corners, self.colour()))
        };
        match self {
            Look::Ours(number) => {
                canvas.draw(&Circle::new((x, y), 6, BLACK.filled()))?;
                if number > 0 {
                    canvas.draw(&Circle::new((x, y), 4, WHITE.filled()))?;
                }
            }
            Look::Coloured(number) => match number % 5 {
                0 => polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)])?,
                1 => polygon(&[(0, -6), (6, 5), (-6, 5)])?,
                2 => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)])?,
                3 => polygon(&[(0, 6), (6, -5), (-6, -5)])?,
                _ => canvas.draw(&Circle::new((x, y), 4, self.colour().filled()))?,
            },
            Look::Reference(_) => {}
        }
        Ok(())
    }
}
