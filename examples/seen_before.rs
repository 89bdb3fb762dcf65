//! Detects repeated events in a stream within a time window: `cargo run --release -p examples --bin seen_before`.
//!
//! The stream is generated, so the exact result is known. Each event goes to an [`ExpiringFilter`] and to an exact map
//! of times. The report has the numbers of events admitted as new and found as repeated, of false positives, with their
//! rate and the requested one, and of events that expired too early (none), and the memory of both.

use clap::Parser;
use concurrent_cuckoo_filter::ExpiringFilter;
use fastrand::Rng;
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

/// Detects repeated events in a stream within a time window.
#[derive(Parser)]
struct Arguments {
    /// Events per second.
    #[arg(long, default_value_t = 200_000)]
    events: u32,
    /// Percentage of events that repeat an event of the last two windows.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=100))]
    repeated: u32,
    /// Length of the window in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    window: u32,
    /// Number of windows.
    #[arg(long, default_value_t = 6)]
    windows: u32,
    /// Fraction of new events that may be mistaken for repeated ones.
    #[arg(long, default_value_t = 0.001)]
    rate: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { events, repeated, window, windows, rate } = Arguments::parse();
    let time = Duration::from_secs(window.into());
    let each_window = events as usize * window as usize;
    let seen = ExpiringFilter::<u64>::builder();
    let seen = seen.capacity(each_window).false_positive_rate(rate).time_to_live(time).build()?;
    let tick = seen.config().tick.expect("its keys expire");

    let mut random = Rng::with_seed(1);
    // The exact map that the filter replaces: the last time of each event.
    let mut exact = HashMap::<u64, Duration>::new();
    let [mut admitted, mut new, mut wrong, mut late, mut forgotten, mut newest] = [0_u64; 6];
    let (all, step) = (each_window as u64 * u64::from(windows), Duration::from_secs(1) / events.max(1));
    let mut now = Duration::ZERO;
    for number in 0..all {
        now += step;
        // In a program with a clock, a timer does this several times per tick.
        if number.is_multiple_of(1_000) {
            seen.advance_to(now);
        }
        let event = if random.u32(..100) < repeated && newest > 0 {
            newest - random.u64(..(2 * each_window as u64).min(newest))
        } else {
            newest += 1;
            newest
        };
        let found = seen.see(&event)?;
        let age = exact.insert(event, now).map(|last| now - last);
        admitted += u64::from(!found);
        // Calls of `advance_to` are up to a thousand events apart.
        match age {
            Some(age) if age + 1_000 * step < time => forgotten += u64::from(!found),
            Some(age) if age <= time + tick + 1_000 * step => late += u64::from(found && age > time),
            _ => {
                new += 1;
                wrong += u64::from(found);
            }
        }
    }

    println!("{events} events per second, stored for {time:?} in steps of {tick:?}");
    println!("admitted as new       {admitted:>10}");
    println!("found as repeated     {:>10}", all - admitted);
    println!("  within a step more  {late:>10}");
    let share = wrong as f64 / new.max(1) as f64;
    println!("  false positives     {wrong:>10}   {share:.5} of the new events; requested: {rate}");
    println!("expired too early     {forgotten:>10}");
    let (bytes, remembered) = (seen.memory_usage() as f64, each_window as f64);
    let (megabytes, bits) = (bytes / 1e6, 8.0 * bytes / remembered);
    println!("memory                {megabytes:>10.1} MB   {bits:.1} bits per event of the window");
    // A key of 8 bytes, a time of 16, and a byte of the map, at a load of 7/16 to 7/8.
    println!("an exact map at least {:>10.1} MB", remembered * 25.0 * 8.0 / 7.0 / 1e6);
    assert_eq!(forgotten, 0, "an event expired too early");
    Ok(())
}
