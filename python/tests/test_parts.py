"""Filters built in parts: layouts, parts, joined files."""

import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from concurrent_cuckoo_filter import CuckooFilter, Layout, RefusedError, SnapshotError, build_part, join

# The same hash function in every run, so that no test depends on chance.
new, laid_out = partial(CuckooFilter, keys=(1, 2)), partial(Layout, keys=(1, 2))

KEYS = [f"site-{number}.example" for number in range(20_000)]


def parts_of(layout, keys, parts, folder, **options):
    hashes = layout.hash(keys)
    numbers = layout.part_of(hashes, parts)
    paths = [folder / f"part-{number}" for number in range(parts)]
    for number, path in enumerate(paths):
        mine = hashes.filter(pc.equal(numbers, number))
        # In several batches, and one that is empty.
        build_part(layout, number, parts, [mine[:100], mine[:0], mine[100:].view(pa.int64())], path, **options)
    return paths


@pytest.mark.parametrize("key,keys", [("str", KEYS), ("i64", np.arange(-10_000, 10_000)), ("bytes", [b"a", b"b\xff"])])
def test_a_filter_is_built_in_parts(tmp_path, key, keys):
    layout = laid_out(1_000_000, 0.01, key=key)
    assert layout.shards == 4
    paths = parts_of(layout, keys, 3, tmp_path)
    join(paths[::-1], tmp_path / "all")
    joined = CuckooFilter.load(tmp_path / "all")
    assert joined.contains(keys).true_count == len(keys)
    assert (joined.key, joined.keys, joined.capacity) == (key, layout.keys, 1_000_000)
    whole = new(1_000_000, 0.01, key=key, keys=layout.keys)
    whole.insert(keys, unique=True)
    assert len(whole) == len(joined)


def test_copies_are_kept_if_they_are_asked_for(tmp_path):
    layout = laid_out(1000)
    for unique, stored in [(True, 1), (False, 3)]:
        build_part(layout, 0, 1, [layout.hash(["a"] * 3)], tmp_path / "part", unique=unique)
        join([tmp_path / "part"], tmp_path / "all")
        assert len(CuckooFilter.load(tmp_path / "all")) == stored


def test_a_layout_hashes_alike_in_another_process():
    layout = laid_out(1_000_000, 0.002, key="str")
    code = "import pickle, sys; layout = pickle.load(sys.stdin.buffer); print(layout.hash(['key'])[0].as_py(), layout)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, input=pickle.dumps(layout), env=environment, capture_output=True, check=True)
    assert output.stdout.decode().split() == [str(layout.hash(["key"])[0].as_py()), *repr(layout).split()]
    copy = pickle.loads(pickle.dumps(layout))
    assert (copy.keys, copy.capacity, copy.false_positive_rate) == (layout.keys, 1_000_000, 0.002)


def test_texts_that_are_no_texts_may_be_hashed_as_they_are():
    offsets = pa.py_buffer(np.array([0, 1, 2], dtype=np.int32))
    keys = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff")])
    layout = laid_out(1000, keys=(1, 2))
    with pytest.raises(ValueError, match="key 1 is not valid UTF-8"):
        layout.hash(keys)
    hashes = layout.hash(keys, check_utf8=False)
    assert hashes[0] == layout.hash(["a"])[0] and hashes[1] != hashes[0]
    assert new(1000).contains(keys, check_utf8=False).to_pylist() == [False, False]


def test_hashes_that_are_not_of_this_part(tmp_path):
    layout = laid_out(1_000_000)
    hashes = layout.hash(KEYS)
    with pytest.raises(ValueError, match="belongs to shard .; this part has shards 0..2"):
        build_part(layout, 0, 2, [hashes], tmp_path / "part")
    for wrong in [pa.array([1.0]), pa.array([1, None]), KEYS, [1, 2]]:
        with pytest.raises(TypeError, match="hashes come as an Arrow array"):
            build_part(layout, 0, 1, [wrong], tmp_path / "part")
    assert not list(tmp_path.iterdir())


def test_a_part_that_is_too_full_is_not_written(tmp_path):
    layout = laid_out(100)
    with pytest.raises(RefusedError, match="keys were refused") as raised:
        build_part(layout, 0, 1, [layout.hash(KEYS[:150]), layout.hash(KEYS[150:200])], tmp_path / "part")
    report = raised.value.report
    assert report.refused > 50 and report.inserted + report.present + report.refused == 200
    assert max(report.refused_at) > 150
    assert not list(tmp_path.iterdir())


def test_parts_that_there_are_not(tmp_path):
    layout = laid_out(1_000_000)
    for part, parts, told in [
        (2, 2, "part 2 of 2 was requested"),
        (0, 0, "0 parts were requested"),
        (0, 8, "shards 0..0 was requested"),
    ]:
        with pytest.raises(ValueError, match=told):
            build_part(layout, part, parts, [], tmp_path / "part")
    with pytest.raises(ValueError, match="0 parts"):
        layout.part_of(layout.hash(["a"]), 0)


def test_parts_that_cannot_be_joined(tmp_path):
    layout = laid_out(1_000_000)
    first, second = parts_of(layout, KEYS, 2, tmp_path)
    (tmp_path / "other").mkdir()
    foreign, _ = parts_of(laid_out(1_000_000, keys=(3, 4)), KEYS, 2, tmp_path / "other")
    target = tmp_path / "all"
    target.write_bytes(b"old")
    for parts, told in [
        ([first], "shard 2 of 4 is in none of the parts"),
        ([first, second, first], "shard 0 is in two of the parts, 0 and 2"),
        ([second, foreign], "hasher or its seeds of part 1"),
        ([], "no parts"),
    ]:
        with pytest.raises(SnapshotError, match=told):
            join(parts, target)
    with pytest.raises(FileNotFoundError, match="missing"):
        join([first, tmp_path / "missing"], target)
    assert target.read_bytes() == b"old"


def test_a_part_that_is_written_twice_at_once_is_whole_at_every_moment(tmp_path):
    """As by two copies of one task, of which one is killed in the middle, too."""
    layout = laid_out(500_000)
    path = tmp_path / "part"
    code = """
import pickle, sys
from concurrent_cuckoo_filter import build_part
layout, keys, path = pickle.load(sys.stdin.buffer)
hashes = layout.hash(keys)
print("begun", flush=True)
while True:
    build_part(layout, 0, 1, [hashes], path)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) for _ in range(2)
    ]
    for writer in writers:
        writer.stdin.write(pickle.dumps((layout, KEYS, path)))
        writer.stdin.close()
        assert writer.stdout.readline() == b"begun\n"
    while not path.exists():
        assert writers[0].poll() is None
    for look in range(30):
        if look == 20:
            writers[0].kill()
        assert CuckooFilter.load(path).contains(KEYS).true_count == len(KEYS)
    for writer in writers:
        writer.kill()
        writer.wait()
        writer.stdout.close()
