"""Tables of any library."""

from typing import Any, TypeVar

import pyarrow as pa

from ._filters import CuckooFilter

T = TypeVar("T")


def deduplicate(data: T, seen: CuckooFilter, column: str | None = None) -> T:
    """Returns the first row of each key that `seen` does not hold, and stores these keys.

    `data` is a table, a record batch or a frame of pyarrow, pandas or polars with the keys in `column`, or an array, a series or a list of
    keys. Rows without a key are kept. A false positive of the filter drops the row of a new key: choose the rate by the number of rows
    that may be missing.

    Raises `RefusedError` if keys found no room; `error.report.stored` is then true for the rows whose keys were stored.

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
