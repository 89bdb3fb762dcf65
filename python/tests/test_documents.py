"""The examples in docstrings and in the README are run."""

import doctest
from pathlib import Path

import concurrent_cuckoo_filter

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_examples_in_docstrings():
    tests = doctest.DocTestFinder().find(concurrent_cuckoo_filter, "concurrent_cuckoo_filter")
    for name in concurrent_cuckoo_filter.__all__:
        tests += doctest.DocTestFinder().find(getattr(concurrent_cuckoo_filter, name), name, globs={})
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    names = {test.name for test in tests if test.examples}
    for test in tests:
        runner.run(test)
    assert {"CuckooFilter", "CuckooFilter.insert", "CuckooFilter.save", "Layout", "Report"} <= names
    assert runner.failures == 0 and runner.tries > 20


def test_examples_in_the_readme():
    failed, tried = doctest.testfile(str(Path(__file__).parent.parent / "README.md"), False, optionflags=FLAGS)
    assert failed == 0 and tried >= 5
