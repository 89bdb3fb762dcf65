"""The filters. What they do is in the extension module, from which they inherit lookups."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import IO, Any, Literal, final

from . import _glue, _native
from ._native import Kind
from ._reports import RemoveReport, Report, removed, reported
from ._types import Answers, Key, Keys, KeyType, Path, Self, Source, Tags

__all__ = [
    "CountingFilter",
    "CuckooFilter",
    "ExpiringFilter",
    "Filter",
    "MappedFilter",
    "Reader",
    "TaggedFilter",
    "delta",
]
if sys.platform == "linux":
    __all__ += ["SharedReader"]

ZERO = timedelta()


class Reader(_native.Reader):
    """The base class of everything that answers lookups."""

    __slots__ = ()

    def __new__(cls, *_arguments: Any, **_options: Any) -> Self:
        raise TypeError(
            f"{cls.__name__} has no constructor: create a CuckooFilter, ExpiringFilter, CountingFilter or TaggedFilter, "
            "or map a file with CuckooFilter.open"
        )

    def contains(self, keys: Keys, *, check_utf8: bool = True, parallel: bool = False) -> Answers:
        """Returns for each key whether it is present; the answer to a null is null.

        The answers are a `pyarrow.BooleanArray`, or a Series if the keys are a Series of pandas or polars. The call runs on the calling
        thread, or with `parallel=True` on all cores. With `check_utf8=False`, strings that are not valid UTF-8 are looked up by their
        bytes.

        >>> import pyarrow as pa
        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> blocked = CuckooFilter(100)
        >>> _ = blocked.insert(["a"])
        >>> blocked.contains(pa.array(["a", "b"])).to_pylist()
        [True, False]
        """
        return self._contains(keys, check_utf8, parallel)

    def contains_batch(self, keys: Keys) -> Answers:
        """`contains` without its options, for libraries that count a function's parameters, such as DuckDB's `create_function`."""
        return self._contains(keys, True, False)

    @property
    def false_positive_rate(self) -> float | None:
        """The requested rate of false positives, or None if a Rust program requested a width of fingerprints."""
        return self._config.false_positive_rate


class Filter(Reader):
    """The base class of the filters in memory."""

    __slots__ = ()
    _kind: Kind

    @classmethod
    def _build(
        cls, capacity: int, rate: float, max_capacity: int | None, key: KeyType, keys: tuple[int, int] | None, **options: Any
    ) -> Self:
        _glue.unsigned(64, capacity=capacity, max_capacity=max_capacity, keys=keys)
        _glue.unsigned(32, **options)
        return _native.Reader.__new__(cls, _native.build(cls._kind, capacity, rate, max_capacity, key, keys, **options))

    def __len__(self) -> int:
        return self._len()

    def merge(self, other: Self, *, unique: bool = False) -> Report:
        """Stores the keys of another filter, which must have been created with the same arguments and `keys`. A key that both filters
        hold is held twice afterwards; counts are added. With `unique=True`, for instances of `CuckooFilter` only, keys that this filter
        holds are skipped.

        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> one, other = (CuckooFilter(100, keys=(1, 2)) for _ in range(2))
        >>> _ = one.insert(["a"]), other.insert(["b"])
        >>> one.merge(other)
        Report(inserted=1, present=0, nulls=0, refused=0)
        >>> "b" in one
        True
        """
        if type(other) is not type(self):
            raise TypeError(f"only a {type(self).__name__} can be merged into one")
        if other.key != self.key:
            raise ValueError(f"a filter of {other.key} keys cannot be merged into one of {self.key} keys")
        if unique and not isinstance(self, CuckooFilter):
            raise TypeError("a merge with unique=True is of two CuckooFilters")
        return reported(self._merge(other, unique))

    def __or__(self, other: Self) -> Self:
        """Returns a new filter that holds the keys of both: a `copy` of this one after a `merge`.

        Raises `RefusedError` if they do not fit into one."""
        if not isinstance(other, Filter):
            return NotImplemented
        both = self.copy()
        both.merge(other)
        return both

    def clear(self) -> None:
        """Removes all keys."""
        self._clear()

    def copy(self) -> Self:
        """Returns an independent filter with the same contents."""
        return _native.Reader.__new__(type(self), self._copy())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Self:
        return self.copy()

    def save(self, target: Path | IO[bytes]) -> None:
        """Saves the filter to a path, to an fsspec URL ("s3://bucket/blocked"), or to a binary file object.

        A file at the path is replaced atomically: if the program stops during the call, it is the old one or the new one. Other threads
        may use the filter during the call. For a URL or a file object, the bytes are collected in memory first.

        >>> import os, tempfile
        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> path = os.path.join(tempfile.mkdtemp(), "blocked.cuckoo")
        >>> blocked = CuckooFilter(100)
        >>> _ = blocked.insert(["a"])
        >>> blocked.save(path)
        >>> "a" in CuckooFilter.load(path)
        True
        """
        _glue.write(self, target)

    def to_bytes(self) -> bytes:
        """Returns the bytes that `save` writes to a file. Pickle stores the same bytes.

        >>> import pickle
        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> blocked = CuckooFilter(100)
        >>> _ = blocked.insert(["a"])
        >>> "a" in CuckooFilter.from_bytes(blocked.to_bytes()), "a" in pickle.loads(pickle.dumps(blocked))
        (True, True)
        """
        return self._to_bytes()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    def load(cls, source: Source, *, passed: timedelta = ZERO) -> Self:
        """Loads a filter saved by Python or Rust from a path, an fsspec URL, a file object or bytes. All bytes are checked.

        If keys or counts expire, `passed` is the time between the last `advance_to` before the filter was saved and now: whatever has
        expired since then is dropped, and `advance_to` continues from `passed`.
        """
        if not hasattr(cls, "_kind"):
            raise TypeError("load is a method of CuckooFilter, ExpiringFilter, CountingFilter and TaggedFilter")
        filter = _native.Reader.__new__(cls, _native.load(cls._kind, _glue.readable(source)))
        if passed and isinstance(filter, Timed):
            filter.advance_to(passed)
        return filter

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, *, passed: timedelta = ZERO) -> Self:
        """Loads a filter from the bytes of a file; see `load`."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"a filter is read from bytes, not from {type(data).__name__}: `load` reads files")
        return cls.load(bytes(data), passed=passed)

    @property
    def capacity(self) -> int:
        """The requested capacity, in keys."""
        return self._config.capacity

    @property
    def max_capacity(self) -> int:
        """The number of keys that the filter grows to, or its capacity if it does not grow.

        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> growing = CuckooFilter(1_000, max_capacity=1_000_000, key="i64")
        >>> before = growing.nbytes
        >>> growing.insert(range(100_000)).refused, growing.nbytes > 2 * before, growing.max_capacity
        (0, True, 1000000)
        """
        return self._config.max_capacity

    @property
    def nbytes(self) -> int:
        """The total memory of the filter in bytes."""
        return self._nbytes()

    @property
    def expected_false_positive_rate(self) -> float:
        """The expected rate of false positives of the current contents. It rises with the number of stored keys."""
        return self._expected_false_positive_rate()

    def __repr__(self) -> str:
        grows = f", max_capacity={self.max_capacity}" if self.max_capacity > self.capacity else ""
        return f'<{type(self).__name__} of {len(self)} keys, capacity={self.capacity}{grows}, key="{self.key}">'


@final
class CuckooFilter(Filter):
    """An approximate set of strings, bytes or integers in about 14 bits per key.

    "No" is certain. "Yes" is wrong for one absent key in 1,000, or for the fraction `false_positive_rate` of them. `capacity` is the
    number of keys that fit. With `max_capacity`, the filter starts with room for `capacity` keys and grows up to that number. `key` is
    the type of the keys: "str", "bytes", "i64" or "u64". `keys` are the two 64-bit keys of the hash function, random by default;
    filters with equal `keys` hash alike and can be merged.

    Keys are passed as Arrow arrays (pyarrow, polars, pandas, DuckDB, or any other library with Arrow's C interface), numpy arrays, or
    lists. Integers of other widths and dictionaries are cast. Any number of threads may use one filter; methods that take many keys
    release the GIL.

    >>> from concurrent_cuckoo_filter import CuckooFilter
    >>> blocked = CuckooFilter(100_000)
    >>> blocked.insert(["mailinator.com", "0-mail.com"])
    Report(inserted=2, present=0, nulls=0, refused=0)
    >>> "mailinator.com" in blocked, "example.com" in blocked
    (True, False)
    >>> blocked.contains(["0-mail.com", "example.com", None]).to_pylist()
    [True, False, None]
    >>> len(blocked)
    2
    """

    __slots__ = ()
    _kind = Kind.Plain

    def __new__(
        cls,
        capacity: int,
        false_positive_rate: float = 0.001,
        *,
        max_capacity: int | None = None,
        key: KeyType = "str",
        keys: tuple[int, int] | None = None,
    ) -> Self:
        return cls._build(capacity, false_positive_rate, max_capacity, key, keys)

    def insert(self, keys: Keys, *, unique: bool = False) -> Report:
        """Stores a copy of each key and returns a `Report`. A key can be stored up to 8 times, and has to be removed as often. All keys
        that were inserted this way can be removed without loss of other keys. Large inputs are stored by all cores.

        With `unique=True`, a key is stored only if it is absent. The mask `report.stored` is true for the stored keys, which are the new
        ones. **Remove only these:** a key that was not stored shares its place with another key, or with an equal one that was stored
        before, and its removal would remove that one.

        Raises `RefusedError` if keys found no room. All other keys are stored, and `error.report` lists the refused ones. Ctrl-C ends the
        call between two parts of the input; the keys of earlier parts stay stored.

        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> seen = CuckooFilter(1_000_000)
        >>> report = seen.insert(["a", "b"])
        >>> seen.insert(["b", "c", None, "c"], unique=True).stored.to_pylist()
        [False, True, None, False]
        """
        return reported(self._insert(keys, unique))

    def add(self, key: Key) -> bool:
        """Stores one key if it is absent, and returns whether it was stored. Remove only keys that were, as after `insert` with
        `unique=True`.

        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> seen = CuckooFilter(100)
        >>> seen.add("event 1"), seen.add("event 1")
        (True, False)
        """
        return self._add(key)

    def remove(self, keys: Keys) -> RemoveReport:
        """Removes a copy of each key and returns a `RemoveReport`. Remove only keys that were stored: removing any other key may
        remove a stored one.

        >>> from concurrent_cuckoo_filter import CuckooFilter
        >>> numbers = CuckooFilter(100, key="i64")
        >>> numbers.insert([1, -2]).inserted
        2
        >>> report = numbers.remove([-2, 3])
        >>> report.removed, report.missing_at
        (1, [1])
        """
        return removed(self._remove(keys))

    @staticmethod
    def open(path: Path) -> MappedFilter:
        """Maps a file that `save` has written into memory, to query it in place. It takes less than a millisecond for a file of any size,
        and all processes of a machine share the memory. See `MappedFilter`."""
        return _native.Reader.__new__(MappedFilter, _native.open_mapped(_glue.regular(path)))

    def apply_delta(self, source: Source) -> tuple[int, int]:
        """Applies a `delta` to a filter with the contents of its older file, which then has the contents of the newer one. Returns the
        numbers of inserted and removed copies. Other threads may query the filter during the call, but not change it. Takes memory for
        the delta, and twice as much if it is read from a path.

        Raises `SnapshotError` without a change if the delta is damaged, or the contents are not those of the older file.

        >>> from concurrent_cuckoo_filter import CuckooFilter, delta
        >>> blocked = CuckooFilter(100)
        >>> yesterday = blocked.to_bytes()
        >>> _ = blocked.insert(["a", "b"])
        >>> replica = CuckooFilter.from_bytes(yesterday)
        >>> replica.apply_delta(delta(yesterday, blocked.to_bytes()))
        (2, 0)
        >>> "a" in replica
        True
        """
        return self._apply_delta(_glue.readable(source))


def delta(older: Source, newer: Source) -> bytes:
    """Returns the difference between two saved states of a filter, as bytes for `CuckooFilter.apply_delta`: 6 bytes per key that was
    inserted or removed. Each state is a path, an fsspec URL, a file object, or the bytes of `to_bytes`."""
    return _native.delta(_glue.readable(older), _glue.readable(newer))


class Timed(Filter):
    """The base class of filters whose keys or counts can expire."""

    __slots__ = ()

    def advance_to(self, elapsed: timedelta) -> int:
        """Sets the time since the filter was created or loaded, and drops what has expired. Returns the number of ticks since the last
        call, or 0 if counts do not expire. An earlier time than that of the last call changes nothing."""
        return self._advance_to(elapsed)

    def advance(self) -> int:
        """Advances the time by one tick. Returns the number of cleared slots."""
        return self._advance()

    @property
    def time_to_live(self) -> timedelta | None:
        """The lifetime of a key, or of a count from its first addition; None if counts do not expire so."""
        return self._config.time_to_live

    @property
    def tick(self) -> timedelta | None:
        """The time between two ticks, or None if counts do not expire."""
        return self._config.tick


@final
class ExpiringFilter(Timed):
    """A filter whose keys expire. It has no clock: pass the time to `advance_to`.

    A key lives for `time_to_live`, a `timedelta`, and at most 1 / `steps` of it longer. `capacity` is the number of keys that live at the
    same time. The other arguments are those of `CuckooFilter`.

    >>> from datetime import timedelta
    >>> from concurrent_cuckoo_filter import ExpiringFilter
    >>> seen = ExpiringFilter(1_000, time_to_live=timedelta(hours=24))
    >>> seen.see(["a", "b", "a"]).stored.to_pylist()
    [True, True, False]
    >>> _ = seen.advance_to(timedelta(hours=36))
    >>> "a" in seen
    False
    """

    __slots__ = ()
    _kind = Kind.Expiring

    def __new__(
        cls,
        capacity: int,
        false_positive_rate: float = 0.001,
        *,
        time_to_live: timedelta,
        steps: int | None = None,
        max_capacity: int | None = None,
        key: KeyType = "str",
        keys: tuple[int, int] | None = None,
    ) -> Self:
        return cls._build(capacity, false_positive_rate, max_capacity, key, keys, time_to_live=time_to_live, steps=steps)

    def see(self, keys: Keys) -> Report:
        """Stores the keys that were not seen within the time to live, and renews the others. `report.stored` is true for the stored
        ones."""
        return reported(self._insert(keys, True))

    def insert(self, keys: Keys) -> Report:
        """Stores a copy of each key for the whole time to live."""
        return reported(self._insert(keys))

    def remove(self, keys: Keys) -> RemoveReport:
        """Removes a copy of each key. Remove only keys that were stored."""
        return removed(self._remove(keys))


@final
class CountingFilter(Timed):
    """A filter that counts how often each key was added, in one slot per key.

    A count is never too low, up to `max_count`, which follows from `counter_bits` (1 to 16). The other arguments are those of
    `CuckooFilter`.

    With `time_to_live`, a count expires this long after the first addition of its key, and the next addition starts at 1. With
    `time_to_idle`, it expires this long after the last addition. The caller passes the time to `advance_to`; it is divided into `steps`,
    and a count lives at most one step longer.

    >>> from concurrent_cuckoo_filter import CountingFilter
    >>> words = CountingFilter(1_000)
    >>> _ = words.add(["a", "b", "a"])
    >>> words.count(["a", "b", "c", None]).to_pylist()
    [2, 1, 0, None]
    """

    __slots__ = ()
    _kind = Kind.Counting

    def __new__(
        cls,
        capacity: int,
        false_positive_rate: float = 0.001,
        *,
        counter_bits: int = 4,
        time_to_live: timedelta | None = None,
        time_to_idle: timedelta | None = None,
        steps: int | None = None,
        max_capacity: int | None = None,
        key: KeyType = "str",
        keys: tuple[int, int] | None = None,
    ) -> Self:
        if time_to_live is not None and time_to_idle is not None:
            raise ValueError("give time_to_live or time_to_idle, not both")
        window = {"time_to_live": time_to_live, "time_to_idle": time_to_idle, "steps": steps}
        return cls._build(capacity, false_positive_rate, max_capacity, key, keys, counter_bits=counter_bits, **window)

    def add(self, keys: Keys) -> Report:
        """Adds 1 to the count of each key. `report.stored` is true for the counted keys."""
        return reported(self._insert(keys))

    def try_add(self, keys: Keys, limit: int) -> Report:
        """Adds 1 to the count of each key whose count is below `limit`. `report.stored` is true for the counted keys: with
        `time_to_live`, these are the ones within a rate limit.

        >>> from datetime import timedelta
        >>> from concurrent_cuckoo_filter import CountingFilter
        >>> requests = CountingFilter(1_000, time_to_live=timedelta(minutes=1))
        >>> requests.try_add(["a", "a", "b", "a"], 2).stored.to_pylist()
        [True, True, True, False]
        >>> _ = requests.advance_to(timedelta(minutes=2))
        >>> requests.try_add(["a"], 2).stored.to_pylist()
        [True]
        """
        if limit is None:
            raise TypeError("try_add needs a limit: `add` counts without one")
        _glue.unsigned(32, limit=limit)
        return reported(self._insert(keys, limit=limit))

    def subtract(self, keys: Keys) -> Answers:
        """Subtracts 1 from the count of each key, and returns the new counts as a `pyarrow.UInt32Array` or a Series of integers; null for
        absent keys. A count at `max_count` stays, since it may stand for a larger one. Subtract only keys that were added."""
        return self._numbers(keys, subtract=True)

    def count(self, keys: Keys) -> Answers:
        """Returns how often each key was added, as a `pyarrow.UInt32Array` or a Series of integers."""
        return self._numbers(keys)

    def remove(self, keys: Keys) -> RemoveReport:
        """Removes keys with their counts."""
        return removed(self._remove(keys))

    @property
    def max_count(self) -> int:
        """The largest count. A counter stays there."""
        return self._config.max_count

    @property
    def time_to_idle(self) -> timedelta | None:
        """The lifetime of a count from its last addition, or None."""
        return self._config.time_to_idle


@final
class TaggedFilter(Filter):
    """A filter that stores a small integer with each key, its tag: the list the key is on, or a reason.

    `tags` is the number of different tags, 1 to 65,535; the smallest tag is 0. The other arguments are those of `CuckooFilter`.

    >>> from concurrent_cuckoo_filter import TaggedFilter
    >>> lists = TaggedFilter(1_000)
    >>> _ = lists.insert(["a", "b"], 3)
    >>> lists.tag(["a", "c"]).to_pylist()
    [3, None]
    """

    __slots__ = ()
    _kind = Kind.Tagged

    def __new__(
        cls,
        capacity: int,
        false_positive_rate: float = 0.001,
        *,
        tags: int = 7,
        max_capacity: int | None = None,
        key: KeyType = "str",
        keys: tuple[int, int] | None = None,
    ) -> Self:
        return cls._build(capacity, false_positive_rate, max_capacity, key, keys, tags=tags)

    def insert(self, keys: Keys, tag: int | Tags) -> Report:
        """Stores a copy of each key with its tag. `tag` is one for all keys, or an array with one per key.

        >>> from concurrent_cuckoo_filter import TaggedFilter
        >>> lists = TaggedFilter(1_000)
        >>> _ = lists.insert(["a", "b"], [3, 1])
        >>> lists.tag(["a", "b"]).to_pylist()
        [3, 1]
        """
        return reported(self._insert(keys, tags=_glue.tags(tag, self.max_tag)))

    def tag(self, keys: Keys) -> Answers:
        """Returns the tag of each key, the smallest of several, as a `pyarrow.UInt32Array` or a Series of integers; null for absent
        keys."""
        return self._numbers(keys)

    def remove(self, keys: Keys, tag: int | Tags) -> RemoveReport:
        """Removes a copy of each key with its tag, which is given as for `insert`."""
        return removed(self._remove(keys, _glue.tags(tag, self.max_tag)))

    @property
    def max_tag(self) -> int:
        """The largest tag."""
        return self._config.max_tag


@final
class MappedFilter(Reader):
    """A read-only filter in a file that `CuckooFilter.save` has written. `CuckooFilter.open` returns one.

    It allocates no memory for the keys: pages of the file are read on demand, and all processes of a machine share them. `open` checks
    the header only; call `check` for the rest where files come over a network. `save` replaces a file, so an open one stays as it was
    until it is opened again. If an open file is truncated, a query of the missing pages kills the process.

    >>> import os, tempfile
    >>> from concurrent_cuckoo_filter import CuckooFilter
    >>> path = os.path.join(tempfile.mkdtemp(), "blocked.cuckoo")
    >>> blocked = CuckooFilter(100)
    >>> _ = blocked.insert(["mailinator.com"])
    >>> blocked.save(path)
    >>> mapped = CuckooFilter.open(path)
    >>> mapped.check()
    >>> "mailinator.com" in mapped, mapped.contains(["example.com", None]).to_pylist(), len(mapped)
    (True, [False, None], 1)
    """

    __slots__ = ()

    def check(self) -> None:
        """Checks all bytes of the file, as `CuckooFilter.load` does. Other threads may query it during the call."""
        self._check()

    def __len__(self) -> int:
        return self._len()

    def __repr__(self) -> str:
        return f'<MappedFilter of {len(self)} keys, key="{self.key}">'


if sys.platform == "linux":

    @final
    class SharedReader(Reader):
        """A read-only view of a filter that a Rust program on the same machine changes as a
        `SharedFilter<CuckooFilter<_, StableHashBuilder>>`. It exists on Linux only.

        Lookups take no lock and wait for no writer. Any number of threads and processes may query the filter. When another filter
        replaces it, `state` becomes "replaced"; open the new one then.

        >>> from concurrent_cuckoo_filter import SharedReader
        >>> SharedReader("/dev/shm/no-such-filter")
        Traceback (most recent call last):
        FileNotFoundError: ...
        """

        __slots__ = ()

        def __new__(cls, path: Path) -> Self:
            return _native.Reader.__new__(cls, _native.open_shared(path))

        @property
        def state(self) -> Literal["live", "closed", "replaced"]:
            """The state of the filter: "live", "closed" or "replaced". A writer that was killed leaves it "live"."""
            return self._state()

        def __repr__(self) -> str:
            return f'<SharedReader of a filter that is {self.state}, key="{self.key}">'
