//! Functions compiled once per instruction set that makes them faster, and selected at run time.

use core::marker::PhantomData;

pub(crate) trait Signature {
    type Context;
    type Input<'a>;
    type Output;
}

/// The signature of a function whose input borrows nothing.
pub(crate) struct Of<C, I, O>(PhantomData<(C, I, O)>);

impl<C, I, O> Signature for Of<C, I, O> {
    type Context = C;
    type Input<'a> = I;
    type Output = O;
}

pub(crate) trait Function<S: Signature> {
    /// Always inlined, with all functions that it calls, so that it is compiled for the instruction set of its caller.
    fn run(context: &S::Context, input: S::Input<'_>) -> S::Output;
}

/// The body of a [`Function`] for this processor.
pub(crate) struct Compiled<S: Signature>(unsafe fn(&S::Context, S::Input<'_>) -> S::Output);

impl<S: Signature> Compiled<S> {
    /// Without vectors, for functions of a few dozen instructions: bit manipulation saves some.
    pub(crate) fn for_scalars<F: Function<S>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if std::arch::is_x86_feature_detected!("bmi1") && std::arch::is_x86_feature_detected!("bmi2") {
            return Compiled(x86_64::scalars::<S, F>);
        }
        Compiled(anywhere::<S, F>)
    }

    /// With the widest vectors of the processor, for loops over arrays.
    pub(crate) fn for_vectors<F: Function<S>>() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("bmi1") && has!("bmi2") {
                if has!("avx512f") && has!("avx512dq") && has!("avx512bw") && has!("avx512vl") {
                    return Compiled(x86_64::avx512::<S, F>);
                }
                if has!("avx2") {
                    return Compiled(x86_64::avx2::<S, F>);
                }
            }
        }
        Compiled(anywhere::<S, F>)
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn call(&self, context: &S::Context, input: S::Input<'_>) -> S::Output {
        // SAFETY: the body was selected after the processor reported the instruction sets that it is compiled for.
        unsafe { (self.0)(context, input) }
    }
}

fn anywhere<S: Signature, F: Function<S>>(context: &S::Context, input: S::Input<'_>) -> S::Output {
    F::run(context, input)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use super::{Function, Signature};

    #[target_feature(enable = "bmi1,bmi2")]
    pub(super) fn scalars<S: Signature, F: Function<S>>(context: &S::Context, input: S::Input<'_>) -> S::Output {
        F::run(context, input)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn avx2<S: Signature, F: Function<S>>(context: &S::Context, input: S::Input<'_>) -> S::Output {
        F::run(context, input)
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2")]
    pub(super) fn avx512<S: Signature, F: Function<S>>(context: &S::Context, input: S::Input<'_>) -> S::Output {
        F::run(context, input)
    }
}
