"""Lookups and insertions, in millions a second: this package, Python's `set`, and two Bloom filters.

All cases in turn, in short slices, in one process, so that what else the machine does befalls all of them: compare the ratios.
Of the rounds, each case's second best counts. Needs numpy, rbloom and fastbloom-rs.
"""

import time

import fastbloom_rs
import numpy as np
import pyarrow as pa
import rbloom

from concurrent_cuckoo_filter import CuckooFilter

KEYS, ASKED, ROUNDS = 1_000_000, 200_000, 25

texts = [f"https://www.example-{number * 2654435761 % 2**32:010d}.com/path/to/page" for number in range(2 * KEYS)]
numbers = np.arange(2 * KEYS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
# Every other one is absent.
places = np.random.default_rng(1).permutation(KEYS)[: ASKED // 2]
places = np.stack([places, places + KEYS], axis=1).ravel()
asked_texts = [texts[place] for place in places]
asked_array = pa.array(asked_texts)
asked_numbers = np.ascontiguousarray(numbers[places])
asked_integers = asked_numbers.tolist()

of_texts, of_numbers = CuckooFilter(KEYS), CuckooFilter(KEYS, key="u64")
of_texts.insert(pa.array(texts[:KEYS]))
of_numbers.insert(numbers[:KEYS])
set_of_texts, set_of_numbers = set(texts[:KEYS]), set(numbers[:KEYS].tolist())
bloom = rbloom.Bloom(KEYS, 0.001)
bloom.update(texts[:KEYS])
fast = fastbloom_rs.BloomFilter(KEYS, 0.001)
fast.add_str_batch(texts[:KEYS])

cases = {
    "texts: contains(Arrow array)": lambda: of_texts.contains(asked_array).true_count,
    "texts: contains(list)": lambda: of_texts.contains(asked_texts).true_count,
    "texts: key in filter": lambda: sum([text in of_texts for text in asked_texts]),
    "texts: set, one by one": lambda: sum([text in set_of_texts for text in asked_texts]),
    "texts: rbloom, one by one": lambda: sum([text in bloom for text in asked_texts]),
    "texts: insert(list), new filter": lambda: CuckooFilter(ASKED).insert(asked_texts).inserted // 2,
    "texts: rbloom, update(list), new": lambda: rbloom.Bloom(ASKED, 0.001).update(asked_texts) or ASKED // 2,
    "texts: fastbloom-rs, batch": lambda: sum(fast.contains_str_batch(asked_texts)),
    "numbers: contains(numpy array)": lambda: of_numbers.contains(asked_numbers).true_count,
    "numbers: set, one by one": lambda: sum([number in set_of_numbers for number in asked_integers]),
}
times: dict[str, list[float]] = {name: [] for name in cases}
for _ in range(ROUNDS):
    for name, case in cases.items():
        began = time.perf_counter()
        found = case()
        times[name].append(time.perf_counter() - began)
        assert ASKED // 2 <= found < ASKED // 2 * 1.01, name

print(f"texts of {sum(map(len, asked_texts)) / ASKED:.0f} bytes; {KEYS} keys, {ASKED} asked, {ROUNDS} rounds")
ours = sorted(times["texts: contains(Arrow array)"])[1]
for name, slices in times.items():
    second = sorted(slices)[1]
    print(f"{name:32} {ASKED / second / 1e6:6.1f} M/s   {second / ours:5.2f} times the first")
