"""Lookups and insertions beside Python's `set` and two Bloom filters.

All cases take turns in one process, in short slices, so that other programs disturb all of them alike: compare the ratios. The 10th
percentile of a case's slices counts. Needs numpy, rbloom and fastbloom-rs.

    bench.py          the first table of README.md
    bench.py lists    the second one: lists of strings, this package and rbloom
"""

import random
import sys
import time
from collections.abc import Callable

import fastbloom_rs
import numpy as np
import pyarrow as pa
import rbloom

from concurrent_cuckoo_filter import CuckooFilter

KEYS, ASKED, ROUNDS = 1_000_000, 200_000, 25


def texts(count: int) -> list[str]:
    return [f"https://www.example-{number * 2654435761 % 2**32:010d}.com/path/to/page" for number in range(count)]


def nanoseconds(cases: dict[str, Callable[[], Callable[[], int]]], keys: int, rounds: int) -> dict[str, float]:
    """Per key. A case returns the function to time; that returns the number of keys that it found or stored."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            work = case()
            began = time.perf_counter()
            found = work()
            times[name].append(time.perf_counter() - began)
            assert keys * 0.99 <= found <= keys, (name, found)
    return {name: sorted(slices)[rounds // 10] / keys * 1e9 for name, slices in times.items()}


def table() -> None:
    keys = texts(2 * KEYS)
    numbers = np.arange(2 * KEYS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    # Every other one is absent.
    places = np.random.default_rng(1).permutation(KEYS)[: ASKED // 2]
    places = np.stack([places, places + KEYS], axis=1).ravel()
    asked, asked_numbers = [keys[place] for place in places], np.ascontiguousarray(numbers[places])
    asked_array, asked_integers = pa.array(asked), asked_numbers.tolist()

    of_texts, of_numbers = CuckooFilter(KEYS), CuckooFilter(KEYS, key="u64")
    of_texts.insert(pa.array(keys[:KEYS]))
    of_numbers.insert(numbers[:KEYS])
    set_of_texts, set_of_numbers = set(keys[:KEYS]), set(numbers[:KEYS].tolist())
    bloom = rbloom.Bloom(KEYS, 0.001)
    bloom.update(keys[:KEYS])
    fast = fastbloom_rs.BloomFilter(KEYS, 0.001)
    fast.add_str_batch(keys[:KEYS])
    cases = {
        "strings: contains(Arrow array)": lambda: of_texts.contains(asked_array).true_count,
        "strings: contains(list)": lambda: of_texts.contains(asked).true_count,
        "strings: key in filter": lambda: sum([text in of_texts for text in asked]),
        "strings: set, one by one": lambda: sum([text in set_of_texts for text in asked]),
        "strings: rbloom, one by one": lambda: sum([text in bloom for text in asked]),
        "strings: fastbloom-rs, batch": lambda: sum(fast.contains_str_batch(asked)),
        "numbers: contains(numpy array)": lambda: of_numbers.contains(asked_numbers).true_count,
        "numbers: set, one by one": lambda: sum([number in set_of_numbers for number in asked_integers]),
    }
    # Half of them are found.
    found = {name: lambda case=case: lambda: ASKED // 2 + min(case(), ASKED // 2) for name, case in cases.items()}
    for name, time_per_key in nanoseconds(found, ASKED, ROUNDS).items():
        print(f"{name:32} {1e3 / time_per_key:6.1f} M/s")


def lists() -> None:
    for count, shuffled, rounds in [(20_000, False, 60), (200_000, False, 15), (200_000, True, 15), (1_000_000, True, 4)]:
        keys = texts(count)
        if shuffled:
            random.Random(1).shuffle(keys)
        for text in keys:
            hash(text)  # A `str` keeps its hash, which rbloom uses.
        full, full_bloom = CuckooFilter(count), rbloom.Bloom(count, 0.001)
        full.insert(keys)
        full_bloom.update(keys)

        def update(bloom, keys=keys):
            return lambda: bloom.update(keys) or len(keys)

        cases = {
            "rbloom, update": lambda: update(rbloom.Bloom(count, 0.001)),
            "insert": lambda: lambda filter=CuckooFilter(count): filter.insert(keys).inserted,
            "insert unique, new keys": lambda: lambda filter=CuckooFilter(count): filter.insert(keys, unique=True).inserted,
            "insert unique, present keys": lambda: lambda: full.insert(keys, unique=True).present,
            "rbloom, one by one": lambda: lambda: sum([text in full_bloom for text in keys]),
            "contains": lambda: lambda: full.contains(keys).true_count,
        }
        print(f"{count} strings of 47 bytes, {'shuffled' if shuffled else 'in the order of their addresses'}")
        times = nanoseconds(cases, count, rounds)
        for name, time_per_key in times.items():
            rival = times["rbloom, one by one" if name == "contains" else "rbloom, update"]
            print(f"    {name:28} {time_per_key:6.1f} ns   {rival / time_per_key:5.2f} times rbloom")


lists() if sys.argv[1:] == ["lists"] else table()
