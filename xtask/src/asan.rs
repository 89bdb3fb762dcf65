//! AddressSanitizer and LeakSanitizer over the tests of the library: what is unsafe in src/sys, and what others do that it
//! uses.

use crate::tools::{self, Skipped};
use crate::{run, tree};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Instant;

const HOST: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn check() -> Result<()> {
    tools::toolchain("nightly-")?;
    ensure!(tools::host("+nightly")? == HOST, Skipped(format!("this takes {HOST}")));
    // The library of the sanitizer comes with the toolchain, and std is used as it is, not built anew.
    let libraries = run::stdout(run::plain("rustc +nightly --print target-libdir"))?;
    let sanitizer = Path::new(libraries.trim()).join("librustc-nightly_rt.asan.a");
    ensure!(sanitizer.exists(), Skipped("the toolchain has no AddressSanitizer".into()));

    let began = Instant::now();
    // With a target, what runs while building is built without the sanitizer.
    let mut tests = run::plain(
        "cargo +nightly test --locked --package concurrent-cuckoo-filter --all-features --lib --tests --target",
    );
    tests.args([HOST, "--", "--include-ignored"]).env("CARGO_TARGET_DIR", tree::target("asan")?);
    tests.env("RUSTFLAGS", "-Zsanitizer=address").env("CARGO_PROFILE_TEST_DEBUG", "line-tables-only");
    // Memory that cannot be had is an error to be returned: tests ask for it.
    tests.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1");
    let passed = run::thousands(run::passed_tests(&run::quietly(tests)?)?);
    let seconds = began.elapsed().as_secs();
    println!("figure 8.7: {passed} tests passed with AddressSanitizer and LeakSanitizer, 0 reports, in {seconds} s");
    Ok(())
}
