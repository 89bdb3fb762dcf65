//! Numbers for people.

use std::time::Duration;

/// With a comma before every three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits and a unit.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (number, unit) = match seconds {
        _ if seconds < 1e-3 => (seconds * 1e6, "us"),
        _ if seconds < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.digits$} {unit}")
}

/// A time, or a dash for none.
pub(crate) fn some_time(some: Option<Duration>) -> String {
    some.map_or_else(|| "-".to_owned(), time)
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// The one in the middle, or the mean of both.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        length if length.is_multiple_of(2) => f64::midpoint(numbers[half - 1], numbers[half]),
        _ => numbers[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(count), ["0", "12", "999", "1,000", "1,234,567"]);
        let times =
            [(0, "0.00 us"), (9_876, "9.88 us"), (98_760, "98.8 us"), (987_600, "988 us"), (1_000_000, "1.00 ms")];
        for (nanos, text) in times {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(time(Duration::from_millis(12_340)), "12.3 s");
        assert_eq!(mebibytes(3 << 19), "1.5 MiB");
    }

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
