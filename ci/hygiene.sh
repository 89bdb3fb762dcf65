#!/usr/bin/env bash
# What may rot unseen: feature sets that no test builds, dependencies that nobody uses, licences and sources of
# dependencies, and the public API, which is listed in docs/public-api.txt so that a change shows in review.
#
#   ci/hygiene.sh            checks (two minutes, half of them the first builds)
#   ci/hygiene.sh --write    lists the public API anew
#
# Needs cargo-hack, cargo-machete, cargo-deny and cargo-public-api, which are installed into the target directory unless
# they are on the PATH, and for the API a nightly toolchain. What cannot be had is said to be skipped, and the rest
# goes on. Advisories are not checked: their database is no registry. The oldest Rust that is supported is tried by
# .ci/run where it is installed.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

case $# in
    0) write= ;;
    1) [ "$1" = --write ] || { usage >&2 && exit 2; }; write=1 ;;
    *) usage >&2 && exit 2 ;;
esac

listed=docs/public-api.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Runs quietly, and shows all if it fails.
quietly() {
    "$@" >"$scratch/out" 2>&1 || { cat "$scratch/out" && exit 1; }
}

# Neither blanket nor automatic implementations: hundreds of lines that nobody reads.
public_api() {
    cargo +nightly public-api --all-features -ss 2>"$scratch/err" || { tail -n 20 "$scratch/err" >&2 && return 1; }
}

check_public_api() {
    local items
    nightly || { echo 'skipped: the public API, for which no nightly toolchain is installed' && return; }
    tool cargo-public-api 0.52.0 || { echo 'skipped: the public API' && return; }
    public_api >"$scratch/api"
    if [ -n "$write" ]; then
        cp "$scratch/api" "$listed"
    elif ! diff -u "$listed" "$scratch/api"; then
        printf 'the public API is another one than %s lists; if that is meant: ci/hygiene.sh --write\n' "$listed" >&2
        exit 1
    fi
    items=$(wc -l <"$listed")
    printf 'figure 9.4: the public API is the one that %s lists, %s lines\n' "$listed" "$(thousands "$items")"
}

check_public_api
[ -z "$write" ] || exit 0

if tool cargo-hack 0.6.46; then
    # clippy says what the compiler says, and denies warnings in this crate alone.
    quietly cargo hack clippy --locked --feature-powerset --package concurrent-cuckoo-filter --lib -- -D warnings
    sets=$(grep -c '^info: running' "$scratch/out")
    printf 'figure 9.1: %s sets of features build without a warning\n' "$sets"
else
    echo 'skipped: sets of features'
fi

if tool cargo-machete 0.9.2; then
    quietly cargo machete
    packages=$(git ls-files --cached --others --exclude-standard '*Cargo.toml' | wc -l)
    printf 'figure 9.2: 0 unused dependencies in %s packages\n' "$packages"
else
    echo 'skipped: unused dependencies'
fi

# Of packages that are not published, too.
for lock in Cargo.lock fuzz/Cargo.lock; do
    others=$(grep '^source = ' "$lock" | grep -v '"registry+https://github.com/rust-lang/crates.io-index"' || true)
    [ -z "$others" ] || { printf '%s has other sources than crates.io:\n%s\n' "$lock" "$others" >&2 && exit 1; }
done

if tool cargo-deny 0.20.2; then
    quietly cargo deny --locked check licenses bans sources
    dependencies=$(cargo tree --locked --package concurrent-cuckoo-filter --all-features --edges normal \
        --prefix none | sort -u | grep -vc '^concurrent-cuckoo-filter ')
    printf 'figure 9.3: all licences are allowed by deny.toml, all sources are crates.io; %s dependencies are linked\n' \
        "$dependencies"
else
    echo 'skipped: licences of dependencies'
fi
