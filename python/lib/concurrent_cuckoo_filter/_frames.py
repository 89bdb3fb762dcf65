"""Tables of any library."""

from collections.abc import Iterator, Sequence, Set
from typing import Any, TypeVar

import pyarrow as pa

from . import _glue
from ._filters import CuckooFilter
from ._reports import reported

T = TypeVar("T")


def deduplicate(data: T, seen: CuckooFilter, column: str | None = None) -> T:
    """Returns the first row of each key that `seen` does not hold, and stores these keys.

    `data` is a table, a record batch or a frame of pyarrow, pandas or polars with the keys in `column`, or keys: an array of these
    libraries or numpy, or a list. The new ones of an iterator or another collection are returned as a list. Rows without a key are kept. A
    false positive of the filter drops the row of a new key: choose the rate by the number of rows that may be missing.

    Raises `RefusedError` if keys found no room; `error.report.stored` is then true for the rows whose keys were stored.

    >>> from concurrent_cuckoo_filter import CuckooFilter, deduplicate
    >>> seen = CuckooFilter(1_000_000, 1e-6)
    >>> deduplicate(["a", "b", "a"], seen), deduplicate(["b", "c"], seen)
    (['a', 'b'], ['c'])
    """
    rows: Any = data
    # All that could fail fails before a key is stored: which keys were new is not known afterwards.
    library = _glue.library(rows)
    if library is None and column is None and isinstance(rows, Sequence | Set | Iterator) and not isinstance(rows, str | bytes):
        rows = list(rows)
    elif library is None or (library in ("polars", "pyarrow") and not hasattr(rows, "filter")):
        raise TypeError(f"rows come as a table, a frame, an array or a list of keys, not as {type(rows).__name__}")
    keys = rows if column is None else rows.column(column) if isinstance(rows, pa.Table | pa.RecordBatch) else rows[column]
    new = reported(seen._insert(keys, True, in_order=True)).stored
    if library in ("polars", "pyarrow"):
        return rows.filter(new.fill_null(True))  # type: ignore[no-any-return]
    mask = pa.array(new).fill_null(True)
    if library is None:
        return [key for key, is_new in zip(rows, mask.to_pylist(), strict=True) if is_new]  # type: ignore[return-value]
    return rows[mask.to_numpy(zero_copy_only=False)]  # type: ignore[no-any-return]
