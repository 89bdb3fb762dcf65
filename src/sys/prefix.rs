//! A struct seen through the fields that it begins with.
#![allow(unsafe_code)]

/// Returns the part of a struct that another type describes.
///
/// # Safety
/// Both types are `repr(C)`, and `From` begins with the fields of `Onto`, of the same types in the same order, but for fields of
/// `Onto` behind these that take no bytes.
#[inline(always)]
pub(crate) unsafe fn begin<From, Onto>(from: &From) -> &Onto {
    const {
        assert!(size_of::<Onto>() <= size_of::<From>() && align_of::<From>().is_multiple_of(align_of::<Onto>()));
    }
    // SAFETY: 1. the bytes are initialized and of the types that `Onto` has there (the caller's promise); they are inside of `from`,
    // at a sufficient alignment, and borrowed as long as it is.
    unsafe { &*core::ptr::from_ref(from).cast::<Onto>() }
}
