"""The processes of an agent: how they start, what they are denied, and that they end when they are asked to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lamina.services.node_agent.pipe_sender import open_fifo
from tests.integration.node_agent.halves import Half
from tests.integration.scheduler.live import until
from tests.unit.clients.kube.kubeconfigs import config, saved

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

AGENT = ["-m", "lamina.cli.main", "node-agent", "-v", "3"]


@pytest.fixture
def access(tmp_path) -> Path:
    """Names a server where nobody is."""
    return saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))


@pytest.fixture
def started(tmp_path):
    """Starts an agent; it is gone at the end."""
    halves: list[Half] = []

    def start(*words: object) -> Half:
        half = Half(f"agent-{len(halves)}", [*AGENT, *words], tmp_path)
        halves.append(half)
        half.start()
        return half

    yield start
    for half in halves:
        half.kill()


def proc(pid: int, field: str) -> str:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return value.strip()
    return ""


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_reader_is_confined_before_it_looks_for_the_runtime(started, tmp_path):
    reader = started("--role", "reader", "--pipe", tmp_path / "pipe", "--socket", tmp_path / "none.sock")
    until(lambda: "runtime read failed, retrying" in reader.said(), 20, "the trouble")

    assert ("2", "1") == (proc(reader.pid, "Seccomp"), proc(reader.pid, "NoNewPrivs"))
    assert str(tmp_path / "none.sock") in reader.said()


@pytest.mark.parametrize("role", ["reader", "publisher", "both"])
def test_every_role_ends_within_two_seconds_of_being_asked(started, tmp_path, access, role):
    words = ["--role", role] + ([] if role == "both" else ["--pipe", tmp_path / "pipe"])
    words += ["--socket", tmp_path / "none.sock", "--kubeconfig", access, "--node", "n1", "--node-uid", "u1"]
    agent = started(*words)
    time.sleep(2.0)
    own = children(agent.pid)
    code, seconds = agent.end()

    assert (0, True) == (code, seconds < 2.0), agent.said()
    assert (1 if role == "both" else 0) == len(own)
    assert [] == [pid for pid in own if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in agent.said()


def test_an_agent_that_is_both_has_a_confined_child_that_dies_with_it(started, tmp_path, access):
    agent = started("--socket", tmp_path / "none.sock", "--kubeconfig", access, "--node", "n1", "--node-uid", "u1")
    until(lambda: "publisher connected" in agent.said(), 20, "the reader")
    (reader,) = children(agent.pid)

    assert "2" == proc(reader, "Seccomp")
    assert "0" == proc(agent.pid, "Seccomp")
    os.kill(agent.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{reader}").exists(), 10, "the end of the reader")


def test_a_child_that_dies_is_started_again(started, tmp_path, access):
    agent = started("--socket", tmp_path / "none.sock", "--kubeconfig", access, "--node", "n1", "--node-uid", "u1")
    until(lambda: "publisher connected" in agent.said(), 20, "the reader")
    (first,) = children(agent.pid)
    os.kill(first, signal.SIGKILL)
    until(lambda: agent.said().count("publisher connected") == 2, 20, "another reader")

    assert [first] != children(agent.pid)


def test_a_publisher_loads_neither_grpc_nor_aiohttp_and_a_reader_no_client_of_the_api_server():
    """Memory: each of them is a dozen megabytes on every node."""
    publisher = (
        "from lamina.services.node_agent import pipe_receiver, node_layers_client, node_layers_reporter, wiring, logs\n"
        "from lamina.services.node_agent import image_layers_writer, node_identity, reader_channels\n"
        "import lamina.clients.kube.transport, lamina.clients.kube.access"
    )
    reader = "from lamina.services.node_agent import pipe_sender, runtime_reader, confinement, wiring, logs"
    heavy = ["aiohttp", "grpc", "lamina.clients.kube", "numpy", "rich"]
    for words, loaded in ((publisher, ["lamina.clients.kube"]), (reader, [])):
        code = f"import sys\n{words}\nprint(*(name for name in {heavy} if name in sys.modules))"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

        assert loaded == found.stdout.split()


def test_no_port_is_opened(started, tmp_path, access):
    agent = started("--socket", tmp_path / "none.sock", "--kubeconfig", access, "--node", "n1", "--node-uid", "u1")
    until(lambda: "publisher connected" in agent.said(), 20, "the reader")
    listening = {line.split()[9] for name in ("tcp", "tcp6") for line in _table(name) if line.split()[3] == "0A"}
    mine = {
        str(one.readlink()) for pid in (agent.pid, *children(agent.pid)) for one in Path(f"/proc/{pid}/fd").iterdir()
    }

    assert set() == {f"socket:[{inode}]" for inode in listening} & mine


def _table(name: str) -> list[str]:
    return Path(f"/proc/net/{name}").read_text().splitlines()[1:]


def test_a_reader_waits_for_its_publisher_and_finds_the_next_one(started, tmp_path):
    path = tmp_path / "pipe"
    reader = started("--role", "reader", "--pipe", path, "--socket", tmp_path / "none.sock")
    until(lambda: "waiting for the publisher" in reader.said(), 20, "its patience")

    assert open_fifo(path) is None


WATCHED = """
from lamina.cli.node_agent.node_inventory import InventoryPrinter, watch_runtime
from lamina.services.node_agent import wiring
from tests.unit.services.node_agent.scripted import ScriptedSource, an_image, holding

async def open_source():
    one, two = holding(an_image(1)), holding(an_image(1), an_image(2))
    return ScriptedSource(one, one, two, every=0.1)

wiring.confined()
wiring.run(watch_runtime(open_source, InventoryPrinter("n1", "json")))
"""


def test_watching_prints_a_line_for_every_change_until_it_is_asked_to_stop(tmp_path):
    watching = Half("watching", ["-c", WATCHED], tmp_path)
    watching.start()
    until(lambda: len(watching.said().splitlines()) == 2, 20, "two lines")
    time.sleep(1.5)
    code, seconds = watching.end()

    assert (0, True) == (code, seconds < 2.0)
    assert [1, 2] == [len(json.loads(line)["images"]) for line in watching.said().splitlines()]
