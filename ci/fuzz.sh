#!/usr/bin/env bash
# Fuzzing: sequences of operations against an exact model, and snapshots with defects under checksums that match
# (fuzz/src).
#
#   ci/fuzz.sh             two minutes with AddressSanitizer, half of them for each target
#   ci/fuzz.sh SECONDS     as long as you like
#   ci/fuzz.sh full        20,000,000 executions of each target on all cores, without a sanitizer, which is several
#                          times as fast; then each for two minutes with AddressSanitizer. Twenty minutes on 2 cores
#
# A first run builds for two minutes, a full one twice. Needs a nightly toolchain and cargo-fuzz, which is installed into
# the target directory unless it is on the PATH. Where one of them cannot be had, that is said and nothing is run. What
# it finds is in fuzz/artifacts; `cargo run --example replay TARGET FILE` does that again, in the folder fuzz.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

executions=20000000
seconds=120
case ${1-} in
    '') full= ;;
    full) full=1 seconds=240 ;;
    *[!0-9]* | 0) usage >&2 && exit 2 ;;
    *) full= seconds=$1 ;;
esac

nightly || skip 'no nightly toolchain is installed'
tool cargo-fuzz 0.13.2 || skip 'without cargo-fuzz nothing is fuzzed'

scratch=$(mktemp -d)
# What goes on elsewhere when one process has found something is of no use.
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT

# What was wrong stands before a long backtrace.
found() {
    grep -a -A 2 'panicked at\|^==[0-9]*== *ERROR' "$1" || true
    tail -n 50 "$1"
    exit 1
}

# The longest input that is tried: some 30 operations, or a snapshot of one shard with room for defects.
longest() { if [ "$1" = operations ]; then echo 64; else echo 512; fi; }

# Comparisons are not traced: that would take most of the time, and the inputs are made so that each byte counts.
fuzz() { cargo +nightly fuzz "$1" --no-trace-compares --sanitizer "$2" "${@:3}"; }

# One target, with this sanitizer, in so many processes, up to a limit such as -runs=1000 for each of them.
run() {
    local id=$1 target=$2 sanitizer=$3 processes=$4 limit=$5 began=$SECONDS process ran=0 pids=()
    fuzz build "$sanitizer" "$target" >"$scratch/build" 2>&1 || found "$scratch/build"
    began=$SECONDS
    for ((process = 0; process < processes; process++)); do
        # The corpus is where it begins; what it adds is of this run.
        mkdir "$scratch/corpus.$id.$process"
        fuzz run "$sanitizer" "$target" "$scratch/corpus.$id.$process" "fuzz/corpus/$target" -- "$limit" \
            -max_len="$(longest "$target")" >"$scratch/log.$process" 2>&1 &
        pids+=($!)
    done
    for ((process = 0; process < processes; process++)); do
        wait "${pids[process]}" || found "$scratch/log.$process"
        ran=$((ran + $(grep -a -o '^Done [0-9]*' "$scratch/log.$process" | grep -o '[0-9]*')))
    done
    [ "$ran" -gt 0 ] || found "$scratch/log.0"
    printf 'figure %s: target %s, sanitizer %s: %s executions in %s s, 0 findings\n' \
        "$id" "$target" "$sanitizer" "$(thousands "$ran")" $((SECONDS - began))
}

if [ -n "$full" ]; then
    processes=$(nproc)
    limit=-runs=$(((executions + processes - 1) / processes))
    run 8.3 operations none "$processes" "$limit"
    run 8.4 snapshot none "$processes" "$limit"
fi
run 8.5 operations address 1 -max_total_time=$(((seconds + 1) / 2))
run 8.6 snapshot address 1 -max_total_time=$(((seconds + 1) / 2))
