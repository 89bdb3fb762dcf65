"""Real servers with the module: one of each kind that is installed."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

MODULE = Path(__file__).parents[1] / f"target/{os.environ.get('PROFILE', 'release')}/libcuckoo_valkey.so"
# The Python package, where python/test.sh has built it.
sys.path.append(str(Path(__file__).parents[3] / "python/target/site"))
# Names of programs, or paths, separated by spaces.
SERVERS = os.environ.get("SERVERS", "redis-server").split()


def free_port():
    """A port; of a cluster, nodes also talk by the one that is 10,000 higher."""
    while True:
        with socket.socket() as bound, socket.socket() as higher:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            try:
                higher.bind(("127.0.0.1", port + 10_000))
                return port
            except (OSError, OverflowError):
                pass


# Faster than a client, which packs each item.
INSERT = """
    local to = tonumber(ARGV[2])
    for from = tonumber(ARGV[1]), to - 1, 1000 do
        local items = {}
        for item = from, math.min(from + 1000, to) - 1 do items[#items + 1] = item end
        for _, result in ipairs(redis.call('CF.INSERT', KEYS[1], 'ITEMS', unpack(items))) do assert(result == 1) end
    end
"""


class Server:
    """A process, and a client of it as `self.client`."""

    def __init__(self, program, folder, *options, protocol=2, dump_idle=60, module=()):
        self.program, self.folder, self.options, self.protocol = program, Path(folder), options, protocol
        self.port, self.process = free_port(), None
        self.module = module or (MODULE, "export-dir", self.folder / "exports", "dump-idle", dump_idle)
        (self.folder / "exports").mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self):
        arguments = ["--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--loglevel", "notice"]
        arguments += ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--logfile", self.folder / "log"]
        # Else, the write of the last commands may wait for a sync of earlier ones when the server is killed.
        arguments += ["--appendfsync", "always"]
        # The backlog is memory of the server: Valkey's own default would hide what a test looks for.
        arguments += ["--repl-backlog-size", "1mb", "--loadmodule", *self.module, *self.options]
        # Where the server uses the allocator of the system, each thread would reserve 64 MiB of address space.
        environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
        self.process = subprocess.Popen([self.program, *map(str, arguments)], stdout=subprocess.DEVNULL, env=environment)
        self.client = self.connect(self.protocol)
        self.wait(lambda: self.client.ping())

    def connect(self, protocol=2):
        return redis.Redis(port=self.port, protocol=protocol, socket_timeout=120)

    def wait(self, ready):
        """Waits until it is so. A server that has ended fails the test, as does one that never gets there."""
        begun = time.monotonic()
        while True:
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < begun + 120
            try:
                if ready():
                    return
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                pass
            time.sleep(0.01)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def cf(self, command, *arguments):
        return self.client.execute_command("CF." + command, *arguments)

    def insert(self, key, begin, end):
        """Inserts the numbers of a range."""
        self.client.eval(INSERT, 1, key, begin, end)

    def info(self, key="f"):
        # Not by a client whose replies redis-py has turned into objects.
        reply = self.connect(self.protocol).execute_command("CF.INFO", key, "FULL")
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
        return {name.decode(): value for name, value in pairs}

    def digest(self, key="f"):
        return self.client.execute_command("DEBUG", "DIGEST-VALUE", key)[0]

    def address_space(self):
        """The largest address space of the server so far, in bytes: it also counts what was allocated and never touched."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmPeak:")[1].split()[0]) << 10

    def in_step(self, replica):
        """Waits until the replica has all that was written here."""
        self.wait(lambda: self.client.info("replication")["connected_slaves"] > 0)
        replica.wait(lambda: replica.client.info("replication")["master_link_status"] == "up")
        end = self.client.info("replication")["master_repl_offset"]
        replica.wait(lambda: replica.client.info("replication")["slave_repl_offset"] >= end)

    def follow(self, primary):
        self.client.replicaof("127.0.0.1", primary.port)
        primary.in_step(self)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self, *options):
        self.kill()
        # A child of the killed server may still hold the port.
        self.port = free_port()
        self.options += options
        self.start()


@pytest.fixture(params=SERVERS, ids=lambda path: Path(path).name)
def start(request, tmp_path):
    """Starts a server of a kind, with further options; all end with the test."""
    if not shutil.which(request.param):
        pytest.fail(f"{request.param} is not installed")
    started = []

    def start(*options, **more):
        server = Server(request.param, tmp_path / str(len(started)), *options, **more)
        started.append(server)
        return server

    yield start
    for server in started:
        ended_early = server.process.poll()
        server.kill()
        log = server.log()
        assert "panicked" not in log and "CRITICAL" not in log, log
        assert ended_early in (None, -9), log


@pytest.fixture
def server(start):
    return start()
