"""Filters built and asked on Apache Spark, 4.1 or later.

>>> from concurrent_cuckoo_filter.spark import build_filter, contains             # doctest: +SKIP
>>> info = build_filter(urls, "url", "/shared/seen", expected_items=10**10, join=True)      # doctest: +SKIP
>>> fresh = crawled.where(~contains("/shared/seen")("url"))                              # doctest: +SKIP

Each executor hashes the keys that it has. The hashes are shuffled, not the keys, and each task builds a part of the filter
with the memory of that part. `path` is a folder that the driver and all executors see under one name.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark import SparkFiles, TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from . import CuckooFilter, Layout, MappedFilter, RefusedError, build_part
from . import join as join_files

__all__ = ["FilterInfo", "build_filter", "contains", "filter_info", "join_filter", "might_contain"]

MANIFEST = "manifest.json"

# A part of a large filter: small enough that many tasks share the work, and large enough for a file.
PART_BYTES = 128 << 20


@dataclass(frozen=True)
class FilterInfo:
    """What was built, as the manifest in its folder has it."""

    path: str
    """The folder."""
    key: str
    """The type of the keys: "str", "bytes" or "i64"."""
    expected_items: int
    fpp: float
    inserted: int
    """Keys that are stored."""
    present: int
    """Keys that came again, or were taken for one that had come."""
    shards: int
    parts: list[str]
    """The files of the parts, in the order of their shards."""
    joined: str | None
    """The file of the whole filter, if the parts were joined."""

    @property
    def file(self) -> str:
        """The path of the whole filter, for `CuckooFilter.load` or Rust."""
        if self.joined is None:
            raise FileNotFoundError(f"the parts in {self.path} are not joined yet: call join_filter({self.path!r})")
        return os.path.join(self.path, self.joined)


def build_filter(
    df: DataFrame,
    column: str,
    path: str | os.PathLike[str],
    *,
    expected_items: int,
    fpp: float = 0.001,
    parts: int | None = None,
    unique: bool = True,
    join: bool = False,
) -> FilterInfo:
    """Builds a filter of the values of a column, in as many parts as are worth a task, and writes it to a folder.

    Strings, binaries and integers are possible; nulls are not stored. `expected_items` is the number of distinct keys, `fpp`
    the part of absent keys that may be taken for present. With `unique=False` each copy of a key takes a place, and can be
    removed by itself. With `join=True` the driver joins the parts to one file, shard by shard.

    Tasks may fail, be tried again or run twice: each writes its part under a name of its own and then renames it, and what
    it stores depends on the keys alone. The manifest is written when all parts are there.

    Raises `RefusedError` if keys found no room; no manifest is written then.
    """
    folder = _folder(path)
    key, values = _keys(df, column)
    layout = Layout(expected_items, fpp, key=key)
    parts = _parts(df, layout) if parts is None else max(1, min(parts, layout.shards))
    build = uuid.uuid4().hex[:12]
    os.makedirs(folder, exist_ok=True)

    def name(part: int) -> str:
        return f"part-{part:05}-of-{parts:05}.{build}.cuckoo"

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # What Spark calls a string may be any bytes.
            hashes = layout.hash(batch.column(0), check_utf8=False)
            yield pa.RecordBatch.from_arrays([hashes.view(pa.int64()), layout.part_of(hashes, parts)], ["hash", "part"])

    def build_one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        hashes = (batch.column(0) for batch in batches)
        try:
            report = build_part(layout, part, parts, hashes, os.path.join(folder, name(part)), unique=unique)
        except RefusedError as error:
            report = error.report
        yield pa.RecordBatch.from_pylist(
            [{"part": part, "inserted": report.inserted, "present": report.present, "refused": report.refused}]
        )

    hashed = df.select(values).where(F.col("key").isNotNull()).mapInArrow(place, "hash bigint, part int")
    shuffled = hashed.repartitionById(parts, "part").select("hash")
    built = shuffled.mapInArrow(build_one, "part bigint, inserted bigint, present bigint, refused bigint").collect()

    refused = sum(row.refused for row in built)
    if refused:
        _remove(folder, (name(part) for part in range(parts)))
        seen = sum(row.inserted + row.present for row in built) + refused
        raise RefusedError(
            f"{refused} of {seen} keys were refused by a filter of {expected_items}: give expected_items of at least the "
            f"number of distinct keys{'' if unique else ', and of copies of them, of which one key may have 8'}"
        )
    # A part without keys may have had no task.
    for part in set(range(parts)) - {row.part for row in built}:
        build_part(layout, part, parts, [], os.path.join(folder, name(part)), unique=unique)
    files = [name(part) for part in range(parts)]
    for file in files:
        if not os.path.exists(os.path.join(folder, file)):
            raise FileNotFoundError(
                f"the part {file} is not in {folder} as the driver sees it: `path` must be a folder of a file system that "
                "the driver and all executors share"
            )
    info = FilterInfo(
        path=folder,
        key=key,
        expected_items=expected_items,
        fpp=fpp,
        inserted=sum(row.inserted for row in built),
        present=sum(row.present for row in built),
        shards=layout.shards,
        parts=files,
        joined=None,
    )
    before = _files(folder)
    _write_manifest(info)
    _remove(folder, before)
    return join_filter(folder) if join else info


def join_filter(path: str | os.PathLike[str]) -> FilterInfo:
    """Joins the parts in a folder to one file, with one shard in memory at a time. They stay where they are."""
    info = filter_info(path)
    joined = "filter." + info.parts[0].split(".")[1] + ".cuckoo"
    join_files([os.path.join(info.path, part) for part in info.parts], os.path.join(info.path, joined))
    info = FilterInfo(**{**asdict(info), "joined": joined})
    _write_manifest(info)
    return info


def filter_info(path: str | os.PathLike[str]) -> FilterInfo:
    """Reads the manifest of a folder."""
    folder = _folder(path)
    manifest = Path(folder, MANIFEST)
    if not manifest.exists():
        raise FileNotFoundError(f"there is no {MANIFEST} in {folder}: no build has ended there")
    return FilterInfo(**{**json.loads(manifest.read_text()), "path": folder})


def contains(path: str | os.PathLike[str]) -> Callable[..., Column]:
    """A function of a column that says of each value whether the filter holds it; of a null, null.

    `path` is the folder of a joined filter, the file of one, or the name of a file that was given to
    `SparkContext.addFile`. It is mapped, so that the Python processes of a machine share its memory, and checked once in each.

    >>> from concurrent_cuckoo_filter.spark import contains
    >>> listed = contains("/shared/seen")                                # doctest: +SKIP
    >>> crawled.where(~listed("url")).write.parquet("/shared/fresh")        # doctest: +SKIP
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        path = filter_info(path).file

    def contains(keys: pa.Array) -> pa.Array:
        return _opened(path).contains(keys, check_utf8=False)

    function: Callable[..., Column] = F.arrow_udf(contains, "boolean")  # type: ignore[attr-defined]
    return function


might_contain = contains
"""As `contains`, under the name that Spark gives it."""


_open_filters: dict[str, tuple[tuple[int, int, int], MappedFilter]] = {}


def _opened(path: str) -> MappedFilter:
    """The filter of this process; opened anew if another file has taken its place."""
    if not os.path.exists(path):
        path = SparkFiles.get(os.path.basename(path))
    status = os.stat(path)
    seen = (status.st_ino, status.st_mtime_ns, status.st_size)
    if path not in _open_filters or _open_filters[path][0] != seen:
        mapped = CuckooFilter.open(path)
        mapped.check()
        _open_filters[path] = (seen, mapped)
    return _open_filters[path][1]


def _keys(df: DataFrame, column: str) -> tuple[Literal["str", "bytes", "i64"], Column]:
    data_type = df.select(column).schema[0].dataType
    if isinstance(data_type, T.StringType):
        return "str", F.col(column).alias("key")
    if isinstance(data_type, T.BinaryType):
        return "bytes", F.col(column).alias("key")
    if isinstance(data_type, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        return "i64", F.col(column).cast("long").alias("key")
    raise TypeError(
        f"column {column!r} is of type {data_type.simpleString()}; strings, binaries and integers are possible: cast it"
    )


def _parts(df: DataFrame, layout: Layout) -> int:
    """At least a task for each core, and parts of some size at the most."""
    cores: int = df.sparkSession.sparkContext.defaultParallelism
    return min(layout.shards, max(cores, -(-layout.nbytes // PART_BYTES)))


def _folder(path: str | os.PathLike[str]) -> str:
    folder = os.fspath(path)
    folder = folder.removeprefix("file://") if folder.startswith("file:///") else folder
    if "://" in folder:
        raise ValueError(f"{folder!r} is no folder: `path` must be one that the driver and all executors have mounted")
    return os.path.abspath(folder)


def _files(folder: str) -> list[str]:
    """The files of the manifest in the folder, which the next one takes the place of."""
    try:
        info = filter_info(folder)
    except FileNotFoundError:
        return []
    return info.parts + ([info.joined] if info.joined else [])


def _remove(folder: str, names: Any) -> None:
    for name in names:
        Path(folder, name).unlink(missing_ok=True)


def _write_manifest(info: FilterInfo) -> None:
    fields = asdict(info)
    del fields["path"]
    temporary = Path(info.path, f".{MANIFEST}.{uuid.uuid4().hex}.tmp")
    temporary.write_text(json.dumps(fields, indent=1) + "\n")
    temporary.replace(Path(info.path, MANIFEST))
