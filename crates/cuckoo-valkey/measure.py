#!/usr/bin/env python3
"""Measures the module in a server: processor time of the server per item, sizes, and times of whole filters.

    target/venv/bin/python measure.py [SERVER] [ITEMS]

Throughput of one connection is the protocol's, so what is compared is the time that the server's main thread runs,
by /proc. Figures of single commands are the 10th percentile of 20 slices, the commands in turn; others the median of five runs.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests"))
from conftest import Server  # noqa: E402

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "redis-server"
ITEMS = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000


def processor_time(server):
    """Seconds that the server's main thread has run."""
    pid = server.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def per_item(server, commands, depth, items_of_each=1):
    """Microseconds of the server's processor per item, for packed commands that are sent `depth` at a time."""
    connection = server.client.connection_pool.get_connection()
    packed = [b"".join(connection.pack_command(*command)) for command in commands]
    batches = [b"".join(packed[begin : begin + depth]) for begin in range(0, len(packed), depth)]
    begun = processor_time(server)
    for batch in batches:
        connection.send_packed_command([batch])
        for _ in range(min(depth, len(packed))):
            connection.read_response()
    spent = processor_time(server) - begun
    server.client.connection_pool.release(connection)
    return spent * 1e6 / (len(packed) * items_of_each)


def main():
    server = Server(PROGRAM, tempfile.mkdtemp())
    info = server.client.info("server")
    print(f"{PROGRAM} {info.get('valkey_version', info['redis_version'])}, microseconds of its processor per item")
    names = [f"item:{number:012}" for number in range(100_000)]
    server.cf("RESERVE", "f", 1000)
    server.cf("INSERT", "f", "ITEMS", *names[:1000])
    server.client.sadd("s", *names[:1000])
    cases = [("CF.EXISTS", "f"), ("SISMEMBER", "s"), ("CF.ADD", "new-f"), ("SADD", "new-s")]
    for depth in (1, 16, 100):
        # All cases in turn, and of each the lower end of its slices: others use the processor, too.
        slices = {command: [] for command, _ in cases}
        for _ in range(20):
            server.client.delete("new-f", "new-s")
            server.cf("RESERVE", "new-f", 10_000)
            for command, key in cases:
                slices[command].append(per_item(server, [(command, key, name) for name in names[:4000]], depth))
        low = {command: statistics.quantiles(times, n=10)[0] for command, times in slices.items()}
        ratios = low["CF.EXISTS"] / low["SISMEMBER"], low["CF.ADD"] / low["SADD"]
        print(f"pipeline of {depth:3}: " + ", ".join(f"{name} {value:.2f}" for name, value in low.items()), end="")
        print("; ratios {:.2f}, {:.2f}".format(*ratios))
    for command, key in [("CF.MEXISTS", "f"), ("SMISMEMBER", "s")]:
        commands = [(command, key, *names[begin : begin + 100]) for begin in range(0, len(names), 100)] * 4
        print(f"{command} of 100: {statistics.median(per_item(server, commands, 1, 100) for _ in range(5)):.3f}")

    server.client.execute_command("FLUSHALL", "SYNC")
    used = lambda: server.client.info("memory")["used_memory"]
    begun = used()
    for key in range(1000):
        server.cf("RESERVE", f"k{key}", 100)
    print(f"a growing key of 100 items: {(used() - begun) / 1000:.0f} bytes")
    server.client.execute_command("FLUSHALL", "SYNC")
    begun = used()
    for key in range(1000):
        server.cf("RESERVE", f"k{key}", 100, "EXPANSION", 0)
    print(f"a fixed key of 100 items: {(used() - begun) / 1000:.0f} bytes")
    server.client.execute_command("FLUSHALL", "SYNC")

    server.cf("RESERVE", "f", ITEMS // 100, "SEED", 1)
    begun = processor_time(server)
    for begin in range(0, ITEMS, 10_000):
        server.cf("INSERT", "f", "ITEMS", *range(begin, begin + 10_000))
    print(f"CF.INSERT of {ITEMS} items, growing a hundredfold: {(processor_time(server) - begun) * 1e6 / ITEMS:.2f} us per item")
    bits = server.client.memory_usage("f", samples=0) * 8 / ITEMS
    absent = 1_000_000
    wrong = sum(sum(server.cf("MEXISTS", "f", *range(begin, begin + 10_000))) for begin in range(ITEMS, ITEMS + absent, 10_000))
    print(f"after that: {bits:.1f} bits per item, {100 * wrong / absent:.3f} % of absent items are found")

    def timed(name, work):
        begun = time.perf_counter()
        result = work()
        print(f"{name}: {(time.perf_counter() - begun) * 1000:.0f} ms")
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
    timed("DEBUG RELOAD (save and load)", lambda: server.client.execute_command("DEBUG", "RELOAD"))
    timed("CF.EXPORT", lambda: server.cf("EXPORT", "f", "f"))
    chunks = timed("CF.SCANDUMP", dump)
    timed("CF.LOADCHUNK", lambda: [server.cf("LOADCHUNK", "g", *chunk) for chunk in chunks])
    timed("UNLINK", lambda: server.client.unlink("g"))
    server.kill()


main()
