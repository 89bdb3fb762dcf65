"""Two executors of their own that do not have the package: it is sent to them as an archive. One of them is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the application says, which is a process of its own: nothing of this one's environment is in its executors'."""
    folder = tmp_path_factory.mktemp("cluster")
    wheel = next((PYTHON / "target/wheels").glob("*.whl"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    application = Path(__file__).with_name("application.py")
    command = [sys.executable, application, wheel, folder]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, timeout=300)
    assert output.returncode == 0, output.stdout + output.stderr
    return json.loads(output.stdout.splitlines()[-1])


def urls(count):
    return [f"https://www.example-{number}.com/a/page" for number in range(count)]


def test_executors_have_the_package_from_the_archive(answers):
    assert answers["without the archive"] is False
    assert all("/cuckoo/concurrent_cuckoo_filter/" in place for place in answers["places"])


@pytest.mark.parametrize("build", ["undisturbed", "killed"])
def test_no_key_is_missing(answers, ask, build):
    answer = answers[build]
    assert answer["found"] == answer["items"]
    assert ask(answer["file"], urls(answer["items"])) == (answer["items"], 0, answer["inserted"])
    assert answer["inserted"] + answer["present"] == answer["items"]
    assert answer["temporary"] == []


def test_an_executor_was_killed(answers):
    assert answers["killed"]["executors lost"] >= 1
