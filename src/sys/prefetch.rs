//! Prefetches of cache lines.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLevel {
    L1,
    /// For lines in memory: more of them can be in flight than L1 keeps track of, which gains 40 % where all of them miss.
    L2,
}

/// Returns the level to which batches fetch the lines of a table of this size, if any. In a core's own caches, reads start as early
/// as prefetches; on a processor with AVX-512, which looks far ahead (320 instructions on Zen 4, 512 on Sapphire Rapids), also in a
/// shared cache: a prefetch of tables of 1.7 to 14 MB costs a tenth of the speed there, and gains a tenth on Zen 3.
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

/// Makes this thread fetch to this level, for any processor and size of the table.
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

/// Fetches the line of a value, where the processor has an instruction for it. No effect that a program can see.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T, into: CacheLevel) {
    prefetch_at(core::ptr::from_ref(value), into);
}

/// Fetches the line of any address. See [`prefetch`].
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
