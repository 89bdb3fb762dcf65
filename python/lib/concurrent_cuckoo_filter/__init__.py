"""A concurrent cuckoo filter: an approximate set with removal, for Arrow arrays, numpy arrays and lists.

`CuckooFilter` is the filter; `ExpiringFilter`, `CountingFilter` and `TaggedFilter` keep a number beside each key. `Layout`, `build_part` and `join` build one on several machines; the module
`concurrent_cuckoo_filter.spark` does that on Apache Spark.
"""

from ._frames import deduplicate
from ._native import (
    CountingFilter,
    CuckooFilter,
    ExpiringFilter,
    Layout,
    MappedFilter,
    RefusedError,
    RemoveReport,
    Report,
    SnapshotError,
    TaggedFilter,
    __version__,
    build_part,
    join,
)

__all__ = [
    "CountingFilter",
    "CuckooFilter",
    "ExpiringFilter",
    "Layout",
    "MappedFilter",
    "RefusedError",
    "RemoveReport",
    "Report",
    "SnapshotError",
    "TaggedFilter",
    "__version__",
    "build_part",
    "deduplicate",
    "join",
]
