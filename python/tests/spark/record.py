"""record.py ITEMS FOLDER: builds a filter of so many URLs on Spark and asks it for all of them; prints what each stage took.

The URLs are made in the executors. Not a test: docs/spark.md has what it said once.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from concurrent_cuckoo_filter.spark import build_filter, contains

items, folder = int(sys.argv[1]), Path(sys.argv[2]).absolute()
events = folder / "events"
events.mkdir(parents=True)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "2g")
    .config("spark.driver.host", "localhost")
    .config("spark.local.dir", str(folder / "local"))
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.rolling.enabled", "false")
    .config("spark.eventLog.compress", "false")
    .config("spark.eventLog.dir", f"file://{events}")
    .config("spark.executor.processTreeMetrics.enabled", "true")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")

peaks: dict[str, int] = defaultdict(int)
done = threading.Event()


def watch(root: int) -> None:
    """Notes the most memory of the Java process and of each process below it."""
    while not done.wait(0.2):
        family = {root}
        for status in sorted(Path("/proc").glob("[0-9]*/status"), key=lambda path: int(path.parent.name)):
            try:
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            except (FileNotFoundError, ProcessLookupError):
                continue
            pid, parent = int(status.parent.name), int(fields["PPid"])
            if pid in family or parent in family:
                family.add(pid)
                peak = int(fields.get("VmHWM", "0 kB").split()[0])
                peaks[f"{fields['Name'].strip()} {pid}"] = max(peaks[f"{fields['Name'].strip()} {pid}"], peak)


root = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
watcher = threading.Thread(target=watch, args=(root,))
watcher.start()

urls = spark.range(items, numPartitions=max(8, items // 2_000_000)).select(
    F.concat(F.lit("https://www.example-"), F.hex(F.xxhash64("id")), F.lit(".com/page/"), "id").alias("url")
)
began = time.monotonic()
info = build_filter(urls, "url", folder / "filter", expected_items=items)
built = time.monotonic()
from concurrent_cuckoo_filter.spark import join_filter  # noqa: E402

info = join_filter(folder / "filter")
joined = time.monotonic()
found = urls.where(contains(info.file)("url")).count()
asked = time.monotonic()
plain = urls.where(F.col("url").isNotNull() & (F.length("url") > 0)).count()
scanned = time.monotonic()
absent = urls.select(F.concat("url", F.lit("?")).alias("url")).limit(items // 10)
false = absent.where(contains(info.file)("url")).count()
done.set()
watcher.join()
spark.stop()

print(f"{items} items: {info.inserted} stored, {info.present} taken for present, {info.shards} shards, {len(info.parts)} parts")
print(f"built in {built - began:.1f} s, joined in {joined - built:.1f} s, {Path(info.file).stat().st_size} bytes")
print(f"all asked in {asked - joined:.1f} s (the same scan without asking: {scanned - asked:.1f} s): {items - found} missed")
print(f"of {items // 10} absent ones {false} were found")
stages: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
for line in next(events.iterdir()).read_text().splitlines():
    event = json.loads(line)
    if event["Event"] == "SparkListenerTaskEnd":
        metrics, stage = event["Task Metrics"], stages[event["Stage ID"]]
        stage["tasks"] += 1
        stage["core seconds"] += metrics["Executor Run Time"] / 1000
        stage["shuffled MB"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] / 1e6
        stage["rows"] += metrics["Shuffle Write Metrics"]["Shuffle Records Written"]
for number, stage in sorted(stages.items()):
    print(f"stage {number}:", ", ".join(f"{name} {value:.1f}" for name, value in stage.items()))
for name, peak in sorted(peaks.items(), key=lambda item: -item[1])[:6]:
    print(f"{name}: {peak / 1024:.0f} MiB at the most")
