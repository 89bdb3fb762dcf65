"""Filters built and asked in one process of Spark."""

import os
import re
from pathlib import Path

import pytest

from concurrent_cuckoo_filter import CountingFilter, CuckooFilter, RefusedError

ITEMS = 300_000


def url(number):
    return f"https://www.example-{number}.com/a/page/{number % 7}"


@pytest.fixture(scope="module")
def urls(spark):
    from pyspark.sql import functions as F

    frame = spark.range(ITEMS, numPartitions=3)
    text = F.concat(F.lit("https://www.example-"), "id", F.lit(".com/a/page/"), F.col("id") % 7)
    return frame.select(text.alias("url"), "id", F.encode(text, "UTF-8").alias("bytes")).cache()


@pytest.fixture(scope="module")
def seen(urls, tmp_path_factory):
    from concurrent_cuckoo_filter.spark import build_filter

    folder = tmp_path_factory.mktemp("seen")
    # Each twice: a second copy takes no room.
    return build_filter(urls.union(urls), "url", folder, expected_items=ITEMS, parts=2, join=True)


def test_what_spark_builds_rust_and_python_read(seen, ask):
    assert seen.inserted + seen.present == 2 * ITEMS
    assert ITEMS * 0.998 < seen.inserted <= ITEMS
    assert (seen.shards, len(seen.parts), seen.key) == (2, 2, "str")
    keys = [url(number) for number in range(ITEMS)]
    assert ask(seen.file, keys) == (ITEMS, 0, seen.inserted)
    filter = CuckooFilter.load(seen.file)
    assert len(filter) == seen.inserted
    assert filter.contains(keys).true_count == ITEMS
    # A reader that finds everything would be no reader.
    _, missed, _ = ask(seen.file, [f"absent {number}" for number in range(10_000)])
    assert 9_900 < missed < 10_000


def test_a_filter_that_counts_is_read_by_rust(ask, tmp_path):
    filter = CountingFilter(1000, keys=(1, 2))
    filter.add([url(number) for number in range(1000)])
    filter.save(tmp_path / "counts")
    assert ask(tmp_path / "counts", [url(number) for number in range(1000)]) == (1000, 0, len(filter))
    assert ask(tmp_path / "counts", [f"absent {number}" for number in range(1000)])[1] > 990


def test_a_column_is_asked(spark, urls, seen):
    from pyspark.sql import functions as F

    from concurrent_cuckoo_filter.spark import contains, might_contain

    for path in [seen.path, seen.file]:
        assert urls.where(contains(path)("url")).count() == ITEMS
    asked = urls.select(F.concat("url", F.lit("?")).alias("url"))
    assert 0 < asked.where(might_contain(seen.file)("url")).count() < ITEMS * 0.002
    nulls = spark.createDataFrame([("a",), (None,), (url(3),)], "url string")
    assert [row.found for row in nulls.select(contains(seen.file)("url").alias("found")).collect()] == [False, None, True]
    # A file that was sent to the executors.
    spark.sparkContext.addFile(seen.file)
    assert urls.where(contains(os.path.basename(seen.file))("url")).count() == ITEMS


def test_strings_that_are_no_text(spark, tmp_path):
    from pyspark.sql import functions as F

    from concurrent_cuckoo_filter.spark import build_filter, contains

    broken = spark.range(1000).select(F.concat(F.unhex(F.lit("ff")), F.encode(F.hex("id"), "UTF-8")).cast("string").alias("k"))
    info = build_filter(broken, "k", tmp_path, expected_items=1000, join=True)
    assert info.inserted + info.present == 1000
    assert broken.where(contains(tmp_path)("k")).count() == 1000


def test_numbers_and_bytes(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter, contains, filter_info, join_filter

    for column, key in [("id", "i64"), ("bytes", "bytes")]:
        info = build_filter(urls, column, tmp_path / key, expected_items=ITEMS)
        assert (info.key, info.joined) == (key, None)
        with pytest.raises(FileNotFoundError, match="not joined yet: call join_filter"):
            contains(tmp_path / key)
        joined = join_filter(tmp_path / key)
        assert filter_info(tmp_path / key) == joined
        assert urls.where(contains(tmp_path / key)(column)).count() == ITEMS
    narrow = urls.selectExpr("cast(id % 100 as smallint) as id")
    # So rarely wrong that no two of the hundred are taken for each other.
    built = build_filter(narrow, "id", tmp_path / "narrow", expected_items=100, fpp=1e-7, join=True)
    assert built.inserted == 100
    assert narrow.where(contains(tmp_path / "narrow")("id")).count() == ITEMS


def test_a_build_takes_the_place_of_the_one_before(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter, contains

    few = urls.where("id < 10")
    build_filter(few, "url", tmp_path, expected_items=100, fpp=1e-8, join=True)
    asked = urls.where(contains(tmp_path)("url"))
    assert asked.count() == 10
    second = build_filter(urls.where("id < 30"), "url", tmp_path, expected_items=100, fpp=1e-8, join=True)
    assert sorted(os.listdir(tmp_path)) == sorted(["manifest.json", *second.parts, os.path.basename(second.file)])
    # A query that was defined before goes on with it.
    assert asked.count() == 30


def test_no_keys_and_nulls_alone(spark, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter

    nulls = spark.createDataFrame([(None,), (None,)], "k string")
    for frame in [nulls, nulls.limit(0)]:
        info = build_filter(frame, "k", tmp_path, expected_items=1_000_000, parts=4, join=True)
        assert (info.inserted, len(info.parts)) == (0, 4)
        assert len(CuckooFilter.load(info.file)) == 0


def test_copies(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter

    few = urls.limit(1000)
    info = build_filter(few.union(few), "url", tmp_path, expected_items=3000, unique=False, join=True)
    assert (info.inserted, info.present) == (2000, 0)


def test_refused_keys_fail_the_build(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter

    before = build_filter(urls.limit(10), "url", tmp_path, expected_items=100)
    with pytest.raises(RefusedError, match=rf"of {ITEMS} keys were refused by a filter of 200000: give expected_items"):
        build_filter(urls, "url", tmp_path, expected_items=200_000)
    # The one before is still there, and nothing else.
    assert sorted(os.listdir(tmp_path)) == sorted(["manifest.json", *before.parts])


def test_what_was_built_of_dates_and_the_like_is_asked_for_the_same(spark, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter, contains

    times = spark.range(1000).selectExpr(
        "timestamp_seconds(id) as timestamp", "date_add(date '2026-01-01', cast(id as int)) as date",
        "cast(id / 10 as decimal(10, 2)) as decimal", "cast(id as smallint) as smallint", "id",
    )  # fmt: skip
    for column in ["timestamp", "date", "decimal", "smallint"]:
        build_filter(times, times[column], tmp_path / column, expected_items=1000, join=True)
        assert times.where(contains(tmp_path / column)(times[column])).count() == 1000
    assert times.where(contains(tmp_path / "smallint")("id")).count() == 1000
    for path, column in [("date", "id"), ("timestamp", "date"), ("decimal", "id"), ("id", "date")]:
        with pytest.raises(Exception, match="was queried with a column of type|no build has ended"):
            times.where(contains(tmp_path / path)(column)).count()


def test_nulls_in_columns_of_numbers(spark, tmp_path):
    from pyspark.sql import functions as F

    from concurrent_cuckoo_filter.spark import build_filter, contains

    # Large ones, which as floating-point numbers would be others.
    rows = spark.range(3).selectExpr("if(id < 2, id + 9007199254740992, null) as id")
    for name, values in [
        ("date", F.expr("date_from_unix_date(cast(id - 9007199254740992 as int))")),
        ("timestamp", F.timestamp_micros("id")),
        ("long", F.col("id")),
    ]:
        info = build_filter(rows, values, tmp_path / name, expected_items=10, fpp=1e-8, parts=1, join=True)
        for given in [info.path, info.file, CuckooFilter.load(info.file)][: 3 if name == "long" else 1]:
            found = rows.select(contains(given)(values).alias("found"))
            assert [row.found for row in found.collect()] == [True, True, None]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_decimals_have_one_text_with_ansi_and_without(spark, tmp_path, ansi):
    from concurrent_cuckoo_filter.spark import build_filter, contains

    texts = ["0E-10", "1.2E-9", "-1.5000000000", "1234567890.0000000001"]
    rows = spark.createDataFrame([(text,) for text in [*texts, None]], "text string").selectExpr("cast(text as decimal(20, 10)) as value")
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        info = build_filter(rows, "value", tmp_path, expected_items=10, fpp=1e-8, join=True)
        for other in ["true", "false"]:
            spark.conf.set("spark.sql.ansi.enabled", other)
            found = rows.select(contains(tmp_path)("value").alias("found")).collect()
            assert [row.found for row in found] == [True, True, True, True, None]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    # As Python and Java write decimals.
    assert CuckooFilter.load(info.file).contains(texts).to_pylist() == [True] * 4


def test_strings_with_a_collation_are_refused(spark, tmp_path):
    """`Alice` and `alice` are equal there, and have different bytes."""
    from concurrent_cuckoo_filter.spark import build_filter, contains

    if spark.version < "4":
        pytest.skip("Spark has collations from 4.0 on")
    names = spark.range(10).selectExpr("concat('Name ', id) as name")
    collated = names.selectExpr("name collate UTF8_LCASE as name")
    with pytest.raises(TypeError, match="string collate UTF8_LCASE; strings without a collation"):
        build_filter(collated, "name", tmp_path, expected_items=10)
    info = build_filter(names, "name", tmp_path, expected_items=10, join=True)
    for path in [info.path, info.file, CuckooFilter.load(info.file)]:
        assert names.where(contains(path)("name")).count() == 10
        with pytest.raises(Exception, match="was queried with a column of type string collate UTF8_LCASE"):
            collated.where(contains(path)("name")).count()


def test_a_filter_is_sent_along(urls):
    from concurrent_cuckoo_filter.spark import contains

    filter = CuckooFilter(1000, 1e-8, key="i64", keys=(1, 2))
    filter.insert(range(100))
    assert urls.where(contains(filter)("id")).count() == 100


def test_a_folder_of_an_object_store(urls, tmp_path, ask):
    """By fsspec's own name for files, so that the code for object stores is what runs."""
    from concurrent_cuckoo_filter.spark import build_filter, contains

    path = f"local://{tmp_path}/seen"
    for count in [ITEMS // 2, ITEMS]:
        info = build_filter(urls.where(f"id < {count}"), "url", path, expected_items=ITEMS, join=True)
        assert sorted(os.listdir(tmp_path / "seen")) == sorted(["manifest.json", *info.parts, os.path.basename(info.file)])
    for given in [path, info.file]:
        assert urls.where(contains(given)("url")).count() == ITEMS
    assert ask(info.file.removeprefix("local://"), [url(1)]) == (1, 0, info.inserted)


@pytest.mark.parametrize("path", ["file:{}", "file://{}", "{}"])
def test_paths_of_files(urls, tmp_path, path, monkeypatch):
    from concurrent_cuckoo_filter.spark import build_filter, contains

    monkeypatch.chdir(tmp_path)
    folder = path.format(tmp_path / "seen")
    info = build_filter(urls.limit(10), "url", folder, expected_items=100, join=True)
    assert os.listdir(tmp_path) == ["seen"] and info.path == str(tmp_path / "seen")
    # Executors may run as another user.
    assert {os.stat(tmp_path / "seen" / name).st_mode & 0o777 for name in os.listdir(info.path)} == {0o644}
    for given in [folder, path.format(info.file)]:
        assert urls.limit(10).where(contains(given)("url")).count() == 10


def test_a_build_that_fails_leaves_nothing(spark, tmp_path):
    from pyspark.sql import functions as F

    from concurrent_cuckoo_filter.spark import build_filter

    failing = spark.range(1000).select(F.when(F.col("id") < 999, F.col("id")).otherwise(F.raise_error("the source failed")).alias("id"))
    built = []
    with pytest.raises(Exception, match="the source failed"):
        build_filter(failing, "id", tmp_path, expected_items=1000)
    assert os.listdir(tmp_path) == []

    class Cancelled(BaseException):
        pass

    def cancel(*_):
        built.extend(os.listdir(tmp_path))
        raise Cancelled

    import concurrent_cuckoo_filter.spark as module

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Cancelled):
        patch.setattr(module, "_join", cancel)
        build_filter(spark.range(1000), "id", tmp_path, expected_items=1000, join=True)
    assert len(built) >= 1 and os.listdir(tmp_path) == []


def test_a_build_removes_what_builds_have_left_and_nothing_else(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter, contains

    build = "0123456789ab.cuckoo"
    left = [f"filter.{build}", f"part-00000-of-00002.{build}", ".part-00000-of-00002.0123456789ab.0123456789abcdef.tmp",
            f".filter.{build}.0123456789abcdef.tmp", f".manifest.json.{'0123456789abcdef' * 2}.tmp"]  # fmt: skip
    kept = ["today.cuckoo", "filter.cuckoo", f"filter.{build}.old", f"my-filter.{build}", "part-1-of-2.cuckoo"]
    for name in [*left, *kept]:
        (tmp_path / name).write_text("")
    # Of the exact name, but what cannot be removed.
    (tmp_path / "filter.abcdefabcdef.cuckoo").mkdir()
    info = build_filter(urls.limit(10), "url", tmp_path, expected_items=100, join=True)
    own = ["manifest.json", *info.parts, os.path.basename(info.file)]
    assert sorted(os.listdir(tmp_path)) == sorted([*own, *kept, "filter.abcdefabcdef.cuckoo"])
    assert urls.limit(10).where(contains(tmp_path)("url")).count() == 10


def test_a_build_that_is_cancelled_when_it_is_published_stays(urls, tmp_path):
    from concurrent_cuckoo_filter import spark as module

    module.build_filter(urls.limit(5), "url", tmp_path, expected_items=100, join=True)
    publish = module._publish

    def cancelled(*arguments):
        publish(*arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "_publish", cancelled)
        module.build_filter(urls.limit(10), "url", tmp_path, expected_items=100, join=True)
    assert urls.limit(10).where(module.contains(tmp_path)("url")).count() == 10


def test_a_stream_goes_on_with_the_next_build(spark, tmp_path):
    """Each batch keeps the keys that no earlier batch had: the recipe of docs/spark.md."""
    from concurrent_cuckoo_filter import spark as module

    document = (Path(__file__).parents[3] / "docs/spark.md").read_text()
    recipe = next(code for code in re.findall("```python\n(.*?)```", document, re.DOTALL) if "def keep" in code)
    recipe = recipe.replace("/shared", str(tmp_path)).replace("10**8", "1000, fpp=1e-8")
    (tmp_path / "input").mkdir()
    stream = spark.readStream.schema("url string").option("maxFilesPerTrigger", 1).text(str(tmp_path / "input"))
    names = {"spark": spark, "stream": stream, "build_filter": module.build_filter, "contains": module.contains}
    exec(recipe, names)
    kept: list[int] = []
    for number, keys in enumerate([range(10), range(5, 20), range(30)]):
        (tmp_path / "input" / str(number)).write_text("".join(f"{key}\n{key}\n" for key in keys))
        names["query"].processAllAvailable()
        kept.append(spark.read.parquet(str(tmp_path / "urls")).count())
    names["query"].stop()
    assert kept == [10, 20, 30]


def test_what_cannot_be_built(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter, contains, filter_info

    with pytest.raises(TypeError, match="is of type double; strings without a collation"):
        build_filter(urls.selectExpr("id / 2 as half"), "half", tmp_path, expected_items=10)
    for path in ["dbfs:/seen", "dbfs:seen"]:
        with pytest.raises(ValueError, match="one that is mounted, such as '/dbfs/seen'"):
            build_filter(urls, "url", path, expected_items=10)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        build_filter(urls, "url", tmp_path, expected_items=10, fpp=2)
    for look in [filter_info, contains]:
        with pytest.raises(FileNotFoundError, match="no build has ended there"):
            look(tmp_path)
    assert not os.listdir(tmp_path)
