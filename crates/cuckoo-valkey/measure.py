#!/usr/bin/env python3
"""Measures the module in a server: processor time of the server per item, sizes, and times of whole filters.

    target/venv/bin/python measure.py commands [SERVER] [MODULE]
    target/venv/bin/python measure.py filters [SERVER] [MODULE]

Throughput of one connection is the protocol's, so what is compared is the time that the server's main thread runs,
by /proc. Figures of commands are the 10th percentile of 20 slices, all commands in turn; others are of one run.
MODULE is another one with commands of these names, to compare.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests"))
from conftest import Server  # noqa: E402

ITEMS = 10_000_000
SLICE, SLICES = 4000, 20


def processor_time(server):
    """Seconds that the server's main thread has run."""
    pid = server.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def per_item(server, command, items, depth, each):
    """Microseconds of the server's processor per item, for commands of `each` items that are sent `depth` at a time."""
    connection = server.client.connection_pool.get_connection()
    commands = [(*command.split(), *items[at : at + each]) for at in range(0, len(items), each)]
    packed = [b"".join(connection.pack_command(*command)) for command in commands]
    batches = [packed[at : at + depth] for at in range(0, len(packed), depth)]
    begun = processor_time(server)
    for batch in batches:
        connection.send_packed_command([b"".join(batch)])
        for _ in batch:
            connection.read_response()
    spent = processor_time(server) - begun
    server.client.connection_pool.release(connection)
    return spent * 1e6 / len(items)


def commands(server):
    """Commands on a filter beside those on a set of the same items. Half of the requested items are present, the added ones are new."""
    shapes = [("pipeline of 1", 1, 1), ("pipeline of 16", 16, 1), ("pipeline of 100", 100, 1), ("100 items per command", 1, 100)]
    asked = {1: ("CF.EXISTS f", "SISMEMBER s"), 100: ("CF.MEXISTS f", "SMISMEMBER s")}
    added = {1: ("CF.ADD new-f", "SADD new-s"), 100: ("CF.INSERT new-f ITEMS", "SADD new-s")}
    for size in (1000, 1_000_000):
        server.client.flushall()
        server.cf("RESERVE", "f", size)
        for begin in range(0, size, 1000):
            names = [f"item:{number:012}" for number in range(begin, begin + 1000)]
            server.cf("INSERT", "f", "ITEMS", *names)
            server.client.sadd("s", *names)
        cases = {(pair, shape): ([], []) for pairs in (asked, added) for shape in shapes for pair in [pairs[shape[2]]]}
        for number in range(SLICES):
            server.client.delete("new-f", "new-s")
            server.client.restore("new-f", 0, server.client.dump("f")), server.client.copy("s", "new-s")
            chance = random.Random(number)
            for (pair, (name, depth, each)), times in cases.items():
                if pair in asked.values():
                    items = [f"item:{chance.randrange(2 * size):012}" for _ in range(SLICE)]
                else:
                    items = [f"{name}:{number}:{item:06}" for item in range(SLICE)]
                for command, spent in zip(pair, times):
                    spent.append(per_item(server, command, items, depth, each))
        print(f"keys of {size} items, microseconds per item:")
        for (pair, (name, *_)), times in cases.items():
            ours, theirs = (statistics.quantiles(spent, n=10)[0] for spent in times)
            print(f"  {name}: {pair[0]} {ours:.2f}, {pair[1]} {theirs:.2f}, ratio {ours / theirs:.2f}")


def filters(server):
    """Small filters, and one of `ITEMS` items that has grown a hundredfold."""
    used = lambda: server.client.info("memory")["used_memory"]
    for options in [(), ("EXPANSION", 0)]:
        server.client.execute_command("FLUSHALL", "SYNC")
        begun = used()
        for key in range(1000):
            server.cf("RESERVE", f"k{key}", 100, *options)
        print(f"an empty key for 100 items {options}: {(used() - begun) / 1000:.0f} bytes with its entry in the keyspace")
    server.client.execute_command("FLUSHALL", "SYNC")

    server.cf("RESERVE", "f", ITEMS // 100, "EXPANSION", 2)
    begun = processor_time(server)
    for begin in range(0, ITEMS, 10_000):
        server.cf("INSERT", "f", "ITEMS", *range(begin, begin + 10_000))
    print(f"CF.INSERT of {ITEMS} items, growing a hundredfold: {(processor_time(server) - begun) * 1e6 / ITEMS:.2f} us per item")
    bits = server.client.memory_usage("f", samples=0) * 8 / ITEMS
    absent = 1_000_000
    wrong = sum(sum(server.cf("MEXISTS", "f", *range(begin, begin + 10_000))) for begin in range(ITEMS, ITEMS + absent, 10_000))
    print(f"after that: {bits:.1f} bits per item, {100 * wrong / absent:.3f} % of absent items are found")

    def timed(name, work):
        process, spent, begun = server.process, processor_time(server), time.perf_counter()
        result = work()
        taken = time.perf_counter() - begun
        spent = processor_time(server) - (spent if server.process is process else 0)
        print(f"{name}: {taken * 1000:.0f} ms, {spent * 1000:.1f} ms of them in the server's main thread")
        return result

    def dump():
        chunks, position = [], 0
        while True:
            position, chunk = server.cf("SCANDUMP", "f", position)
            if position == 0:
                return chunks
            chunks.append((position, chunk))

    def bgsave():
        server.client.bgsave()
        server.wait(lambda: not server.client.info("persistence")["rdb_bgsave_in_progress"])

    timed("BGSAVE", bgsave)
    print(f"fork: {server.client.info('stats')['latest_fork_usec'] / 1000:.1f} ms")
    timed("start of a server that loads the file", server.restart)
    timed("DEBUG RELOAD (save and load)", lambda: server.client.execute_command("DEBUG", "RELOAD"))
    value = timed("DUMP", lambda: server.client.dump("f"))
    timed("RESTORE", lambda: server.client.restore("r", 0, value))
    if "export-dir" in server.module:
        timed("CF.EXPORT", lambda: server.cf("EXPORT", "f", "f"))
    chunks = timed("CF.SCANDUMP", dump)
    timed("CF.LOADCHUNK", lambda: [server.cf("LOADCHUNK", "g", *chunk) for chunk in chunks])
    timed("UNLINK", lambda: server.client.unlink("g"))


def main(what="commands", program="redis-server", *module):
    server = Server(program, tempfile.mkdtemp(), module=module)
    info = server.client.info("server")
    print(f"{program} {info.get('valkey_version', info['redis_version'])} {' '.join(module)}")
    try:
        {"commands": commands, "filters": filters}[what](server)
    finally:
        server.kill()


main(*sys.argv[1:])
