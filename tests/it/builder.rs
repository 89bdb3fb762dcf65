//! Impossible filters fail with an error that states the reason, and possible ones have the requested size.

use concurrent_cuckoo_filter::{BuildError, Builder, CuckooFilter, InsertError};
use testkit::assert_matches;

fn builder() -> Builder<u64> {
    CuckooFilter::builder().capacity(1000)
}

/// The error of impossible options, the same from `build` and from `memory_usage`.
fn refusal(builder: Builder<u64>) -> BuildError {
    let error = builder.memory_usage().unwrap_err();
    let again = builder.build().unwrap_err();
    assert_eq!(error.to_string(), again.to_string());
    let message = error.to_string();
    assert!(message.chars().next().is_some_and(|first| !first.is_uppercase()), "{message}");
    assert!(!message.ends_with('.') && !message.contains('\n'), "{message}");
    error
}

#[test]
fn a_rate_that_is_none_is_refused() {
    for rate in [f64::NAN, 0.0, -0.0, 1.0, -0.5, 1.5, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, f64::MAX] {
        let error = refusal(builder().false_positive_rate(rate));
        assert!(matches!(error, BuildError::RateOutOfRange { requested, .. } if requested.to_bits() == rate.to_bits()));
        let message = error.to_string();
        assert!(message.contains(&rate.to_string()), "{message}");
        assert!(message.contains("between 0 and 1"), "{message}");
    }
}

#[test]
fn a_rate_too_low_is_refused_with_the_lowest_that_is_possible() {
    for rate in [1e-9, 1e-12, f64::MIN_POSITIVE, f64::from_bits(1)] {
        let error = refusal(builder().false_positive_rate(rate));
        let BuildError::RateTooLow { requested, lowest, .. } = error else { panic!("{error:?}") };
        assert_eq!(requested, rate);
        assert!(rate < lowest && lowest < 2e-9);
        assert!(error.to_string().contains("32 bits"), "{error}");
        // The limit that the error names is possible.
        assert_eq!(builder().false_positive_rate(lowest).build().unwrap().config().fingerprint_bits, 32);
    }
    assert!(refusal(builder().false_positive_rate(1e-12)).to_string().contains("1e-12"));
}

#[test]
fn any_rate_between_is_met() {
    for rate in [0.999_999, 0.5, 0.11, 0.01, 1e-3, 1e-6, 1.9e-9] {
        let filter = builder().false_positive_rate(rate).build().unwrap();
        for key in 0..1000 {
            filter.insert(&key).unwrap();
        }
        assert!(filter.stats().expected_false_positive_rate <= rate, "{rate}");
    }
}

#[test]
fn other_wishes_that_cannot_be_are_refused() {
    for bits in [0, 1, 3, 33, 64, u32::MAX] {
        let error = refusal(builder().fingerprint_bits(bits));
        assert!(matches!(error, BuildError::OutOfRange { requested, .. } if requested == bits));
        let message = error.to_string();
        assert!(message.contains(&format!("{bits} bits")) && message.contains("4 to 32"), "{message}");
    }
    for bits in 4..=32 {
        assert_eq!(builder().fingerprint_bits(bits).build().unwrap().config().fingerprint_bits, bits);
    }
    let error = refusal(builder().false_positive_rate(0.01).fingerprint_bits(12));
    assert!(matches!(error, BuildError::RateAndFingerprintBits { rate: 0.01, bits: 12, .. }));
    assert!(["0.01", "12 bits", "one of them"].iter().all(|word| error.to_string().contains(word)), "{error}");
    let error = refusal(builder().stripes(0));
    assert!(error == BuildError::NoStripes && error.to_string().contains("at least 1"), "{error}");
    let error = refusal(CuckooFilter::builder());
    assert!(error == BuildError::NoCapacity && error.to_string().contains("capacity"), "{error}");
}

/// The words alone would fit, but not the stripes, of 16 buckets each.
#[cfg(target_pointer_width = "64")]
#[test]
fn stripes_that_do_not_fit_the_address_space_are_an_error() {
    for (capacity, bits) in [(0x6000_0000_0000_0000, 6), (1 << 62, 13), (1 << 62, 4)] {
        let builder = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(bits).stripes(usize::MAX);
        assert!(matches!(builder.memory_usage(), Err(BuildError::TooLarge { .. })), "{capacity} at {bits} bits");
        assert!(matches!(builder.build(), Err(BuildError::TooLarge { .. })), "{capacity} at {bits} bits");
    }
}

#[test]
fn a_capacity_beyond_the_address_space_is_refused() {
    for capacity in [usize::MAX, usize::MAX - 1, usize::MAX / 2, isize::MAX as usize] {
        for bits in [16, 32] {
            let error = refusal(CuckooFilter::builder().capacity(capacity).fingerprint_bits(bits));
            let BuildError::TooLarge { capacity: asked, fingerprint_bits, .. } = error else { panic!("{error:?}") };
            assert_eq!((asked, fingerprint_bits), (capacity, bits));
            let message = error.to_string();
            assert!(message.contains(&capacity.to_string()) && message.contains("address space"), "{message}");
        }
    }
}

/// More than the page tables of any machine address, but less than an `isize`: only the system can refuse it.
#[cfg(target_pointer_width = "64")]
#[test]
fn memory_that_the_system_refuses_is_an_error_and_not_an_abort() {
    for capacity in [usize::MAX / 64, 10usize.pow(17), 10usize.pow(16), 10usize.pow(15)] {
        for bits in [4, 32] {
            let builder = CuckooFilter::<u64>::builder().capacity(capacity).fingerprint_bits(bits);
            let said = builder.memory_usage().unwrap();
            let error = builder.build().unwrap_err();
            let BuildError::OutOfMemory { bytes, .. } = error else { panic!("{error:?}") };
            assert_eq!(bytes, said);
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        }
    }
}

#[test]
fn the_first_impossible_wish_does_not_hide_a_panic_in_the_next() {
    for capacity in [0, 1, usize::MAX] {
        for rate in [None, Some(f64::NAN), Some(0.5), Some(1e-300)] {
            for bits in [None, Some(0), Some(16), Some(u32::MAX)] {
                for stripes in [None, Some(0), Some(1), Some(usize::MAX)] {
                    let mut builder = CuckooFilter::<u64>::builder().capacity(capacity);
                    if let Some(rate) = rate {
                        builder = builder.false_positive_rate(rate);
                    }
                    if let Some(bits) = bits {
                        builder = builder.fingerprint_bits(bits);
                    }
                    if let Some(stripes) = stripes {
                        builder = builder.stripes(stripes);
                    }
                    let _ = format!("{builder:?}");
                    let possible = capacity < 2
                        && matches!((rate, bits), (None, None | Some(16)) | (Some(0.5), None))
                        && stripes != Some(0);
                    // An empty table has any rate.
                    let possible = possible || (capacity, rate, bits) == (0, Some(1e-300), None) && stripes != Some(0);
                    assert_eq!(builder.build().is_ok(), possible, "{capacity} {rate:?} {bits:?} {stripes:?}");
                }
            }
        }
    }
}

#[test]
fn a_builder_can_be_used_twice() {
    let builder = builder().false_positive_rate(0.01);
    let (first, second) = (builder.clone().build().unwrap(), builder.build().unwrap());
    assert_eq!(first.config().fingerprint_bits, second.config().fingerprint_bits);
    assert_eq!(first.memory_usage(), second.memory_usage());
    // Each has seeds of its own.
    assert!((0..10).any(|key| first.hash(&key) != second.hash(&key)));
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn memory_is_reserved_not_written() {
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        // In pages, of at least 4 KiB.
        statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    // The first filter of a process, and those after it.
    for built in 1..=3 {
        let before = resident();
        let filter = match CuckooFilter::<u64>::builder().capacity(1_050_000_000).fingerprint_bits(32).build() {
            Ok(filter) => filter,
            Err(BuildError::OutOfMemory { .. }) => return println!("not tried: this system has no 4 GiB"),
            Err(error) => panic!("{error}"),
        };
        assert!(filter.memory_usage() > 4 << 30);
        filter.insert(&1).unwrap();
        assert!(filter.contains(&1) && !filter.contains(&2));
        filter.clear();
        let growth = resident().saturating_sub(before);
        println!("filter {built}: {} bytes, {growth} more resident", filter.memory_usage());
        // The other tests of this program run concurrently, and take a few MiB.
        assert!(growth < 256 << 20, "filter {built}: {growth} bytes became resident, of {}", filter.memory_usage());
    }
}

/// In a process of its own, whose memory nothing else takes: a growing filter allocates nothing unless the system grants all of
/// its initial memory.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_growing_filter_that_begins_too_large_is_refused_at_once() {
    const ALONE: &str = "CUCKOO_ALONE";
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let kilobytes = |text: &str, name: &str| -> usize {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    // About 300 GB of tables and 64 GB of cells. A system that grants memory it does not have would let them be written.
    let has_them = kilobytes(&read("/proc/meminfo"), "MemTotal:") > 200_000_000;
    if has_them || read("/proc/sys/vm/overcommit_memory").trim() == "1" {
        return println!("not tried: this system grants hundreds of gigabytes");
    }
    if std::env::var_os(ALONE).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["builder::a_growing_filter_that_begins_too_large_is_refused_at_once", "--exact", "--nocapture"])
            .env(ALONE, "")
            .stdout(std::process::Stdio::null())
            .status();
        return assert!(status.unwrap().success());
    }
    let builder = || builder().capacity(1_000_000).max_capacity(10_usize.pow(15));
    let (whole, error) = (builder().memory_usage().unwrap(), builder().build().unwrap_err());
    assert!(matches!(error, BuildError::OutOfMemory { bytes, .. } if bytes == whole), "{error}");
    let peak = kilobytes(&read("/proc/self/status"), "VmHWM:");
    assert!(peak < 60_000, "{peak} kB were written before {whole} bytes were refused");
}

#[test]
fn no_number_of_keys_takes_more_than_the_largest_size() {
    let builder = || builder().max_capacity(1_000_000);
    let largest = builder().memory_usage_at(10_000_000).unwrap();
    assert_eq!(builder().memory_usage_at(usize::MAX).unwrap(), largest);
    assert!(largest < 3_600_000, "{largest}");
}

#[test]
fn a_filter_of_a_list_holds_each_of_its_keys_once() {
    let keys: Vec<String> = (0..1000).map(|number| format!("key {}", number % 900)).collect();
    let filter = CuckooFilter::<str>::builder().items(keys.iter().map(String::as_str)).unwrap();
    assert_eq!(filter.capacity(), 1000);
    assert!(filter.len() > 890 && filter.len() <= 900, "{}", filter.len());
    assert!(keys.iter().all(|key| filter.contains(key)));
    let more = CuckooFilter::<u64>::builder().capacity(5000).items([1, 2, 3]).unwrap();
    assert_eq!((more.capacity(), more.len()), (5000, 3));
    let none = Builder::<u64>::default().items([0; 0]).unwrap();
    assert!(none.is_empty() && none.capacity() == 0);
    let refused = CuckooFilter::<u32>::builder().capacity(10).items(0..1000).unwrap_err();
    assert_matches!(refused, BuildError::Refused { index: 10.., error: InsertError::Full, .. });
    assert!(refused.to_string().contains("of the list was refused"), "{refused}");
}
