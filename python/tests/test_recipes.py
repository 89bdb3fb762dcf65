"""What a data engineer does with the libraries of a day: the recipes of the README."""

import re
from functools import partial
from pathlib import Path

import dask
import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from concurrent_cuckoo_filter import CuckooFilter, Layout, RefusedError, build_part, deduplicate, join

# The same hash function in every run, so that no test depends on chance.
new = partial(CuckooFilter, keys=(1, 2))

ROWS = {"url": ["a", "b", None, "a", "c"], "number": [0, 1, 2, 3, 4]}


@pytest.mark.parametrize("make", [pa.table, pa.RecordBatch.from_pydict, pd.DataFrame, pl.DataFrame], ids=lambda make: make.__module__)
def test_rows_are_deduplicated(make):
    seen = new(100, 1e-8)
    rows = make(ROWS)
    kept = deduplicate(rows, seen, "url")
    assert type(kept) is type(rows) and list(pa.array(kept["number"]).to_pylist()) == [0, 1, 2, 4]
    assert list(pa.array(deduplicate(make({"url": ["d", "c", None], "number": [5, 6, 7]}), seen, "url")["number"]).to_pylist()) == [5, 7]
    # Only what was stored is in it, once.
    assert len(seen) == 4


@pytest.mark.parametrize("make", [list, pa.array, pa.chunked_array, pd.Series, pl.Series], ids=lambda make: make.__module__)
def test_keys_are_deduplicated(make):
    keys = make(["a", "b", None, "a"]) if make is not pa.chunked_array else make([["a", "b"], [None, "a"]])
    kept = deduplicate(keys, new(100, 1e-8))
    assert type(kept) is type(keys) and pa.array(kept).to_pylist() == ["a", "b", None]


@pytest.mark.parametrize(
    "make",
    [tuple, iter, dict.fromkeys, np.array, pd.Index, pd.array, pd.Categorical, lambda keys: pd.Series(keys, index=[5, 5, 7]),
     lambda keys: pd.array(keys, dtype=object), lambda keys: pd.Index(keys, dtype=object)],
)  # fmt: skip
def test_keys_of_all_forms_are_deduplicated(make):
    seen = new(100, 1e-8)
    given = make(["a", "b", "a"])
    keys = given.keys() if isinstance(given, dict) else given
    distinct = ["a", "b"]
    kept = deduplicate(keys, seen)
    assert list(kept) == distinct and len(seen) == 2
    assert type(kept) is (type(keys) if hasattr(keys, "dtype") else list)


def test_frames_of_classes_that_inherit_are_deduplicated():
    class Frame(pd.DataFrame):
        @property
        def _constructor(self):
            return Frame

    class Series(pd.Series):
        pass

    seen = new(100, 1e-8)
    kept = deduplicate(Frame(ROWS, index=[3, 4, 5, 3, 4]), seen, "url")
    assert type(kept) is Frame and kept["number"].tolist() == [0, 1, 2, 4]
    series = Series(["a", None, "x"], dtype=object)
    assert seen.contains(series).tolist() == [True, pd.NA, False] and deduplicate(series, seen).tolist() == [None, "x"]


@pytest.mark.parametrize(
    "make,column",
    [
        (lambda: duckdb.from_arrow(pa.table({"url": ["a"]})), "url"),
        (lambda: duckdb.from_arrow(pa.table({"url": ["a"]})), None),
        (lambda: pa.table({"url": ["a"]}).to_reader(), None),
        (lambda: pl.LazyFrame({"url": ["a"]}), "url"),
        (lambda: dask.dataframe.from_pandas(pd.DataFrame({"url": ["a"]}), npartitions=1), "url"),
        (lambda: {"url": ["a"]}, "url"),
        (lambda: {"url": ["a"]}, None),
        (lambda: ["a"], "url"),
        (lambda: "a", None),
    ],
)
def test_rows_that_cannot_be_chosen_from_are_refused_before_a_key_is_stored(make, column):
    seen = new(100)
    with pytest.raises(TypeError):
        deduplicate(make(), seen, column)
    assert len(seen) == 0


def test_of_equal_keys_the_first_row_is_kept():
    """Also where there are few for each shard, so that threads would store them in any order."""
    seen = new(40_000_000, 1e-6, key="i64")
    rows = pa.table({"key": [*range(19_000)] * 2, "row": range(38_000)})
    assert 32_768 <= len(rows) < 256 * Layout(40_000_000, 1e-6).shards
    assert deduplicate(rows, seen, "key")["row"].to_pylist() == [*range(19_000)]


def test_rows_that_find_no_room():
    with pytest.raises(RefusedError) as raised:
        deduplicate(np.arange(5000, dtype=np.uint64), new(1000, key="u64"))
    assert raised.value.report.stored.true_count == raised.value.report.inserted


@pytest.fixture
def listed():
    filter = new(100, 1e-8)
    filter.insert(["a", "c"])
    return filter


@pytest.mark.parametrize("opened", [False, True])
def test_duckdb_calls_a_filter(listed, opened, tmp_path):
    if opened:
        listed.save(tmp_path / "filter")
        listed = CuckooFilter.open(tmp_path / "filter")
    connection = duckdb.connect()
    connection.create_function("listed", listed.contains_batch, ["VARCHAR"], "BOOLEAN", type="arrow")
    rows = connection.from_arrow(pa.table(ROWS))
    assert sorted(rows.filter("listed(url)").select("number").fetchall()) == [(0,), (3,), (4,)]
    assert rows.filter("listed(url) is null").select("number").fetchall() == [(2,)]


def test_an_expression_of_polars(listed):
    found = pl.col("url").map_batches(listed.contains, return_dtype=pl.Boolean)
    assert pl.LazyFrame(ROWS).filter(~found).collect()["number"].to_list() == [1]
    assert pl.DataFrame(ROWS).with_columns(listed=found)["listed"].to_list() == [True, False, None, True, True]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_sends_a_filter_along(listed, scheduler):
    frame = dask.dataframe.from_pandas(pd.DataFrame(ROWS), npartitions=2)
    with dask.config.set(**{"multiprocessing.context": "fork"}):
        kept = frame.map_partitions(lambda part: part[listed.contains(part["url"])]).compute(scheduler=scheduler)
    assert kept["number"].tolist() == [0, 3, 4]


@pytest.mark.parametrize("make", [list, pd.Series, pl.Series], ids=lambda make: make.__module__)
def test_hashes_are_an_array_of_arrow_whatever_the_keys_are(make):
    layout = Layout(1_000_000, keys=(1, 2))
    hashes = layout.hash(make(ROWS["url"]))
    assert isinstance(hashes, pa.UInt64Array) and hashes == layout.hash(pa.array(ROWS["url"]))
    assert len(layout.part_of(hashes.drop_null(), 3)) == 4


def test_the_functions_for_ray_build_a_filter_in_parts(tmp_path):
    """The recipe of docs/spark.md, but for Ray itself."""
    document = (Path(__file__).parents[2] / "docs/spark.md").read_text()
    recipe = next(code for code in re.findall("```python\n(.*?)```", document, re.DOTALL) if "ray.data" in code)
    names = {"pa": pa, "Layout": Layout, "build_part": build_part}
    begun, replaced = re.subn(r"10\*\*10\), \d+", "1_000_000), 3", recipe.partition("placed =")[0])
    assert replaced == 1
    exec(begun.replace("/shared", str(tmp_path)), names)
    urls = [f"site-{number}.example" for number in range(10_000)]
    placed = pa.concat_tables(names["place"](pa.table({"url": pa.chunked_array([urls[:10], urls[10:]])})) for _ in range(2))
    for part in range(3):
        names["build"](placed.filter(pc.equal(placed["part"], part)))
    join([tmp_path / f"part-{part}" for part in range(3)], tmp_path / "seen")
    assert CuckooFilter.load(tmp_path / "seen").contains(urls).true_count == 10_000


def test_dask_builds_a_filter_in_parts(tmp_path):
    """The recipe of docs/spark.md."""
    document = (Path(__file__).parents[2] / "docs/spark.md").read_text()
    recipe = next(code for code in re.findall("```python\n(.*?)```", document, re.DOTALL) if "dask.dataframe" in code)
    urls = [f"site-{number}.example" for number in range(10_000)]
    (tmp_path / "lists").mkdir()
    pd.DataFrame({"url": urls}).to_parquet(tmp_path / "lists" / "part.parquet")
    names = {"dask": dask, "pa": pa, "pd": pd, "build_part": build_part, "layout": Layout(1_000_000, keys=(1, 2)), "parts": 3}
    with dask.config.set(scheduler="threads"):
        exec(recipe.replace("/lists", str(tmp_path / "lists")).replace("/shared", str(tmp_path)), names)
    join([tmp_path / f"part-{part}" for part in range(3)], tmp_path / "seen")
    assert CuckooFilter.load(tmp_path / "seen").contains(urls).true_count == 10_000
