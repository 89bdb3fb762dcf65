"""Builds and queries filters on Apache Spark 3.5 or later, with or without Spark Connect.

>>> from concurrent_cuckoo_filter.spark import build_filter, contains             # doctest: +SKIP
>>> info = build_filter(urls, "url", "/shared/seen", expected_items=10**10, join=True)      # doctest: +SKIP
>>> fresh = crawled.where(~contains("/shared/seen")("url"))                              # doctest: +SKIP

Each executor hashes its own keys. The hashes are shuffled, not the keys, and each task builds one part of the filter in the memory of that
part. `path` is a folder that the driver and all executors have mounted at the same place, or a URL of an object store ("s3://bucket/seen"),
which fsspec opens.
"""

import json
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkFiles, TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import CuckooFilter, Layout, MappedFilter, RefusedError, build_part
from . import join as join_files

__all__ = ["FilterInfo", "build_filter", "contains", "filter_info", "join_filter", "might_contain"]

MANIFEST = "manifest.json"

# The names of the files of builds, whole or not yet: `save` writes under the first 32 characters of a name.
BUILD = r"(part-\d{5,}-of-\d{5,}|filter)\.[0-9a-f]{12}"
OWN = re.compile(rf"{BUILD}\.cuckoo|\.{BUILD}(\.cuckoo)?\.[0-9a-f]{{16}}\.tmp|\.manifest\.json\.[0-9a-f]{{32}}\.tmp")

# A part of a large filter: small enough that many tasks share the work, and large enough for a file.
PART_BYTES = 128 << 20

INTEGERS = "tinyint|smallint|int|bigint"

# The types of columns, as Spark names them, by the type of the keys of a filter. A string with a collation is none of them: strings
# that are equal in it have different bytes.
TYPES = {"str": r"string|decimal\(\d+,\d+\)", "bytes": "binary", "i64": f"{INTEGERS}|date|timestamp"}


@dataclass(frozen=True)
class FilterInfo:
    """The manifest of a filter in a folder."""

    path: str
    """The folder."""
    key: str
    """The type of the keys: "str", "bytes" or "i64"."""
    expected_items: int
    fpp: float
    inserted: int
    """The number of stored keys."""
    present: int
    """The number of keys that were not stored, because they were repeated or taken for a stored one."""
    shards: int
    parts: list[str]
    """The files of the parts, in the order of their shards."""
    joined: str | None
    """The file of the whole filter, if the parts were joined."""
    type: str | None = None
    """The type of the column, by its name in Spark."""

    @property
    def file(self) -> str:
        """The path of the whole filter, for `CuckooFilter.load` or Rust."""
        if self.joined is None:
            raise FileNotFoundError(f"the parts in {self.path} are not joined yet: call join_filter({self.path!r})")
        return _Folder(self.path).at(self.joined)


def build_filter(
    df: DataFrame,
    column: str | Column,
    path: str | os.PathLike[str],
    *,
    expected_items: int,
    fpp: float = 0.001,
    parts: int | None = None,
    unique: bool = True,
    join: bool = False,
) -> FilterInfo:
    """Builds a filter of the values of a column in parallel parts, and writes it to a folder.

    The column may have strings, binaries, integers, dates, timestamps or decimals; nulls are not stored. Strings with a collation are
    refused: use `lower(column)` or the like. `expected_items` is the number of distinct keys, `fpp` the rate of false positives. With
    `unique=True`, each key is stored once, and keys must not be removed from the filter later. With `unique=False`, a copy is stored for
    each row, up to 8 of a key, and can be removed. With `join=True`, the driver joins the parts into one file, shard by shard.

    Tasks may fail, be retried or run twice: each writes its part under a name of its own and then renames it, and its contents depend on the
    keys alone. The manifest is written when all parts are complete. A build that fails or is cancelled removes its parts. Run one build
    at a time in a folder.

    Raises `RefusedError` if keys found no room; no manifest is written then.
    """
    folder = _Folder(path)
    values = F.col(column) if isinstance(column, str) else column
    type = df.select(values.alias("key")).schema[0].dataType.simpleString()
    key = next((key for key, types in TYPES.items() if re.fullmatch(types, type)), None)
    if key is None:
        raise TypeError(f"column {column!r} is of type {type}; {_POSSIBLE}")
    layout = Layout(expected_items, fpp, key=key)  # type: ignore[arg-type]
    parts = _parts(df, layout) if parts is None else max(1, min(parts, layout.shards))
    # Spark sends a row to the task that the hash of a number says: of each part, a number that is sent to its task.
    tasks = F.pmod(F.hash(F.col("id").cast("int")), F.lit(parts))
    numbers = df.sparkSession.range(64 * parts).select("id", tasks.alias("task")).groupBy("task").agg(F.min("id").alias("id"))
    sent = pa.array([row.id for row in sorted(numbers.collect())], pa.int32())
    assert len(sent) == parts
    build = uuid.uuid4().hex[:12]
    folder.make()

    def name(part: int) -> str:
        return f"part-{part:05}-of-{parts:05}.{build}.cuckoo"

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # What Spark calls a string may be any bytes.
            hashes = layout.hash(batch.column(0), check_utf8=False)
            to = sent.take(layout.part_of(hashes, parts))
            yield pa.RecordBatch.from_arrays([hashes.view(pa.int64()), to], ["hash", "to"])

    def build_one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        hashes = (batch.column(0) for batch in batches)
        try:
            with folder.new(name(part)) as path:
                report = build_part(layout, part, parts, hashes, path, unique=unique)
        except RefusedError as error:
            report = error.report
        yield pa.RecordBatch.from_pylist(
            [{"part": part, "inserted": report.inserted, "present": report.present, "refused": report.refused}]
        )

    keys = df.select(_normal(values, type).alias("key")).where(F.col("key").isNotNull())
    shuffled = keys.mapInArrow(place, "hash bigint, to int").repartition(parts, "to").select("hash")
    try:
        built = shuffled.mapInArrow(build_one, "part bigint, inserted bigint, present bigint, refused bigint").collect()
        refused = sum(row.refused for row in built)
        if refused:
            seen = sum(row.inserted + row.present for row in built) + refused
            raise RefusedError(
                f"{refused} of {seen} keys were refused by a filter of {expected_items}: give expected_items of at least the "
                f"number of distinct keys{'' if unique else ', and of copies of them, of which one key may have 8'}"
            )
        # A part without keys may have had no task.
        for part in set(range(parts)) - {row.part for row in built}:
            with folder.new(name(part)) as local:
                build_part(layout, part, parts, [], local, unique=unique)
        files = [name(part) for part in range(parts)]
        missing = set(files) - set(folder.names())
        if missing:
            raise FileNotFoundError(
                f"the part {min(missing)} is not in {folder.path} as the driver sees it: `path` must be a folder of a file "
                "system that the driver and all executors share, or of an object store"
            )
        info = FilterInfo(
            path=folder.path,
            key=key,
            expected_items=expected_items,
            fpp=fpp,
            inserted=sum(row.inserted for row in built),
            present=sum(row.present for row in built),
            shards=layout.shards,
            parts=files,
            joined=_join(folder, files) if join else None,
            type=type,
        )
        _publish(folder, info)
    except BaseException:
        _clean(folder, build)
        raise
    _clean(folder)
    return info


def join_filter(path: str | os.PathLike[str]) -> FilterInfo:
    """Joins the parts in a folder into one file, with one shard in memory at a time. The parts stay there."""
    info = filter_info(path)
    folder = _Folder(path)
    info = FilterInfo(**{**asdict(info), "joined": _join(folder, info.parts)})
    _publish(folder, info)
    _clean(folder)
    return info


def filter_info(path: str | os.PathLike[str]) -> FilterInfo:
    """Reads the manifest of a folder."""
    folder = _Folder(path)
    try:
        manifest = folder.read(MANIFEST)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {MANIFEST} in {folder.path}: no build has ended there") from None
    return FilterInfo(**{**json.loads(manifest), "path": folder.path})


def contains(filter: str | os.PathLike[str] | CuckooFilter) -> Callable[[str | Column], Column]:
    """Returns a function from a column to a column that is true where the filter holds the value, and null for nulls.

    `filter` is the folder of a joined filter, its file, or the name of a file that was passed to `SparkContext.addFile`. The file is mapped,
    so that the Python processes of a machine share its memory, and is checked once in each process. Or `filter` is a small `CuckooFilter`,
    which is sent along with the tasks where no folder is shared.

    **Rebuilds**: a query of a folder uses, for each batch of rows, the filter that is there at that time. So a query that is already defined,
    or a stream that runs for days, uses the filter of the next build.

    >>> from concurrent_cuckoo_filter.spark import contains
    >>> listed = contains("/shared/seen")                                # doctest: +SKIP
    >>> crawled.where(~listed("url")).write.parquet("/shared/fresh")        # doctest: +SKIP
    """
    key: str | None = None
    type: str | None = None
    if isinstance(filter, CuckooFilter):
        held, key = filter, filter.key

        def ask(keys: Any) -> Any:
            return held.contains(keys, check_utf8=False)
    else:
        path = _mounted(os.fspath(filter))
        if _is_folder(path):
            info = filter_info(path)
            key, type = info.key, info.type
            info.file
        else:
            # The driver may have no such file.
            with suppress(Exception):
                key = CuckooFilter.open(_sent(path)).key

        def ask(keys: Any) -> Any:
            return _opened(path).contains(keys, check_utf8=False)

    if hasattr(F, "arrow_udf"):

        def contains(keys: pa.Array) -> pa.Array:
            return ask(keys)

        function = F.arrow_udf(contains, "boolean")
    else:
        import pandas as pd

        # pandas would refuse what is not UTF-8.
        text = key == "str"

        def contains(keys: pd.Series) -> pd.Series:
            array = pa.array(keys, pa.binary() if text else None, from_pandas=True)
            return ask(array.view(pa.string()) if text else array).to_pandas()

        udf = F.pandas_udf(contains, "boolean")  # type: ignore[attr-defined]

        def function(values: Column) -> Column:
            if key in ("i64", "u64"):
                # Of integers with a null pandas would make floating-point numbers.
                return F.when(values.isNotNull(), udf(F.coalesce(values, F.lit(0))))
            return udf(values.cast("binary") if text else values)  # type: ignore[no-any-return]

    if type is None:
        # Without a manifest nothing is known of how dates and the like were made keys.
        types = {"str": "string", "bytes": "binary"}.get(key or "", INTEGERS if key else f"string|binary|{INTEGERS}")
    else:
        types = INTEGERS if re.fullmatch(INTEGERS, type) else re.escape(type)

    def asked(column: str | Column) -> Column:
        values = F.col(column) if isinstance(column, str) else column
        found = F.typeof(values)
        told = F.concat(F.lit("a filter of "), F.lit(type or key or "keys"), F.lit(" was queried with a column of type "), found)
        wrong = F.raise_error(F.concat(told, F.lit(f"; {_POSSIBLE}"))).cast("boolean")
        return F.when(found.rlike(f"^({types})$"), function(_normal(values, type))).otherwise(wrong)

    return asked


might_contain = contains
"""`contains` under the name of a function of Spark."""

_POSSIBLE = "strings without a collation, binaries, integers, dates, timestamps and decimals are possible: cast it"


def _normal(values: Column, type: str | None) -> Column:
    """The values as keys. Those of a column that is asked for are cast to the type of the one that the filter was built of."""
    if type == "date":
        return F.unix_date(values).cast("long")
    if type == "timestamp":
        return F.unix_micros(values)
    if type and type.startswith("decimal"):
        # A cast to a string would write small numbers in another way with ANSI than without.
        return F.when(values.isNotNull(), F.format_string("%s", values.cast(type)))
    return values.cast("long") if re.fullmatch(INTEGERS, type or "") else values


_open_filters: dict[str, tuple[Any, MappedFilter]] = {}


def _opened(path: str) -> MappedFilter:
    """The filter of this process; opened anew if another one has taken its place."""
    for attempt in range(3):
        try:
            return _opened_now(path)
        except FileNotFoundError:
            # A rebuild has removed the file between the look at the manifest and this one.
            if attempt == 2:
                raise
    raise AssertionError


def _opened_now(path: str) -> MappedFilter:
    file = filter_info(path).file if _is_folder(path) else path
    if _scheme(file):
        seen: Any = file
    else:
        file = _sent(file)
        status = os.stat(file)
        seen = (file, status.st_ino, status.st_mtime_ns, status.st_size)
    if path not in _open_filters or _open_filters[path][0] != seen:
        with _Folder(os.path.dirname(file)).local(os.path.basename(file)) as local:
            mapped = CuckooFilter.open(local)
        mapped.check()
        _open_filters[path] = (seen, mapped)
    return _open_filters[path][1]


def _sent(path: str) -> str:
    """The path of a file, which may be one that was passed to `SparkContext.addFile`."""
    return path if os.path.exists(path) else SparkFiles.get(os.path.basename(path))


def _parts(df: DataFrame, layout: Layout) -> int:
    """At least a task for each core, and parts of some size at the most."""
    session = df.sparkSession
    try:
        cores: int = session.sparkContext.defaultParallelism
    except Exception:
        # Spark Connect does not tell.
        cores = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return min(layout.shards, max(cores, -(-layout.nbytes // PART_BYTES)))


def _scheme(path: str) -> str | None:
    """That of a path which is not one of a mounted file system."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)
    return found[1] if found and found[1] != "file" else None


def _mounted(path: str) -> str:
    """The path in a URL of a mounted file system."""
    return re.sub("^file:(//)?(?=/)", "", path)


def _is_folder(path: str) -> bool:
    return not path.endswith(".cuckoo") if _scheme(path) else os.path.isdir(path)


class _Folder:
    """A folder that is mounted, or one of an object store."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = os.fspath(path)
        self.remote = _scheme(path) is not None
        if not self.remote:
            self.path = os.path.abspath(_mounted(path))
        elif "://" in path:
            self.path = path.rstrip("/")
        else:
            mounted = f"/{_scheme(path)}/{path.partition(':')[2].lstrip('/')}"
            raise ValueError(f"{path!r} names no folder that Python can open: give one that is mounted, such as {mounted!r}")

    def at(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _store(self) -> tuple[Any, str]:
        import fsspec

        store: tuple[Any, str] = fsspec.core.url_to_fs(self.path)
        return store

    def make(self) -> None:
        if self.remote:
            store, path = self._store()
            store.makedirs(path, exist_ok=True)
        else:
            os.makedirs(self.path, exist_ok=True)

    def names(self) -> list[str]:
        if not self.remote:
            return os.listdir(self.path)
        store, path = self._store()
        store.invalidate_cache()
        return [os.path.basename(name) for name in store.ls(path, detail=False)]

    def remove(self, name: str) -> None:
        if not self.remote:
            return os.unlink(self.at(name))
        store, path = self._store()
        store.rm_file(f"{path}/{name}")

    def read(self, name: str) -> bytes:
        if not self.remote:
            return Path(self.at(name)).read_bytes()
        store, path = self._store()
        data: bytes = store.cat_file(f"{path}/{name}")
        return data

    @contextmanager
    def new(self, name: str) -> Iterator[str]:
        """A path to write a file to, which then stands in the folder, and is for all who may read other new files."""
        if not self.remote:
            yield self.at(name)
            mask = os.umask(0o077)
            os.umask(mask)
            os.chmod(self.at(name), 0o666 & ~mask)
            return
        with tempfile.TemporaryDirectory() as temporary:
            yield os.path.join(temporary, name)
            store, path = self._store()
            store.put_file(os.path.join(temporary, name), f"{path}/{name}")

    @contextmanager
    def local(self, name: str) -> Iterator[str]:
        """A path to read a file from. One that is mapped stays readable when the copy of it is removed."""
        if not self.remote:
            yield self.at(name)
            return
        store, path = self._store()
        with tempfile.TemporaryDirectory() as temporary:
            store.get_file(f"{path}/{name}", os.path.join(temporary, name))
            yield os.path.join(temporary, name)


def _join(folder: _Folder, parts: list[str]) -> str:
    joined = "filter." + parts[0].split(".")[1] + ".cuckoo"
    with ExitStack() as stack, folder.new(joined) as path:
        join_files([stack.enter_context(folder.local(part)) for part in parts], path)
    return joined


def _publish(folder: _Folder, info: FilterInfo) -> None:
    """Replaces the manifest."""
    fields = asdict(info)
    del fields["path"]
    temporary = f".{MANIFEST}.{uuid.uuid4().hex}.tmp"
    with folder.new(MANIFEST if folder.remote else temporary) as path:
        Path(path).write_text(json.dumps(fields, indent=1) + "\n")
    if not folder.remote:
        os.replace(folder.at(temporary), folder.at(MANIFEST))


def _clean(folder: _Folder, build: str = "") -> None:
    """Removes the files of one build or of all builds that the manifest does not name. No error of it counts: what cannot be removed
    stays, and all files stay if the manifest cannot be read."""
    with suppress(Exception):
        try:
            info = filter_info(folder.path)
            kept = {*info.parts, info.joined}
        except FileNotFoundError:
            kept = set()
        for name in folder.names():
            if OWN.fullmatch(name) and build in name and name not in kept:
                with suppress(Exception):
                    folder.remove(name)
