//! Asks the processor to fetch a cache line before it is needed.

/// How near the line is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLevel {
    /// In the nearest cache.
    L1,
    /// In the second: for lines that come from memory. More of them can be on their way than the first cache keeps
    /// track of, which is worth 40 % where all of them miss.
    L2,
}

/// Where batches fetch the lines of a table of this size to, before they read them. Of those in a core's own caches, reads
/// are as early as a prefetch is; and a processor with AVX-512 looks so far ahead (320 instructions on Zen 4, 512 on Sapphire
/// Rapids) that this holds for a shared cache too: a prefetch of tables of 1.7 to 14 MB costs a tenth of the speed there, and
/// brings a tenth on Zen 3.
pub(crate) fn level_for(table_bytes: usize) -> Option<CacheLevel> {
    #[cfg(test)]
    if let Some(level) = CHOSEN.get() {
        return level;
    }
    const OWN: usize = 1 << 19;
    const SHARED: usize = 8 << 20;
    match table_bytes {
        0..OWN => None,
        OWN..SHARED if !looks_far_ahead() => Some(CacheLevel::L1),
        bytes if bytes < 2 * SHARED && looks_far_ahead() => None,
        _ => Some(CacheLevel::L2),
    }
}

#[cfg(test)]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Option<CacheLevel>>> = const { std::cell::Cell::new(None) };
}

/// Has this thread fetch to this level, whatever the processor and the size of the table.
#[cfg(test)]
pub(crate) fn choose_level(level: Option<CacheLevel>) {
    CHOSEN.set(Some(level));
}

fn looks_far_ahead() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// Begins to fetch the line of the value. Changes nothing that a program can see; empty where there is no such
/// instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T, into: CacheLevel) {
    prefetch_at(core::ptr::from_ref(value), into);
}

/// The same of an address, whatever is there.
#[inline(always)]
pub(crate) fn prefetch_at<T>(address: *const T, into: CacheLevel) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[allow(unsafe_code)]
    // SAFETY: 1. a prefetch reads nothing and faults at no address; 2. SSE, which has it, is part of every x86-64.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match into {
            CacheLevel::L1 => _mm_prefetch::<_MM_HINT_T0>(address.cast()),
            CacheLevel::L2 => _mm_prefetch::<_MM_HINT_T1>(address.cast()),
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    #[allow(unsafe_code)]
    // SAFETY: 1. a prefetch reads nothing and faults at no address; 2. it changes no register, flag or stack.
    unsafe {
        use core::arch::asm;
        match into {
            CacheLevel::L1 => {
                asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly))
            }
            CacheLevel::L2 => {
                asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly))
            }
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = (address, into);
}
