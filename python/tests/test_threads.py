"""Many threads, processes and interruptions. Nothing here measures time."""

import itertools
import os
import signal
import subprocess
import sys
import sysconfig
import threading
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from concurrent_cuckoo_filter import CuckooFilter

# The same hash function in every run, so that no test depends on chance.
new = partial(CuckooFilter, keys=(1, 2))


def test_threads_share_a_filter():
    filter = new(400_000, key="u64")
    failures = []

    def work(number):
        # Large enough for the pool, and small enough for this thread.
        for keys in np.split(np.arange(number * 100_000, (number + 1) * 100_000, dtype=np.uint64), [60_000, 80_000]):
            filter.insert(keys)
            if filter.contains(keys).true_count != len(keys):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert filter.contains(np.arange(400_000, dtype=np.uint64)).true_count == 400_000


def test_the_interpreter_runs_on_during_a_call():
    """With the lock held, the first look inside the call would be the last."""
    filter = new(4_000_000, key="u64")
    keys = np.arange(4_000_000, dtype=np.uint64)
    done = threading.Event()

    def insert():
        filter.insert(keys)
        done.set()

    seen = set()
    thread = threading.Thread(target=insert)
    thread.start()
    while not done.is_set():
        seen.add(len(filter))
    thread.join()
    # A call has four slices: more sizes than that were seen while one was at work.
    assert len(seen) > 6


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="Python has its lock always before 3.13")
def test_the_package_does_not_bring_the_lock_back():
    code = "import sys, concurrent_cuckoo_filter; print(sys._is_gil_enabled())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{not sysconfig.get_config_var('Py_GIL_DISABLED')}\n"


def test_a_list_may_be_changed_by_other_threads_during_a_call():
    """Each answer is one of a key that stood there."""
    filter = new(200_000)
    old, other = [f"old key {number}" for number in range(50_000)], "a key that is made anew "
    filter.insert(old)
    keys, done = old * 2, threading.Event()

    def change():
        for number in itertools.count():
            keys[number * 7919 % 60_000] = other + str(number)
            if number % 3 == 0:
                keys.append(keys.pop(number % 60_000))
            if done.is_set():
                break

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for parallel in [False, True] * 10:
            # In time, no old key would be left.
            keys[:] = old * 2
            found = filter.contains(keys, parallel=parallel)
            assert len(found) > 99_000 and found.true_count > 30_000
    finally:
        done.set()
    for thread in threads:
        thread.join()
    assert filter.contains(keys) == filter.contains(pa.array(keys))


class Interrupted(Exception):
    pass


@pytest.fixture
def on_signal():
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_insertion_is_interrupted(on_signal):
    filter = new(50_000_000, key="u64")
    keys = np.arange(50_000_000, dtype=np.uint64)

    def interrupt(*_):
        raise Interrupted

    def when_it_has_begun():
        while len(filter) == 0:
            pass
        os.kill(os.getpid(), signal.SIGALRM)

    on_signal(interrupt)
    thread = threading.Thread(target=when_it_has_begun)
    thread.start()
    with pytest.raises(Interrupted):
        filter.insert(keys)
    thread.join()
    assert 0 < len(filter) < 40_000_000
    # It is as good as before.
    assert filter.insert(keys[-10:]).refused == 0


def test_a_load_looks_for_interruptions(tmp_path, on_signal):
    """All through it, not only at its end."""
    path = tmp_path / "filter"
    new(50_000_000).save(path)
    looks = []
    on_signal(lambda *_: looks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    CuckooFilter.load(path)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(looks) >= 2

    def interrupt(*_):
        raise Interrupted

    on_signal(interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    with pytest.raises(Interrupted):
        while True:
            CuckooFilter.load(path)


def test_a_forked_process_has_a_pool_of_its_own():
    keys = np.arange(100_000, dtype=np.uint64)
    filter = new(200_000, key="u64")
    filter.insert(keys)  # The pool of this process is at work from here on.
    child = os.fork()
    if child == 0:
        # The threads of the parent are not here: to wait for one of them would be for ever.
        signal.alarm(60)
        filter.insert(keys + np.uint64(100_000))
        os._exit(0 if filter.contains(keys).true_count == 100_000 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(filter) <= 100_000


def test_a_process_that_was_forked_while_threads_write_can_write(tmp_path):
    """A lock that a thread holds at the fork would be held in the child for ever."""
    filter = new(400_000, key="u64")
    keys = np.arange(10_000, dtype=np.uint64)
    done = threading.Event()

    def write():
        while not done.is_set():
            filter.insert(keys)
            filter.remove(keys)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    failed = 0
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            filter.insert(keys + np.uint64(10_000))
            filter.save(tmp_path / "filter")
            os._exit(0 if filter.contains(keys + np.uint64(10_000)).true_count == 10_000 else 1)
        failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        if failed:
            break
    done.set()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_fork_does_not_wait_for_a_call_that_reads_a_file(tmp_path):
    """The call looks for an interruption from time to time: it waits for the interpreter, and a handler of a signal may fork."""
    code = """
import os, signal, subprocess, threading
import numpy as np
from concurrent_cuckoo_filter import CuckooFilter, SnapshotError, _glue, delta

filter = CuckooFilter(4_000_000, key="u64", keys=(1, 2))
empty = filter.to_bytes()
filter.insert(np.arange(4_000_000, dtype=np.uint64))
change = delta(empty, filter.to_bytes())
replica = CuckooFilter.from_bytes(empty)
assert len(change) > 20_000_000
# By a pipe, so that the process forks when the first bytes are read, and the last ones are not.
os.mkfifo("pipe")
_glue.regular = os.fspath
with open("rest", "wb") as rest:
    rest.write(change[1_000_000:])
# Kills the test if a fork never returns.
signal.alarm(60)
pipe = os.open("pipe", os.O_RDWR)
reader = threading.Thread(target=replica.apply_delta, args=["pipe"])
reader.start()
os.write(pipe, change[:1_000_000])
writer = subprocess.Popen(["cat", "rest"], stdout=pipe)
os.close(pipe)
child = os.fork()
if child == 0:
    os._exit(len(replica) not in (0, len(filter)))
assert os.waitpid(child, 0)[1] == writer.wait() == 0
reader.join()
assert len(replica) == len(filter)

def fork(*_):
    child = os.fork()
    if child == 0:
        os._exit(len(replica) != 0)
    children.append(os.waitpid(child, 0)[1])

signal.alarm(60)
children, replica = [], CuckooFilter.from_bytes(empty)
signal.signal(signal.SIGUSR1, fork)
# The signal comes when the file is open, which lacks its end: to apply it again would take time.
with open("broken", "wb") as broken:
    broken.write(change[:-1])
writer = subprocess.Popen(f"exec 3>pipe; kill -USR1 {os.getpid()}; cat broken >&3", shell=True)
refused = False
try:
    replica.apply_delta("pipe")
except SnapshotError:
    refused = True
assert refused and writer.wait() == 0 and children == [0]
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_threads_fork_at_the_same_time(tmp_path):
    filter = new(400_000, key="u64")
    keys = np.arange(50_000, dtype=np.uint64)
    statuses = []

    def fork():
        for _ in range(5):
            filter.insert(keys[:100])
            filter.remove(keys[:100])
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                filter.insert(keys)
                os._exit(0 if filter.contains(keys).true_count == 50_000 else 1)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    threads = [threading.Thread(target=fork) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 20 and len(filter) == 0


# Before 3.14, the interpreter without a lock unwinds threads at its end, and PyO3 no longer supports that.
unwinds_threads = bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.version_info < (3, 14)


@pytest.mark.skipif(unwinds_threads, reason="Python 3.13 without a lock is for other tests")
@pytest.mark.parametrize(
    "call",
    [
        "filter.contains(numbers)",
        "filter.contains(numbers[::2])",
        "filter.contains(pa.array(numbers))",
        "filter.insert(many), filter.remove(many)",
        "filter.remove(filter.insert(number for number in range(100)).stored and numbers)",
        "filter.save(path)",
    ],
)
def test_the_interpreter_ends_while_daemon_threads_are_inside_a_call(call, tmp_path):
    code = f"""
import threading, time
import numpy as np, pyarrow as pa
from concurrent_cuckoo_filter import CuckooFilter

filter, path = CuckooFilter(4_000_000, key="u64", keys=(1, 2)), {str(tmp_path / "filter")!r}
numbers, many = np.arange(100, dtype=np.uint64), np.arange(200_000, dtype=np.uint64)
begun = threading.Barrier(3)

def work():
    begun.wait()
    while True:
        {call}

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.05)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("keys", [lambda: itertools.repeat("a"), lambda: ["a"] * 100_000_000], ids=["iterator", "list"])
def test_keys_of_python_are_interrupted(keys, on_signal):
    """An iterator in C runs no code of Python between two keys."""
    keys = keys()

    def interrupt(*_):
        raise Interrupted

    on_signal(interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(Interrupted):
        new(1000).contains(keys)
