"""What the extension module asks of Python: keys as arrays that it reads, answers as the libraries hold them, and files.

It is here so that no thread is inside Rust code where it may be unwound: see `call` in `sys.rs`.
"""

import io
import operator
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

READ: dict[str, Callable[[pa.DataType], bool]] = {
    "str": lambda type: t.is_string(type) or t.is_large_string(type) or _is(type, "is_string_view"),
    "bytes": lambda type: (
        t.is_binary(type) or t.is_large_binary(type) or t.is_fixed_size_binary(type) or _is(type, "is_binary_view")
    ),
    "i64": t.is_int64,
    "u64": t.is_uint64,
}
MADE = {"str": pa.large_string(), "bytes": pa.large_binary(), "i64": pa.int64(), "u64": pa.uint64()}

# Values of an iterator that are taken at a time.
BATCH = 1 << 14


def _is(type: pa.DataType, name: str) -> bool:
    """Whether it is of a kind that not every version of pyarrow knows."""
    known: Callable[[pa.DataType], bool] = getattr(t, name, lambda type: False)
    return known(type)


def library(value: Any) -> str | None:
    """The library that the class of a value is of, or a class that this one inherits from."""
    kind: Any = type(value)
    return _library(kind)


@lru_cache
def _library(kind: Any) -> str | None:
    found = {base.__module__.partition(".")[0] for base in kind.__mro__}
    return next((name for name in ("pandas", "polars", "pyarrow", "numpy") if name in found), None)


def arrays(keys: Any, key: str) -> list[Any] | Callable[[], list[Any]]:
    """Arrays that can be read as keys of this type, or a function that returns the next values of an iterable.

    An array is a pair: the capsules of its values, and those of the indices if the values are a dictionary, or None.
    """
    if isinstance(keys, str | bytes) or getattr(keys, "ndim", 1) == 0:
        raise TypeError("one key was given where a list of keys is needed: write [key]")
    source = library(keys)
    # A lazy frame of polars has no shape.
    if source in ("pandas", "polars") and hasattr(keys, "shape") and hasattr(keys, "columns"):
        # pandas would make a column of its index, too.
        _check_one(keys.columns)
        column = keys.iloc[:, 0] if source == "pandas" else keys[:, 0]
        # Arrow has a frame of polars as a struct, and its column may be another one.
        if source == "pandas" or type(column.dtype).__name__ == "Object":
            keys = column
    if hasattr(keys, "dtype") and (keys.dtype == object or type(keys.dtype).__name__ == "Object"):
        # pyarrow would take text for bytes, and polars exports addresses. What pandas takes for missing is null.
        values = keys.astype(object).where(keys.notna(), None) if source == "pandas" else keys
        return _batches(values.to_list() if source == "polars" else values.tolist())
    if type(keys).__name__ == "ndarray" and keys.dtype.str in ("<i8", "<u8") and keys.ndim == 1 and keys.flags.c_contiguous:
        # `pa.array` imports pandas when it is called first, under a lock that a forked process would never see opened.
        type_ = pa.int64() if keys.dtype.kind == "i" else pa.uint64()
        given = pa.Array.from_buffers(type_, len(keys), [None, pa.py_buffer(keys)])
    elif hasattr(keys, "__arrow_c_stream__"):
        given = pa.chunked_array(keys)
    elif hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__array__"):
        given = pa.array(keys)
    else:
        return _batches(keys)
    if t.is_struct(given.type):
        _check_one(field.name for field in given.type)
        given = given.flatten()[0]
    return [_capsules(array, key) for array in (given.chunks if isinstance(given, pa.ChunkedArray) else [given])]


def _batches(keys: Any) -> Callable[[], list[Any]]:
    try:
        iterator = iter(keys)
    except TypeError:
        raise TypeError(
            f"keys come as an Arrow array, a numpy array or a list, not as {type(keys).__name__}"
        ) from None
    return lambda: list(islice(iterator, BATCH))


def _check_one(columns: Iterable[Any]) -> None:
    names = [str(name) for name in columns]
    if len(names) != 1:
        found = f"the columns {', '.join(names)}" if names else "no columns"
        raise TypeError(f"a table with {found} was given where one column of keys is needed")


def _capsules(array: pa.Array, key: str) -> tuple[Any, Any]:
    array.validate()
    if _is(array.type, "is_run_end_encoded"):
        array = pc.run_end_decode(array)
    if not t.is_dictionary(array.type):
        return _read(array, key).__arrow_c_array__(), None
    if array.dictionary.null_count or len(array.dictionary) > len(array):
        return _read(array.dictionary.take(array.indices), key).__arrow_c_array__(), None
    indices = array.indices.cast(pa.uint32())
    return _read(array.dictionary, key).__arrow_c_array__(), indices.__arrow_c_array__()


def _read(array: pa.Array, key: str) -> pa.Array:
    """The array, or one of a type that is read, its values unchanged or refused."""
    if READ[key](array.type):
        return array
    if t.is_null(array.type) or (t.is_integer(array.type) and key in ("i64", "u64")):
        return array.cast(MADE[key])
    raise TypeError(
        f"an array of {array.type} was given to a filter of {key} keys: cast it, or use a filter with another `key`"
    )


def unsigned(bits: int, **arguments: Any) -> None:
    """Fails if an integer among the arguments does not fit this many bits. The error of the extension module would not name it."""
    for name, given in arguments.items():
        for number in given if isinstance(given, tuple) else [given]:
            with suppress(TypeError):
                if not 0 <= operator.index(number) < 1 << bits:
                    raise ValueError(f"{name}={given} was requested; integers must be at least 0 and below 2**{bits}")


def hashes(array: Any) -> Any:
    """The capsules of hashes."""
    if not hasattr(array, "__arrow_c_array__") or array.type not in (pa.uint64(), pa.int64()) or array.null_count:
        raise TypeError("hashes come as an Arrow array of type uint64 or int64 without nulls: see Layout.hash")
    return array.__arrow_c_array__()


def tags(tags: Any, largest: int) -> Any:
    """A tag for all keys, or the capsules of one for each."""
    given = None
    with suppress(TypeError):
        given = operator.index(tags)
        found = [given]
    if given is None:
        if isinstance(tags, str | bytes) or not hasattr(tags, "__len__"):
            raise TypeError("a tag is an integer, or an array that has one for each of the keys")
        array = pa.chunked_array(tags).combine_chunks() if hasattr(tags, "__arrow_c_stream__") else pa.array(tags)
        if not (t.is_integer(array.type) or t.is_null(array.type)):
            raise TypeError(f"tags are integers, not {array.type}")
        if array.null_count:
            raise ValueError("one of the tags is null")
        found = [tag or 0 for tag in pc.min_max(array).as_py().values()]
    for tag in found:
        if not 0 <= tag <= largest:
            raise ValueError(f"tag {tag} was given; this filter has the tags 0 to {largest}: see `tags`")
    return array.cast(pa.uint32()).__arrow_c_array__() if given is None else given


def answers(keys: Any, array: int, schema: int) -> Any:
    """Takes an array from the extension module: as a Series if the keys are one, else as it is."""
    answers = pa.Array._import_from_c(array, schema)
    source = library(keys)
    if source == "pandas" and hasattr(keys, "index"):
        import pandas as pd

        # Of a frame, whose one column the keys are, as of a series.
        return pd.Series(_pandas_type(answers.type).__from_arrow__(answers), index=keys.index)
    if source == "polars":
        import polars as pl

        return pl.Series(answers)
    return answers


def _pandas_type(type: pa.DataType) -> Any:
    import pandas as pd

    return {pa.bool_(): pd.BooleanDtype(), pa.uint32(): pd.UInt32Dtype()}[type]


def write(filter: Any, target: Any) -> None:
    """Saves a filter to a path, a URL or an open file."""
    if hasattr(target, "write"):
        rest = filter.to_bytes()
        while rest:
            written = target.write(rest)
            if written is None and isinstance(target, io.RawIOBase):
                raise BlockingIOError("the file does not wait until it can be written")
            # Only files without a buffer write less than all. Some return nothing.
            rest = memoryview(rest)[len(rest) if written is None else written :]
    elif "://" in os.fspath(target):
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        store, path = url_to_fs(target)
        with suppress(PermissionError):
            store.makedirs(store._parent(path), exist_ok=True)
        if isinstance(store, LocalFileSystem):
            filter._save(path)
        else:
            # At once: fsspec commits an open file also if an exception leaves it, and the object would be its beginning.
            store.pipe_file(path, filter.to_bytes())
    else:
        filter._save(os.fspath(target))


def readable(source: Any) -> Any:
    """The path of a file, or the bytes of a URL or an open file, or those that were given."""
    if isinstance(source, bytes):
        return source
    if hasattr(source, "read"):
        data = None if isinstance(source, io.TextIOBase) else source.read()
        if not isinstance(data, bytes | bytearray):
            raise TypeError('a filter is read from a binary file: open it with the mode "rb"')
        return data
    path = os.fspath(source)
    if "://" not in path:
        return regular(path)
    import fsspec

    with fsspec.open(path, "rb") as file:
        return file.read()


def regular(path: str | os.PathLike[str]) -> str:
    """The path of a file. What is wrong with it is said here, with its name."""
    # To open a named pipe would be to wait for a writer.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{os.fspath(path)!r} is not a regular file")
    with open(path, "rb"):
        return os.fspath(path)
