//! AddressSanitizer and LeakSanitizer over the tests of the library: what is unsafe in src/sys, and what others do that it
//! uses.

use crate::tools::{self, Skipped};
use crate::{run, tree};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Instant;

const MACHINE: &str = "x86_64-unknown-linux-gnu";

/// Unit tests but the slow ones, operations against a multiset, batches, damaged and refused snapshots.
const SHORT: &str = "--lib --test model --test batch --test snapshot_damage --test snapshot_refused --";

pub(crate) fn check(full: bool) -> Result<()> {
    tools::nightly()?;
    ensure!(tools::rustc("+nightly", "host")? == MACHINE, Skipped(format!("this takes {MACHINE}")));
    // The library of the sanitizer comes with the toolchain, and std is used as it is, not built anew.
    let libraries = run::output(&mut run::plain("rustc +nightly --print target-libdir"))?;
    let sanitizer = Path::new(libraries.trim()).join("librustc-nightly_rt.asan.a");
    ensure!(sanitizer.exists(), Skipped("the toolchain has no AddressSanitizer".into()));

    let target = tree::target("asan")?;
    // With a target, what runs while building is built without the sanitizer.
    let mut tests =
        run::plain("cargo +nightly test --locked --package concurrent-cuckoo-filter --all-features --target");
    tests.arg(MACHINE).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", "-Zsanitizer=address");
    tests.env("CARGO_PROFILE_TEST_DEBUG", "line-tables-only");
    // Memory that nobody has is an error to be returned: tests ask for it.
    tests.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1");
    if full {
        tests.args(["--lib", "--tests"]);
    } else {
        tests
            .args(SHORT.split_whitespace())
            .args(run::SKIP_SLOW_UNIT_TESTS.split(' '))
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1");
    }
    let began = Instant::now();
    let passed = run::passed_tests(&run::quietly(&mut tests, &target.join("log"))?)?;
    let (passed, seconds) = (run::thousands(passed), began.elapsed().as_secs());
    println!("figure 8.7: {passed} tests passed with AddressSanitizer and LeakSanitizer, 0 reports, in {seconds} s");
    Ok(())
}
