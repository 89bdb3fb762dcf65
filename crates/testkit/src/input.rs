//! The bytes that the fuzzer chose, read one after the other.

/// The bytes that are left.
#[derive(Clone)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of them.
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    /// Returns the next byte; `None` at the end.
    pub fn next_byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Returns the next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        self.next_byte().unwrap_or(0)
    }

    /// Picks one of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// Takes this many bytes, or those that are left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Returns whether these bytes are among the few for which something slow is tried. The checksum decides, because the fuzzer
/// cannot steer by it: it keeps inputs that reach new code, and would soon run slow ones only.
pub fn is_one_of(many: u32, bytes: &[u8]) -> bool {
    crc32c::crc32c(bytes).is_multiple_of(many)
}
