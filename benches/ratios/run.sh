#!/usr/bin/env bash
# Ratios of speed to an earlier commit: benches/ratios/run.sh COMMIT [OPTIONS], for example
#   benches/ratios/run.sh 3f934f9 --slots 16,20 --bits 13
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=${1:?name a commit}
shift
earlier=target/earlier
if [ "$(cat "$earlier/.commit" 2>/dev/null || true)" != "$commit" ]; then
    rm -rf "$earlier"
    mkdir -p "$earlier"
    git archive "$commit" | tar -x -C "$earlier"
    # Two packages of one name need two versions, and this one is no member of a workspace of ours.
    sed -i 's/^version = .*/version = "0.0.1"/' "$earlier/Cargo.toml"
    echo "$commit" >"$earlier/.commit"
fi
cargo run --quiet --release --manifest-path benches/ratios/Cargo.toml --target-dir target/ratios -- "$@"
