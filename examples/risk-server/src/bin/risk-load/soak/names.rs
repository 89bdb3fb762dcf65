//! The names of the keys of a soak.

use crate::keys::{Kind, made};

/// Stable keys have these first numbers, keys that come and go the others.
const OF_OTHERS: u64 = 1 << 40;

/// Keys that are put in the beginning and never removed.
pub(super) fn stable(number: usize) -> String {
    spiced(made(Kind::Listed, number as u64), number)
}

/// Keys that come and go.
pub(super) fn changing(number: usize) -> String {
    spiced(made(Kind::Churn, number as u64), number)
}

/// Keys that many change at a time.
pub(super) fn contended(number: usize) -> String {
    made(Kind::Churn, OF_OTHERS + number as u64)
}

/// Keys that are never put; some are close to others that are.
pub(super) fn never(rng: &mut fastrand::Rng, stable_keys: usize) -> String {
    match rng.u8(..4) {
        0 => stable(rng.usize(..stable_keys)) + "x",
        1 => stable(rng.usize(..stable_keys)).to_uppercase(),
        _ => made(Kind::Absent, rng.u64(..1 << 40)),
    }
}

/// Some keys are no domains: they need escapes, or more than one byte a character.
fn spiced(key: String, number: usize) -> String {
    match number % 40 {
        0 => format!("{key}/ü 100%?#"),
        1 => format!("\"{key}\\😀"),
        2 => key.repeat(1000 / key.len()),
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risk_server::list::check_key;
    use std::collections::HashSet;

    #[test]
    fn no_key_has_the_name_of_another_one() {
        let stable_keys: Vec<String> = (0..2000).map(stable).collect();
        let put: HashSet<String> =
            stable_keys.into_iter().chain((0..2000).map(changing)).chain((0..2000).map(contended)).collect();
        assert_eq!(put.len(), 6000);
        assert!(put.iter().all(|key| check_key(key).is_ok()));
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let never = never(&mut rng, 2000);
            assert!(!put.contains(&never) && check_key(&never).is_ok(), "{never}");
        }
    }
}
