//! A struct seen through its first fields.
#![allow(unsafe_code)]

/// Returns the part of a struct that another type describes.
///
/// # Safety
/// Both types are `repr(C)`, and `From` begins with the fields of `Onto`, of the same types in the same order, except for fields at
/// the end of `Onto` that take no bytes.
#[inline(always)]
pub(crate) unsafe fn begin<From, Onto>(from: &From) -> &Onto {
    const {
        assert!(size_of::<Onto>() <= size_of::<From>() && align_of::<From>().is_multiple_of(align_of::<Onto>()));
    }
    // SAFETY: the bytes are initialized, with the types of `Onto` (the caller's promise), inside `from`, aligned, and borrowed as
    // long as `from`.
    unsafe { &*core::ptr::from_ref(from).cast::<Onto>() }
}
