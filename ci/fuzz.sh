#!/usr/bin/env bash
# Fuzzing: any bytes read as a snapshot (fuzz/fuzz_targets/snapshot.rs).
#
#   ci/fuzz.sh             two minutes; the first run builds for one or two more
#   ci/fuzz.sh SECONDS     as long as you like
#
# Needs a nightly toolchain. cargo-fuzz is installed into the target directory unless it is on the PATH. Where one of
# them cannot be had, that is said and nothing is run. What it finds is in fuzz/artifacts.

set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-120}
version=0.13.2

skip() { printf 'skipped: %s\n' "$*"; exit 0; }

# What was wrong stands before a long backtrace.
found() {
    grep -A 2 'panicked at\|^==[0-9]*== *ERROR' "$scratch/out" || true
    tail -n 50 "$scratch/out"
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

{ rustup toolchain list 2>/dev/null || true; } | grep '^nightly' >/dev/null || skip 'no nightly toolchain is installed'

if ! command -v cargo-fuzz >/dev/null; then
    target=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    # Kept there between runs, and not taken for another version.
    tools="$target/tools/cargo-fuzz-$version"
    if [ ! -x "$tools/bin/cargo-fuzz" ]; then
        cargo install cargo-fuzz --locked --version "$version" --root "$tools" >"$scratch/out" 2>&1 ||
            { tail -n 5 "$scratch/out"; skip "cargo-fuzz $version is not installed, and cannot be"; }
    fi
    PATH="$tools/bin:$PATH"
fi

# The corpus is where it begins; what it adds is of this run.
mkdir "$scratch/corpus"
cargo +nightly fuzz run snapshot "$scratch/corpus" fuzz/corpus/snapshot -- -max_total_time="$seconds" \
    >"$scratch/out" 2>&1 || found
grep '^Done [1-9]' "$scratch/out" || found
