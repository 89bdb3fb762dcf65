"""application.py WHEEL FOLDER: builds filters on executors that have to be sent the package; says what came of it.

Once undisturbed, and once with an executor killed when the first part is there.
"""

import json
import os
import shutil
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

wheel, folder = sys.argv[1], Path(sys.argv[2])
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(folder / "driver")
sys.path.insert(0, str(folder / "driver"))
shutil.copy(wheel, folder / "package.zip")

import pyarrow as pa  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

from concurrent_cuckoo_filter.spark import build_filter, contains  # noqa: E402

ITEMS = 600_000
# Twelve shards, so that there are tasks enough.
EXPECTED = 3_000_000

os.environ["PYSPARK_PYTHON"] = sys.executable
(folder / "events").mkdir()
spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.archives", f"{folder}/package.zip#cuckoo")
    .config("spark.executorEnv.PYTHONPATH", "cuckoo")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "localhost")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.rolling.enabled", "false")
    .config("spark.eventLog.compress", "false")
    .config("spark.eventLog.dir", f"file://{folder}/events")
    # An executor that is gone is asked for its files again, but not for long.
    .config("spark.shuffle.io.retryWait", "200ms")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
frame = spark.range(ITEMS, numPartitions=6).select(
    F.concat(F.lit("https://www.example-"), "id", F.lit(".com/a/page")).alias("url")
)


def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from importlib.machinery import PathFinder

    for _ in batches:
        pass
    others = [path for path in sys.path if Path(path).name != "cuckoo"]
    import concurrent_cuckoo_filter

    without = PathFinder.find_spec("concurrent_cuckoo_filter", others) is not None
    yield pa.RecordBatch.from_pylist([{"place": concurrent_cuckoo_filter.__file__, "without": without}])


def processes() -> Iterator[tuple[int, int, str]]:
    """Number, parent and command of each process."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
            command = status.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield int(status.parent.name), parent, command


def executor() -> int:
    """One of those that this application has started."""
    driver = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    return next(pid for pid, parent, command in processes() if parent == driver and "CoarseGrainedExecutor" in command)


def build(name: str, disturb: Callable[[], None]) -> dict[str, object]:
    path = folder / name

    def when_the_first_part_is_there() -> None:
        while not list(path.glob("part-*")):
            time.sleep(0.01)
        disturb()

    path.mkdir()
    thread = threading.Thread(target=when_the_first_part_is_there)
    thread.start()
    info = build_filter(frame, "url", path, expected_items=EXPECTED, parts=12, join=True)
    thread.join()
    found = frame.where(contains(path)("url")).count()
    temporary = [file.name for file in path.iterdir() if file.name.endswith(".tmp")]
    return {
        "items": ITEMS,
        "found": found,
        "file": info.file,
        "inserted": info.inserted,
        "present": info.present,
        "temporary": temporary,
    }


def events() -> list[dict[str, object]]:
    lines = [line for file in (folder / "events").iterdir() for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]


places = frame.mapInArrow(place, "place string, without boolean").collect()
answers: dict[str, object] = {
    "places": sorted({row.place for row in places}),
    "without the archive": any(row.without for row in places),
}
answers["undisturbed"] = build("undisturbed", lambda: None)
answers["killed"] = build("killed", lambda: os.kill(executor(), signal.SIGKILL))

spark.stop()
answers["killed"]["executors lost"] = sum(  # type: ignore[index]
    event["Event"] == "SparkListenerExecutorRemoved" and "killed" not in str(event["Removed Reason"]).lower()
    for event in events()
)
print(json.dumps(answers))
