"""One filter: what it takes, what it answers, what it refuses."""

import copy
import io
import os
import pickle
import subprocess
import sys
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from concurrent_cuckoo_filter import CuckooFilter, Layout, RefusedError, SnapshotError, _glue

# The same hash function in every run, so that no test depends on chance.
new = partial(CuckooFilter, keys=(1, 2))

TEXTS = [f"site-{number}.example/päge" for number in range(1000)]


class OnlyArray:
    """Speaks the C interface and nothing else."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


class OnlyStream:
    def __init__(self, chunked):
        self.chunked = chunked

    def __arrow_c_stream__(self, requested_schema=None):
        return self.chunked.__arrow_c_stream__(requested_schema)


def with_nulls(values):
    return [None if number % 7 == 3 else value for number, value in enumerate(values)]


def text_inputs():
    strings = pa.array(TEXTS)
    yield "list", TEXTS
    yield "tuple", tuple(TEXTS)
    yield "generator", (text for text in TEXTS)
    yield "string", strings
    yield "large_string", strings.cast(pa.large_string())
    yield "string_view", strings.cast(pa.string_view())
    yield "dictionary", strings.dictionary_encode()
    yield "chunked", pa.chunked_array([TEXTS[:1], [], TEXTS[1:700], TEXTS[700:]])
    yield "slice", pa.array(["before"] * 13 + TEXTS + ["after"])[13:-1]
    yield "slice of views", pa.array(["before"] * 13 + TEXTS + ["after"], pa.string_view())[13:-1]
    yield "run-end-encoded", pc.run_end_encode(strings)
    yield "table of one column", pa.table({"url": strings})
    yield "numpy", np.array(TEXTS)
    yield "masked numpy", np.ma.masked_array(np.array(TEXTS), np.zeros(1000))
    yield "pandas", pd.Series(TEXTS)
    yield "pandas objects", pd.Series(TEXTS, dtype=object)
    yield "pandas categories", pd.Series(TEXTS, dtype="category")
    yield "pandas frame", pd.DataFrame({"url": TEXTS})
    yield "polars", pl.Series(TEXTS)
    yield "polars Categorical", pl.Series(TEXTS, dtype=pl.Categorical)
    yield "polars Enum", pl.Series(TEXTS, dtype=pl.Enum(TEXTS))
    yield "polars frame", pl.DataFrame({"url": TEXTS})
    yield "duckdb relation", duckdb.from_arrow(pa.table({"url": strings}))
    yield "numpy objects", np.array(TEXTS, dtype=object)
    yield "array of another library", OnlyArray(strings)
    yield "stream of another library", OnlyStream(pa.chunked_array([strings[:10], strings[10:]]))


@pytest.mark.parametrize("name,keys", list(text_inputs()), ids=lambda value: value if isinstance(value, str) else "")
def test_texts_in_all_forms(name, keys):
    filter = new(1000, keys=(1, 2))
    report = filter.insert(keys)
    assert (report.inserted + report.present, report.nulls, report.refused) == (1000, 0, 0)
    assert filter.contains(TEXTS) == pa.array([True] * 1000)
    # One by one, too: the same hash.
    assert all(text in filter for text in TEXTS)
    form = type(keys).__name__
    if form != "generator":
        assert list(pa.array(filter.contains(keys))) == [pa.scalar(True)] * 1000


@pytest.mark.parametrize(
    "make",
    [
        lambda keys: keys,
        pa.array,
        lambda keys: pa.array(keys, pa.large_string()),
        lambda keys: pa.array(keys, pa.string_view()),
        lambda keys: pa.array([None, *keys])[1:],
        lambda keys: pa.array(["no", *keys, None, None])[1:-2],
        lambda keys: pa.chunked_array([keys[:3], keys[3:4], TEXTS[4:11], keys[11:]]),
        lambda keys: pa.array(keys).dictionary_encode(),
    ],
)
def test_a_null_is_not_stored_and_its_answer_is_null(make):
    keys = make(with_nulls(TEXTS))
    nulls = sum(value is None for value in (keys.to_pylist() if hasattr(keys, "to_pylist") else keys))
    filter = new(1000)
    report = filter.insert(keys)
    assert (report.inserted + report.present, report.nulls) == (1000 - nulls, nulls)
    answers = filter.contains(keys)
    assert answers.null_count == nulls
    assert answers.to_pylist() == [None if text is None else True for text in pa.array(list(keys)).to_pylist()]
    assert filter.remove(keys).nulls == nulls


class Text(str):
    pass


@pytest.mark.parametrize("odd", [None, Text("of a class of its own"), "näher", "\U0001f995"])
def test_large_lists_are_hashed_by_the_pool_as_arrays_are(odd):
    keys = [f"key {number}" for number in range(100_000)]
    for place in [0, 127, 128, 4096, 40_000, 65_535, 65_536, 99_999]:
        keys[place] = odd
    one, other = new(110_000), new(110_000)
    assert one.insert(keys).nulls == other.insert(pa.array(keys)).nulls == keys.count(None)
    assert one.contains(keys) == other.contains(pa.array(keys), parallel=True)
    assert one.contains(keys[::-1], parallel=True).true_count == 100_000 - keys.count(None)
    for wrong, told in [(b"a", "key 65536: a key of this filter is of type str"), ("\udc80", "key 65536 is not valid UTF-8")]:
        keys[65_536] = wrong
        for call in [one.insert, one.remove, lambda keys: one.contains(keys, parallel=True)]:
            with pytest.raises((TypeError, ValueError), match=told):
                call(keys)
    assert len(one) == len(other)


def test_an_array_of_nulls_alone():
    filter = new(10)
    assert filter.insert(pa.nulls(3)).nulls == 3
    assert filter.contains(pa.nulls(3)).to_pylist() == [None] * 3
    assert filter.contains([]).to_pylist() == []
    assert filter.contains(pa.array([], pa.string())).to_pylist() == []


def test_answers_are_right_at_every_length():
    filter = new(2000, 1e-8)
    filter.insert(TEXTS[::2])
    for length in [1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 511, 512, 513, 600]:
        assert filter.contains(pa.array(TEXTS)[:length]).to_pylist() == [n % 2 == 0 for n in range(length)]


@pytest.mark.parametrize("key,dtype", [("u64", np.uint64), ("i64", np.int64)])
def test_numbers_in_all_forms(key, dtype):
    numbers = [0, 1, 2, 3, 2**31, 2**63 - 1]
    extreme = 2**64 - 1 if key == "u64" else -(2**63)
    for given in [
        numbers + [extreme],
        np.array(numbers + [extreme], dtype=dtype),
        np.array([7] + numbers + [extreme], dtype=dtype)[1:],
        np.repeat(np.array(numbers + [extreme], dtype=dtype), 3)[::3],
        pa.array(numbers + [extreme], pa.from_numpy_dtype(dtype)),
        pa.array([None] + numbers + [extreme], pa.from_numpy_dtype(dtype))[1:],
    ]:
        filter = new(100, 1e-8, key=key)
        assert filter.insert(given).inserted == 7
        assert filter.contains(numbers + [4, extreme]).to_pylist() == [True] * 6 + [False, True]
        assert extreme in filter and 4 not in filter and np.int32(3) in filter
    # Narrower ones are cast.
    assert new(100, key=key).insert(np.arange(50, dtype=np.int8)).inserted > 0
    assert new(100, key=key).insert(pa.array([1, 1, 2], pa.uint16()).dictionary_encode(), unique=True).inserted == 2


def test_bytes_in_all_forms():
    keys = [b"", b"\xff\xfe", b"text", b"a longer one, of more than twelve bytes"]
    for make in [
        list,
        pa.array,
        lambda keys: pa.array(keys, pa.large_binary()),
        lambda keys: pa.array(keys, pa.binary_view()),
    ]:
        filter = new(10, 1e-8, key="bytes")
        assert filter.insert(make(keys)).inserted == 4
        assert filter.contains(make([*keys, b"absent"])).to_pylist() == [True] * 4 + [False]
        assert b"\xff\xfe" in filter and b"\xff" not in filter
    fixed = pa.array([b"1234", b"5678", None, b"9abc"], pa.binary(4))[1:]
    for make in [lambda keys: keys, lambda keys: keys.dictionary_encode()]:
        filter = new(10, 1e-8, key="bytes")
        report = filter.insert(make(fixed))
        assert (report.inserted, report.nulls) == (2, 1)
        assert [key in filter for key in (b"1234", b"5678", b"9abc")] == [False, True, True]
    assert new(10, key="bytes").insert(pa.array([b"", b""], pa.binary(0)), unique=True).inserted == 1


@pytest.mark.parametrize("key,keys", [("str", ["a", None]), ("bytes", [b"a", None]), ("i64", [-1, None]), ("u64", [2**64 - 1, None])])
@pytest.mark.parametrize(
    "make",
    [
        lambda keys: np.array(keys, dtype=object),
        lambda keys: pd.Series(keys, dtype=object),
        lambda keys: pd.DataFrame({"key": keys}, dtype=object),
        lambda keys: pl.Series(keys, dtype=pl.Object),
        lambda keys: pl.DataFrame({"key": keys}, schema={"key": pl.Object}),
    ],
)
def test_objects_are_the_keys_that_they_are(key, keys, make):
    filter = new(10, 1e-8, key=key)
    report = filter.insert(make(keys))
    assert (report.inserted, report.nulls) == (1, 1) and keys[0] in filter
    for answers in [report.stored, filter.contains(make(keys))]:
        assert pa.array(answers).to_pylist() == [True, None]
    assert filter.remove(make(keys)).removed == 1


def test_arrays_are_not_copied():
    numbers = np.arange(2_000_000, dtype=np.uint64)
    fixed = pa.Array.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers)])
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        new(1000, key="u64").contains(numbers)
        new(1000, key="bytes").contains(fixed)
        new(1000, key="bytes").contains(fixed[5:])
    finally:
        pa.set_memory_pool(before)
    # Not even the bits of the answer are of this pool.
    assert pool.max_memory() < 200_000


def broken_texts(valid=None):
    """The second text is no UTF-8."""
    offsets = pa.py_buffer(np.array([0, 3, 6, 9], dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), 3, [valid, offsets, pa.py_buffer(b"abcd\xffeghi")])


@pytest.mark.parametrize(
    "call", [CuckooFilter.insert, CuckooFilter.contains, CuckooFilter.remove], ids=["insert", "contains", "remove"]
)
def test_text_that_is_no_text(call):
    filter = new(100)
    for keys, number in [
        (broken_texts(), 1),
        (pa.chunked_array([pa.array(["a", "ä"]), broken_texts()]), 3),
        (broken_texts()[1:], 0),
        (broken_texts().cast(pa.large_string()), 1),
        (["a", "b", "\udc80"], 2),
    ]:
        with pytest.raises(ValueError, match=f'key {number} is not valid UTF-8: use a filter with key="bytes"'):
            call(filter, keys)
    assert len(filter) == 0
    # What stands where a null is, is nobody's key.
    call(filter, broken_texts(valid=pa.py_buffer(b"\x05")))


@pytest.mark.parametrize(
    "key,keys,told",
    [
        ("str", "one", r"write \[key\]"),
        ("bytes", b"one", r"write \[key\]"),
        ("str", [1], "key 0: a key of this filter is of type str, not int"),
        ("str", ["a", b"b"], "key 1: a key of this filter is of type str, not bytes"),
        ("bytes", [b"a", "b"], "key 1: a key of this filter is of type bytes, not str"),
        ("u64", ["1"], "key 0: a key of this filter is of type u64, not str"),
        ("u64", [1.0], "key 0: a key of this filter is of type u64, not float"),
        ("str", np.arange(3), "an array of int64 was given to a filter of str keys: cast it"),
        ("str", pa.array([b"a"]), "an array of binary was given to a filter of str keys: cast it"),
        ("bytes", pa.array(["a"]), "an array of string was given to a filter of bytes keys: cast it"),
        ("u64", pa.array([1.0]), "an array of double was given to a filter of u64 keys: cast it"),
        ("bytes", np.array([b"a", "b"], dtype=object), "key 1: a key of this filter is of type bytes, not str"),
        ("bytes", pd.Series([None, b"a", "b"], dtype=object), "key 2: a key of this filter is of type bytes, not str"),
        ("str", pa.table({"a": ["x"], "b": ["y"]}), "the columns a, b was given where one column of keys is needed"),
        ("str", pa.table({"a": ["x"], "b": ["y"]})[:0], "a table with the columns a, b was given"),
        ("str", pa.table({}), "a table with no columns was given"),
        ("str", pd.DataFrame(), "a table with no columns was given"),
        ("str", pl.DataFrame(), "a table with no columns was given"),
        ("str", np.array("abc", dtype=object), "one key was given where a list of keys is needed"),
        ("u64", 7, "keys come as an Arrow array, a numpy array or a list, not as int"),
        ("u64", None, "keys come as an Arrow array, a numpy array or a list, not as NoneType"),
    ],
)
def test_keys_of_a_wrong_type(key, keys, told):
    filter = new(100, key=key)
    for call in [filter.insert, filter.contains, filter.remove]:
        with pytest.raises(TypeError, match=told):
            call(keys)


@pytest.mark.parametrize("key,number", [("u64", -1), ("u64", 2**64), ("i64", 2**63), ("i64", -(2**63) - 1)])
def test_numbers_that_do_not_fit(key, number):
    filter = new(100, key=key)
    with pytest.raises(OverflowError, match=f"{number} does not fit the {key} keys"):
        number in filter
    with pytest.raises(OverflowError, match="key 1: "):
        filter.insert([1, number])
    with pytest.raises(OverflowError, match=f"key 1: the integer does not fit the {key} keys"):
        filter.insert([1, number << 20_000])
    assert len(filter) == 0
    with pytest.raises(pa.ArrowInvalid):
        new(100, key="u64").contains(pa.array([-1], pa.int32()))


def test_one_key_of_a_wrong_type():
    for key, one in [("str", b"a"), ("bytes", "a"), ("i64", "a"), ("u64", 1.5), ("str", None)]:
        with pytest.raises(TypeError, match=f"a key of this filter is of type {key}, not "):
            one in new(10, key=key)
    with pytest.raises(ValueError):
        "\udc80" in new(10)


@pytest.mark.parametrize(
    "arguments,told",
    [
        ({"capacity": 10, "key": "int"}, '"str", "bytes", "i64" and "u64" are possible'),
        ({"capacity": 10, "false_positive_rate": 1.5}, "must lie between 0 and 1"),
        ({"capacity": 10, "false_positive_rate": float("nan")}, "must lie between 0 and 1"),
        ({"capacity": 10, "false_positive_rate": 1e-30}, "widest fingerprint"),
        ({"capacity": 2**63}, "address space"),
    ],
)
def test_filters_that_cannot_be_built(arguments, told):
    with pytest.raises(ValueError, match=told):
        new(**arguments)


def test_memory_that_the_system_refuses():
    with pytest.raises(MemoryError, match="failed to allocate"):
        new(2**56)


def test_refused_keys_are_told_and_the_others_are_stored():
    filter = new(100)
    with pytest.raises(RefusedError, match="1 of 11 keys were refused") as raised:
        filter.insert(["again", None, *["again"] * 7, "other", "again", "third", None], unique=False)
    report = raised.value.report
    assert (report.inserted, report.nulls, report.refused, report.refused_at) == (10, 2, 1, [10])
    assert "third" in filter
    # To another process, too.
    sent = pickle.loads(pickle.dumps(raised.value))
    assert str(sent) == str(raised.value) and sent.report.stored == report.stored and sent.report.refused_at == [10]

    numbers = new(1000, key="u64")
    with pytest.raises(RefusedError) as raised:
        numbers.insert(np.arange(5000, dtype=np.uint64))
    report = raised.value.report
    assert np.flatnonzero(~np.asarray(report.stored)).tolist() == report.refused_at
    assert report.inserted + report.present + report.refused == 5000 and report.refused > 3000
    assert len(report.refused_at) == report.refused
    stored = np.delete(np.arange(5000, dtype=np.uint64), report.refused_at)
    assert numbers.contains(stored).true_count == len(stored)


def test_copies_are_removed_as_often_as_they_were_stored():
    filter = new(100)
    assert filter.insert(["a", "a", "b"], unique=False).inserted == 3
    report = filter.remove(["a", "x", None, "a", "a"])
    assert (report.removed, report.missing, report.nulls, report.missing_at) == (2, 2, 1, [1, 4])
    assert "a" not in filter and "b" in filter


def test_filters_are_merged_if_they_were_built_alike():
    one, other = (new(1000, keys=(1, 2)) for _ in range(2))
    one.insert(TEXTS[:300])
    stored = other.insert(TEXTS[300:600]).inserted
    assert one.merge(other).inserted == stored
    assert one.contains(TEXTS[:600]).true_count == 600
    for other, told in [
        (new(2000, keys=(1, 2)), "differ in size"),
        (new(1000, keys=(3, 4)), "hash differently"),
        (new(1000, key="bytes", keys=(1, 2)), "bytes keys cannot be merged into one of str keys"),
    ]:
        with pytest.raises(ValueError, match=told):
            one.merge(other)


def test_a_filter_is_saved_and_loaded(tmp_path):
    for key, keys in [("str", TEXTS), ("bytes", [b"a", b"b"]), ("i64", [-1, 1]), ("u64", [1, 2**64 - 1])]:
        filter = new(1000, 0.01, key=key)
        filter.insert(keys)
        filter.save(tmp_path / key)
        loaded = CuckooFilter.load(str(tmp_path / key))
        assert (loaded.key, loaded.capacity, loaded.keys, len(loaded)) == (key, 1000, filter.keys, len(filter))
        mapped = CuckooFilter.open(tmp_path / key)
        mapped.check()
        assert (mapped.key, mapped.keys, len(mapped)) == (key, filter.keys, len(filter))
        for asked in [loaded, mapped]:
            assert asked.contains(keys).true_count == len(keys)
            assert keys[0] in asked and asked.contains([keys[0], None]).to_pylist() == [True, None]
        assert mapped.false_positive_rate == loaded.false_positive_rate == 0.01
        assert loaded.expected_false_positive_rate == filter.expected_false_positive_rate


def test_files_that_are_no_filter(tmp_path):
    path = tmp_path / "filter"
    with pytest.raises(FileNotFoundError) as raised:
        CuckooFilter.load(path)
    assert str(path) in str(raised.value) and raised.value.errno == 2
    with pytest.raises(OSError, match="not a regular file"):
        CuckooFilter.load(tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        CuckooFilter.open(tmp_path)
    new(1000).save(path)
    whole = path.read_bytes()
    for bytes, told in [
        (b"", "ends within the header"),
        (b"something else, of some length", "does not begin with the header of a snapshot"),
        (whole[:-1], "ends within"),
        (whole[:2000] + b"\x01" + whole[2001:], "damaged"),
        (whole + b"\n", "something follows"),
    ]:
        path.write_bytes(bytes)
        with pytest.raises(SnapshotError, match=told):
            CuckooFilter.load(path)
        with pytest.raises(SnapshotError, match=told):
            CuckooFilter.open(path).check()
    with pytest.raises(OSError):
        new(10).save(tmp_path / "missing" / "filter")


def test_what_a_filter_says_of_itself():
    filter = new(1000, keys=(3, 2**64 - 1))
    filter.insert(["a"])
    assert repr(filter) == '<CuckooFilter of 1 keys, capacity=1000, key="str">'
    assert (filter.keys, filter.key, filter.capacity) == ((3, 2**64 - 1), "str", 1000)
    assert 1000 < filter.nbytes < 10_000
    growing = new(1000, max_capacity=10_000)
    growing.insert(map(str, range(5000)))
    assert repr(growing) == '<CuckooFilter of 5000 keys, capacity=1000, max_capacity=10000, key="str">'


def test_a_window_of_two_days_loses_no_key():
    """`insert` stores a copy of each key, so that the removal of one day takes nothing from the other."""
    days, keys = 8, 200_000
    day = [np.arange(keys, dtype=np.uint64) + np.uint64(number * keys // 2) for number in range(days)]
    # Half of the keys are held twice, which fills some places sooner than others.
    window = new(3 * keys, 0.01, key="u64")
    window.insert(day[0])
    for yesterday, today in zip(day, day[1:]):
        window.insert(today)
        assert window.remove(yesterday).missing == 0
        assert window.contains(today).true_count == keys
    assert len(window) == keys


@pytest.mark.parametrize("form", [list, np.array, pa.array, pd.Series, pl.Series], ids=lambda form: form.__module__)
@pytest.mark.parametrize("count", [1000, 50_000], ids=["by this thread", "by a pool"])
def test_what_was_stored_as_unique_can_be_removed_and_nothing_else_is_lost(form, count):
    filter = new(3 * count, 0.02, key="i64")
    kept, gone = form(range(count)), form(range(count // 2, 2 * count))
    assert filter.insert(kept, unique=True).inserted > 0.9 * count
    report = filter.insert(gone, unique=True)
    stored = np.asarray(pa.array(report.stored))
    assert (stored.sum(), (~stored).sum()) == (report.inserted, report.present)
    assert not stored[: count // 2].any() and not stored.all()
    assert filter.remove(np.arange(count // 2, 2 * count)[stored]).missing == 0
    assert all(filter.contains(kept))


@pytest.mark.parametrize("times", [1, 40], ids=["by this thread", "by a pool"])
def test_where_most_keys_are_present_the_others_keep_their_places_in_the_report(times):
    filter = new(1000, 1e-8, key="u64")
    filter.insert(range(1000))
    # A null, a key twice, and more keys than there is room for.
    keys = [*range(1000)] * times + [None, 10_000, *range(10_000, 15_000)]
    with pytest.raises(RefusedError) as raised:
        filter.insert(keys, unique=True)
    report, stored, first = raised.value.report, raised.value.report.stored.to_pylist(), 1000 * times + 1
    assert stored[:first] == [False] * (first - 1) + [None]
    added = [index for index in range(first, len(keys)) if stored[index]]
    [twice] = [index for index in (first, first + 1) if not stored[index]]
    assert sorted([*added, twice, *report.refused_at]) == list(range(first, len(keys)))
    assert (report.inserted, report.present, report.nulls, report.refused) == (len(added), first, 1, len(report.refused_at))
    assert filter.contains([keys[index] for index in added]).true_count == report.inserted > 0


def test_masks_are_of_the_library_of_the_keys():
    filter = new(100)
    filter.insert(["a"])
    frame = pd.DataFrame({"url": ["b", "a", None]}, index=[7, 8, 9])
    found = filter.contains(frame["url"])
    assert found.index.tolist() == [7, 8, 9] and found.dtype == "boolean"
    assert frame[found].index.tolist() == [8] and frame[~found].index.tolist() == [7]
    series = pl.DataFrame({"url": ["b", "a", None]})
    assert series.filter(~filter.contains(series["url"]))["url"].to_list() == ["b"]
    assert filter.contains(["b", "a", None]) == pa.array([False, True, None])


def test_a_pandas_frame_of_one_column_may_have_any_index():
    filter = new(100, 1e-8)
    frame = pd.DataFrame({"url": ["a", "b", None, "c"], "size": range(4)})
    assert filter.insert(frame[["url"]][frame["size"] != 1]).inserted == 2
    found = filter.contains(frame[["url"]][::-1])
    assert found.index.tolist() == [3, 2, 1, 0] and found.tolist() == [True, pd.NA, False, True]
    with pytest.raises(TypeError, match="a table with the columns url, size was given"):
        filter.contains(frame[::2])
    assert filter.contains(pd.DataFrame({0: ["a"]}, dtype=object)).tolist() == [True]


@pytest.mark.parametrize("mask,index", [(None, 2), ([False, True, False, False, False], 5)])
def test_an_invalid_text_of_a_dictionary_is_told_by_the_key_that_has_it(mask, index):
    indices = pa.array([0, 1, 2, 0, 1], pa.int32(), mask=mask and np.array(mask))
    keys = pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.DictionaryArray.from_arrays(indices, broken_texts())])
    filter = new(100, 1e-8)
    for call in [filter.insert, filter.contains, Layout(100).hash]:
        with pytest.raises(ValueError, match=f"key {index} is not valid UTF-8"):
            call(keys)
    assert len(filter) == 0
    # In no key's place.
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 2, None, 0], pa.int32()), broken_texts())
    assert filter.insert(unused).inserted == 3
    assert filter.contains(keys, check_utf8=False).to_pylist() == [False, True, False if mask is None else None, True, True, False]


def test_a_dictionary_is_hashed_once_for_each_value():
    filter = new(100)
    filter.insert(["a", "c"])
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0], pa.int8()), ["a", "b", "c"])
    assert filter.contains(values) == pa.array([True, False, None, True, True])
    assert filter.contains(values[1:]) == pa.array([False, None, True, True])
    # Larger than what refers to it, or with a null of its own.
    assert filter.contains(values[:1]) == pa.array([True])
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1]), pa.array(["a", None]))
    assert filter.contains(values) == pa.array([True, None, True, None])


def test_answers_of_several_threads_are_those_of_one():
    numbers = np.arange(3_000_001, dtype=np.uint64)
    filter = new(1_000_000, 0.01, key="u64")
    filter.insert(numbers[::5])
    assert filter.contains(numbers, parallel=True) == filter.contains(numbers)


@pytest.mark.parametrize("key", ["i64", "u64"])
def test_a_bool_is_the_number_that_it_is(key):
    filter = new(100, 1e-8, key=key)
    filter.insert([True, 0])
    assert True in filter and 1 in filter and filter.contains([False, True, 2]).to_pylist() == [True, True, False]


def test_an_exception_of_the_callers_own_passes():
    class Number:
        def __index__(self):
            raise KeyboardInterrupt

    filter = new(100, key="u64")
    for call in [filter.add, filter.__contains__, lambda key: filter.insert([key])]:
        with pytest.raises(KeyboardInterrupt):
            call(Number())


def broken_arrays():
    def array(type, buffers, count=3):
        return pa.Array.from_buffers(type, count, [None, *map(pa.py_buffer, buffers)])

    int32 = partial(np.array, dtype=np.int32)
    yield array(pa.string(), [int32([0, 900, 3, 3]), b"abc"])
    yield array(pa.string(), [int32([0, 3, 1, 3]), b"abc"])
    yield array(pa.string(), [int32([0, -1, 2, 3]), b"abc"])
    yield array(pa.large_string(), [np.array([0, 2**62, 3, 3]), b"abc"])
    view = int32([100, 0, 7, 2**30]).tobytes()
    yield array(pa.string_view(), [view * 3, b"abc"])
    yield pa.DictionaryArray.from_arrays(pa.array([0, 9, 1]), ["a", "b"], safe=False)


@pytest.mark.parametrize("keys", list(broken_arrays()), ids=lambda keys: str(keys.type))
def test_an_array_that_is_malformed_is_an_error(keys):
    filter = new(100)
    for call in [filter.insert, filter.contains]:
        with pytest.raises(ValueError, match="malformed|ndex"):
            call(keys)
    assert len(filter) == 0


def test_texts_are_checked_before_any_is_stored():
    """Also where they are more than one slice of the work."""
    filter = new(2_000_000)
    with pytest.raises(ValueError, match="key 1200001 is not valid UTF-8"):
        filter.insert(pa.chunked_array([pa.array(["a"] * 1_200_000), broken_texts()]))
    assert len(filter) == 0


def test_a_filter_is_kept_as_bytes_and_in_files_of_every_kind(tmp_path):
    filter = new(100, key="bytes", keys=(3, 4))
    filter.insert([b"a"])
    with (tmp_path / "open").open("wb") as file:
        filter.save(file)
    filter.save("memory://blocked")
    with (tmp_path / "open").open("rb") as file:
        loaded = CuckooFilter.load(file)
    for kept in [
        loaded,
        CuckooFilter.load("memory://blocked"),
        CuckooFilter.from_bytes(filter.to_bytes()),
        CuckooFilter.from_bytes(bytearray(filter.to_bytes())),
        pickle.loads(pickle.dumps(filter)),
        copy.copy(filter),
        copy.deepcopy(filter),
    ]:
        assert (kept.key, kept.keys, len(kept), b"a" in kept) == ("bytes", (3, 4), 1, True)
        kept.add(b"b")
        assert len(filter) == 1
    with pytest.raises(SnapshotError, match="something follows"):
        CuckooFilter.from_bytes(filter.to_bytes() + b"a")
    with pytest.raises(FileNotFoundError):
        CuckooFilter.load("memory://missing")


def test_running_out_of_memory_is_a_memory_error():
    """In a process of their own, whose address space is limited to a little more than it has, and then to more and more."""
    code = """
import pickle, resource
from concurrent_cuckoo_filter import CuckooFilter, delta

filter = CuckooFilter(4_000_000, key="u64", keys=(1, 2))
older = filter.to_bytes()
filter.insert(range(1_000_000))
newer = filter.to_bytes()
for call in [filter.to_bytes, lambda: pickle.dumps(filter), lambda: delta(older, newer)]:
    refused = 0
    with open("/proc/self/statm") as file:
        begun = int(file.read().split()[0]) * resource.getpagesize()
    for more in range(0, 256, 4):
        resource.setrlimit(resource.RLIMIT_AS, (begun + (more << 20), resource.RLIM_INFINITY))
        try:
            call()
            break
        except MemoryError:
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert 0 < refused < 64, (call, refused)
"""
    # The allocator must return freed blocks, or a later call would find memory.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_MMAP_THRESHOLD_": "131072"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("target", ["memory://object", "file://{}/object", "local://{}/object"])
def test_an_object_is_replaced_at_once(tmp_path, target):
    class Interrupted(Exception):
        pass

    class Unsaved:
        def to_bytes(self):
            raise Interrupted

        def _save(self, path):
            raise Interrupted

    target = target.format(tmp_path / "new")
    filter = new(100)
    filter.save(target)
    with pytest.raises(Interrupted):
        _glue.write(Unsaved(), target)
    assert len(CuckooFilter.load(target)) == 0


def test_a_file_may_take_fewer_bytes_than_it_is_given():
    class Slow(io.RawIOBase):
        written = b""

        def writable(self):
            return True

        def write(self, data):
            self.written += bytes(data[:1000])
            return len(data[:1000])

    class Silent:
        written = b""

        def write(self, data):
            self.written += data

    filter = new(10_000)
    for target in [Slow(), Silent()]:
        filter.save(target)
        assert target.written == filter.to_bytes()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(reader, "rb"), open(writer, "wb", buffering=0) as pipe, pytest.raises(BlockingIOError):
        new(1_000_000).save(pipe)


def test_a_file_of_text_holds_no_filter(tmp_path):
    new(100).save(tmp_path / "filter")
    (tmp_path / "path").write_text(str(tmp_path / "filter"))
    for name in ["filter", "path"]:
        with (tmp_path / name).open() as file, pytest.raises(TypeError, match='open it with the mode "rb"'):
            CuckooFilter.load(file)


def test_filters_are_united_and_cleared():
    one, other = new(1000), new(1000)
    one.insert(TEXTS[:300])
    other.insert(TEXTS[300:600])
    both = one | other
    assert (len(one), len(other), len(both)) == (300, 300, 600) and all(both.contains(TEXTS[:600]).to_pylist())
    both.clear()
    assert len(both) == 0 and not any(both.contains(TEXTS).to_pylist())
    one, other = new(100), new(100)
    one.insert(TEXTS[:100])
    other.insert(TEXTS[100:200])
    with pytest.raises(RefusedError, match=r"keys were refused: .*, or a key was stored 8 times already$"):
        one | other
    assert len(one) == len(other) == 100
