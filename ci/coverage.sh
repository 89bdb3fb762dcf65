#!/usr/bin/env bash
# Coverage: how many lines of the library its tests run. Fails below 95 %, and lists the lines that none runs.
#
#   ci/coverage.sh          builds the tests again and runs them (ten minutes on 2 cores)
#   ci/coverage.sh --quick  the same of some tests only, without optimisation (a minute)
#
# What counts is src/ without its tests; what runs is `cargo test` of the library with all features, without examples
# and doctests. Needs cargo-tarpaulin, which is installed into the target directory unless it is on the PATH. Where it
# cannot be had, that is said and nothing is run.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

least=95
tests=(--lib --tests)
case ${1-} in
    '') ;;
    --quick)
        tests=(--lib)
        for name in builder debug faults_snapshots merge refused_memory serde snapshot_{damage,file,header,parts,refused}; do
            tests+=(--test "$name")
        done
        tests+=(-- "${without_slow_tests[@]}")
        export CARGO_INCREMENTAL=0 CARGO_PROFILE_TEST_OPT_LEVEL=0 PROPTEST_CASES=8
        ;;
    *) usage >&2 && exit 2 ;;
esac
tool cargo-tarpaulin 0.37.5 || skip 'without cargo-tarpaulin nothing is counted'

target=$(target_directory)/coverage
mkdir -p "$target"
began=$SECONDS
# Its own target directory: instrumented builds are no use to others.
cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter --all-features \
    --include-files 'src/*' --exclude-files 'src/*_tests.rs' 'src/*_tests/*' 'src/snapshot/file/fake.rs' \
    --skip-clean --timeout 900 --target-dir "$target" --out Lcov --output-dir "$target" --color Never \
    "${tests[@]}" >"$target/log" 2>&1 || { tail -n 60 "$target/log" && exit 1; }

# Lines as lcov has them: SF:FILE, then DA:LINE,TIMES for each.
awk -F '[:,]' -v root="$PWD/" -v least=$least -v seconds=$((SECONDS - began)) '
    $1 == "SF" { file = $2; sub(root, "", file) }
    $1 == "DA" { lines++; if ($3 > 0) run++; else { missed[file] = missed[file] " " $2 } }
    END {
        for (file in missed) printf "not run: %s:%s\n", file, missed[file] | "sort"
        close("sort")
        share = lines ? 100 * run / lines : 0
        printf "figure 8.2: tests run %d of %d lines of src/, %.1f %%, in %d s\n", run, lines, share, seconds
        exit share < least
    }' "$target/lcov.info"
