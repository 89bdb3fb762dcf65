"""Spark, in the processes of this machine."""

import os
import subprocess
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark():
    # Before the first Java process, from which the Python ones come.
    os.environ["PYTHONPATH"] = str(PYTHON / "target/site")
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "localhost")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def ask():
    """Asks a filter in a file for keys, in Rust: how many were asked, how many missed, how many are stored."""

    def ask(path, keys):
        program = PYTHON / "target/release/ask"
        output = subprocess.run([program, path], input="".join(f"{key}\n" for key in keys), capture_output=True, text=True)
        assert output.returncode == 0, output.stderr
        words = output.stdout.split()
        return int(words[0]), int(words[2]), int(words[4])

    return ask
