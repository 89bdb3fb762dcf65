#!/usr/bin/env bash
# Coverage: how many lines of the library its tests run. Fails below 95 %, and lists the lines that none runs.
#
#   ci/coverage.sh    builds the tests again and runs them (ten minutes on 2 cores)
#
# What counts is src/ without its tests; what runs is `cargo test` of the library with all features, without examples
# and doctests. Needs cargo-tarpaulin, which is installed into the target directory unless it is on the PATH. Where it
# cannot be had, that is said and nothing is run.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

least=95
[ $# -eq 0 ] || { usage >&2 && exit 2; }
tool cargo-tarpaulin 0.37.5 || skip 'without cargo-tarpaulin nothing is counted'

target=$(target_directory)/coverage
mkdir -p "$target"
began=$SECONDS
# Its own target directory: instrumented builds are no use to others.
cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter --all-features --lib --tests \
    --include-files 'src/*' --exclude-files 'src/*_tests.rs' 'src/*_tests/*' 'src/snapshot/file/fake.rs' \
    --skip-clean --timeout 900 --target-dir "$target" --out Lcov --output-dir "$target" --color Never \
    >"$target/log" 2>&1 || { tail -n 60 "$target/log" && exit 1; }

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
