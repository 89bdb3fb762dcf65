#!/usr/bin/env bash
# Builds the wheel and tests it. Installs missing packages: Python's below target, and a Java runtime for Spark.
#
#   test.sh                  lints, types and all tests without Spark, on the newest Python of this machine
#   test.sh oldest           the same tests on its oldest Python
#   test.sh spark            Spark in one process: the newest version, or SPARK_VERSION=3.5
#   test.sh versions         Spark in one process: 3.5, 4.0, 4.1 and the newest version
#   test.sh cluster          Spark with two executors that receive the package as an archive; one of them is killed
#   test.sh connect          Spark Connect
#   test.sh free-threaded    the tests of threads and parts on an interpreter without the lock: FREE_THREADED=/path/to/python3.14t
#
# Further arguments go to pytest. `NATIVE=1` links the wheel with the compiler of this machine, for this machine: all builds together
# take a third less time, since with zig the wheel shares none with clippy and the package `ask`.
set -euo pipefail
cd "$(dirname "$0")"
# Tests look there for what is built here.
export CARGO_TARGET_DIR=$PWD/target

# environment FOLDER PYTHON PACKAGES...: makes a virtual environment. pip takes seconds to see that it has nothing to do, so it is called
# only for another list of packages; and most of their modules are never imported, so none is compiled ahead.
environment() {
    [ "$(cat "$1/packages" 2>/dev/null)" != "${*:2}" ] || return 0
    test -x "$1/bin/python" || "$2" -m venv "$1"
    "$1/bin/pip" install -q --no-compile "${@:3}"
    echo "${*:2}" >"$1/packages"
}

python=target/venv/bin/python
tools=('maturin>=1.9,<2' 'mypy>=1.11' 'pyarrow>=15' 'numpy>=1.26')
[ -n "${NATIVE:-}" ] || tools+=(ziglang)
environment target/venv python3 "${tools[@]}"
export PATH=$PWD/target/venv/bin:$PATH

if [ "${1:-}" = free-threaded ]; then
    shift
    own=$PWD/target/free-threaded site=$PWD/target/free-threaded/site
    version=$("${FREE_THREADED:?the path of an interpreter without a lock}" -c 'import sys; print(sys.version_info[1])')
    environment "$own" "$FREE_THREADED" --only-binary :all: 'pyarrow>=15' 'numpy>=1.26' 'pytest>=8'
    if [ "$version" -lt 14 ]; then
        # Not for use: PyO3 supports it up to 0.28, which is enough to see whether anything here relies on the lock.
        rm -rf "$own"/source
        mkdir "$own"/source
        cp -rL src lib ask build.rs Cargo.toml Cargo.lock pyproject.toml README.md PYTHON.md LICENSE-* "$own"/source
        sed -i "s|path = \"..\"|path = \"$(dirname "$PWD")\"|; s|path = \"../..\"|path = \"$(dirname "$PWD")\"|; s|\"0.29\"|\"0.28\"|" \
            "$own"/source/Cargo.toml "$own"/source/ask/Cargo.toml
        sed -i '/^locked/d' "$own"/source/pyproject.toml
        tests=$PWD/tests
        cd "$own"/source
    fi
    rm -rf "$own"/wheels "$site"
    maturin build --release -q -i "$own"/bin/python --out "$own"/wheels
    python3 -m zipfile -e "$own"/wheels/*.whl "$site"
    cd "${tests:-tests}"
    exec "$own"/bin/pytest -o pythonpath="$site" test_threads.py test_parts.py "$@"
fi

# For the C library of 2014, which every system in use has: zig links against that of any year. But the unwinder has to be that of the
# system, and not zig's own: it meets what `pthread_exit` throws (see src/sys.rs).
rm -rf target/wheels target/site
platform=(--zig --compatibility manylinux2014 -- -C link-arg="$(cc -print-file-name=libgcc_s.so.1)")
[ -z "${NATIVE:-}" ] || platform=(--compatibility linux)
maturin build --release --locked -q --out target/wheels "${platform[@]}"
maturin sdist --out target/wheels 2>/dev/null
cargo build -q --release --locked -p ask
# Unpacked and not installed, so that a test can see whether executors have it from the archive that they were sent.
$python -m zipfile -e target/wheels/*.whl target/site

# spark TESTS VERSION ARGUMENTS: runs tests with this version of Spark, which has an environment of its own.
spark() {
    local own=$PWD/target/venv-spark-$2 wanted="==$2.*" arrow='pandas>=2.2 pyarrow>=15'
    [ "$2" != newest ] || wanted='>=4.1'
    # It requires numpy 1, which the newest pyarrow refuses.
    [ "$2" != 3.5 ] || arrow='pandas>=2.2,<3 pyarrow>=15,<20'
    environment "$own" python3 "pyspark[connect]$wanted" $arrow 'pytest>=8' fsspec
    java -version >/dev/null 2>&1 || { apt-get update && apt-get install -y --no-install-recommends default-jre-headless; } >/dev/null 2>&1 ||
        { echo 'skipped: Java cannot be installed' && return; }
    # Spark's workers are of the same environment.
    PYSPARK_PYTHON=$own/bin/python "$own"/bin/pytest tests/spark/"test_$1.py" "${@:3}"
}

pythons() {
    local each version
    for each in python3.{10..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
        version=$("$each" -c 'import sys; print(sys.version_info[1])' 2>/dev/null) && [ "$version" -ge 10 ] && echo "$version $each" || true
    done | sort -n
}

# python_tests VERSION PYTHON ARGUMENTS: runs the tests without Spark.
python_tests() {
    environment target/venv-3."$1" "$2" \
        'pyarrow>=15' 'pytest>=8' 'numpy>=1.26' 'pandas>=2.2' 'polars>=1' 'duckdb>=1' 'dask[dataframe]' fsspec
    echo "Python 3.$1"
    target/venv-3."$1"/bin/pytest --ignore tests/spark "${@:3}"
}

case ${1:-} in
spark) spark local "${SPARK_VERSION:-newest}" "${@:2}" ;;
cluster | connect) spark "$1" "${SPARK_VERSION:-newest}" "${@:2}" ;;
versions)
    for version in 3.5 4.0 4.1 newest; do
        echo "Spark $version"
        spark local "$version" "${@:2}"
    done
    ;;
# shellcheck disable=SC2046
oldest) python_tests $(pythons | sed -n 1p) "${@:2}" ;;
*)
    cargo fmt --all --check
    cargo clippy -q --locked --release --workspace --all-targets -- -D warnings
    mypy
    PYTHONPATH=target/site stubtest --mypy-config-file pyproject.toml concurrent_cuckoo_filter._native
    # shellcheck disable=SC2046
    python_tests $(pythons | sed -n '$p') "$@"
    ;;
esac
