//! Asks the processor to fetch a cache line before it is needed. The only unsafe code that ships.

/// Begins to fetch the line of the value into the nearest cache. Changes nothing that a program can see; empty where
/// there is no such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    let address = core::ptr::from_ref(value);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[allow(unsafe_code)]
    // SAFETY: 1. a prefetch reads nothing and faults at no address; 2. SSE, which has it, is part of every x86-64.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    #[allow(unsafe_code)]
    // SAFETY: 1. a prefetch reads nothing and faults at no address; 2. it changes no register, flag or stack.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
