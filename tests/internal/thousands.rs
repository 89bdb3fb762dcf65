/// A number for people: 1,234,567.
pub fn thousands(number: impl TryInto<u64, Error: std::fmt::Debug>) -> String {
    let digits = number.try_into().expect("a count").to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
