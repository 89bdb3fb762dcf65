"""One filter: what it takes, what it answers, what it refuses."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from concurrent_cuckoo_filter import CuckooFilter, RefusedError, SnapshotError

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
    yield "numpy", np.array(TEXTS)
    yield "numpy objects", np.array(TEXTS, dtype=object)
    yield "array of another library", OnlyArray(strings)
    yield "stream of another library", OnlyStream(pa.chunked_array([strings[:10], strings[10:]]))


@pytest.mark.parametrize("name,keys", list(text_inputs()), ids=lambda value: value if isinstance(value, str) else "")
def test_texts_in_all_forms(name, keys):
    filter = CuckooFilter(1000, keys=(1, 2))
    report = filter.insert(keys)
    assert (report.inserted + report.present, report.nulls, report.refused) == (1000, 0, 0)
    assert filter.contains(TEXTS) == pa.array([True] * 1000)
    # One by one, too: the same hash.
    assert all(text in filter for text in TEXTS)
    form = type(keys).__name__
    if form != "generator":
        assert filter.contains(keys) == pa.array([True] * 1000)


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
    filter = CuckooFilter(1000)
    report = filter.insert(keys)
    assert (report.inserted + report.present, report.nulls) == (1000 - nulls, nulls)
    answers = filter.contains(keys)
    assert answers.null_count == nulls
    assert answers.to_pylist() == [None if text is None else True for text in pa.array(list(keys)).to_pylist()]
    assert filter.remove(keys).nulls == nulls


def test_an_array_of_nulls_alone():
    filter = CuckooFilter(10)
    assert filter.insert(pa.nulls(3)).nulls == 3
    assert filter.contains(pa.nulls(3)).to_pylist() == [None] * 3
    assert filter.contains([]).to_pylist() == []
    assert filter.contains(pa.array([], pa.string())).to_pylist() == []


def test_answers_are_right_at_every_length():
    filter = CuckooFilter(2000, 1e-8)
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
        filter = CuckooFilter(100, 1e-8, key=key)
        assert filter.insert(given).inserted == 7
        assert filter.contains(numbers + [4, extreme]).to_pylist() == [True] * 6 + [False, True]
        assert extreme in filter and 4 not in filter and np.int32(3) in filter
    # Narrower ones are cast.
    assert CuckooFilter(100, key=key).insert(np.arange(50, dtype=np.int8)).inserted > 0
    assert CuckooFilter(100, key=key).insert(pa.array([1, 1, 2], pa.uint16()).dictionary_encode()).inserted == 2


def test_bytes_in_all_forms():
    keys = [b"", b"\xff\xfe", b"text", b"a longer one, of more than twelve bytes"]
    for make in [
        list,
        pa.array,
        lambda keys: pa.array(keys, pa.large_binary()),
        lambda keys: pa.array(keys, pa.binary_view()),
    ]:
        filter = CuckooFilter(10, 1e-8, key="bytes")
        assert filter.insert(make(keys)).inserted == 4
        assert filter.contains(make([*keys, b"absent"])).to_pylist() == [True] * 4 + [False]
        assert b"\xff\xfe" in filter and b"\xff" not in filter
    fixed = pa.array([b"1234", b"5678", b"9abc"], pa.binary(4))[1:]
    filter = CuckooFilter(10, 1e-8, key="bytes")
    assert filter.insert(fixed).inserted == 2
    assert [key in filter for key in (b"1234", b"5678", b"9abc")] == [False, True, True]


def test_numpy_is_not_copied():
    numbers = np.arange(10_000_000, dtype=np.uint64)
    filter = CuckooFilter(1000, key="u64")
    before = pa.default_memory_pool().max_memory()
    filter.contains(numbers)
    # Not even the bits of the answer are of this pool.
    assert pa.default_memory_pool().max_memory() - before < 1_000_000


def broken_texts(valid=None):
    """The second text is no UTF-8."""
    offsets = pa.py_buffer(np.array([0, 3, 6, 9], dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), 3, [valid, offsets, pa.py_buffer(b"abcd\xffeghi")])


@pytest.mark.parametrize(
    "call", [CuckooFilter.insert, CuckooFilter.contains, CuckooFilter.remove], ids=["insert", "contains", "remove"]
)
def test_text_that_is_no_text(call):
    filter = CuckooFilter(100)
    for keys, number in [
        (broken_texts(), 1),
        (pa.chunked_array([pa.array(["a", "ä"]), broken_texts()]), 3),
        (broken_texts()[1:], 0),
        (broken_texts().cast(pa.large_string()), 1),
        (["a", "b", "\udc80"], 2),
    ]:
        with pytest.raises(ValueError, match=f'key {number} is not valid UTF-8: take a filter with key="bytes"'):
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
        ("u64", 7, "keys come as an Arrow array, a numpy array or a list, not as int"),
        ("u64", None, "keys come as an Arrow array, a numpy array or a list, not as NoneType"),
    ],
)
def test_keys_of_a_wrong_type(key, keys, told):
    filter = CuckooFilter(100, key=key)
    for call in [filter.insert, filter.contains, filter.remove]:
        with pytest.raises(TypeError, match=told):
            call(keys)


@pytest.mark.parametrize("key,number", [("u64", -1), ("u64", 2**64), ("i64", 2**63), ("i64", -(2**63) - 1)])
def test_numbers_that_do_not_fit(key, number):
    filter = CuckooFilter(100, key=key)
    with pytest.raises(OverflowError, match=f"{number} does not fit the {key} keys"):
        number in filter
    with pytest.raises(OverflowError, match="key 1: "):
        filter.insert([1, number])
    assert len(filter) == 0
    with pytest.raises(pa.ArrowInvalid):
        CuckooFilter(100, key="u64").contains(pa.array([-1], pa.int32()))


def test_one_key_of_a_wrong_type():
    for key, one in [("str", b"a"), ("bytes", "a"), ("i64", "a"), ("u64", 1.5), ("str", None)]:
        with pytest.raises(TypeError, match=f"a key of this filter is of type {key}, not "):
            one in CuckooFilter(10, key=key)
    with pytest.raises(ValueError):
        "\udc80" in CuckooFilter(10)


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
        CuckooFilter(**arguments)


def test_memory_that_the_system_refuses():
    with pytest.raises(MemoryError, match="bytes of memory"):
        CuckooFilter(2**56)


def test_refused_keys_are_told_and_the_others_are_stored():
    filter = CuckooFilter(100)
    with pytest.raises(RefusedError, match="1 of 11 keys were refused") as raised:
        filter.insert(["again", None, *["again"] * 7, "other", "again", "third", None], unique=False)
    report = raised.value.report
    assert (report.inserted, report.nulls, report.refused, report.refused_at) == (10, 2, 1, [10])
    assert "third" in filter

    numbers = CuckooFilter(1000, key="u64")
    with pytest.raises(RefusedError) as raised:
        numbers.insert(np.arange(5000, dtype=np.uint64))
    report = raised.value.report
    assert report.inserted + report.present + report.refused == 5000 and report.refused > 3000
    assert len(report.refused_at) == report.refused
    stored = np.delete(np.arange(5000, dtype=np.uint64), report.refused_at)
    assert numbers.contains(stored).true_count == len(stored)


def test_copies_are_removed_as_often_as_they_were_stored():
    filter = CuckooFilter(100)
    assert filter.insert(["a", "a", "b"], unique=False).inserted == 3
    report = filter.remove(["a", "x", None, "a", "a"])
    assert (report.removed, report.missing, report.nulls, report.missing_at) == (2, 2, 1, [1, 4])
    assert "a" not in filter and "b" in filter


def test_filters_are_merged_if_they_were_built_alike():
    one, other = (CuckooFilter(1000, keys=(1, 2)) for _ in range(2))
    one.insert(TEXTS[:300])
    stored = other.insert(TEXTS[300:600]).inserted
    assert one.merge(other).inserted == stored
    assert one.contains(TEXTS[:600]).true_count == 600
    for other, told in [
        (CuckooFilter(2000, keys=(1, 2)), "differ in size"),
        (CuckooFilter(1000), "hash differently"),
        (CuckooFilter(1000, key="bytes", keys=(1, 2)), "bytes keys cannot be merged into one of str keys"),
    ]:
        with pytest.raises(ValueError, match=told):
            one.merge(other)


def test_a_filter_is_saved_and_loaded(tmp_path):
    for key, keys in [("str", TEXTS), ("bytes", [b"a", b"b"]), ("i64", [-1, 1]), ("u64", [1, 2**64 - 1])]:
        filter = CuckooFilter(1000, 0.01, key=key)
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
        assert mapped.expected_false_positive_rate == filter.expected_false_positive_rate
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
    CuckooFilter(1000).save(path)
    whole = path.read_bytes()
    for bytes, told in [
        (b"", "ends within the header"),
        (b"something else, of some length", "not a snapshot"),
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
        CuckooFilter(10).save(tmp_path / "missing" / "filter")


def test_a_filter_is_not_pickled_by_mistake():
    with pytest.raises(TypeError):
        pickle.dumps(CuckooFilter(10))


def test_what_a_filter_says_of_itself():
    filter = CuckooFilter(1000, keys=(3, 2**64 - 1))
    filter.insert(["a"])
    assert repr(filter) == '<CuckooFilter of 1 of 1000 keys, key="str">'
    assert (filter.keys, filter.key, filter.capacity) == ((3, 2**64 - 1), "str", 1000)
    assert 1000 < filter.nbytes < 10_000
