//! Sequences of operations on filters that keep a number beside each key, against what each key was promised: it lives its
//! time, its count is not too low, it has its tags. What others of its class add is not judged.

use crate::input::Input;
use concurrent_cuckoo_filter::{CountingFilter, ExpiringFilter, StableHashBuilder, TaggedFilter};
use std::time::Duration;

const CAPACITIES: [usize; 6] = [0, 3, 17, 50, 80, 200];
const RATES: [f64; 4] = [0.3, 0.05, 0.001, 1e-5];
const KEYS: usize = 64;

/// Draws a filter of one of the three kinds and a sequence of operations from the bytes.
///
/// # Panics
///
/// If a key is not given what it was promised.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.byte() % 4 {
        0 => expiring(&mut input, false),
        1 => expiring(&mut input, true),
        2 => counting(&mut input),
        _ => tagged(&mut input),
    }
}

fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_seeds(5, 6)
}

/// Copies with deadlines of their own that are removed, or keys that are seen.
fn expiring(input: &mut Input, are_seen: bool) {
    const TICK: Duration = Duration::from_secs(10);
    let (capacity, rate, steps) = (input.pick(&CAPACITIES), input.pick(&RATES), input.pick(&[2, 6, 14, 30]));
    let builder = ExpiringFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate).steps(steps);
    let mut filter = builder.time_to_live(steps * TICK).hasher(hasher()).build().expect("every shape is possible");
    let (most, mut now) = (u64::from(steps) + 1, 0);
    // Ticks at which the copies of each key die, in order.
    let mut deadlines = vec![Vec::<u64>::new(); KEYS];
    while let (Some(what), Some(number)) = (input.next_byte(), input.next_byte()) {
        let key = u64::from(number) % KEYS as u64;
        let mine = &mut deadlines[key as usize];
        let lives = !mine.is_empty();
        match what % 16 {
            0..4 if !are_seen => {
                let life = u64::from(what >> 4) % most;
                if filter.insert_for(&key, life as u32 * TICK).is_ok() {
                    mine.push(now + life + 1);
                    mine.sort_unstable();
                }
            }
            4..7 if !are_seen && lives => {
                assert!(filter.remove(&key), "key {key} lives");
                mine.remove(0);
            }
            0..4 => match filter.see(&key) {
                Ok(seen) => {
                    assert!(seen || !lives, "key {key} was seen");
                    *mine = vec![now + most];
                }
                Err(_) => assert!(!lives),
            },
            4..6 if are_seen => match filter.insert_unique(&key) {
                Ok(true) => {
                    assert!(!lives, "key {key} lives");
                    mine.push(now + most);
                }
                Ok(false) => {}
                Err(_) => assert!(!lives),
            },
            6 if are_seen => {
                assert!(filter.renew(&key) || !lives, "key {key} lives");
                mine.iter_mut().for_each(|deadline| *deadline = now + most);
            }
            10 => _ = filter.sweep(number.into()),
            11 => {
                filter.advance();
                now += 1;
            }
            12 => {
                let ticks = u64::from(number % 40);
                assert_eq!(filter.advance_to((now + ticks) as u32 * TICK), ticks);
                now += ticks;
            }
            13 => {
                let (mut bytes, ticks) = (Vec::new(), u64::from(number % 4));
                filter.write_to(&mut bytes).expect("there is memory");
                filter = ExpiringFilter::read_from(&bytes[..], hasher()).expect("it was just written");
                assert_eq!(filter.advance_to(ticks as u32 * TICK), ticks);
                // Time is counted from the snapshot on.
                deadlines.iter_mut().flatten().for_each(|deadline| *deadline = deadline.saturating_sub(now));
                now = ticks;
            }
            _ => assert!(filter.contains(&key) || !lives, "key {key} lives"),
        }
        deadlines.iter_mut().for_each(|mine| mine.retain(|&deadline| deadline > now));
    }
    let all = |key: &u64| filter.contains(key) || deadlines[*key as usize].is_empty();
    assert!((0..KEYS as u64).all(|key| all(&key)), "all keys live");
    (0..=most).for_each(|_| _ = filter.advance());
    assert!(filter.is_empty(), "everything dies");
}

/// Counts that stay, or die when their key is not added for a time.
fn counting(input: &mut Input) {
    const STEPS: u32 = 6;
    let (capacity, rate, bits) = (input.pick(&CAPACITIES), input.pick(&RATES), input.pick(&[1, 4, 8]));
    let builder = CountingFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate).counter_bits(bits);
    let dies = input.byte().is_multiple_of(2);
    let builder = if dies { builder.time_to_idle(STEPS * Duration::from_secs(1)) } else { builder };
    let filter = builder.hasher(hasher()).build();
    // No slot is wide enough for the lowest rate, a large counter and a time.
    let Ok(filter) = filter else { return };
    // Of each key, and the tick at which it dies.
    let (mut counts, mut now) = (vec![(0, 0); KEYS], 0);
    let enough = |told: u32, count: u32| told >= count.min(filter.config().max_count);
    while let (Some(what), Some(key)) = (input.next_byte(), input.next_byte()) {
        let key = usize::from(key) % KEYS;
        let (count, dies_at) = &mut counts[key];
        match what % 16 {
            0 if dies => {
                filter.advance();
                now += 1;
                counts.iter_mut().filter(|(_, dies_at)| *dies_at <= now).for_each(|(count, _)| *count = 0);
            }
            1..4 if *count > 0 => {
                let left = filter.subtract(&(key as u64)).expect("it is counted");
                *count -= 1;
                assert!(enough(left, *count), "key {key} is counted {count} times");
            }
            4 => {
                let told = filter.try_add(&(key as u64), 3);
                if told.as_ref().is_ok_and(Option::is_some) {
                    (*count, *dies_at) = (*count + 1, now + STEPS + 1);
                }
                assert!(
                    told.is_err()
                        || told != Ok(None)
                        || filter.count(&(key as u64)) >= 3.min(filter.config().max_count)
                );
            }
            _ => match filter.add(&(key as u64)) {
                Ok(told) => {
                    (*count, *dies_at) = (*count + 1, now + STEPS + 1);
                    assert!(enough(told, *count), "key {key} was counted {count} times");
                }
                Err(_) => assert_eq!(*count, 0, "key {key} has a slot"),
            },
        }
    }
    let is_enough = |(key, &(count, _)): (usize, &(u32, u32))| enough(filter.count(&(key as u64)), count);
    assert!(counts.iter().enumerate().all(is_enough), "a count is too low");
}

fn tagged(input: &mut Input) {
    let (capacity, rate, tags) = (input.pick(&CAPACITIES), input.pick(&RATES), input.pick(&[1, 3, 15, 200]));
    let builder = TaggedFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate).tags(tags);
    let filter = builder.hasher(hasher()).build().expect("every shape is possible");
    let mut mine = vec![Vec::new(); KEYS];
    while let (Some(what), Some(key)) = (input.next_byte(), input.next_byte()) {
        let (key, tag) = (u64::from(key) % KEYS as u64, u32::from(what >> 2) % tags);
        let mine = &mut mine[key as usize];
        match (what % 4, mine.pop()) {
            (0, Some(last)) => assert!(filter.remove(&key, last), "key {key} has the tag {last}"),
            (1, Some(last)) => {
                assert_eq!(filter.retag(&key, last, tag), Ok(true), "key {key} has the tag {last}");
                mine.push(tag);
            }
            (_, last) => {
                mine.extend(last);
                mine.extend(filter.insert(&key, tag).is_ok().then_some(tag));
            }
        }
        let mut told: Vec<u32> = filter.tags(&key).collect();
        for tag in mine {
            let place = told.iter().position(|other| other == tag);
            told.swap_remove(place.unwrap_or_else(|| panic!("key {key} has the tag {tag}")));
        }
    }
    assert_eq!(filter.len(), mine.iter().map(Vec::len).sum::<usize>());
}
