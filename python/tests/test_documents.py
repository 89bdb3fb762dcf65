"""The examples in docstrings and in the README are run; the wheel and the source distribution have what belongs there."""

import doctest
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import concurrent_cuckoo_filter

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_examples_in_docstrings():
    tests = doctest.DocTestFinder().find(concurrent_cuckoo_filter, "concurrent_cuckoo_filter")
    for name in concurrent_cuckoo_filter.__all__:
        # The classes have the name of the package as that of their module, which is not where their methods are.
        tests += doctest.DocTestFinder().find(getattr(concurrent_cuckoo_filter, name), name, module=False, globs={})
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    names = {test.name for test in tests if test.examples}
    for test in tests:
        runner.run(test)
    assert {"CuckooFilter", "CuckooFilter.insert", "Filter.save", "CuckooFilter.apply_delta", "Layout", "Report"} <= names
    assert {"Reader.contains", "Filter.max_capacity", "CountingFilter.try_add", "Layout.part", "RemoveReport"} <= names
    assert runner.failures == 0 and runner.tries > 20


def test_examples_in_the_readme():
    failed, tried = doctest.testfile(str(Path(__file__).parent.parent / "README.md"), False, optionflags=FLAGS)
    assert failed == 0 and tried >= 5


WHEELS = Path(__file__).parent.parent / "target/wheels"


def test_the_wheel_has_licences_and_its_own_readme_and_runs_on_old_systems():
    with zipfile.ZipFile(next(WHEELS.glob("*.whl"))) as wheel:
        files = {Path(name).name: wheel.read(name) for name in wheel.namelist()}
    assert b"Permission is hereby granted" in files["LICENSE-MIT"]
    assert b"Apache License" in files["LICENSE-APACHE"]
    assert b"# concurrent-cuckoo-filter for Python" in files["METADATA"]
    assert f"\nVersion: {concurrent_cuckoo_filter.__version__}\n".encode() in files["METADATA"]
    if sys.platform == "linux" and not os.environ.get("NATIVE"):
        asked = re.findall(rb"GLIBC_(\d+)\.(\d+)", next(data for name, data in files.items() if name.startswith("_native") and ".so" in name))
        # That of RHEL 7; RHEL 8 has 2.28, Amazon Linux 2 has 2.26.
        assert max((int(major), int(minor)) for major, minor in asked) <= (2, 17)


def test_the_source_distribution_has_licences_and_its_own_readme():
    with tarfile.open(next(WHEELS.glob("*.tar.gz"))) as archive:
        files = {name.split("/", 1)[1]: archive.extractfile(name) for name in archive.getnames()}
        assert {"LICENSE-MIT", "LICENSE-APACHE"} <= files.keys()
        for name in ["PKG-INFO", "PYTHON.md"]:
            assert b"# concurrent-cuckoo-filter for Python" in files[name].read()
        assert b'readme = "PYTHON.md"' in files["pyproject.toml"].read()
