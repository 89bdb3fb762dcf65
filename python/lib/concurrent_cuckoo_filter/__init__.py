"""A concurrent cuckoo filter: an approximate set with removal, for Arrow arrays, numpy arrays and lists.

`CuckooFilter` is the filter; `ExpiringFilter`, `CountingFilter` and `TaggedFilter` store a number with each key. `SharedReader` queries a
filter that a Rust program changes. `Layout`, `build_part` and `join` build one on several machines; the module
`concurrent_cuckoo_filter.spark` does that on Apache Spark.
"""

import os

from . import _filters, _native, _parts
from ._filters import *
from ._frames import deduplicate
from ._native import RefusedError, SnapshotError, __version__
from ._parts import *
from ._reports import RemoveReport, Report

__all__ = ["RefusedError", "RemoveReport", "Report", "SnapshotError", "__version__", "deduplicate"]
__all__ += _filters.__all__ + _parts.__all__

# Pickle stores these names.
for _name in (*_filters.__all__, *_parts.__all__, "Report", "RemoveReport"):
    globals()[_name].__module__ = __name__

# Not on Windows, which does not fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_native.before_fork,
        after_in_parent=_native.after_fork_in_parent,
        after_in_child=_native.after_fork_in_child,
    )
