"""Items that expire, and the timer that lets them."""

import re
import time

import pytest
import redis
from test_durability import dump, later


def ticks_of(server):
    """The numbers of ticks that were written to the file of commands."""
    files = (server.folder / "appendonlydir").glob("*.incr.aof")
    text = b"".join(file.read_bytes() for file in files)
    return [int(count) for count in re.findall(rb"CF\.TICK\r\n\$1\r\nf\r\n\$\d+\r\n(\d+)\r\n", text)]


def test_ticks_wait_while_writes_are_paused(start):
    """The server asserts that nothing is replicated then."""
    server = start("--appendonly", "yes")
    server.cf("RESERVE", "f", 100, "TTL", 1)
    server.client.client_pause(1000, all=False)
    assert server.cf("ADD", "f", "a") == 1
    server.wait(lambda: server.cf("EXISTS", "f", "a") == 0)


def test_a_late_server_ticks_until_every_item_has_expired_and_no_more(start):
    server = start("--appendonly", "yes")
    server.cf("RESERVE", "f", 100, "TTL", 600, "TICK", 1)
    server.wait(lambda: ticks_of(server))
    # Six ticks are a time to live, which may begin within a tick.
    assert ticks_of(server) == [7]
    server.cf("RESERVE", "g", 100, "TTL", 3600, "TICK", later())
    server.cf("INSERT", "g", "ITEMS", *range(100))
    server.cf("TICK", "g", 6, later())
    assert server.cf("MEXISTS", "g", *range(100)) == [1] * 100
    server.cf("TICK", "g", 1, later())
    assert server.cf("MEXISTS", "g", *range(100)) == [0] * 100


def test_expired_items_leave_no_trace(start):
    """A copy, a replica and a restored filter would not have their slots."""
    primary, replica = start(), start()
    for options in ((), ("EXPANSION", 0)):
        primary.client.delete("f", "g")
        primary.cf("RESERVE", "f", 100, "TTL", 3600, *options)
        primary.cf("INSERT", "f", "ITEMS", *range(60))
        primary.cf("TICK", "f", 4, later())
        primary.cf("INSERT", "f", "ITEMS", *range(60, 80))
        primary.cf("TICK", "f", 3, later())
        assert primary.info()["Number of items inserted"] == 20
        primary.client.restore("g", 0, primary.client.dump("f"))
        primary.client.copy("f", "h", replace=True)
        assert primary.digest("f") == primary.digest("g") == primary.digest("h")
    replica.follow(primary)
    assert replica.digest("f") == primary.digest("f")


def test_a_dump_goes_on_from_a_copy_when_items_expired_before_it(server):
    server.cf("RESERVE", "f", 15_000_000, "EXPANSION", 0, "TTL", 3600)
    server.cf("INSERT", "f", "ITEMS", *range(10_000))
    server.cf("TICK", "f", 7, later())
    was = server.digest("f")
    chunks, position = [server.cf("SCANDUMP", "f", 0)], 0
    chunks.append(server.cf("SCANDUMP", "f", chunks[0][0]))
    server.cf("ADD", "f", "later")
    while (chunk := server.cf("SCANDUMP", "f", chunks[-1][0]))[0]:
        chunks.append(chunk)
    assert len(chunks) > 2
    for position, chunk in chunks:
        server.cf("LOADCHUNK", "g", position, chunk)
    assert server.digest("g") == was


def test_a_promoted_replica_lets_items_expire_that_it_has_loaded_to_the_side(start):
    primary, replica = start(), start("--repl-diskless-load", "swapdb")
    databases = lambda server: [redis.Redis(port=server.port, db=database) for database in (0, 3)]
    for client in databases(primary):
        client.execute_command("CF.RESERVE", "f", 100, "TTL", 3)
    replica.follow(primary)
    for client in databases(primary):
        client.execute_command("CF.ADD", "f", "a")
    primary.in_step(replica)
    primary.kill()
    replica.client.replicaof("NO", "ONE")
    for client in databases(replica):
        replica.wait(lambda: client.execute_command("CF.EXISTS", "f", "a") == 0)


def test_ticks_and_names_do_not_use_a_key(server):
    """Eviction goes by the time of its last use."""
    server.client.set("text", "x")
    server.cf("RESERVE", "slow", 100, "TTL", 3600)
    server.cf("RESERVE", "fast", 100, "TTL", 1)
    for key in ("text", "slow", "fast"):
        server.client.restore(f"{key}.restored", 0, server.client.dump(key), idletime=5000)
    idle = lambda key: server.client.object("idletime", f"{key}.restored")
    assert idle("text") >= 5000
    was = server.digest("fast.restored")
    server.wait(lambda: server.digest("fast.restored") != was)
    assert idle("slow") >= 5000 and idle("fast") >= 5000


def test_filters_tick_under_every_name(server):
    """And in every database."""
    other = redis.Redis(port=server.port, db=1)
    for key in ("renamed", "copied", "moved", "restored"):
        server.cf("RESERVE", key, 100, "TTL", 1)
        server.cf("ADD", key, "a")
    server.client.rename("renamed", "new")
    server.client.copy("copied", "copy", destination_db=1)
    server.client.move("moved", 1)
    server.client.restore("again", 0, server.client.dump("restored"))
    server.cf("MERGE", "merged", "restored")
    for position, chunk in dump(server, "restored"):
        server.cf("LOADCHUNK", "loaded", position, chunk)
    server.client.swapdb(0, 1)
    swapped = {other: ["new", "copied", "restored", "again", "merged", "loaded"], server.client: ["copy", "moved"]}
    for client, keys in swapped.items():
        assert sorted(client.keys()) == sorted(key.encode() for key in keys)
        for key in keys:
            server.wait(lambda: client.execute_command("CF.EXISTS", key, "a") == 0)


def test_filters_tick_whose_next_tick_was_set_by_a_clock_ahead(start):
    primary, replica = start("--appendonly", "yes"), start()
    replica.follow(primary)
    primary.cf("RESERVE", "f", 100, "TTL", 1)
    primary.cf("TICK", "f", 0, int(time.time() * 1000) + 86_400_000)
    primary.cf("ADD", "f", "a")
    for server in (primary, replica):
        server.wait(lambda: server.cf("EXISTS", "f", "a") == 0)
    assert ticks_of(primary).count(0) == 2


def test_names_of_deleted_keys_are_forgotten(start):
    primary, replica = start(), start()
    replica.follow(primary)
    servers = (primary, replica)
    used = lambda: [server.client.info("memory")["used_memory"] for server in servers]
    begun = used()
    for number in range(500):
        primary.cf("RESERVE", f"{number:020000}", 10, "TTL", 1)
    primary.in_step(replica)
    assert all(now > was + (10 << 20) for was, now in zip(begun, used()))
    primary.client.flushall()
    primary.in_step(replica)
    for number, server in enumerate(servers):
        server.wait(lambda: used()[number] < begun[number] + (4 << 20))


def test_times_and_numbers_of_ticks_have_limits(server):
    refused = lambda text: pytest.raises(redis.ResponseError, match=text)
    for time in (-1, -(2**63), 2**63):
        with refused("Bad tick"):
            server.cf("RESERVE", "f", 100, "TTL", 60, "TICK", time)
    server.cf("RESERVE", "f", 100, "TTL", 60, "TICK", 2**63 - 1)
    for count, time, text in [(1, -1, "Bad time"), (-1, 1, "ticks"), (257, 1, "ticks"), (1, 2**63, "Bad time")]:
        with refused(text):
            server.cf("TICK", "f", count, time)
    server.cf("TICK", "f", 256, 2**63 - 1)
    # No tick is more than a tick away: the clock of an earlier primary may have been ahead, or this one was set back.
    was = server.digest("f")
    server.wait(lambda: server.digest("f") != was)
    for position, chunk in dump(server, "f"):
        server.cf("LOADCHUNK", "g", position, chunk)
    assert server.digest("g") == server.digest("f")
