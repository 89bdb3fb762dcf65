"""A concurrent cuckoo filter: an approximate set with removal, for Arrow arrays, numpy arrays and lists.

`CuckooFilter` is the filter; `ExpiringFilter`, `CountingFilter` and `TaggedFilter` store a number with each key. `SharedReader` queries a
filter that a Rust program changes. `Layout`, `build_part` and `join` build one on several machines; the module
`concurrent_cuckoo_filter.spark` does that on Apache Spark.
"""

from . import _native
from ._frames import deduplicate
from ._native import *
from ._native import __version__

__all__ = ["deduplicate"]
__all__ += _native.__all__
