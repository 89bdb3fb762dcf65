//! Contestants that take turns, and what is told of them.

/// What each contestant's operation cost in each turn, in nanoseconds.
pub(crate) struct Turns(Vec<Vec<f64>>);

impl Turns {
    /// Lets each contestant do its work once a turn, there and back: `cost` is told its number.
    pub(crate) fn take(turns: usize, contestants: usize, mut cost: impl FnMut(usize) -> f64) -> Self {
        let mut costs = vec![Vec::new(); contestants];
        for turn in 0..turns {
            for place in 0..contestants {
                let contestant = if turn % 2 == 0 { place } else { contestants - 1 - place };
                costs[contestant].push(cost(contestant));
            }
        }
        Turns(costs)
    }

    /// Millions of operations a second, the median of the turns.
    pub(crate) fn speed(&self, contestant: usize) -> f64 {
        1e3 / median(&self.0[contestant])
    }

    /// How many times as fast as the contestant the first one was: `median (least to most)` of the turns.
    pub(crate) fn ratio(&self, contestant: usize) -> String {
        let ratios: Vec<f64> = self.0[contestant].iter().zip(&self.0[0]).map(|(theirs, ours)| theirs / ours).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        if contestant == 0 {
            return "1".into();
        }
        format!("{} ({} to {})", times(median(&ratios)), times(least), times(most))
    }
}

/// A ratio with two or three digits.
fn times(ratio: f64) -> String {
    if ratio < 9.995 { format!("{ratio:.2}") } else { format!("{ratio:.1}") }
}

/// The middle one of the values; of an even number of them, the higher of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
