"""Spark Connect: a session without a Java process of its own, as on Databricks."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def session():
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2] / "target/site")
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote("local[2]").getOrCreate()
    yield session
    session.stop()


def test_a_filter_is_built_and_asked(session, tmp_path):
    from pyspark.sql import functions as F

    from concurrent_cuckoo_filter.spark import build_filter, contains

    assert "connect" in type(session).__module__
    keys = session.range(1000).selectExpr("cast(id as string) as k")
    info = build_filter(keys, "k", tmp_path, expected_items=1000, join=True)
    assert info.inserted + info.present == 1000
    assert keys.where(contains(tmp_path)("k")).count() == 1000
    assert keys.where(contains(tmp_path)(F.concat("k", F.lit("?")))).count() < 20
