#!/usr/bin/env bash
# The comparison with an earlier commit of the crate in the place of the peers: benches/against/run.sh COMMIT [OPTIONS], for example
#   benches/against/run.sh HEAD~20 operations beside
# for ratios of every operation of every kind of filter, of one thread beside another, by load, and (latency) beside refusals. --help
# names the options. There is no record of it. Of commits before 64331c8, whose other kinds have other methods, plain filters are
# compared: back to 8c5fd6d.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=$(git rev-parse --verify --quiet "${1:?name a commit}^{commit}") || { echo "error: there is no commit $1" >&2; exit 2; }
shift
earlier=target/earlier
if [ "$(cat "$earlier/.commit" 2>/dev/null || true)" != "$commit" ]; then
    rm -rf "$earlier"
    mkdir -p "$earlier"
    git archive "$commit" | tar -x -C "$earlier"
    # Two packages of one name need two versions.
    sed -i 's/^version = .*/version = "0.0.1"/' "$earlier/Cargo.toml"
    echo "$commit" >"$earlier/.commit"
fi
# The versions of dependencies are those of the workspace.
cp Cargo.lock benches/against/Cargo.lock
plain=()
git merge-base --is-ancestor 64331c8 "$commit" || plain=(--features plain)
cargo run --quiet --release --manifest-path benches/against/Cargo.toml --target-dir target/against "${plain[@]}" -- "$@"
