"""Filters with a number beside each key."""

from datetime import timedelta
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from concurrent_cuckoo_filter import CountingFilter, ExpiringFilter, RefusedError, SnapshotError, TaggedFilter

HOUR = timedelta(hours=1)
TEXTS = [f"site-{number}.example/päge" for number in range(1000)]

# The same hash function in every run, so that no test depends on chance; and so rarely wrong that all answers are those of a set.
expiring = partial(ExpiringFilter, false_positive_rate=1e-7, time_to_live=24 * HOUR, keys=(1, 2))
counting = partial(CountingFilter, false_positive_rate=1e-7, keys=(1, 2))
tagged = partial(TaggedFilter, false_positive_rate=1e-7, keys=(1, 2))


def test_keys_are_seen_within_a_window():
    seen = expiring(2000)
    report = seen.see(pa.array([*TEXTS, None, TEXTS[0]]))
    assert (report.inserted, report.present, report.nulls) == (1000, 1, 1)
    assert report.stored.to_pylist() == [True] * 1000 + [None, False]
    seen.advance_to(20 * HOUR)
    assert seen.see(TEXTS[:500]).present == 500
    seen.advance_to(40 * HOUR)
    # What was seen again at 20 hours lives on.
    assert seen.contains(TEXTS).to_pylist() == [True] * 500 + [False] * 500
    assert TEXTS[0] in seen and TEXTS[700] not in seen
    seen.remove(TEXTS[:10])
    assert seen.contains(TEXTS[:20]).true_count == 10
    seen.clear()
    assert len(seen) == 0 and seen.time_to_live == 24 * HOUR


def test_keys_are_counted():
    numbers = np.arange(100_000, dtype=np.uint64)
    filter = counting(100_000, key="u64")
    for _ in range(3):
        assert filter.add(numbers).refused == 0
    filter.add(numbers[::2])
    assert filter.count(numbers) == pa.array([4, 3] * 50_000, pa.uint32())
    assert filter.count(pd.Series([0, 200_000], index=[7, 8])).to_dict() == {7: 4, 8: 0}
    for _ in range(20):
        filter.add([5])
    assert filter.count([5, None]).to_pylist() == [filter.max_count, None] and filter.max_count == 15
    assert filter.remove([5, 200_000]).missing_at == [1] and 5 not in filter


def test_keys_have_tags():
    lists = tagged(2000, key="bytes")
    lists.insert([b"a", b"b"], 3)
    lists.insert([b"b", b"c"], 1)
    assert lists.tag([b"a", b"b", b"c", b"d", None]) == pa.array([3, 1, 1, None, None], pa.uint32())
    assert lists.remove([b"b"], 1).removed == 1 and lists.tag([b"b"]).to_pylist() == [3]
    for call in [lists.insert, lists.remove]:
        with pytest.raises(ValueError, match="tag 8 was given; this filter has the tags 0 to 6"):
            call([b"a"], 8)


@pytest.mark.parametrize("key,keys", [("str", TEXTS), ("bytes", [b"a", b"b"]), ("i64", [-1, 1]), ("u64", [1, 2**64 - 1])])
@pytest.mark.parametrize("kind", [expiring, counting, tagged], ids=["expiring", "counting", "tagged"])
def test_kinds_are_saved_and_loaded(tmp_path, kind, key, keys):
    filter = kind(1000, key=key)
    store = {"ExpiringFilter": "see", "CountingFilter": "add"}.get(type(filter).__name__)
    getattr(filter, store)(keys) if store else filter.insert(keys, 2)
    path = tmp_path / "filter"
    filter.save(path)
    options = {"passed": HOUR} if kind is expiring else {}
    loaded = type(filter).load(path, key=key, **options)
    assert (loaded.key, loaded.keys, loaded.capacity, len(loaded)) == (key, (1, 2), 1000, len(filter))
    assert loaded.contains(keys).true_count == len(keys) and keys[0] in loaded
    for other in {ExpiringFilter, CountingFilter, TaggedFilter} - {type(filter)}:
        with pytest.raises(SnapshotError):
            other.load(path, **({"passed": HOUR} if other is ExpiringFilter else {}))


def test_keys_that_find_no_room():
    with pytest.raises(RefusedError) as raised:
        counting(100).add(TEXTS)
    report = raised.value.report
    assert report.stored.true_count == report.inserted and report.refused == len(report.refused_at) > 800


@pytest.mark.parametrize(
    "make,told",
    [
        (lambda: expiring(10, time_to_live=timedelta()), "time to live|lives"),
        (lambda: counting(10, counter_bits=40), "bits"),
        (lambda: tagged(10, tags=0), "tags"),
        (lambda: tagged(10, key="x"), '"str", "bytes", "i64" and "u64" are possible'),
    ],
)
def test_kinds_that_cannot_be_built(make, told):
    with pytest.raises(ValueError, match=told):
        make()
