"""The types of arguments and answers. Libraries such as DuckDB look them up when a program runs."""

import sys
from os import PathLike
from typing import IO, Any, Literal, SupportsIndex, TypeAlias

if sys.version_info >= (3, 11):
    from typing import Self as Self
else:
    Self: TypeAlias = Any

KeyType: TypeAlias = Literal["str", "bytes", "i64", "u64"]
Key: TypeAlias = str | bytes | SupportsIndex
Keys: TypeAlias = Any
"""What speaks Arrow's C interface, a numpy array, or an iterable of keys and None."""
Answers: TypeAlias = Any
"""An array of pyarrow; a Series if the keys came as one of pandas or polars."""
Tags: TypeAlias = Any
"""An array, a series or a list of the tags of the keys."""
Path: TypeAlias = str | PathLike[str]
Source: TypeAlias = Path | IO[bytes] | bytes
"""A path, a URL of fsspec, an open file, or bytes."""
