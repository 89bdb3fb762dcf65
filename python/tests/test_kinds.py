"""Filters with a number beside each key, and what all kinds of filters have in common."""

import copy
import io
import os
import pickle
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from concurrent_cuckoo_filter import (
    CountingFilter,
    CuckooFilter,
    ExpiringFilter,
    Filter,
    Layout,
    MappedFilter,
    Reader,
    RefusedError,
    SnapshotError,
    TaggedFilter,
    delta,
)

HOUR = timedelta(hours=1)
TEXTS = [f"site-{number}.example/päge" for number in range(1000)]

# The same hash function in every run, so that no test depends on chance; and so rarely wrong that all answers are those of a set.
plain = partial(CuckooFilter, false_positive_rate=1e-7, keys=(1, 2))
expiring = partial(ExpiringFilter, false_positive_rate=1e-7, time_to_live=24 * HOUR, keys=(1, 2))
counting = partial(CountingFilter, false_positive_rate=1e-7, keys=(1, 2))
tagged = partial(TaggedFilter, false_positive_rate=1e-7, keys=(1, 2))

KINDS = [plain, expiring, counting, tagged]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.func.__name__ for kind in KINDS])


def store(filter, keys):
    if isinstance(filter, TaggedFilter):
        return filter.insert(keys, 2)
    return filter.add(keys) if isinstance(filter, CountingFilter) else filter.insert(keys)


def test_keys_are_seen_within_a_window():
    seen = expiring(2000)
    report = seen.see(pa.array([*TEXTS, None, TEXTS[0]]))
    assert (report.inserted, report.present, report.nulls) == (1000, 1, 1)
    assert report.stored.to_pylist() == [True] * 1000 + [None, False]
    assert seen.advance_to(20 * HOUR) == 5 and seen.tick == 4 * HOUR
    assert seen.see(TEXTS[:500]).present == 500
    seen.advance_to(40 * HOUR)
    # What was seen again at 20 hours lives on.
    assert seen.contains(TEXTS).to_pylist() == [True] * 500 + [False] * 500
    assert TEXTS[0] in seen and TEXTS[700] not in seen
    seen.remove(TEXTS[:10])
    assert seen.contains(TEXTS[:20]).true_count == 10
    for _ in range(7):
        seen.advance()
    assert not any(seen.contains(TEXTS).to_pylist()) and seen.time_to_live == 24 * HOUR


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


def test_counts_are_subtracted():
    filter = counting(100)
    filter.add(["a", "b", "a", "a"])
    left = filter.subtract(pl.Series(["a", None, "b", "c", "a", "b"]))
    assert isinstance(left, pl.Series) and left.to_list() == [2, None, 0, None, 1, None]
    assert filter.count(["a", "b"]).to_pylist() == [1, 0] and len(filter) == 1


def test_what_is_subtracted_of_nulls_is_nothing():
    """The hash of a null is any number, which may be that of a key."""
    filter = counting(1000, key="i64")
    filter.add([number for number in range(100)])
    filter.subtract(pa.array([None] * 1000, pa.int64()))
    assert filter.count(range(100)).to_pylist() == [1] * 100


@pytest.mark.parametrize("window,counts", [("time_to_live", [0, 1]), ("time_to_idle", [2, 3])])
def test_counts_die_with_their_window(window, counts):
    filter = counting(100, false_positive_rate=1e-6, steps=6, **{window: 6 * HOUR})
    assert (getattr(filter, window), filter.tick) == (6 * HOUR, HOUR)
    assert {filter.time_to_live, filter.time_to_idle} == {6 * HOUR, None}
    filter.add(["a"])
    filter.advance_to(4 * HOUR)
    filter.add(["a"])
    filter.advance_to(8 * HOUR)
    assert [*filter.count(["a"]).to_pylist(), filter.add(["a"]) and filter.count(["a"])[0].as_py()] == counts
    for _ in range(7):
        filter.advance()
    assert "a" not in filter
    without = counting(100)
    assert (without.time_to_live, without.time_to_idle, without.tick) == (None, None, None)
    assert (without.advance(), without.advance_to(HOUR)) == (0, 0)


def test_keys_pass_up_to_a_limit_within_a_window():
    requests = counting(100, false_positive_rate=1e-6, time_to_live=HOUR)
    keys = pd.Series(["a", "b", "a", None, "a", "b"])
    report = requests.try_add(keys, 2)
    assert report.stored.tolist() == [True, True, True, pd.NA, False, True]
    assert (report.inserted, report.present, report.nulls, report.refused) == (2, 3, 1, 0)
    assert requests.try_add(["a", "c"], 0).stored.to_pylist() == [False, False] and "c" not in requests
    requests.advance_to(2 * HOUR)
    assert requests.try_add(["a"], 2).stored.to_pylist() == [True]
    for limit, error, told in [(-1, ValueError, "limit=-1 was requested"), (None, TypeError, "try_add needs a limit")]:
        with pytest.raises(error, match=told):
            requests.try_add(["a"], limit)


def test_keys_have_tags():
    lists = tagged(2000, key="bytes")
    lists.insert([b"a", b"b"], 3)
    lists.insert([b"b", b"c"], 1)
    assert lists.tag([b"a", b"b", b"c", b"d", None]) == pa.array([3, 1, 1, None, None], pa.uint32())
    assert lists.remove([b"b"], 1).removed == 1 and lists.tag([b"b"]).to_pylist() == [3]
    for call in [lists.insert, lists.remove]:
        with pytest.raises(ValueError, match="tag 8 was given; this filter has the tags 0 to 6"):
            call([b"a"], 8)


@pytest.mark.parametrize("make", [list, np.array, pa.array, pd.Series, pl.Series], ids=lambda make: make.__module__)
def test_each_key_has_a_tag_of_its_own(make):
    lists = tagged(2000, tags=30)
    keys, tags = [*TEXTS[:900], None, *TEXTS[900:]], [number % 30 for number in range(1001)]
    report = lists.insert(keys, make(tags))
    assert (report.inserted, report.nulls, report.stored[0].as_py()) == (1000, 1, True)
    assert lists.tag(TEXTS).to_pylist() == [*tags[:900], *tags[901:]]
    # One with a wrong tag, and one that is absent.
    report = lists.remove([TEXTS[5], TEXTS[4], None, "absent", TEXTS[3]], make([5, 5, 5, 5, 3]))
    assert (report.removed, report.missing_at, report.nulls) == (2, [1, 3], 1)
    assert lists.tag(TEXTS[3:6]).to_pylist() == [None, 4, None]
    # Keys without a length.
    assert lists.remove(iter(TEXTS[6:9]), make([6, 7, 8])).removed == lists.insert(iter(TEXTS[6:9]), make([1, 2, 3])).inserted == 3
    assert lists.tag(TEXTS[6:9]).to_pylist() == [1, 2, 3]


def test_tags_that_do_not_fit_the_keys():
    lists, refusing = tagged(2000, key="i64"), tagged(10, key="i64")
    for tag, told in [
        ([1, 2], "2 tags were given for 3 keys"),
        ([1, None, 2], "one of the tags is null"),
        ([0, 1, 7], "tag 7 was given; this filter has the tags 0 to 6"),
        ([0, 1, -1], "tag -1 was given; this filter has the tags 0 to 6"),
        (np.array([0, 1, 2**64 - 1], np.uint64), "tag 18446744073709551615 was given"),
    ]:
        for call in [lists.insert, lists.remove]:
            with pytest.raises(ValueError, match=told):
                call([10, 20, 30], tag)
    with pytest.raises(TypeError, match="a tag is an integer, or an array"):
        lists.insert(iter([10]), iter([1]))

    class Longer:
        """Longer than it says; `Growing` makes its list longer while that is read."""

        __len__ = lambda self: 2
        __iter__ = lambda self: iter([10, 20, 30])

    class Growing:
        def __index__(self):
            growing.append(30)
            return 10

    growing = [Growing(), 20]
    for keys in [iter([10, 20, 30]), Longer(), growing, pa.table({"key": [10, 20, 30]}).to_reader()]:
        with pytest.raises(ValueError, match="2 tags were given for 3 keys"):
            lists.insert(keys, [1, 2])
    with pytest.raises(TypeError, match="one key was given"):
        lists.insert(np.array(10), [1])
    for tag, told in [("123", "a tag is an integer, or an array"), (["1"] * 3, "not string"), ([1.0] * 3, "not double")]:
        with pytest.raises(TypeError, match=told):
            lists.insert([10, 20, 30], tag)
    assert len(lists) == 0
    with pytest.raises(RefusedError) as raised:
        refusing.insert([None] + [5] * 12, [0] + [3, 1, 2] * 4)
    report = raised.value.report
    assert report.stored.to_pylist() == [None] + [number not in report.refused_at for number in range(1, 13)]
    assert (report.inserted, report.refused) == (8, 4)


@each_kind
@pytest.mark.parametrize("key,keys", [("str", TEXTS), ("bytes", [b"a", b"b"]), ("i64", [-1, 1]), ("u64", [1, 2**64 - 1])])
def test_kinds_are_saved_loaded_and_copied(tmp_path, kind, key, keys):
    filter = kind(1000, key=key)
    store(filter, keys)
    path = tmp_path / "filter"
    filter.save(path)
    with (tmp_path / "open").open("wb") as file:
        filter.save(file)
    filter.save("memory://filter")
    with (tmp_path / "open").open("rb") as file:
        loaded = type(filter).load(file)
    for kept in [
        loaded,
        type(filter).load(path),
        type(filter).load("memory://filter"),
        type(filter).from_bytes(bytearray(filter.to_bytes())),
        pickle.loads(pickle.dumps(filter)),
        copy.copy(filter),
        copy.deepcopy(filter),
    ]:
        assert type(kept) is type(filter) and kept.contains(keys).true_count == len(keys) and keys[0] in kept
        assert (kept.key, kept.keys, kept.capacity, len(kept)) == (key, (1, 2), 1000, len(filter))
        kept.clear()
        assert len(kept) == 0 and keys[0] not in kept and len(filter) == len(keys)
    with pytest.raises(SnapshotError, match="something follows"):
        type(filter).from_bytes(filter.to_bytes() + b"a")
    for other in {CuckooFilter, ExpiringFilter, CountingFilter, TaggedFilter} - {type(filter)}:
        with pytest.raises(SnapshotError, match="kind|expiring|counting|tagged|plain"):
            other.load(path)
    with pytest.raises(TypeError, match="load is a method of CuckooFilter, "):
        Filter.load(path)
    for base, arguments in [(Filter, [100]), (Filter, [filter]), (MappedFilter, []), (MappedFilter, [filter]), (Reader, [path])]:
        with pytest.raises(TypeError, match=f"{base.__name__} has no constructor: create a CuckooFilter, .* with CuckooFilter.open"):
            base(*arguments)
    with pytest.raises(TypeError, match="read from bytes, not from int"):
        CuckooFilter.from_bytes(5)


def test_time_goes_on_in_files_and_copies():
    seen = expiring(100, time_to_live=6 * HOUR)
    seen.see(["a"])
    seen.advance_to(4 * HOUR)
    assert "a" in ExpiringFilter.from_bytes(seen.to_bytes()) and "a" not in ExpiringFilter.from_bytes(seen.to_bytes(), passed=3 * HOUR)
    # Loaded: from zero. Copied: from where it was.
    loaded, copied = pickle.loads(pickle.dumps(seen)), copy.copy(seen)
    assert (loaded.advance_to(4 * HOUR), copied.advance_to(4 * HOUR), copied.advance_to(8 * HOUR)) == (4, 0, 4)
    assert "a" not in loaded and "a" not in copied and "a" in seen


@each_kind
def test_kinds_grow(kind):
    numbers = np.arange(40_000)
    filter = kind(1000, false_positive_rate=0.001, max_capacity=80_000, key="i64", keys=(1, 2))
    before = filter.nbytes
    store(filter, numbers)
    assert filter.contains(numbers).true_count == 40_000 and filter.nbytes > 5 * before
    assert (filter.capacity, filter.max_capacity) == (1000, 80_000)
    name = type(filter).__name__
    # Counts have one slot for the keys that share a fingerprint and buckets.
    assert len(filter) > 39_990
    assert repr(filter) == f'<{name} of {len(filter)} keys, capacity=1000, max_capacity=80000, key="i64">'
    loaded = pickle.loads(pickle.dumps(filter))
    assert loaded.max_capacity == 80_000 and loaded.contains(numbers).true_count == 40_000
    with pytest.raises(RefusedError):
        store(kind(1000, key="i64"), numbers[:2000])


@each_kind
def test_kinds_are_merged_with_their_like(kind):
    one, other = kind(1000), kind(1000)
    store(one, TEXTS[:300])
    store(other, TEXTS[300:600])
    both = one | other
    assert type(both) is type(one) and (len(one), len(other), len(both)) == (300, 300, 600)
    assert both.contains(TEXTS).to_pylist() == [True] * 600 + [False] * 400
    assert one.merge(other).inserted == 300 and len(one) == 600
    with pytest.raises(ValueError, match="bytes keys cannot be merged into one of str keys"):
        one.merge(kind(1000, key="bytes"))
    with pytest.raises(ValueError, match="hash differently"):
        one | kind(1000, keys=(3, 4))
    for different in {plain, expiring, counting, tagged} - {kind}:
        with pytest.raises(TypeError, match=f"only a {type(one).__name__} can be merged into one"):
            one.merge(different(1000))


@pytest.mark.parametrize("capacity,max_capacity", [(1000, None), (100, 5000)])
def test_a_unique_merge_stores_what_is_new(capacity, max_capacity):
    one, other = (plain(capacity, max_capacity=max_capacity) for _ in range(2))
    one.insert(TEXTS[:300])
    other.insert(TEXTS[200:500])
    other.insert(TEXTS[490:500])
    report = one.merge(other, unique=True)
    assert (report.inserted, report.present, report.refused, len(one)) == (200, 110, 0, 500)
    assert one.contains(TEXTS).to_pylist() == [True] * 500 + [False] * 500
    assert one.merge(other).inserted == 310
    with pytest.raises(TypeError, match="unique=True is of two CuckooFilters"):
        counting(10).merge(counting(10), unique=True)


def test_counts_are_added_by_a_merge():
    one, other = counting(100), counting(100)
    one.add(["a", "a"])
    other.add(["a", "b"])
    assert (one | other).count(["a", "b"]).to_pylist() == [3, 1]


@each_kind
def test_keys_that_find_no_room(kind):
    with pytest.raises(RefusedError) as raised:
        store(kind(100), TEXTS)
    report = raised.value.report
    assert report.stored.true_count == report.inserted and report.refused == len(report.refused_at) > 800


@pytest.mark.parametrize(
    "make,told",
    [
        (lambda: expiring(10, time_to_live=timedelta()), "time to live|lives"),
        (lambda: expiring(10, steps=0), "steps"),
        (lambda: counting(10, counter_bits=40), "bits"),
        (lambda: counting(10, time_to_live=HOUR, time_to_idle=HOUR), "time_to_live or time_to_idle, not both"),
        (lambda: counting(10, max_capacity=5), "capacity"),
        (lambda: counting(10, counter_bits=-1), "counter_bits=-1 was requested; integers must be at least 0 and below "),
        (lambda: counting(10, steps=2**32), "steps=4294967296 was requested"),
        (lambda: plain(-1), "capacity=-1 was requested"),
        (lambda: plain(10, max_capacity=np.int64(-1)), "max_capacity=-1 was requested"),
        (lambda: plain(10, keys=(-1, 2)), r"keys=\(-1, 2\) was requested"),
        (lambda: Layout(2**64), "capacity=18446744073709551616 was requested"),
        (lambda: tagged(10, tags=0), "tags"),
        (lambda: tagged(10, key="x"), '"str", "bytes", "i64" and "u64" are possible'),
    ],
)
def test_kinds_that_cannot_be_built(make, told):
    with pytest.raises(ValueError, match=told):
        make()


@pytest.mark.parametrize("capacity,max_capacity", [(1000, None), (100, 5000)])
def test_a_replica_follows_by_deltas(tmp_path, capacity, max_capacity):
    filter = plain(capacity, max_capacity=max_capacity)
    filter.insert(TEXTS[:300])
    older = filter.to_bytes()
    filter.insert(TEXTS[300:500])
    filter.remove(TEXTS[:100])
    filter.save(tmp_path / "newer")
    change = delta(older, tmp_path / "newer")
    replica = CuckooFilter.from_bytes(older)
    with pytest.raises(SnapshotError):
        replica.apply_delta(change[:-1])
    assert replica.to_bytes() == older
    assert replica.apply_delta(io.BytesIO(change)) == (200, 100)
    assert replica.contains(TEXTS).to_pylist() == filter.contains(TEXTS).to_pylist()
    with pytest.raises(SnapshotError):
        replica.apply_delta(change)
    with pytest.raises(SnapshotError):
        delta(b"no filter", older)


@pytest.mark.skipif(sys.platform != "linux", reason="filters that processes share are of Linux only")
def test_a_filter_is_read_while_a_rust_program_writes_it(tmp_path):
    from concurrent_cuckoo_filter import SharedReader

    path = tmp_path / "shared"
    program = Path(__file__).parent.parent / "target/release/ask"
    with subprocess.Popen([program, "--share", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "created\n"
        reader = SharedReader(path)
        assert (reader.state, reader.key, reader.false_positive_rate) == ("live", "str", 1e-7)
        assert repr(reader) == '<SharedReader of a filter that is live, key="str">'
        for key in TEXTS[:100]:
            assert key not in reader
            print(key, file=writer.stdin, flush=True)
            assert writer.stdout.readline() == "stored\n" and key in reader
        answers = reader.contains(pd.Series([*TEXTS[:200], None]))
        assert answers[:200].tolist() == [True] * 100 + [False] * 100 and answers[200] is pd.NA
        child = os.fork()
        if child == 0:
            os._exit(TEXTS[0] not in reader or TEXTS[100] in reader)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(TypeError):
            pickle.dumps(reader)
        writer.stdin.close()
    assert writer.returncode == 0 and reader.state == "closed" and TEXTS[0] in reader
    plain(10).save(tmp_path / "saved")
    with pytest.raises(SnapshotError, match="does not begin with the header of a shared filter"):
        SharedReader(tmp_path / "saved")
