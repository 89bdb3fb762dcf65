//! At most five failed logins per address in ten minutes: `cargo run --release -p examples --bin login_limit`.
//!
//! The failures are generated, so the exact result is known. Most addresses fail a few times, and a few attackers all
//! the time. Each failure goes to a [`CountingFilter`] and to an exact map of windows. The report has the admitted
//! failures, those refused by the filter alone, because of another address or within the tick by which a window may be
//! longer, and the memory of both.

use clap::Parser;
use concurrent_cuckoo_filter::CountingFilter;
use fastrand::Rng;
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::time::Duration;

/// Limits the failed logins per address within a window.
#[derive(Parser)]
struct Arguments {
    /// Failures per second, a fifth of them by attackers.
    #[arg(long, default_value_t = 500)]
    failures: u32,
    /// Number of attackers.
    #[arg(long, default_value_t = 20)]
    attackers: u32,
    /// Failures per address and window.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=16))]
    limit: u32,
    /// Length of a window in minutes.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Number of windows.
    #[arg(long, default_value_t = 6)]
    windows: u32,
    /// Fraction of addresses that may share a window with another one.
    #[arg(long, default_value_t = 0.001)]
    rate: f64,
    /// Restart the window with each admitted failure (`time_to_idle`).
    #[arg(long)]
    idle: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { failures, attackers, limit, minutes, windows, rate, idle } = Arguments::parse();
    let time = Duration::from_secs(60 * u64::from(minutes));
    let each_window = failures as usize * 60 * minutes as usize;
    // Each failure may have another address.
    let limiter = CountingFilter::<u32>::builder().capacity(each_window).false_positive_rate(rate);
    let limiter = if idle { limiter.time_to_idle(time) } else { limiter.time_to_live(time) }.build()?;
    let tick = limiter.config().tick.expect("counts die");

    let mut random = Rng::with_seed(1);
    // The exact map that the filter replaces: the end of the window of each address, and its count.
    let mut exact = HashMap::<u32, (Duration, u32)>::new();
    let mut let_through = HashMap::<u32, VecDeque<Duration>>::new();
    let (mut both, mut refused, mut too_late, mut shared, mut most) = (0_u64, 0_u64, 0_u64, 0_u64, 0);
    let step = Duration::from_secs(1) / failures.max(1);
    let mut now = Duration::ZERO;
    for number in 0..each_window as u64 * u64::from(windows) {
        now += step;
        // In a program with a clock, a timer does this several times per tick.
        if number.is_multiple_of(1_000) {
            limiter.advance_to(now);
        }
        let attacks = attackers > 0 && random.u32(..5) == 0;
        let address = if attacks { random.u32(..attackers) } else { random.u32(1 << 24..) };
        let passes = limiter.try_add(&address, limit)?.is_some();
        let (end, count) = exact.entry(address).or_default();
        let expected = now >= *end || *count < limit;
        // A window is at most one tick longer; calls of `advance_to` are up to a thousand failures apart.
        let just_ended = now >= *end && now < *end + tick + 1_000 * step;
        match (passes, expected) {
            (true, _) => both += 1,
            (false, false) => refused += 1,
            (false, true) if just_ended => too_late += 1,
            (false, true) => shared += 1,
        }
        if passes {
            if now >= *end {
                (*end, *count) = (now + time, 0);
            } else if idle {
                *end = now + time;
            }
            *count += 1;
            if attacks {
                let times = let_through.entry(address).or_default();
                times.push_back(now);
                while times[0] + time <= now + 1_000 * step {
                    times.pop_front();
                }
                most = most.max(times.len() as u32);
            }
        }
    }

    println!("{failures} failed logins per second, at most {limit} per address in {time:?}, in steps of {tick:?}");
    println!("admitted                     {both:>10}");
    println!("refused                      {refused:>10}");
    println!("  within one more step       {too_late:>10}");
    println!("  because of another address {shared:>10}");
    println!("maximum per attacker within {time:?}: {most}");
    println!("memory                {:>10.2} MB", limiter.memory_usage() as f64 / 1e6);
    // An address, a time of 16 bytes, a count and a byte of the map, at a load of 7/16 to 7/8.
    println!("an exact map at least {:>10.2} MB", each_window as f64 * 25.0 * 8.0 / 7.0 / 1e6);
    assert!(most <= if idle { limit } else { 2 * limit - 1 }, "an attacker was admitted too often");
    Ok(())
}
