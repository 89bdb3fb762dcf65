#!/usr/bin/env bash
# AddressSanitizer and LeakSanitizer over the tests of the library: what is unsafe in src/sys, and what others do that
# it uses. Reads in inline assembly (src/sys/unaligned.rs) are not instrumented; debug builds check where they lie.
#
#   ci/asan.sh          unit tests but the slow ones, operations against a multiset, batches, damaged and refused
#                       snapshots (two minutes)
#   ci/asan.sh full     all tests (a quarter of an hour on 2 cores)
#
# Needs a nightly toolchain for Linux on x86-64, and nothing else: the library of the sanitizer comes with it, and std is
# used as it is, not built anew. Where it cannot be had, that is said and nothing is run.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

case ${1-short} in
    short)
        opt_level=1
        tests=(--lib --test model --test batch --test snapshot_damage --test snapshot_refused
            -- "${without_slow_tests[@]}")
        ;;
    full) tests=(--lib --tests) opt_level=3 ;;
    *) usage >&2 && exit 2 ;;
esac

nightly || skip 'no nightly toolchain is installed'
machine=x86_64-unknown-linux-gnu
[ "$(rustc +nightly --version --verbose | sed -n 's/^host: //p')" = $machine ] || skip "this takes $machine"
libraries=$(rustc +nightly --print target-libdir)
[ -e "$libraries/librustc-nightly_rt.asan.a" ] || skip 'the toolchain has no AddressSanitizer'

target=$(target_directory)/asan
mkdir -p "$target"
log=$target/log
export CARGO_TARGET_DIR=$target CARGO_PROFILE_TEST_OPT_LEVEL=$opt_level RUSTFLAGS=-Zsanitizer=address
export CARGO_PROFILE_TEST_DEBUG=line-tables-only
# Memory that nobody has is an error to be returned: tests ask for it.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
began=$SECONDS
# With a target, what runs while building is built without the sanitizer.
cargo +nightly test --locked --package concurrent-cuckoo-filter --all-features --target $machine "${tests[@]}" \
    >"$log" 2>&1 || { grep -a -A 12 'ERROR: \|panicked at\|^error' "$log" | head -n 60 || true; tail -n 20 "$log"; exit 1; }
passed=$(awk '/^test result: ok/ { sum += $4 } END { print sum + 0 }' "$log")
[ "$passed" -gt 0 ] || { tail -n 20 "$log" && exit 1; }
printf 'figure 8.7: %s tests passed with AddressSanitizer and LeakSanitizer, 0 reports, in %s s\n' \
    "$(thousands "$passed")" $((SECONDS - began))
