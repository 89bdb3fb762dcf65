//! Prefetches of cache lines.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLevel {
    L1,
    /// For lines in memory: on many processors more of them can be in flight than L1 keeps track of.
    L2,
}

/// Returns the level to which batches fetch the lines of a table of this size, if any.
pub(crate) fn level_for(table_bytes: usize) -> Option<CacheLevel> {
    #[cfg(test)]
    if let Some(level) = CHOSEN.get() {
        return level;
    }
    let [fetched, into_l2] = sizes();
    match table_bytes {
        bytes if bytes < fetched => None,
        bytes if bytes < into_l2 => Some(CacheLevel::L1),
        _ => Some(CacheLevel::L2),
    }
}

/// Returns the level to which writers fetch lines of tables that no core's own caches hold.
pub(crate) fn far_level() -> CacheLevel {
    if sizes()[1] == usize::MAX { CacheLevel::L1 } else { CacheLevel::L2 }
}

/// Returns the sizes of tables, in bytes, from which lines are fetched, and from which they are fetched into L2.
///
/// In a core's own caches, reads start as early as prefetches. Of lines in a shared cache, prefetches double the speed on Intel's
/// Sapphire Rapids (tables of 4 to 14 MB) and gain a tenth on Zen 3. On Zen 4, which executes 320 instructions ahead, they cost a tenth.
/// On Zen 5 they cost up to a tenth, too, but double the speed where other work has evicted the lines; into L2, they are then slower
/// than none.
fn sizes() -> [usize; 2] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // Only processors of AMD have SSE4a; of them, Zen 5 is the first with this instruction.
        let is_amd = std::arch::is_x86_feature_detected!("sse4a");
        let is_zen_5 = is_amd && std::arch::is_x86_feature_detected!("avx512vp2intersect");
        return if is_zen_5 {
            [4 << 20, usize::MAX]
        } else if is_amd {
            [16 << 20; 2]
        } else {
            [2 << 20; 2]
        };
    }
    [1 << 19, 8 << 20]
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
