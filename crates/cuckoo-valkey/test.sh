#!/usr/bin/env bash
# Builds the module and tests it in real servers: Debian's redis-server, or those named in SERVERS, such as
# `SERVERS='redis-server valkey-server'`. Installs what is missing as far as the system has it: libclang for bindgen, the server,
# Python packages to target/venv. Where no server can be had, it says so and succeeds; with SERVERS it fails instead.
# Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")"

install() {
    { apt-get update && apt-get install -y --no-install-recommends "$@"; } >/dev/null 2>&1
}
if [ -z "${SERVERS:-}" ]; then
    command -v redis-server >/dev/null || install redis-server || { echo 'skipped: redis-server cannot be installed'; exit 0; }
fi
ls /usr/lib/llvm-*/lib/libclang.so* >/dev/null 2>&1 || install libclang-dev || { echo 'skipped: libclang cannot be installed'; exit 0; }

cargo fmt --check
cargo clippy --locked --release -- -D warnings
cargo build --locked --release
python=target/venv/bin/python
test -x $python || python3 -m venv target/venv
$python -m pip install -q 'pytest>=8' 'redis>=5.1' 'valkey>=6' 'pyarrow>=15'
exec $python -m pytest -q tests "$@"
