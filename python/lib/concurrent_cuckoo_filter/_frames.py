"""Tables of any library."""

from typing import Any, TypeVar

import pyarrow as pa

from ._native import CuckooFilter

T = TypeVar("T")


def deduplicate(data: T, seen: CuckooFilter, column: str | None = None) -> T:
    """Returns the rows of which the key is new, the first of each, and stores their keys.

    `data` is a table, a frame or a record batch of pyarrow, pandas or polars, whose keys are in `column`; or an array or a series of
    keys, or a list. Rows without a key are kept. Of the new keys a few are taken for old ones, as the filter is wrong:
    choose its rate by how many rows may be missing.

    Raises `RefusedError` if keys found no room, as `CuckooFilter.insert`; the rows that are new then are those of which
    `error.report.stored` is true.

    >>> from concurrent_cuckoo_filter import CuckooFilter, deduplicate
    >>> seen = CuckooFilter(1_000_000, 1e-6)
    >>> deduplicate(["a", "b", "a"], seen), deduplicate(["b", "c"], seen)
    (['a', 'b'], ['c'])
    """
    frame: Any = data
    keys = frame if column is None else frame.column(column) if isinstance(frame, pa.Table | pa.RecordBatch) else frame[column]
    new = seen.insert(keys, unique=True).stored
    library = type(frame).__module__.partition(".")[0]
    rows: Any
    if library == "pandas":
        rows = frame[new.fillna(True)]
    elif library in ("polars", "pyarrow"):
        rows = frame.filter(new.fill_null(True))
    else:
        rows = [key for key, is_new in zip(frame, new.to_pylist(), strict=True) if is_new is not False]
    return rows  # type: ignore[no-any-return]
