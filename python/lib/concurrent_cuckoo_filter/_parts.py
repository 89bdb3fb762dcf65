"""Filters that are built in parts on several machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from . import _glue, _native
from ._reports import Report, reported
from ._types import Keys, KeyType, Path, Self

__all__ = ["Layout", "build_part", "join"]

MOST_PARTS = 2**31 - 1


class Layout(_native.Layout):
    """The placement of keys in a filter, without its memory, to build the filter in parts on several machines.

    It takes the arguments of `CuckooFilter` except `max_capacity`, and can be pickled. Each machine hashes its keys (`hash`) and sends the
    hashes, 8 bytes each, to the machine of their part (`part_of`), which calls `build_part`. `join` then joins the files of the parts.

    >>> import os, tempfile
    >>> from concurrent_cuckoo_filter import CuckooFilter, Layout, build_part, join
    >>> layout = Layout(1_000_000)
    >>> hashes = layout.hash([f"site-{number}.example" for number in range(10_000)])
    >>> part = layout.part_of(hashes, 2)
    >>> folder = tempfile.mkdtemp()
    >>> paths = [os.path.join(folder, f"part-{number}") for number in range(2)]
    >>> import pyarrow.compute as pc
    >>> for number, path in enumerate(paths):
    ...     _ = build_part(layout, number, 2, [hashes.filter(pc.equal(part, number))], path)
    >>> join(paths, os.path.join(folder, "all"))
    >>> "site-77.example" in CuckooFilter.load(os.path.join(folder, "all"))
    True
    """

    __slots__ = ()

    def __new__(
        cls,
        capacity: int,
        false_positive_rate: float = 0.001,
        *,
        key: KeyType = "str",
        keys: tuple[int, int] | None = None,
    ) -> Self:
        _glue.unsigned(64, capacity=capacity, keys=keys)
        return super().__new__(cls, capacity, false_positive_rate, key, keys)

    def __getnewargs_ex__(self) -> tuple[tuple[int, float], dict[str, Any]]:
        return (self.capacity, self.false_positive_rate), {"key": self.key, "keys": self.keys}

    def hash(self, keys: Keys, *, check_utf8: bool = True) -> pa.UInt64Array:
        """Returns the hashes of keys as a `pyarrow.UInt64Array`; the hash of a null is null. With `check_utf8=False`, strings that are not
        valid UTF-8 are hashed by their bytes.

        >>> from concurrent_cuckoo_filter import Layout
        >>> Layout(1000, keys=(1, 2)).hash(["key", None])
        <pyarrow.lib.UInt64Array object at ...>
        [
          10880162054320443295,
          null
        ]
        """
        return self._hash(keys, check_utf8)

    def part_of(self, hashes: pa.Array, parts: int) -> pa.Int32Array:
        """Returns the number of the part of each hash, from 0 to `parts` - 1, as a `pyarrow.Int32Array`."""
        _check(parts)
        return self._part_of(_glue.hashes(hashes), parts)

    def part(self, number: int, parts: int) -> range:
        """Returns the range of the shards in one of `parts` parts.

        >>> from concurrent_cuckoo_filter import Layout
        >>> Layout(2_500_000).part(1, 3)
        range(3, 6)
        """
        _check(parts)
        if not 0 <= number < parts:
            raise ValueError(f"part {number} of {parts} was requested; they are numbered from 0")
        return range(*self._part(number, parts))

    def __repr__(self) -> str:
        return f'<Layout of {self.capacity} keys in {self.shards} shards, key="{self.key}">'


def _check(parts: int) -> None:
    if not 1 <= parts <= MOST_PARTS:
        raise ValueError(f"{parts} parts were requested; 1 to {MOST_PARTS} are possible")


def build_part(layout: Layout, part: int, parts: int, batches: Iterable[pa.Array], path: Path, *, unique: bool = True) -> Report:
    """Builds part `part` of `parts` from hashes, and writes it to a file. It allocates the memory of this part only, and runs on the
    calling thread.

    `batches` is an iterable of arrays of hashes from `layout.hash`, all of this part (see `layout.part_of`). With `unique=True`, repeated
    keys are stored once.

    Raises `RefusedError` with a report if keys found no room, and writes no file then.
    """
    shards = layout.part(part, parts)
    return reported(_native.build_part(layout, (shards.start, shards.stop), map(_glue.hashes, batches), path, unique))


def join(parts: Sequence[Path], path: Path) -> None:
    """Joins the files of all parts, in any order, into one file for `CuckooFilter.load`, which replaces an older one. One shard is in
    memory at a time, so the filter may be larger than memory.

    Raises `SnapshotError` if a part is missing, repeated or of another filter, and `OSError` for an error of the file system. An older
    file stays then.
    """
    _native.join([_glue.regular(part) for part in parts], path)
