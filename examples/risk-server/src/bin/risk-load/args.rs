//! What options may be.

use std::time::Duration;

/// Longer runs are mistakes.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "a whole number from 1 on is needed".to_owned())
}

/// Connections of one thread; systems have about 1000 open files for a process, unless told otherwise.
pub(crate) fn connections(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=900).contains(number));
    number.ok_or_else(|| "a whole number from 1 to 900 is needed".to_owned())
}

pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a number from 0 to 100 is needed".to_owned())
}

pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|&rate| 0.0 < rate && rate < 1.0);
    rate.ok_or_else(|| "a number above 0 and below 1 is needed".to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    duration(text, 1.0)
}

pub(crate) fn minutes(text: &str) -> Result<Duration, String> {
    duration(text, 60.0)
}

fn duration(text: &str, unit: f64) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number * unit).ok());
    let duration = duration.filter(|&duration| !duration.is_zero() && duration <= LONGEST);
    duration.ok_or_else(|| format!("a number above 0 and up to {} is needed", LONGEST.as_secs_f64() / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_finite_positive_and_not_of_days() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(minutes("0.5"), Ok(Duration::from_secs(30)));
        for text in ["", "x", "0", "-1", "inf", "nan", "1e9"] {
            assert!(seconds(text).is_err() && minutes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!((at_least_one("1"), percent("5"), connections("900")), (Ok(1), Ok(5.0), Ok(900)));
        assert!(at_least_one("0").is_err() && percent("100.1").is_err() && percent("nan").is_err());
        assert_eq!((rate("0.5"), rate("0").is_err(), rate("1").is_err()), (Ok(0.5), true, true));
        assert!(connections("0").is_err() && connections("901").is_err());
    }
}
