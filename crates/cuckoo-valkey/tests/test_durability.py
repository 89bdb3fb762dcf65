"""Filters survive: files of the server, replicas, dumps, exports."""

import hashlib
import os
import random
import resource
import signal
import struct
import time
from pathlib import Path

import pytest
import redis


def fill(server):
    """Filters of every kind, and with every kind of state."""
    server.cf("RESERVE", "fixed", 5000, "EXPANSION", 0, "ERROR", 0.01)
    server.cf("RESERVE", "grown", 1000)
    server.cf("RESERVE", "expiring", 1000, "TTL", 3600)
    server.cf("RESERVE", "empty", 10)
    for key, items in [("fixed", 4000), ("grown", 120_000), ("expiring", 60_000)]:
        server.insert(key, 0, items)
    server.cf("INSERT", "fixed", "ITEMS", *["again"] * 30)
    for item in range(0, 1000, 3):
        server.cf("DEL", "grown", item)
    return {key: server.digest(key) for key in ["fixed", "grown", "expiring", "empty"]}


def digests(server, keys):
    return {key: server.digest(key) for key in keys}


def dump(server, key):
    chunks, position = [], 0
    while True:
        position, chunk = server.cf("SCANDUMP", key, position)
        if position == 0:
            assert chunk is None
            return chunks
        chunks.append((position, chunk))


def test_a_file_of_the_server_brings_all_back(start):
    server = start()
    was = fill(server)
    server.client.save()
    server.restart()
    assert digests(server, was) == was
    assert server.cf("COUNT", "fixed", "again") == 30
    server.client.execute_command("DEBUG", "RELOAD")
    assert digests(server, was) == was


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_file_of_commands_brings_all_back(start, preamble):
    server = start("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
    was = fill(server)
    server.client.execute_command("DEBUG", "LOADAOF")
    assert digests(server, was) == was
    server.client.bgrewriteaof()
    server.wait(lambda: not server.client.info("persistence")["aof_rewrite_in_progress"])
    assert server.client.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    server.cf("ADD", "grown", "later")
    server.cf("RESERVE", "large", 100_000)
    was |= digests(server, ["grown", "large"])
    # What was accepted is loaded, whatever the limit is now.
    server.restart("--maxmemory", "1mb")
    assert digests(server, was) == was


def test_copies_dumps_and_restored_values_are_equal(server):
    was = fill(server)
    for key in was:
        assert server.client.copy(key, key + ".copy")
        server.client.restore(key + ".restored", 0, server.client.dump(key))
        for position, chunk in dump(server, key):
            server.cf("LOADCHUNK", key + ".loaded", position, chunk)
        for other in ["copy", "restored", "loaded"]:
            assert server.digest(f"{key}.{other}") == was[key], (key, other)
        assert server.client.memory_usage(key) > 1000
    server.cf("ADD", "grown.copy", "later")
    assert server.digest("grown") == was["grown"] != server.digest("grown.copy")


def test_counts_of_many_items_come_back(start):
    """Their table is larger than the filter."""
    server = start("--appendonly", "yes", "--aof-use-rdb-preamble", "no")
    server.cf("RESERVE", "f", 80_000, "EXPANSION", 0)
    for _ in range(3):
        server.insert("f", 0, 40_000)
    beside = server.info()["Copies beside the filter"]
    assert beside >= 40_000
    server.client.restore("restored", 0, server.client.dump("f"))
    (position, head), *chunks = dump(server, "f")
    server.cf("LOADCHUNK", "loaded", position, head)
    for position, chunk in chunks:
        server.cf("LOADCHUNK", "loaded", position, chunk)
    was = server.digest("f")
    assert digests(server, ["restored", "loaded"]) == {"restored": was, "loaded": was}
    server.client.bgrewriteaof()
    server.wait(lambda: not server.client.info("persistence")["aof_rewrite_in_progress"])
    server.restart()
    assert server.digest("f") == was
    # The same table before a small filter.
    server.cf("RESERVE", "small", 20, "EXPANSION", 0)
    (position, _), (end, data) = dump(server, "small")
    server.cf("LOADCHUNK", "strange", position, head)
    server.cf("LOADCHUNK", "strange", end, data)
    assert server.info("strange")["Copies beside the filter"] == beside


def test_a_head_longer_than_a_chunk_comes_in_parts(start):
    """The table of counts has no limit, and servers take arguments of up to 512 MiB."""
    server = start("--aof-use-rdb-preamble", "no")
    server.cf("RESERVE", "f", 1_500_000, "EXPANSION", 0)
    for _ in range(3):
        server.insert("f", 0, 720_000)
    chunks, was = dump(server, "f"), server.digest("f")
    lengths = [len(chunk) for _, chunk in chunks]
    assert lengths[0] == max(lengths) == 16 << 20 and len(lengths) == 3
    # A shorter head is whole.
    server.cf("RESERVE", "short", 100)
    position, head = server.cf("SCANDUMP", "short", 0)
    server.cf("LOADCHUNK", "arriving", position, head)
    with pytest.raises(redis.ResponseError, match="Invalid position"):
        server.cf("LOADCHUNK", "arriving", (1 << 39) + len(head) + 5, b"abcde")
    # It may begin anew, and go on after a restart.
    server.cf("LOADCHUNK", "g", *chunks[0])
    for number, (position, chunk) in enumerate(chunks):
        with pytest.raises(redis.ResponseError, match="Invalid header" if number < 2 else "Invalid position"):
            server.cf("LOADCHUNK", "g", *chunks[2 if number < 2 else 1])
        server.cf("LOADCHUNK", "g", position, chunk)
        if number == 0:
            server.client.config_set("appendonly", "yes")
            server.wait(lambda: not server.client.info("persistence")["aof_rewrite_in_progress"])
            server.restart("--appendonly", "yes")
        elif number == 1:
            server.client.execute_command("DEBUG", "RELOAD")
    assert digests(server, "fg") == {"f": was, "g": was}


def later():
    """A time of a tick that no test lives to see: it is before the tick after this one, which takes 600 s with a TTL of 3600."""
    return int(time.time() * 1000) + 500_000


def operations(seed):
    """Commands of every kind, some of which are refused."""
    chance = random.Random(seed)
    item = lambda: chance.randrange(400)
    yield "RESERVE", "full", 50, "EXPANSION", 0
    yield "RESERVE", "timed", 500, "TTL", 3600
    for _ in range(250):
        key = chance.choice(["full", "new", "other", "timed"])
        yield chance.choice(
            [
                ("ADD", key, item()),
                ("ADDNX", key, item()),
                ("DEL", key, item()),
                ("INSERT", key, "ITEMS", *(item() for _ in range(20))),
                ("INSERTNX", key, "ITEMS", *(item() for _ in range(20))),
                ("INSERT", key, "ITEMS", *[item()] * 12),
                ("RESERVE", key, 100),
                ("TICK", "timed", 1, later()),
            ]
        )


def test_replicas_are_equal_after_every_command(start):
    primary, replica = start(), start()
    replica.follow(primary)
    for seed in (1, 2, 3):
        primary.client.flushall()
        for number, operation in enumerate(operations(seed)):
            try:
                primary.cf(*operation)
            except redis.ResponseError:
                pass
            primary.in_step(replica)
            keys = primary.client.keys()
            assert sorted(replica.client.keys()) == sorted(keys)
            assert digests(replica, keys) == digests(primary, keys), (seed, number, operation)
    late = start()
    late.follow(primary)
    assert digests(late, keys) == digests(primary, keys)
    for key in ["one", "two"]:
        primary.cf("RESERVE", key, 100, "SEED", 3)
        primary.cf("INSERT", key, "ITEMS", *(f"{key}{item}" for item in range(90)), *["again"] * 4)
    assert primary.cf("MERGE", "merged", "one", "two") == b"OK"
    for position, chunk in dump(primary, "new"):
        primary.cf("LOADCHUNK", "loaded", position, chunk)
    for follower in (replica, late):
        primary.in_step(follower)
        assert digests(follower, ["merged", "loaded"]) == digests(primary, ["merged", "loaded"])
    # After a failover, the other one goes on.
    primary.kill()
    replica.client.replicaof("NO", "ONE")
    late.follow(replica)
    replica.cf("INSERT", "new", "ITEMS", *range(5000))
    replica.in_step(late)
    assert replica.digest("new") == late.digest("new")


def test_a_replica_grows_when_its_primary_does(start):
    """A table that is nearly full is split after an insertion if there is memory, of which the replica has more."""
    # The backlog counts as memory.
    primary, replica = start("--maxmemory-policy", "noeviction", "--repl-backlog-size", "16kb"), start()
    replica.follow(primary)
    # A table takes more than this.
    limit = lambda: primary.client.config_set("maxmemory", primary.client.info("memory")["used_memory"] + 150_000)
    refused = []
    for command in ("CF.ADD", "CF.ADDNX"):
        primary.cf("RESERVE", "f", 200_000, "SEED", 1)
        primary.insert("f", 0, 199_000)
        begin = 199_000
        limit()
        stored, results = [], []
        while not any(isinstance(result, redis.exceptions.OutOfMemoryError) for result in results):
            with primary.client.pipeline(transaction=False) as pipeline:
                items = range(begin, begin + 100)
                for item in items:
                    pipeline.execute_command(command, "f", item)
                results = pipeline.execute(raise_on_error=False)
            stored += [item for item, result in zip(items, results) if not isinstance(result, redis.ResponseError)]
            begin += 100
        assert stored
        limit()
        results = primary.cf("INSERTNX", "f", "ITEMS", *range(begin, begin + 300))
        refused += [result for result in results if isinstance(result, redis.ResponseError)]
        assert primary.cf("MEXISTS", "f", *stored) == [1] * len(stored)
        primary.in_step(replica)
        assert replica.digest("f") == primary.digest("f")
        # The next tables are split.
        primary.client.config_set("maxmemory", 0)
        primary.insert("f", begin + 300, begin + 20_300)
        primary.in_step(replica)
        assert replica.digest("f") == primary.digest("f")
        primary.client.delete("f")
    assert refused


def test_a_replica_that_comes_between_two_chunks_gets_the_rest(start):
    primary, replica = start(), start()
    fill(primary)
    chunks = dump(primary, "grown")
    data = b"".join(chunk for _, chunk in chunks[1:])
    primary.cf("LOADCHUNK", "half", *chunks[0])
    position, middle = chunks[0][0], len(data) // 2
    primary.cf("LOADCHUNK", "half", position + middle, data[:middle])
    with pytest.raises(redis.ResponseError, match="being loaded"):
        primary.cf("ADD", "half", "a")
    replica.follow(primary)
    assert replica.digest("half") == primary.digest("half")
    primary.cf("LOADCHUNK", "half", position + len(data), data[middle:])
    primary.in_step(replica)
    assert replica.digest("half") == primary.digest("half") == primary.digest("grown")


def test_chunks_out_of_order_or_damaged_are_refused(server):
    server.cf("INSERT", "f", "ITEMS", *range(1000))
    (position, head), (end, data) = dump(server, "f")
    refused = pytest.raises(redis.ResponseError)
    with refused:
        server.cf("LOADCHUNK", "g", end, data)
    assert not server.client.exists("g")
    chance = random.Random(3)
    for _ in range(100):
        damaged = bytearray(head)
        damaged[chance.randrange(len(head))] ^= 1 << chance.randrange(8)
        with refused:
            server.cf("LOADCHUNK", "g", position, bytes(damaged[: chance.randrange(1, 1 + len(head))]))
    server.cf("LOADCHUNK", "g", position, head)
    with refused:
        server.cf("LOADCHUNK", "g", end + 1, data)
    used = server.client.info("memory")["used_memory"]
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        if bytes(damaged) != data and damaged[-64:-56] == data[-64:-56]:
            with refused:
                server.cf("LOADCHUNK", "g", end, bytes(damaged))
    assert server.client.info("memory")["used_memory"] < used + (4 << 20)
    server.cf("LOADCHUNK", "g", end, data)
    assert server.digest("g") == server.digest("f")
    for position in [5, end + 1, 1 << 60, -1]:
        with refused:
            server.cf("SCANDUMP", "f", position)


def test_positions_are_numbers_of_lua_and_javascript(server):
    server.cf("INSERT", "f", "ITEMS", *range(1000))
    copy = """
        local position = 0
        repeat
            local reply = redis.call('CF.SCANDUMP', KEYS[1], position)
            position = reply[1]
            if position > 0 then redis.call('CF.LOADCHUNK', KEYS[2], string.format('%.0f', position), reply[2]) end
        until position == 0
    """
    for _ in range(20):
        server.client.delete("g")
        server.client.eval(copy, 2, "f", "g")
        assert server.digest("g") == server.digest("f")
        # One that stays.
        assert server.cf("SCANDUMP", "f", 0)[0] < 2**53


def test_chunks_replace_no_filter(server):
    server.cf("INSERT", "f", "ITEMS", *range(1000))
    server.cf("ADD", "g", "a")
    was = server.digest("g")
    (position, head), (end, data) = dump(server, "f")
    with pytest.raises(redis.ResponseError, match="item exists"):
        server.cf("LOADCHUNK", "g", position, head)
    assert server.digest("g") == was
    # A dump that has not arrived may begin anew.
    for sent in (head, head):
        server.cf("LOADCHUNK", "h", position, sent)
    server.cf("LOADCHUNK", "h", position + 1000, data[:1000])
    server.cf("LOADCHUNK", "h", position, head)
    server.cf("LOADCHUNK", "h", end, data)
    assert server.digest("h") == server.digest("f")


def test_a_replaced_filter_keeps_its_time_limit(start):
    primary, replica = start(), start()
    replica.follow(primary)
    primary.cf("RESERVE", "a", 100, "SEED", 1)
    primary.cf("RESERVE", "b", 100, "SEED", 1)
    primary.cf("ADD", "b", "x")
    primary.client.expire("a", 1000)
    primary.cf("MERGE", "a", "b")
    (position, head), (end, data) = dump(primary, "b")
    primary.cf("LOADCHUNK", "c", position, head)
    primary.client.expire("c", 1000)
    primary.cf("LOADCHUNK", "c", end, data)
    primary.in_step(replica)
    for server in (primary, replica):
        assert server.cf("EXISTS", "a", "x") == server.cf("EXISTS", "c", "x") == 1
        assert 0 < server.client.ttl("a") <= 1000 and 0 < server.client.ttl("c") <= 1000


def table(polynomial):
    def entry(value):
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        return value

    return [entry(byte) for byte in range(256)]


CRC64, CRC32C = table(0x95AC9329AC4BC9B5), table(0x82F63B78)


def crc64(data):
    """That of the server, at the end of what DUMP returns."""
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ CRC64[(crc ^ byte) & 255]
    return struct.pack("<Q", crc)


def crc32c(data, crc=0):
    """That of a filter's file, which goes on from another one."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def siphash13(data):
    """That of a head, with keys of 0."""
    mask = 2**64 - 1
    turn = lambda value, by: (value << by | value >> 64 - by) & mask
    v0, v1, v2, v3 = 0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573

    def rounds(count):
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0, v2 = (v0 + v1) & mask, (v2 + v3) & mask
            v1, v3 = turn(v1, 13) ^ v0, turn(v3, 16) ^ v2
            v0, v2 = (turn(v0, 32) + v3) & mask, (v2 + v1) & mask
            v1, v3, v2 = turn(v1, 17) ^ v2, turn(v3, 21) ^ v0, turn(v2, 32)

    whole = len(data) // 8 * 8
    words = [word for (word,) in struct.iter_unpack("<Q", data[:whole])]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 255) << 56)
    for word in words:
        v3 ^= word
        rounds(1)
        v0 ^= word
    v2 ^= 255
    rounds(3)
    return v0 ^ v1 ^ v2 ^ v3


def head_of(numbers):
    """A head: kind, four parameters, next tick, deleted, and per item two numbers of its class and the copies."""
    head = b"cf-head1" + struct.pack(f"<{len(numbers)}Q", *numbers)
    return head + struct.pack("<Q", siphash13(struct.pack("<Q", len(head)) + head))


def test_numbers_of_hostile_heads_do_not_wrap(server):
    server.cf("INSERT", "f", "ITEMS", *"aaa")
    (position, head), (end, data) = dump(server, "f")
    numbers = list(struct.unpack(f"<{len(head) // 8 - 2}Q", head[8:-8]))
    assert head == head_of(numbers) and numbers[5:7] == [0, 0] and numbers[9:] == [1]
    early = numbers.copy()
    early[5] = 2**64 - 1
    with pytest.raises(redis.ResponseError, match="Invalid header"):
        server.cf("LOADCHUNK", "g", position, head_of(early))
    most = 2**63 - 1
    numbers[6] = numbers[9] = 2**64 - 1
    for other in [[], [7, 7, 2**64 - 1]]:
        server.client.delete("g")
        server.cf("LOADCHUNK", "g", position, head_of(numbers + other))
        server.cf("LOADCHUNK", "g", end, data)
        assert server.cf("ADD", "g", "a") == 1
        assert server.cf("COUNT", "g", "a") == most
        info = server.info("g")
        assert info["Number of items inserted"] == info["Number of items deleted"] == info["Copies beside the filter"] == most
        server.client.copy("g", "h", replace=True)
        server.cf("MERGE", "g", "h")
        assert server.cf("DEL", "g", "a") == 1
        assert server.cf("COUNT", "g", "a") == server.info("g")["Number of items deleted"] == most
    # Where items expire, no copies are counted.
    server.cf("RESERVE", "timed", 100, "TTL", 3600)
    (position, head), (end, data) = dump(server, "timed")
    numbers = struct.unpack(f"<{len(head) // 8 - 2}Q", head[8:-8])
    server.cf("LOADCHUNK", "counted", position, head_of([*numbers, 7, 7, 7]))
    server.cf("LOADCHUNK", "counted", end, data)
    assert server.info("counted")["Copies beside the filter"] == 0


def test_hostile_values_are_refused_and_allocate_nothing(server):
    server.cf("RESERVE", "f", 20, "EXPANSION", 0)
    server.cf("INSERT", "f", "ITEMS", *range(20))
    value = server.client.dump("f")
    assert value[-8:] == crc64(value[:-8])
    before = server.address_space()
    chance, refusals = random.Random(4), 0
    for _ in range(600):
        damaged = bytearray(value[:-10])
        for _ in range(chance.randrange(1, 3)):
            damaged[chance.randrange(10, len(damaged))] = chance.choice([0, 1, 255, chance.randrange(256)])
        damaged += value[-10:-8]
        try:
            server.client.restore("g", 0, bytes(damaged) + crc64(damaged), replace=True)
            assert server.cf("EXISTS", "g", 1) in (0, 1)
        except redis.ResponseError:
            refusals += 1
    assert refusals > 300
    assert server.address_space() < before + (64 << 20)


def test_a_value_that_announces_more_than_arrives_is_refused(server):
    """With right checksums: of 10,000 shards, one is there."""
    server.client.config_set("rdbcompression", "no")
    for capacity in range(140_000, 150_000, 10):
        server.client.delete("f")
        server.cf("RESERVE", "f", capacity, "EXPANSION", 0)
        value = bytearray(server.client.dump("f"))
        at = value.index(b"\xc0cuckoo\n")
        length, buckets = struct.unpack_from("<12xI24xI", value, at)
        if buckets % 16 == 0:
            break
    struct.pack_into("<QQQ", value, at + 16, 10_000, 0, 10_000)
    end = at + length
    origin = crc32c(value[at : end - 4])
    struct.pack_into("<I", value, end - 4, origin)
    struct.pack_into("<I", value, end + 60, crc32c(value[end : end + 60], origin))
    before = server.address_space()
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        server.client.restore("g", 0, bytes(value[:-8]) + crc64(value[:-8]))
    # Without the limit, it would be that the second shard is missing.
    assert "failed to allocate" in server.log()
    # The shards that were announced take some gigabytes.
    assert server.address_space() < before + (64 << 20)


def test_an_export_is_a_file_of_the_crate_and_the_server_serves(start):
    server = start()
    server.cf("RESERVE", "f", 1000, "SEED", 5)
    server.insert("f", 0, 100_000)
    assert server.cf("EXPORT", "f", "today.cuckoo") == b"OK"
    exported = (server.folder / "exports/today.cuckoo").read_bytes()
    assert exported == b"".join(chunk for _, chunk in dump(server, "f")[1:])
    assert os.listdir(server.folder / "exports") == ["today.cuckoo"]
    for name in ["", "../x", "a/b", ".hidden", "a b", "x" * 201]:
        with pytest.raises(redis.ResponseError, match="named by"):
            server.cf("EXPORT", "f", name)
    with pytest.raises(redis.ResponseError, match="not found"):
        server.cf("EXPORT", "missing", "x")


def memory(server):
    """Its address space, and what of it is in memory, in bytes."""
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()
    return [int(number) * resource.getpagesize() for number in pages[:2]]


def test_exports_run_one_at_a_time(start):
    server = start()
    server.cf("ADD", "f", "a")
    # Whoever opens a pipe waits for its reader.
    pipe = server.folder / "exports/1.new~"
    os.mkfifo(pipe)
    connection = server.connect().connection_pool.get_connection()
    connection.send_command("CF.EXPORT", "f", "1")
    server.wait(lambda: server.client.info("clients")["blocked_clients"] == 1)
    for _ in range(2):
        with pytest.raises(redis.ResponseError, match="an export is running"):
            server.cf("EXPORT", "f", "2")
    assert len(pipe.read_bytes()) > 0
    with pytest.raises(redis.ResponseError, match="exports/1"):
        connection.read_response()
    assert server.cf("EXPORT", "f", "2") == b"OK"


def test_an_export_without_a_thread_is_an_error(server):
    server.cf("ADD", "f", "a")
    # The stack of a thread does not fit.
    limit = memory(server)[0] + (1 << 20)
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    with pytest.raises(redis.ResponseError, match="thread"):
        server.cf("EXPORT", "f", "e")
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert server.cf("EXPORT", "f", "e") == b"OK"


def test_reserved_memory_is_not_touched(server):
    """Not even by zeros, so the system provides it when it is used."""
    _, begun = memory(server)
    server.cf("RESERVE", "f", 150_000_000, "EXPANSION", 0)
    assert server.client.info("memory")["used_memory"] > 240 << 20
    assert memory(server)[1] < begun + (64 << 20)
    # A growing filter touches a fiftieth, so one that is larger than the memory of the machine is refused.
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        server.cf("RESERVE", "larger", server.client.info("memory")["total_system_memory"] // 2)
    server.insert("f", 0, 10_000)
    assert server.cf("MEXISTS", "f", *range(20_000)).count(1) < 10_100
    # Nor is memory that was used before taken for zeros.
    for _ in range(3):
        server.client.delete("f")
        server.client.execute_command("CF.RESERVE", "f", 1_000_000, "EXPANSION", 0)
        assert server.cf("MEXISTS", "f", *range(10_000)) == [0] * 10_000
        server.insert("f", 0, 900_000)


def test_clients_map_an_export_and_apply_deltas(start):
    """The recipe of the README."""
    clients = pytest.importorskip("concurrent_cuckoo_filter", reason="python/test.sh builds it")
    primary, replica = start(), start()
    replica.follow(primary)
    primary.cf("RESERVE", "list", 10_000, "EXPANSION", 0, "SEED", 5)
    primary.insert("list", 0, 9000)
    store = []
    for day in range(2):
        primary.in_step(replica)
        assert replica.cf("EXPORT", "list", "today.cuckoo") == b"OK"
        exported = replica.folder / "exports/today.cuckoo"
        store.append(exported.rename(primary.folder / hashlib.sha256(exported.read_bytes()).hexdigest()))
        primary.cf("ADD", "list", "new")
        primary.cf("DEL", "list", 8)
    mapped = clients.CuckooFilter.open(store[0])
    assert all(b"%d" % item in mapped for item in range(9000)) and b"new" not in mapped
    held = clients.CuckooFilter.from_bytes(store[0].read_bytes())
    assert held.apply_delta(clients.delta(*store)) == (1, 1)
    assert b"new" in held and b"8" not in held and len(held) == 9000


def test_a_large_filter_is_saved_and_loaded_without_a_second_copy_and_freed_in_the_background(start):
    server = start()
    server.cf("RESERVE", "f", 20_000_000, "EXPANSION", 0)
    server.cf("INSERT", "f", "ITEMS", *range(10_000))
    size, was = server.client.memory_usage("f", samples=0), server.digest("f")
    assert size > 32 << 20
    for command in (["SAVE"], ["BGREWRITEAOF"], ["DEBUG", "RELOAD"]):
        server.client.execute_command(*command)
        server.wait(lambda: not server.client.info("persistence")["aof_rewrite_in_progress"])
    assert server.client.info("memory")["used_memory_peak"] < 1.5 * size
    server.restart()
    assert server.client.info("memory")["used_memory_peak"] < 1.5 * size
    assert server.digest("f") == was
    server.client.unlink("f")
    server.wait(lambda: server.client.info("memory")["lazyfreed_objects"] == 1)
    assert server.client.info("memory")["used_memory"] < 8 << 20


def test_exports_meet_saves_writes_and_unlink(start):
    server = start()
    server.cf("RESERVE", "f", 1_000_000, "ERROR", 0.0001)
    server.insert("f", 0, 1_000_000)
    server.client.copy("f", "g")
    for number in range(10):
        exporter = server.connect()
        connection = exporter.connection_pool.get_connection()
        connection.send_command("CF.EXPORT", "f", f"{number}")
        server.client.bgsave()
        for item in range(200):
            server.cf("ADD", "f", f"{number} {item}")
        if number == 9:
            server.client.unlink("f")
        assert connection.read_response() == b"OK"
        server.wait(lambda: not server.client.info("persistence")["rdb_bgsave_in_progress"])
        assert server.client.info("persistence")["rdb_last_bgsave_status"] == "ok"
    server.restart()
    for key in "fg":
        assert server.cf("MEXISTS", key, *range(0, 1_000_000, 100)) == [1] * 10_000


def test_a_save_that_begins_amid_an_export_ends(start):
    """Its child would wait for ever for a stripe that the exporting thread held at the fork."""
    server = start()
    server.cf("RESERVE", "f", 10_000_000, "EXPANSION", 0)
    server.cf("INSERT", "f", "ITEMS", *range(10_000))
    saver, chance = server.connect(), random.Random(1)
    for number in range(40):
        connection = server.client.connection_pool.get_connection()
        connection.send_command("CF.EXPORT", "f", "e")
        time.sleep(chance.random() * 0.02)
        saver.bgsave()
        assert connection.read_response() == b"OK"
        server.client.connection_pool.release(connection)
        begun = time.monotonic()
        while saver.info("persistence")["rdb_bgsave_in_progress"]:
            assert time.monotonic() < begun + 60, f"the child of save {number} does not end"
            time.sleep(0.01)
        assert saver.info("persistence")["rdb_last_bgsave_status"] == "ok"


def test_a_killed_save_leaves_the_file_before(start):
    server = start("--appendonly", "yes")
    was = fill(server)
    for command in ["BGSAVE", "BGREWRITEAOF"]:
        for delay in [0, 0.005, 0.02]:
            server.client.execute_command(command)
            server.cf("ADD", "grown", f"{command} {delay}")
            was["grown"] = server.digest("grown")
            time.sleep(delay)
            os.kill(server.process.pid, signal.SIGKILL)
            server.restart()
            assert digests(server, was) == was


def test_a_save_that_runs_out_of_memory_fails_and_leaves_the_previous_file(start):
    server = start("--aof-use-rdb-preamble", "no")
    server.cf("RESERVE", "large", 2_000_000, "EXPANSION", 0)
    was = fill(server) | {"large": server.digest("large")}
    server.client.save()
    bound = lambda most: resource.prlimit(server.process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    # The stack may grow.
    bound(memory(server)[0] + (128 << 10))
    # What is left is smaller than the copy of a table.
    for capacity in (1_000_000, 100_000):
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            for number in range(1000):
                server.cf("RESERVE", f"{capacity} {number}", capacity, "EXPANSION", 0)
    with pytest.raises(redis.ResponseError):
        server.client.save()
    value = server.client.dump("large")
    bound(resource.RLIM_INFINITY)
    with pytest.raises(redis.ResponseError, match="Bad data format"):
        server.client.restore("restored", 0, value)
    for command, status in [("BGSAVE", "rdb_last_bgsave_status"), ("BGREWRITEAOF", "aof_last_bgrewrite_status")]:
        assert server.client.info("persistence")[status] == "ok"
        # The child keeps the limit of its parent.
        bound(memory(server)[0] + (128 << 10))
        server.client.execute_command(command)
        bound(resource.RLIM_INFINITY)
        server.wait(lambda: server.client.info("persistence")[status] == "err")
    server.restart()
    assert digests(server, was) == was


def test_items_expire_by_the_clock_of_the_primary_alone(start):
    primary, replica = start("--appendonly", "yes"), start()
    replica.follow(primary)
    primary.cf("RESERVE", "f", 1000, "TTL", 2)
    begun = time.monotonic()
    primary.cf("INSERT", "f", "ITEMS", *range(500))
    assert sum(primary.cf("MEXISTS", "f", *range(500))) == 500 or time.monotonic() > begun + 2
    primary.client.rename("f", "g")
    primary.wait(lambda: sum(primary.cf("MEXISTS", "g", *range(500))) == 0)
    assert time.monotonic() >= begun + 1.5
    # The clock of a replica that has lost its primary does nothing.
    primary.cf("ADD", "g", "kept")
    primary.in_step(replica)
    primary.kill()
    was = replica.digest("g")
    time.sleep(3)
    assert replica.digest("g") == was and replica.cf("EXISTS", "g", "kept") == 1
    replica.client.replicaof("NO", "ONE")
    replica.wait(lambda: replica.cf("EXISTS", "g", "kept") == 0)
    primary.start()
    primary.wait(lambda: primary.cf("EXISTS", "g", "kept") == 0)


def test_merging_needs_filters_built_alike(server):
    for key, seed in [("a", 1), ("b", 1), ("c", 2)]:
        server.cf("RESERVE", key, 1000, "SEED", seed)
        server.cf("INSERT", key, "ITEMS", *(f"{key}{item}" for item in range(1000)))
    assert server.cf("MERGE", "all", "a", "b") == b"OK"
    assert server.cf("MEXISTS", "all", *(f"{key}{item}" for key in "ab" for item in range(1000))) == [1] * 2000
    with pytest.raises(redis.ResponseError, match="hash"):
        server.cf("MERGE", "all", "c")
    assert server.info("all")["Number of items inserted"] == 2000
    server.cf("INSERT", "a", "ITEMS", *["again"] * 20)
    for item in range(2):
        server.cf("DEL", "all", f"b{item}")
        server.cf("DEL", "a", f"a{item}")
    was = server.digest("all")
    server.cf("MERGE", "all", "a")
    assert server.cf("COUNT", "all", "again") == 20 and server.digest("all") != was
    assert server.info("all")["Number of items deleted"] == 4
    # Each merge adds a copy of every item, until one of them has no room.
    with pytest.raises(redis.ResponseError, match="8 copies"):
        for merges in range(2, 10):
            was = server.digest("all")
            server.cf("MERGE", "all", "a")
            assert server.cf("COUNT", "all", "again") == 20 * merges
    assert server.digest("all") == was and server.cf("COUNT", "all", "again") == 20 * (merges - 1)


def test_maxmemory_holds_and_is_an_error(start):
    server = start("--maxmemory-policy", "noeviction")
    used = lambda: server.client.info("memory")["used_memory"]
    limit = used() + (4 << 20)
    server.client.config_set("maxmemory", limit)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        server.cf("RESERVE", "large", 10**8, "EXPANSION", 0)
    server.cf("RESERVE", "f", 100_000)
    # A block that was freed leaves room: of 1 GiB and more, a growing filter first allocates its size as a trial.
    server.client.config_set("maxmemory", used() + (1300 << 20))
    server.cf("RESERVE", "large", 400_000_000)
    server.client.delete("large")
    server.wait(lambda: used() < limit)
    server.client.config_set("maxmemory", limit)
    refused = None
    for begin in range(0, 5_000_000, 5_000):
        try:
            results = server.cf("INSERT", "f", "ITEMS", *range(begin, begin + 5_000))
        except redis.exceptions.OutOfMemoryError as error:
            refused = error
            break
        if any(isinstance(result, redis.ResponseError) for result in results):
            refused = results
            break
    assert refused and begin > 200_000
    assert used() < limit + (1 << 20)
    assert server.cf("MEXISTS", "f", *range(0, begin, 100)) == [1] * (begin // 100)
    position, _ = server.cf("SCANDUMP", "f", 0)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        server.cf("SCANDUMP", "f", position)
    server.client.config_set("maxmemory", 0)
    server.client.flushall()
    for number, key in enumerate("ab"):
        server.cf("RESERVE", key, 400_000, "SEED", 1)
        server.insert(key, 390_000 * number, 390_000 * (number + 1))
    # Neither of these has room: a table of the copy, and the tables that the copy splits.
    for share, text in [(1.5, "failed to allocate"), (2, "nothing was merged")]:
        server.client.config_set("maxmemory", used() + int(share * server.client.memory_usage("a", samples=0)))
        with pytest.raises(redis.exceptions.OutOfMemoryError, match=text):
            server.cf("MERGE", "c", "a", "b")


def test_small_tables_are_limited_before_a_command(start):
    """As the README says: the command that exceeds `maxmemory` ends, and the next one is refused."""
    server = start("--maxmemory-policy", "noeviction")
    used = lambda: server.client.info("memory")["used_memory"]
    server.cf("RESERVE", "f", 12_000)
    server.insert("f", 0, 100_000)
    begun = used()
    server.client.config_set("maxmemory", begun + (128 << 10))
    # A script, as one command.
    server.insert("f", 100_000, 200_000)
    assert begun + (128 << 10) < used() < begun + 6 * 100_000
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        server.cf("ADD", "f", "later")
    assert server.cf("MEXISTS", "f", *range(0, 200_000, 100)) == [1] * 2000


def test_memory_comes_back(server):
    begun = server.client.info("memory")["used_memory"]
    for _ in range(5):
        fill(server)
        server.client.execute_command("CF.SCANDUMP", "grown", 0)
        server.client.unlink(*server.client.keys())
    server.wait(lambda: server.client.info("memory")["lazyfree_pending_objects"] == 0)
    assert server.client.info("memory")["used_memory"] < begun + (1 << 20)


def test_a_cluster_of_three_nodes(start):
    nodes = [start("--cluster-enabled", "yes") for _ in range(3)]
    for number, node in enumerate(nodes):
        begin, end = 16384 * number // 3, 16384 * (number + 1) // 3 - 1
        node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", begin, end)
        node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    for node in nodes:
        state = lambda: str(node.connect().execute_command("CLUSTER", "INFO"))
        node.wait(lambda: "cluster_state:ok" in state() and "cluster_known_nodes:3" in state())
    cluster = redis.RedisCluster(port=nodes[0].port, host="127.0.0.1")
    for key in range(60):
        assert cluster.execute_command("CF.ADD", f"f{key}", key) == 1
    assert all(cluster.execute_command("CF.EXISTS", f"f{key}", key) for key in range(60))
    assert all(node.client.dbsize() > 5 for node in nodes)
    with pytest.raises(redis.ResponseError, match="same slot"):
        nodes[0].cf("MERGE", "a", "b", "c")
    assert cluster.execute_command("CF.ADD", "{a}", 1) == 1 and cluster.execute_command("CF.MERGE", "{a}b", "{a}") == b"OK"
    # A key moves to another node as a dump.
    key = next(key for key in nodes[0].client.keys() if key != b"{a}")
    value, digest = nodes[0].client.dump(key), nodes[0].digest(key)
    slot = nodes[0].client.execute_command("CLUSTER", "KEYSLOT", key)
    ids = [node.client.execute_command("CLUSTER", "MYID").decode() for node in nodes]
    nodes[1].client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
    nodes[0].client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
    nodes[0].client.execute_command("MIGRATE", "127.0.0.1", nodes[1].port, key, 0, 10_000)
    for node in nodes:
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
    assert nodes[1].digest(key) == digest and len(value) > 100


def test_a_dump_takes_a_copy_of_the_filter_once_that_changes(server):
    server.cf("RESERVE", "f", 30_000_000, "EXPANSION", 0, "SEED", 1)
    server.cf("INSERT", "f", "ITEMS", *range(10_000))
    size = server.client.memory_usage("f", samples=0)
    used = lambda: server.client.info("memory")["used_memory"]
    begun, was = used(), server.digest("f")
    assert size > 48 << 20

    position, head = server.cf("SCANDUMP", "f", 0)
    server.cf("LOADCHUNK", "g", position, head)
    beside = server.cf("SCANDUMP", "f", 0)[0]
    position, chunk = server.cf("SCANDUMP", "f", position)
    server.cf("LOADCHUNK", "g", position, chunk)
    assert len(chunk) == 16 << 20
    server.wait(lambda: used() < begun + len(chunk) + (2 << 20))
    # Both dumps keep the filter as it was, in one copy.
    server.cf("ADD", "f", "later")
    server.wait(lambda: 0.9 * size < used() - begun - len(chunk) < 1.3 * size)
    server.cf("DEL", "f", 1)
    assert abs(server.client.memory_usage("f", samples=0) - 2 * size) < 2 << 20
    # A chunk may be requested again.
    assert server.cf("SCANDUMP", "f", position - len(chunk)) == [position, chunk]
    while position:
        position, chunk = server.cf("SCANDUMP", "f", position)
        if position:
            server.cf("LOADCHUNK", "g", position, chunk)
    assert server.digest("g") == was != server.digest("f")
    server.client.delete("g")
    assert server.cf("SCANDUMP", "f", beside)[0] > beside
    # The fourth other dump of a key ends the first one, as does a merge into it.
    later = [server.cf("SCANDUMP", "f", 0)[0] for _ in range(4)]
    server.cf("SCANDUMP", "f", later[0])
    server.cf("MERGE", "f", "f")
    for ended in (beside, later[0]):
        with pytest.raises(redis.ResponseError, match="Invalid position: this dump has ended; begin another one at 0"):
            server.cf("SCANDUMP", "f", ended)


def test_a_dump_that_nobody_goes_on_with_ends(start):
    server = start(dump_idle=1)
    server.cf("RESERVE", "f", 1_000_000, "EXPANSION", 0)
    begun = server.client.memory_usage("f", samples=0)
    position, _ = server.cf("SCANDUMP", "f", 0)
    server.cf("ADD", "f", "later")
    server.client.rename("f", "g")
    assert server.client.memory_usage("g", samples=0) > 1.9 * begun
    server.wait(lambda: server.client.memory_usage("g", samples=0) < 1.1 * begun)
    with pytest.raises(redis.ResponseError, match="Invalid position"):
        server.cf("SCANDUMP", "g", position)


def test_a_dump_without_memory_for_a_copy_ends_and_the_filter_may_grow(start):
    server = start("--appendonly", "yes")
    server.cf("RESERVE", "f", 100_000)
    position, _ = server.cf("SCANDUMP", "f", 0)
    server.client.config_set("maxmemory", server.client.info("memory")["used_memory"] + 100_000)
    server.cf("ADD", "f", "a")
    with pytest.raises(redis.ResponseError, match="ended"):
        server.cf("SCANDUMP", "f", position)
    # Replicas grow, too.
    assert b"NOGROW" not in b"".join(file.read_bytes() for file in (server.folder / "appendonlydir").iterdir())


def test_a_hundred_thousand_keys_take_below_1500_bytes_each(server):
    fill = """
        local items = {}
        for item = 1, 100 do items[item] = tostring(item) end
        for key = tonumber(ARGV[1]), tonumber(ARGV[2]) do
            redis.call('CF.RESERVE', 'k' .. key, 100)
            redis.call('CF.INSERT', 'k' .. key, 'ITEMS', unpack(items))
        end
    """
    begun = server.client.info("memory")["used_memory"]
    for begin in range(0, 100_000, 1000):
        server.client.eval(fill, 0, begin, begin + 999)
    total = sum(server.client.memory_usage(f"k{key}", samples=0) for key in range(0, 100_000, 100))
    print(total / 1000, (server.client.info("memory")["used_memory"] - begun) / 1e5)
    assert total < 1500 * 1000
    assert server.cf("MEXISTS", "k99999", *range(1, 101)) == [1] * 100
