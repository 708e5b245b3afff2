"""
Whatever becomes of an extender, pods are placed; and afterwards it can be seen that they were placed without it.

kube-scheduler is real, and so is the extender. Where questions are passed over, the scheduler's own configuration allows
it: `ignorable`, which scoring is by nature and a filter if somebody says so.
"""

import contextlib
import http.client
import json
import socket
import ssl
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from testbed import MissingError, Testbed
from testbed.certificates import Authority, write
from testbed.fixtures import do_without
from tests.integration.extender import between
from tests.integration.extender.between import Between
from tests.integration.extender.processes import PODS, Extender, Scheduler, empty, install
from tests.integration.scheduler.live import until
from tests.integration.scheduler.truth import Arrivals, add_pods, pod

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kube-scheduler")]

NODES: Final = ("a", "b", "c")
KINDS: Final = [
    pytest.param(("congestion", {}), id="scores only"),
    pytest.param(("safe", {"ignorable": True}), id="filters and may be passed over"),
]
"""Agents, and what is said about them in the scheduler's configuration."""
QUICK: Final = {"httpTimeout": "1s"}
"""Long enough for a busy machine, and not for a test that waits for many of them."""


@pytest.fixture(scope="module")
def plane() -> Iterator[Testbed]:
    try:
        started = Testbed.start()
    except MissingError as error:
        do_without(error)
    with started:
        install(started)
        yield started


@pytest.fixture
def bed(plane: Testbed) -> Testbed:
    """A cluster of three nodes, whatever the test before has done to it."""
    if not plane.parts["kube-apiserver"].running:
        plane.parts["kube-apiserver"].start()
    empty(plane)
    plane.add_nodes({"name": name} for name in NODES)
    for name, factor in zip(NODES, (9, 50, 90), strict=True):
        annotate(plane, name, **{"congestion-factor": str(factor), "mean-free-cpu": "7000", "std-free-cpu": "100"})
    return plane


def annotate(bed: Testbed, node: str, **notes: str) -> None:
    bed.api("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": notes}})


def placed(bed: Testbed, scheduler: str, *names: str, within: float = 60.0) -> None:
    """Let pods come, and wait until every one of them is on a node."""
    add_pods(bed, [pod(name, scheduler=scheduler) for name in names])
    until(lambda: not waiting(bed, scheduler), within, f"{names} are bound")


def waiting(bed: Testbed, scheduler: str) -> list[str]:
    pods = bed.api("GET", PODS)["items"]
    ours = [one for one in pods if one["spec"]["schedulerName"] == scheduler]
    return [one["metadata"]["name"] for one in ours if not one["spec"].get("nodeName")]


def counted(extender: Extender, *, with_answer: int, without: int) -> None:
    """Wait until the extender says so many pods were bound with and without its answer."""
    wanted = (with_answer, without)

    def found() -> tuple[int, int]:
        return extender.bound(answered=True), extender.bound(answered=False)

    with contextlib.suppress(AssertionError):
        until(lambda: found() == wanted, 15.0, "counted")
    assert wanted == found()


# -- the process -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pods_are_placed_while_an_extender_hangs_and_it_says_so_afterwards(bed, kind):
    agents, changes = kind
    with Extender(bed, agents) as extender, Scheduler(bed, "asks", extender.config(**QUICK, **changes)):
        placed(bed, "my-scheduler", "before")
        counted(extender, with_answer=1, without=0)

        extender.pause()
        placed(bed, "my-scheduler", "p1", "p2", "p3")
        extender.resume()

        counted(extender, with_answer=1, without=3)
        assert extender.metric("lamina_extender_abandoned_total") >= 1
        # Three pods cost at least a time-out each.
        assert 1.0 < extender.metric("lamina_extender_stalled_seconds_total") < 60.0

        placed(bed, "my-scheduler", "after")
        counted(extender, with_answer=2, without=3)
        assert extender.complaints() == []


@pytest.mark.parametrize("kind", KINDS)
def test_pods_are_placed_while_an_extender_is_dead_and_it_answers_again_when_it_is_back(bed, kind):
    agents, changes = kind
    with Extender(bed, agents) as extender, Scheduler(bed, "asks", extender.config(**QUICK, **changes)):
        placed(bed, "my-scheduler", "before")

        extender.kill()
        placed(bed, "my-scheduler", "p1", "p2", "p3")
        extender.start()
        placed(bed, "my-scheduler", "after")

        # What came to pass before a process began it cannot have counted; that it was away is for its scraper to see.
        counted(extender, with_answer=1, without=0)
        assert extender.complaints() == []


def test_a_filter_that_may_not_be_passed_over_makes_pods_wait_until_it_is_back(bed):
    with Extender(bed, "safe") as extender, Scheduler(bed, "asks", extender.config(**QUICK)):
        extender.kill()
        add_pods(bed, [pod("p1", scheduler="my-scheduler")])
        time.sleep(3.0)
        assert waiting(bed, "my-scheduler") == ["p1"]

        extender.start()
        # Nothing tells kube-scheduler that it is back: it tries again after its own back-off.
        until(lambda: not waiting(bed, "my-scheduler"), 60.0, "p1 is bound")
        counted(extender, with_answer=1, without=0)


def test_an_extender_that_restarts_in_the_middle_of_a_stream_costs_no_pod(bed):
    with Extender(bed, "safe") as extender, Scheduler(bed, "asks", extender.config(**QUICK, ignorable=True)):
        names = [f"p{number:03}" for number in range(90)]
        arrivals = Arrivals(bed, [pod(name, scheduler="my-scheduler") for name in names], over=9.0)
        time.sleep(3.0)
        extender.restart()
        arrivals.wait()
        until(lambda: not waiting(bed, "my-scheduler"), 60.0, "all are bound")
        placed(bed, "my-scheduler", "last")

        until(lambda: extender.bound(answered=True) > 10, 15.0, "pods are placed with answers of the new process")
        assert extender.bound(answered=True) + extender.bound(answered=False) <= len(names) + 1
        assert extender.complaints() == []


# -- the way to it -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=KINDS)
def way(plane: Testbed, request: pytest.FixtureRequest) -> Iterator[tuple[Extender, Between]]:
    """An extender, and somebody between it and its scheduler."""
    agents, changes = request.param
    name = f"asks-{agents}-from-afar"
    with Extender(plane, agents, name, scheduler=name) as extender, Between(extender.port) as there:
        config = extender.config(**QUICK, **changes, urlPrefix=there.prefix)
        with Scheduler(plane, f"{name}-scheduler", config) as scheduler:
            yield extender, there
            assert scheduler.running
            assert extender.complaints() == []


@pytest.mark.parametrize("manner", [between.SLOW, between.GARBAGE, between.OTHER, between.ERROR, between.CUT])
def test_pods_are_placed_when_something_else_answers_and_the_extender_sees_it(bed, way, manner):
    extender, there = way
    there.asked, there.manner = 0, between.PASS
    before, without = extender.bound(answered=True), extender.bound(answered=False)
    placed(bed, extender.scheduler, "before")
    counted(extender, with_answer=before + 1, without=without)

    there.manner = manner
    placed(bed, extender.scheduler, "p1", "p2")
    assert there.asked >= 2
    counted(extender, with_answer=before + 1, without=without + 2)

    there.manner = between.PASS
    placed(bed, extender.scheduler, "after")
    counted(extender, with_answer=before + 2, without=without + 2)


@pytest.mark.parametrize(
    ("path", "abandoned"),
    [
        pytest.param("/scheduler/priorities/congestion", 1, id="a question"),
        pytest.param("/scheduler/no/such/verb", 0, id="what nobody answers is no question"),
    ],
)
def test_whoever_hangs_up_in_the_middle_of_a_question_takes_nobody_elses_answer_away(bed, path, abandoned):
    with Extender(bed, "congestion") as extender:
        asks = bed.api("POST", PODS, pod("p", scheduler="my-scheduler"))
        extender.levels("congestion", asks, NODES)
        others = extender.metric("lamina_extender_connections")
        with socket.create_connection(("127.0.0.1", extender.port)) as caller:
            caller.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{{".encode())
            until(lambda: extender.metric("lamina_extender_connections") == others + 1, 10.0, "it is there")
        until(lambda: extender.metric("lamina_extender_connections") == others, 10.0, "it is seen that it hung up")
        assert abandoned == extender.metric("lamina_extender_abandoned_total")

        target = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"kind": "Node", "name": "a"},
        }
        bed.api("POST", f"{PODS}/p/binding", target)
        counted(extender, with_answer=1, without=0)


# -- an agent ----------------------------------------------------------------------------------------------------------

MOODY: Final = """
import pathlib, time
import numpy as np
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent

FOLDER = pathlib.Path(__file__).parent

class Moody:
    name = "Moody"

    def __init__(self, context, args):
        pass

    def score(self, state, pod, nodes):
        if (FOLDER / "slow").exists():
            time.sleep(2.0)
        if (FOLDER / "broken").exists():
            raise RuntimeError("in no mood")
        return np.zeros(len(nodes), dtype=np.int64)

AGENT = SchedulingAgent(name="moody", summary="Works, mostly.", plugins=(Moody,), priorities={"moody": "Moody"})
"""


@pytest.fixture
def moody(tmp_path: Path) -> Path:
    """An installed distribution with an agent that is slow or broken when told to be."""
    (tmp_path / "moody.py").write_text(textwrap.dedent(MOODY), encoding="utf-8")
    information = tmp_path / "moody-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: moody\nVersion: 1\n", encoding="utf-8")
    (information / "entry_points.txt").write_text("[lamina.agents]\nmoody = moody:AGENT\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("mood", ["slow", "broken"])
def test_pods_are_placed_when_an_agent_is_slow_or_breaks_and_the_extender_says_so(bed, moody, mood):
    with (
        Extender(bed, "moody", environment={"PYTHONPATH": str(moody)}) as extender,
        Scheduler(bed, "asks", extender.config()),
    ):
        placed(bed, "my-scheduler", "before")
        counted(extender, with_answer=1, without=0)

        (moody / mood).touch()
        placed(bed, "my-scheduler", "p1", "p2", "p3")
        (moody / mood).unlink()
        counted(extender, with_answer=1, without=3)
        failed = extender.metric('lamina_extender_answers_total{result="failed",verb="priorities/moody"}')
        abandoned = extender.metric("lamina_extender_abandoned_total")
        assert (failed > 0, abandoned > 0) == (mood == "broken", mood == "slow")
        assert any("in no mood" in one for one in extender.complaints()) == (mood == "broken")

        placed(bed, "my-scheduler", "after")
        counted(extender, with_answer=2, without=3)


# -- the API server ----------------------------------------------------------------------------------------------------


def test_answers_go_on_while_the_api_server_is_away_and_what_is_known_catches_up_when_it_is_back(bed):
    server = bed.parts["kube-apiserver"]
    with Extender(bed, "congestion") as extender:

        def levels() -> dict[str, int]:
            return extender.levels("congestion", pod("asked"), list(NODES))

        # Points 91, 50, 10 are levels 9, 5, 1, of which answers leave out what all have.
        known = {"a": 8, "b": 4, "c": 0}
        until(lambda: levels() == known, 15.0, "annotations were seen")
        server.kill()
        for _ in range(20):
            assert known == levels()
            time.sleep(0.1)
        assert extender.is_ready()
        server.start()
        annotate(bed, "c", **{"congestion-factor": "0"})
        bed.add_node("d")
        annotate(bed, "d", **{"congestion-factor": "20"})
        # 91, 50, 100 and 80 points.
        until(lambda: levels() == {"a": 4, "b": 0, "c": 5}, 60.0, "the new annotation was seen")
        until(lambda: extender.metric("lamina_extender_nodes ") == 4, 60.0, "the new node was seen")
        assert extender.complaints() == []


# -- certificates ------------------------------------------------------------------------------------------------------


class Certified:
    """An authority, the extender's certificate in files that are replaced, and the scheduler's."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "authority")
        self.cert, self.key = folder / "tls.crt", folder / "tls.key"
        self.scheduler_cert, self.scheduler_key = self._client("kube-scheduler", folder)
        self._stranger = self._client("somebody-else", folder)
        self.rotate()

    def _client(self, name: str, folder: Path) -> tuple[Path, Path]:
        paths = folder / f"{name}.crt", folder / f"{name}.key"
        for path, data in zip(paths, self.authority.client(name), strict=True):
            write(path, data)
        return paths

    def rotate(self) -> None:
        """Put a new certificate and its key in the place of the old ones, one after the other."""
        for fresh, path in zip(self.authority.server(), (self.cert, self.key), strict=True):
            fresh.replace(path)

    @property
    def words(self) -> list[str]:
        """What the extender is told."""
        files = ["--tls-cert", self.cert, "--tls-key", self.key, "--tls-client-ca", self.authority.ca_file]
        return [*map(str, files), "--client-name", "kube-scheduler"]

    @property
    def scheduler(self) -> Mapping[str, Any]:
        """What the scheduler is told; a manifest mounts the files elsewhere."""
        files = {"caFile": self.authority.ca_file, "certFile": self.scheduler_cert, "keyFile": self.scheduler_key}
        return {"tlsConfig": {name: str(path) for name, path in files.items()}}

    def context(self, *, stranger: bool = False, nobody: bool = False) -> ssl.SSLContext:
        """How to ask: as the scheduler, as somebody else, or as nobody."""
        context = ssl.create_default_context(cafile=str(self.authority.ca_file))
        if not nobody:
            context.load_cert_chain(*(self._stranger if stranger else (self.scheduler_cert, self.scheduler_key)))
        return context


class Asker:
    """Asks without a pause over one connection, and over a new one whenever the server ends it in order."""

    def __init__(self, extender: Extender, context: ssl.SSLContext) -> None:
        self.answered, self.connections = 0, 0
        self.failures: list[str] = []
        self.shown: set[bytes] = set()
        """The server's certificates."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(extender.port, context), daemon=True)

    def __enter__(self) -> "Asker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self, port: int, context: ssl.SSLContext) -> None:
        body = json.dumps({"Pod": pod("asked"), "Nodes": None, "NodeNames": list(NODES)}).encode()
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10.0, context=context)
        while not self._stop.is_set():
            try:
                if getattr(connection, "sock", None) is None:
                    connection.connect()
                    self.connections += 1
                    self.shown.add(connection.sock.getpeercert(binary_form=True))
                connection.request("POST", "/scheduler/priorities/congestion", body=body)
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    self.failures.append(str(response.status))
                self.answered += 1
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
            time.sleep(0.005)
        connection.close()


def test_certificates_are_replaced_under_load_without_a_failed_question(bed, tmp_path):
    certified = Certified(tmp_path)
    with (
        Extender(bed, "congestion", words=certified.words, tls=certified.context()) as extender,
        Scheduler(bed, "asks", extender.config(**QUICK, **certified.scheduler)),
        Asker(extender, certified.context()) as asker,
    ):
        names = [f"p{number:03}" for number in range(120)]
        arrivals = Arrivals(bed, [pod(name, scheduler="my-scheduler") for name in names], over=12.0)
        for rotation in (1, 2):
            time.sleep(1.0)
            certified.rotate()
            until(lambda: len(asker.shown) == rotation + 1, 30.0, "the new certificate is shown")  # noqa: B023 - at once
        arrivals.wait()
        until(lambda: not waiting(bed, "my-scheduler"), 60.0, "all are bound")

        counted(extender, with_answer=len(names), without=0)
        assert asker.failures == []
        assert (asker.connections, asker.answered > 100) == (3, True)
        assert extender.metric('lamina_extender_certificate_reloads_total{ok="true"}') == 2
        assert extender.complaints() == []


def test_whoever_shows_no_certificate_or_another_name_is_turned_away(bed, tmp_path):
    certified = Certified(tmp_path)
    with Extender(bed, "congestion", words=certified.words, tls=certified.context()) as extender:
        extender._tls = certified.context(stranger=True)
        status, words = extender.send("GET", "/version")
        assert (status, b"somebody-else" in words) == (403, True)

        extender._tls = certified.context(nobody=True)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            extender.send("GET", "/version")

        extender._tls = certified.context()
        assert extender.metric('lamina_extender_refused_total{reason="bad client name"}') == 1
        assert extender.metric('lamina_extender_refused_total{reason="bad handshake"}') >= 1
