#!/usr/bin/env bash
# Builds the wheel and tests it: `test.sh` all but Spark, `test.sh spark` Spark in one process, `test.sh cluster` Spark with
# executors that are sent the package, of which one is killed, `test.sh connect` Spark Connect. `SPARK_VERSION='==3.5.*'` takes
# another Spark than the newest. Installs what is missing: Python packages to target/venv, and for
# Spark a Java runtime. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")"

tested='pytest>=8 numpy>=1.26 pandas>=2.2 polars>=1 duckdb>=1 dask[dataframe] fsspec'
python=target/venv/bin/python
test -x $python || python3 -m venv target/venv
$python -m pip install -q 'maturin>=1.9,<2' ziglang 'pyarrow>=15' 'mypy>=1.11' $tested

# For the C library of 2014, which every system in use has: zig links against that of any year. But the unwinder has to be that of the
# system, and not zig's own: it meets what `pthread_exit` throws (see src/sys.rs).
rm -rf target/wheels target/site
PATH=$PWD/target/venv/bin:$PATH target/venv/bin/maturin build --release --locked -q --zig --compatibility manylinux2014 \
    --out target/wheels -- -C link-arg="$(cc -print-file-name=libgcc_s.so.1)"
target/venv/bin/maturin sdist --out target/wheels 2>/dev/null
cargo build -q --release --locked -p ask
# Unpacked and not installed, so that a test can see whether executors have it from the archive that they were sent.
$python -m zipfile -e target/wheels/*.whl target/site

if [[ ${1:-} = @(spark|cluster|connect) ]]; then
    which=${1/spark/local}
    shift
    extra=
    [ "$which" != connect ] || extra=[connect]
    $python -m pip install -q "pyspark$extra${SPARK_VERSION:->=4.1}"
    java -version >/dev/null 2>&1 || { apt-get update && apt-get install -y --no-install-recommends default-jre-headless; } >/dev/null
    # Spark's workers are of the same environment.
    export PYSPARK_PYTHON=$PWD/$python
    exec target/venv/bin/pytest tests/spark/"test_$which.py" "$@"
fi
target/venv/bin/mypy
PYTHONPATH=target/site target/venv/bin/stubtest --mypy-config-file pyproject.toml concurrent_cuckoo_filter._native
target/venv/bin/pytest --ignore tests/spark "$@"

# The oldest and the newest Python of this machine.
for each in python3.{10..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
    version=$("$each" -c 'import sys; print(sys.version_info[1])' 2>/dev/null) && [ "$version" -ge 10 ] && echo "$version $each" || true
done | sort -n | sed -n '1p;$p' | while read -r version each; do
    test -x target/venv-3."$version"/bin/pytest || "$each" -m venv target/venv-3."$version"
    target/venv-3."$version"/bin/pip install -q 'pyarrow>=15' $tested
    echo "Python 3.$version"
    target/venv-3."$version"/bin/pytest --ignore tests/spark "$@" </dev/null
done
