//! Axes: where values lie, and which are marked.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis: its name, how values are spread over it, and where it is marked.
pub(crate) struct Axis {
    pub(super) name: String,
    log: bool,
    range: Option<(f64, f64)>,
    ticks: Option<Vec<f64>>,
    label: fn(f64) -> String,
}

impl Axis {
    /// An axis with even steps.
    pub(crate) fn linear(name: &str) -> Self {
        Axis { name: name.into(), log: false, range: None, ticks: None, label: plain }
    }

    /// An axis on which equal ratios are equally far apart.
    pub(crate) fn log(name: &str) -> Self {
        Axis { log: true, ..Axis::linear(name) }
    }

    /// Shows the values from `low` to `high`, instead of all that the lines have.
    pub(crate) fn range(self, low: f64, high: f64) -> Self {
        Axis { range: Some((low, high)), ..self }
    }

    /// Marks these values, instead of round ones.
    pub(crate) fn ticks(self, ticks: impl IntoIterator<Item = f64>) -> Self {
        Axis { ticks: Some(ticks.into_iter().collect()), ..self }
    }

    /// Writes `label(value)` at a marked value, instead of the number.
    pub(crate) fn labels(self, label: fn(f64) -> String) -> Self {
        Axis { label, ..self }
    }

    /// The scale of this axis for lines of these values.
    pub(super) fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let values = values.filter(|&value| !self.log || value > 0.0);
        let spanned = values.map(|value| (value, value)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
        let (low, high) = self.range.or(spanned).unwrap_or((1.0, 10.0));
        let ticks = self.ticks.clone().unwrap_or_else(|| if self.log { decades(low, high) } else { steps(low, high) });
        let mut scale = Scale { ends: (low, high), log: self.log, label: self.label, ticks };
        // The axis ends a little beyond a mark, unless it was told where to end.
        if let (None, Some(&first), Some(&last)) = (self.range, scale.ticks.first(), scale.ticks.last()) {
            scale.ends = (low.min(first), high.max(last));
            scale.ends = (scale.value(-0.015), scale.value(1.015));
        }
        scale
    }
}

/// An axis that knows its ends.
#[derive(Clone)]
pub(super) struct Scale {
    ends: (f64, f64),
    log: bool,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

impl Scale {
    /// Where a value lies: 0 at the low end, 1 at the high one.
    fn part(&self, value: f64) -> f64 {
        let (low, high) = self.ends;
        if self.log { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) }
    }

    fn value(&self, part: f64) -> f64 {
        let (low, high) = self.ends;
        if self.log { low * (high / low).powf(part) } else { low + (high - low) * part }
    }

    pub(super) fn shows(&self, value: f64) -> bool {
        (self.ends.0..=self.ends.1).contains(&value)
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        first + (f64::from(last - first) * self.part(*value)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.iter().copied().filter(|&tick| self.shows(tick)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        plain(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

fn plain(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// Round values around `low` and `high`, and evenly between them.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low).max(1e-9) / 6.0;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * decade).find(|&step| step >= rough).unwrap_or(rough);
    let (first, last) = ((low / step + 1e-6).floor() as i64, (high / step - 1e-6).ceil() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Round values around `low` and `high`, and between them: decades, or 1, 2 and 5 of each where there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let within = if high / low > 2e3 { &[1.0][..] } else { &[1.0, 2.0, 5.0] };
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let round: Vec<f64> =
        (first..=last).flat_map(|decade| within.iter().map(move |digit| digit * 10f64.powi(decade))).collect();
    let first = round.iter().rposition(|&value| value <= low * 1.000_001).unwrap_or(0);
    let last = round.iter().position(|&value| value >= high * 0.999_999).unwrap_or(round.len() - 1);
    round[first..=last.max(first + 1)].to_vec()
}
