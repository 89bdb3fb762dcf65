//! Sequences of numbers.

/// Takes fields from the front of bytes that are long enough.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (field, rest) = self.0.split_at(count);
        self.0 = rest;
        field
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("4 bytes"))
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("8 bytes"))
    }

    /// Whether the next `count` bytes are 0.
    pub(super) fn zeros(&mut self, count: usize) -> bool {
        self.bytes(count).iter().all(|&byte| byte == 0)
    }
}

/// Appends numbers.
pub(super) fn put_u32<const N: usize>(bytes: &mut Vec<u8>, numbers: [u32; N]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

pub(super) fn put_u64<const N: usize>(bytes: &mut Vec<u8>, numbers: [u64; N]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}
