//! The bytes that the fuzzer chose, drawn one after the other.

/// What is left of them.
#[derive(Clone)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of them.
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    /// `None` at the end.
    pub fn next_byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// 0 at the end.
    pub fn byte(&mut self) -> u8 {
        self.next_byte().unwrap_or(0)
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// This many bytes, or those that are left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Whether these bytes are among the few with which something slow is tried. Their checksum decides, which no fuzzer
/// steers by: what it keeps because it is slow and new would soon be all that it does.
pub fn is_one_of(many: u32, bytes: &[u8]) -> bool {
    crc32c::crc32c(bytes).is_multiple_of(many)
}
