"""Filters built and asked in one process of Spark."""

import os

import pytest

from concurrent_cuckoo_filter import CuckooFilter, RefusedError

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
    assert broken.where(contains(info.file)("k")).count() == 1000


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

    first = build_filter(urls.limit(10), "url", tmp_path, expected_items=100, join=True)
    listed = contains(first.path)
    second = build_filter(urls.limit(10), "id", tmp_path, expected_items=100)
    assert sorted(os.listdir(tmp_path)) == sorted(["manifest.json", *second.parts])
    with pytest.raises(Exception, match="filter"):
        urls.where(listed("url")).count()


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


def test_what_cannot_be_built(urls, tmp_path):
    from concurrent_cuckoo_filter.spark import build_filter, contains, filter_info

    with pytest.raises(TypeError, match="is of type double; strings, binaries and integers are possible"):
        build_filter(urls.selectExpr("id / 2 as half"), "half", tmp_path, expected_items=10)
    with pytest.raises(ValueError, match="no folder"):
        build_filter(urls, "url", "s3://bucket/path", expected_items=10)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        build_filter(urls, "url", tmp_path, expected_items=10, fpp=2)
    for look in [filter_info, contains]:
        with pytest.raises(FileNotFoundError, match="no build has ended there"):
            look(tmp_path)
    assert not os.listdir(tmp_path)
