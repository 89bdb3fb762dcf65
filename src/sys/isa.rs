//! Functions compiled once per instruction set that makes them faster, and selected at run time.

pub(crate) trait Function<C, I, O> {
    /// Always inlined, with all functions that it calls, so that it is compiled for the instruction set of its caller.
    fn run(context: &C, input: I) -> O;
}

/// As [`Function`], for a function that names instructions of AVX2.
pub(crate) trait Avx2Function<C, I, O> {
    /// Always inlined, as [`Function::run`].
    #[cfg_attr(not(all(target_arch = "x86_64", not(miri))), expect(dead_code, reason = "never called without AVX2"))]
    fn run(context: &C, input: I, avx2: Avx2) -> O;
}

/// A proof that this processor has AVX2 and BMI2, and [unaligned loads](super::unaligned::AVAILABLE).
#[derive(Clone, Copy)]
pub(crate) struct Avx2(
    #[cfg(all(target_arch = "x86_64", not(miri)))] (),
    #[cfg(not(all(target_arch = "x86_64", not(miri))))] pub(super) core::convert::Infallible,
);

/// The body of a function for this processor.
pub(crate) struct Compiled<C, I, O>(unsafe fn(&C, I) -> O);

impl<C, I, O> Compiled<C, I, O> {
    /// Without vectors, for functions of a few dozen instructions: bit manipulation saves some.
    pub(crate) fn for_scalars<F: Function<C, I, O>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        x86_64::has_scalars();
        Self::for_known_scalars::<F>()
    }

    /// As [`Compiled::for_scalars`], for callers that select a function with every call: by what any other selection has found out,
    /// in three instructions. Before the first one, the function for any processor.
    #[inline(always)]
    pub(crate) fn for_known_scalars<F: Function<C, I, O>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if !super::IS_MODEL && x86_64::HAS_SCALARS.get().is_some() {
            return Compiled(x86_64::scalars::<C, I, O, F>);
        }
        Compiled(anywhere::<C, I, O, F>)
    }

    /// With the widest vectors of the processor, for loops over arrays.
    pub(crate) fn for_vectors<F: Function<C, I, O>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(compiled) = x86_64::in_vectors::<C, I, O, F>() {
            return compiled;
        }
        Compiled(anywhere::<C, I, O, F>)
    }

    /// As [`Compiled::for_vectors`]; `None` if the processor has no AVX2, and in models.
    pub(crate) fn for_avx2<F: Avx2Function<C, I, O>>() -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if super::unaligned::AVAILABLE {
            return x86_64::in_vectors::<C, I, O, x86_64::Proven<F>>();
        }
        None
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn call(&self, context: &C, input: I) -> O {
        // SAFETY: the body was selected after the processor reported the instruction sets that it is compiled for.
        unsafe { (self.0)(context, input) }
    }
}

fn anywhere<C, I, O, F: Function<C, I, O>>(context: &C, input: I) -> O {
    F::run(context, input)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use super::{Avx2, Avx2Function, Compiled, Function};
    use crate::sys::IS_MODEL;
    use core::marker::PhantomData;
    use std::arch::is_x86_feature_detected as has;
    use std::sync::OnceLock;

    /// Set where the processor is known to have the instructions of [`scalars`].
    pub(super) static HAS_SCALARS: OnceLock<()> = OnceLock::new();

    pub(super) fn has_scalars() -> bool {
        let has_scalars = has!("bmi1") && has!("bmi2");
        if has_scalars {
            HAS_SCALARS.get_or_init(|| ());
        }
        has_scalars
    }

    /// An [`Avx2Function`] as a function of [`in_vectors`] and of nothing else.
    pub(super) struct Proven<F>(PhantomData<F>);

    impl<C, I, O, F: Avx2Function<C, I, O>> Function<C, I, O> for Proven<F> {
        #[inline(always)]
        fn run(context: &C, input: I) -> O {
            F::run(context, input, Avx2(()))
        }
    }

    /// `None` if the processor has no AVX2, and in models, which would take longer to compile.
    pub(super) fn in_vectors<C, I, O, F: Function<C, I, O>>() -> Option<Compiled<C, I, O>> {
        if IS_MODEL {
            return None;
        }
        let has_scalars = has_scalars();
        if has_scalars && has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl") {
            return Some(Compiled(avx512::<C, I, O, F>));
        }
        (has_scalars && has!("avx2")).then_some(Compiled(avx2::<C, I, O, F>))
    }

    #[target_feature(enable = "bmi1,bmi2")]
    pub(super) fn scalars<C, I, O, F: Function<C, I, O>>(context: &C, input: I) -> O {
        F::run(context, input)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn avx2<C, I, O, F: Function<C, I, O>>(context: &C, input: I) -> O {
        F::run(context, input)
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2")]
    pub(super) fn avx512<C, I, O, F: Function<C, I, O>>(context: &C, input: I) -> O {
        F::run(context, input)
    }
}
