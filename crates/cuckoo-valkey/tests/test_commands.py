"""Commands, as the clients of RedisBloom know them."""

import pytest
import redis
import valkey


def error(text):
    return pytest.raises(redis.ResponseError, match=text)


def test_items_are_added_found_counted_and_deleted(server):
    cf = server.client.cf()
    assert cf.create("f", 1000)
    assert cf.add("f", "a") == 1 and cf.add("f", "a") == 1
    assert (cf.addnx("f", "a"), cf.addnx("f", "b")) == (0, 1)
    assert (cf.exists("f", "a"), cf.exists("f", "c")) == (1, 0)
    assert cf.mexists("f", "a", "b", "c") == [1, 1, 0]
    assert [cf.count("f", item) for item in "abc"] == [2, 1, 0]
    assert [cf.delete("f", "a") for _ in range(3)] == [1, 1, 0]
    assert cf.exists("f", "a") == 0
    assert cf.count("nothing", "a") == cf.exists("nothing", "a") == 0
    assert cf.mexists("nothing", "a", "b") == [0, 0]


def test_insert_creates_with_a_capacity_and_not_with_nocreate(server):
    cf = server.client.cf()
    assert cf.insert("f", ["a", "b", "a"], capacity=500) == [1, 1, 1]
    assert cf.insertnx("f", ["a", "c", "c"]) == [0, 1, 0]
    assert server.info()["Capacity"] == 500
    with error("not found"):
        cf.insert("missing", ["a"], nocreate=True)
    assert not server.client.exists("missing")
    with error("exclude each other"):
        server.cf("INSERT", "missing", "NOCREATE", "CAPACITY", 5, "ITEMS", "a")
    with error("wrong number"):
        server.cf("INSERT", "f", "ITEMS")
    with error("unknown option 'X'"):
        server.cf("INSERT", "f", "X", "ITEMS", "a")
    assert server.cf("ADD", "new", "a") == 1
    assert server.info("new")["Capacity"] == 1024


def test_items_are_any_bytes(server):
    items = [b"", b"\0", b"\xff\xfe", b"\r\n", b"x" * 100_000, "äöü".encode()]
    assert server.cf("INSERT", "f", "ITEMS", *items) == [1] * 6
    assert server.cf("MEXISTS", "f", *items) == [1] * 6
    assert [server.cf("DEL", "f", item) for item in items] == [1] * 6
    assert server.cf("MEXISTS", "f", *items) == [0] * 6


def test_parameters_have_limits_and_are_told(server):
    reserve = lambda *options: server.cf("RESERVE", "f", *options)
    for options, text in [
        ((0,), "Bad capacity"),
        (("x",), "Bad capacity"),
        ((-1,), "Bad capacity"),
        ((100, "ERROR", 1), "false-positive rate of 1"),
        ((100, "ERROR", "nan"), "false-positive rate of NaN"),
        ((100, "BUCKETSIZE", 0), "bucket size"),
        ((100, "BUCKETSIZE", 256), "bucket size"),
        ((100, "MAXITERATIONS", 0), "max iterations"),
        ((100, "MAXITERATIONS", 65536), "max iterations"),
        ((100, "EXPANSION", -1), "expansion"),
        ((100, "EXPANSION", 32769), "expansion"),
        ((100, "SEED", -1), "seed"),
        ((100, "TTL", 0), "time to live"),
        ((100, "NEW", 1), "unknown option 'NEW'"),
        ((100, "SEED"), "wrong number"),
        ((2**62, "EXPANSION", 0), "failed to allocate the 7[0-9]{18} bytes of the filter"),
        ((10**16,), "capacity of 10000000000000000, for up to 10240000000000000000 items, does not fit"),
    ]:
        with error(text):
            reserve(*options)
        assert not server.client.exists("f")
    reserve(100, "error", 0.01, "BUCKETSIZE", 4, "MAXITERATIONS", 50, "EXPANSION", 2, "SEED", 2**64 - 1)
    info = server.info()
    asked = {"Bucket size": 4, "Max iterations": 50, "Expansion rate": 2, "Capacity": 100, "Max capacity": 102400}
    assert {name: info[name] for name in asked} == asked
    assert int(info["Seed"]) == 2**64 - 1 and float(info["Error rate"]) == 0.01
    assert info["Number of filters"] == 1 and info["Number of items inserted"] == 0
    # Some clients refuse other fields than RedisBloom's.
    reply = server.cf("INFO", "f")
    assert [field.decode() for field in reply[::2]] == list(info)[:8] and list(info)[7:9] == ["Max iterations", "Capacity"]
    with error("unknown option 'ALL'"):
        server.cf("INFO", "f", "ALL")
    with error("item exists"):
        reserve(100)


def test_errors_have_texts_that_clients_know(server):
    server.client.set("text", "x")
    for command in ["ADD", "ADDNX", "EXISTS", "MEXISTS", "DEL", "COUNT"]:
        with error("WRONGTYPE"):
            server.cf(command, "text", "a")
        with error("wrong number"):
            server.cf(command, "f")
    for command in ["INFO", "DEBUG"]:
        with error("not found"):
            server.cf(command, "f")
        with error("WRONGTYPE"):
            server.cf(command, "text")
    with error("Not found"):
        server.cf("DEL", "f", "a")
    with error("Cuckoo filter was not found"):
        server.cf("COMPACT", "f")
    server.cf("ADD", "f", "a")
    assert server.cf("COMPACT", "f") == b"OK"
    assert server.client.cf().info("f").insertedNum == 1
    assert b"items:1 deletes:0 filters:1" in server.cf("DEBUG", "f")


def test_a_fixed_filter_is_full_and_a_growing_one_keeps_its_rate(server):
    server.cf("RESERVE", "fixed", 100, "EXPANSION", 0)
    stored = 0
    with error("Filter is full"):
        for stored in range(1000):
            server.cf("ADD", "fixed", stored)
    assert stored >= 100
    results = server.cf("INSERT", "fixed", "ITEMS", *range(1000, 1500))
    assert set(results) <= {1, -1} and -1 in results
    assert server.cf("MEXISTS", "fixed", *range(stored)) == [1] * stored

    server.cf("RESERVE", "grows", 1000, "ERROR", 0.001, "SEED", 7)
    server.insert("grows", 0, 100_000)
    assert server.cf("MEXISTS", "grows", *range(100_000)) == [1] * 100_000
    wrong = sum(server.cf("MEXISTS", "grows", *range(10**6, 10**6 + 200_000)))
    assert wrong < 300, wrong


def test_an_item_may_be_added_any_number_of_times(server):
    server.cf("RESERVE", "f", 1000)
    repeat = "for _ = 1, ARGV[2] do assert(redis.call(ARGV[1], KEYS[1], 'again') == 1) end"
    server.client.eval(repeat, 1, "f", "CF.ADD", 140_000)
    assert server.cf("COUNT", "f", "again") == 140_000
    info = server.info()
    assert info["Number of items inserted"] == 140_000 and info["Copies beside the filter"] == 139_998
    server.client.eval(repeat, 1, "f", "CF.DEL", 140_000 - 3)
    assert (server.cf("COUNT", "f", "again"), server.cf("EXISTS", "f", "again")) == (3, 1)
    assert [server.cf("DEL", "f", "again") for _ in range(4)] == [1, 1, 1, 0]


def test_items_that_come_often_leave_room_for_others(server):
    """Copies of two items that share a bucket do not fill it."""
    often = [f"often {number}" for number in range(50)]
    once = [f"once {number}" for number in range(950)]
    for options in [(), ("EXPANSION", 0), ("TTL", 3600)]:
        server.client.flushall()
        server.cf("RESERVE", "f", 1000, "SEED", 1, *options)
        for _ in range(12):
            assert server.cf("INSERT", "f", "ITEMS", *often) == [1] * 50
        assert server.cf("INSERT", "f", "ITEMS", *once) == [1] * 950
        if "TTL" in options:
            assert [server.cf("DEL", "f", "often 0") for _ in range(3)] == [1, 1, 0]
            continue
        assert server.cf("COUNT", "f", "often 0") == 12
        assert [server.cf("DEL", "f", "often 0") for _ in range(13)] == [1] * 12 + [0]
        assert server.info()["Number of items inserted"] == 50 * 12 + 950 - 12


def test_replies_of_resp3(start):
    server = start(protocol=3)
    assert server.cf("ADD", "f", "a") is True and server.cf("ADDNX", "f", "a") is False
    assert server.cf("EXISTS", "f", "a") is True and server.cf("MEXISTS", "f", "a", "b") == [True, False]
    assert server.cf("INSERTNX", "f", "ITEMS", "a", "b") == [0, 1] and server.cf("COUNT", "f", "a") == 1
    assert server.cf("DEL", "f", "a") is True
    info = server.info()
    assert info["Number of items deleted"] == 1


def test_commands_are_of_the_categories_that_they_declare(server):
    # Redis 7.0 has no categories for commands of modules.
    old = server.client.info("server")["redis_version"] < "7.2"
    granted = {"commands": ["+cf.exists"]} if old else {"categories": ["+@read"]}
    server.client.acl_setuser("reader", enabled=True, nopass=True, keys="*", **granted)
    server.cf("ADD", "f", "a")
    reader = redis.Redis(port=server.port, username="reader", password="x")
    assert reader.execute_command("CF.EXISTS", "f", "a") == 1
    for command in [("ADD", "f", "b"), ("EXPORT", "f", "x"), ("TICK", "f", 1, 1), ("MERGE", "g", "f")]:
        with pytest.raises(redis.exceptions.NoPermissionError):
            reader.execute_command("CF." + command[0], *command[1:])
    # A pattern of keys to read permits the commands that only read them.
    server.client.acl_setuser("patterns", enabled=True, nopass=True, keys=["%R~f", "%W~g"], commands=["+@all"])
    patterns = redis.Redis(port=server.port, username="patterns", password="x")
    for command in [("EXISTS", "f", "a"), ("MEXISTS", "f", "a"), ("COUNT", "f", "a"), ("INFO", "f"), ("SCANDUMP", "f", 0)]:
        assert patterns.execute_command("CF." + command[0], *command[1:])
    for command in [("ADD", "f", "b"), ("MERGE", "f", "f"), ("EXISTS", "g", "a")]:
        with pytest.raises(redis.exceptions.NoPermissionError):
            patterns.execute_command("CF." + command[0], *command[1:])
    server.client.acl_setuser("patterns", keys=["%RW~g"])
    assert patterns.execute_command("CF.MERGE", "g", "f") == b"OK"
    info = server.client.execute_command("COMMAND", "INFO", "cf.add", "cf.mexists", "cf.export")
    assert [info[name]["arity"] for name in ["cf.add", "cf.mexists", "cf.export"]] == [3, -3, 3]


def test_transactions_and_scripts(server):
    with server.client.pipeline() as pipeline:
        pipeline.execute_command("CF.ADD", "f", "a")
        pipeline.execute_command("CF.EXISTS", "f", "a")
        assert pipeline.execute() == [1, 1]
    assert server.client.eval("return redis.call('CF.COUNT', KEYS[1], 'a')", 1, "f") == 1
    with error("transaction or a script"):
        server.client.eval("return redis.call('CF.EXPORT', KEYS[1], 'x')", 1, "f")


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])
def test_clients_speak_with_the_module(start, library, protocol):
    server = start()
    client = getattr(library, "Redis" if library is redis else "Valkey")(port=server.port, protocol=protocol)
    cf = client.cf()
    assert cf.create("f", 1000, expansion=1, bucket_size=2, max_iterations=20)
    assert cf.add("f", "a") == 1 and cf.addnx("f", "a") == 0
    assert cf.insert("f", ["b", "b"]) == [1, 1] and cf.insertnx("f", ["b", "c"]) == [0, 1]
    assert cf.exists("f", "a") == 1 and cf.mexists("f", "a", "x") == [1, 0]
    assert cf.count("f", "b") == 2 and cf.delete("f", "b") == 1
    info = cf.info("f")
    inserted = info[b"Number of items inserted"] if isinstance(info, dict) else info.insertedNum
    assert inserted == 3
    position = 0
    while True:
        position, chunk = cf.scandump("f", position)
        if not position:
            break
        assert cf.loadchunk("g", position, chunk)
    assert cf.mexists("g", "a", "b", "c", "x") == [1, 1, 1, 0]
    with pytest.raises(library.exceptions.ResponseError, match="exists"):
        cf.create("f", 1000)
    with client.pipeline() as pipeline:
        pipeline.execute_command("CF.ADD", "f", "d")
        pipeline.execute_command("CF.MEXISTS", "f", "d", "e")
        assert pipeline.execute() == [1, [1, 0]]
