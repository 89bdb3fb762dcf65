//! AddressSanitizer and LeakSanitizer over the tests of the library: what is unsafe in src/sys, and what others do that it
//! uses.

use crate::tools::{self, Skipped};
use crate::{run, tree};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Instant;

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Operations against a multiset, batches, damaged and refused snapshots; unit tests but the slow ones come before.
const SHORT: &str = "--test it -- model:: batch:: snapshot::damage snapshot::refused";

pub(crate) fn check(full: bool) -> Result<()> {
    tools::toolchain("nightly-")?;
    ensure!(tools::host("+nightly")? == HOST, Skipped(format!("this takes {HOST}")));
    // The library of the sanitizer comes with the toolchain, and std is used as it is, not built anew.
    let libraries = run::stdout(run::plain("rustc +nightly --print target-libdir"))?;
    let sanitizer = Path::new(libraries.trim()).join("librustc-nightly_rt.asan.a");
    ensure!(sanitizer.exists(), Skipped("the toolchain has no AddressSanitizer".into()));

    let unit_tests = format!("--lib -- {}", run::SKIP_SLOW_UNIT_TESTS);
    let runs = if full { vec!["--lib --tests -- --include-ignored"] } else { vec![&unit_tests, SHORT] };
    let began = Instant::now();
    let mut passed = 0;
    for arguments in runs {
        // With a target, what runs while building is built without the sanitizer.
        let mut tests =
            run::plain("cargo +nightly test --locked --package concurrent-cuckoo-filter --all-features --target");
        tests.arg(HOST).env("CARGO_TARGET_DIR", tree::target("asan")?).env("RUSTFLAGS", "-Zsanitizer=address");
        tests.env("CARGO_PROFILE_TEST_DEBUG", "line-tables-only").args(arguments.split_whitespace());
        // Memory that cannot be had is an error to be returned: tests ask for it.
        tests.env("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=1");
        passed += run::passed_tests(&run::quietly(tests)?)?;
    }
    let passed = run::thousands(passed);
    let seconds = began.elapsed().as_secs();
    println!("figure 8.7: {passed} tests passed with AddressSanitizer and LeakSanitizer, 0 reports, in {seconds} s");
    Ok(())
}
