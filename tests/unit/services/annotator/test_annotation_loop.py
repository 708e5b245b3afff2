"""Rounds: bounded writes, nothing twice, troubles said once, and none of them the end."""

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lamina.clients.kube.errors import ApiError
from lamina.clients.prometheus.errors import PrometheusError
from lamina.model.node import Node
from lamina.services.annotator.annotation_loop import AnnotationLoop
from lamina.services.annotator.annotation_plan import WriteRules
from lamina.services.annotator.annotation_writer import AnnotationWriter
from lamina.services.annotator.node_values import DesiredNumber, DesiredValues
from lamina.testing import a_node
from tests.unit.services.fakes import leaping

NOON = 1772366400.0
RULES = WriteRules(keys=("a",), stamp="at")
DOWN = PrometheusError("p", "unreachable", "no connection")


class Cluster:
    """Nodes, and the API server that keeps their annotations."""

    def __init__(self, count: int) -> None:
        self.all = {f"n{n}": a_node(f"n{n}", uid=f"u{n}") for n in range(count)}
        self.follows = True
        self.writes: list[tuple[float, str]] = []
        self.refusals: list[Exception] = []
        self.refuse: set[str] = set()
        self.status = 422
        self.tries = 0

    def nodes(self) -> dict[str, Node]:
        return dict(self.all)

    async def request(self, method, path, *, query=None, body=None, content_type="", timeout=0.0) -> bytes:
        assert ("PATCH", "application/merge-patch+json") == (method, content_type)
        if self.refusals:
            raise self.refusals.pop(0)
        name = path.rpartition("/")[2]
        self.tries += 1
        if name in self.refuse:
            raise ApiError(f"PATCH {path}", self.status, "Invalid", "metadata.annotations: Too long")
        self.writes.append((asyncio.get_running_loop().time(), name))
        node = self.all[name]
        merged: dict[str, Any] = {**node.annotations, **json.loads(body)["metadata"]["annotations"]}
        kept = {key: value for key, value in merged.items() if value is not None}
        self.all[name] = msgspec.structs.replace(node, annotations=kept)
        return b"{}"


class Known:
    """The same number for all nodes."""

    def __init__(self, value: int = 100) -> None:
        self.value = value
        self.remark = ""
        self.failure: Exception | None = None
        self.lacking: set[str] = set()
        self.meanwhile: Callable[[], object] = lambda: None

    async def values(self, nodes, now):
        self.meanwhile()
        if self.failure is not None:
            raise self.failure
        return {
            name: DesiredValues({"a": DesiredNumber(self.value, 10)}, now) for name in nodes if name not in self.lacking
        }

    async def close(self) -> None:
        """Nothing is open."""


def play(cluster, known, *steps, every=60.0, per_second=5.0):
    """Let rounds go on for so many seconds between steps."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        rng = random.Random(1)
        writer = AnnotationWriter(cluster, per_second, rng)
        rounds = AnnotationLoop(cluster, known, writer, RULES, rng=rng, wall=lambda: NOON + loop.time() - 1000.0)
        running = asyncio.create_task(rounds.run(every, per_second))
        for step in steps:
            if callable(step):
                step()
            else:
                await asyncio.sleep(step)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    leaping(story())


def test_every_node_is_written_once_and_then_not_again_until_it_is_old():
    cluster = Cluster(20)
    play(cluster, Known(), 580)
    assert 20 == len(cluster.writes)

    play(cluster, Known(), 1)
    assert 20 == len(cluster.writes)


def test_numbers_that_do_not_move_are_refreshed_after_ten_minutes():
    cluster = Cluster(3)
    play(cluster, Known(), 1400)

    assert 9 == len(cluster.writes)


def test_a_number_that_moves_is_written_in_the_next_round():
    cluster, known = Cluster(3), Known()
    play(cluster, known, 30, lambda: setattr(known, "value", 105), 70, lambda: setattr(known, "value", 110), 70)

    assert 6 == len(cluster.writes)
    assert ["110"] * 3 == [node.annotations["a"] for node in cluster.nodes().values()]


def test_a_round_writes_no_more_than_fits_before_the_next():
    cluster = Cluster(100)
    play(cluster, Known(), 25, every=10.0, per_second=1.0)

    # Ten writes a round, one every 1 to 1.5 s; the next round begins when they are done.
    assert 17 <= len(cluster.writes) <= 25
    assert len(cluster.writes) == len({name for _, name in cluster.writes})


def test_what_is_not_known_for_half_an_hour_is_taken_off():
    cluster, known = Cluster(2), Known()
    play(cluster, known, 30, lambda: known.lacking.add("n1"), 1700, lambda: None)
    assert "a" in cluster.all["n1"].annotations

    play(cluster, known, 30, lambda: known.lacking.add("n1"), 2000)
    assert {} == cluster.all["n1"].annotations
    assert "a" in cluster.all["n0"].annotations


def test_a_source_that_fails_is_said_once_and_takes_old_numbers_off_in_time(caplog):
    cluster, known = Cluster(2), Known()
    with caplog.at_level(logging.INFO, "lamina"):
        play(
            cluster,
            known,
            30,
            lambda: setattr(known, "failure", DOWN),
            2000,
            lambda: setattr(known, "failure", None),
            100,
        )

    assert ["annotation round failed, retrying", "annotation rounds recovered"] == [
        record.getMessage() for record in caplog.records
    ]
    assert ["n0", "n1"] * 3 == [name for _, name in cluster.writes]
    assert ["100", "100"] == [node.annotations["a"] for node in cluster.nodes().values()]


def test_nodes_that_refuse_hold_up_nobody_are_said_once_and_written_when_they_let_us(caplog):
    cluster = Cluster(20)
    cluster.refuse = {"n0", "n1"}
    with caplog.at_level(logging.INFO, "lamina"):
        play(cluster, Known(), 1300)
        # At first, after ten minutes, and after twenty.
        assert 18 * 3 == len(cluster.writes)
        # In each of some 22 rounds.
        assert 2 * 20 <= cluster.tries - len(cluster.writes) <= 2 * 25
        play(cluster, Known(), 130, cluster.refuse.clear, 100)

    assert {"n0", "n1"} <= {name for _, name in cluster.writes}
    said = [(record.getMessage(), record.fields) for record in caplog.records]  # type: ignore[attr-defined]
    problem = "PATCH /api/v1/nodes/n0: 422 Invalid: metadata.annotations: Too long"
    assert [("annotation writes rejected", {"nodes": "n0, n1", "problem": problem})] * 2 == said, "once a process"


def test_a_node_at_which_a_round_ended_comes_last_in_the_next():
    """
    A webhook that is down fails with 500, and may be asked about one node only.
    """
    cluster = Cluster(20)
    cluster.refuse, cluster.status = {"n0"}, 500
    play(cluster, Known(), 130)

    assert {f"n{n}" for n in range(1, 20)} == {name for _, name in cluster.writes}


def test_where_nobody_may_write_a_round_ends_early_and_that_is_said_once(caplog):
    cluster = Cluster(100)
    cluster.refuse = set(cluster.all)
    with caplog.at_level(logging.INFO, "lamina"):
        play(cluster, Known(), 900)

    # Twenty a round, about fifteen rounds.
    assert 14 * 20 <= cluster.tries <= 17 * 20
    said = [record.getMessage() for record in caplog.records]
    # Every node refuses for the first time within five rounds.
    assert {"annotation writes rejected": 5, "annotation round failed, retrying": 1} == Counter(said)


def test_what_was_seen_of_a_node_is_not_written_on_another_of_its_name():
    cluster, known = Cluster(1), Known()

    def made_anew() -> None:
        cluster.all["n0"] = a_node("n0", uid="another")
        known.meanwhile = lambda: None

    known.meanwhile = made_anew
    play(cluster, known, 50)
    assert [] == cluster.writes

    play(cluster, known, 70)
    assert ["n0"] == [name for _, name in cluster.writes]


@pytest.mark.parametrize("refusal", [ApiError("PATCH", 403, "Forbidden"), ApiError("PATCH", 429, "", "", 200.0)])
def test_what_is_refused_is_tried_again(refusal):
    cluster = Cluster(2)
    cluster.refusals = [refusal]
    play(cluster, Known(), 300)

    assert 2 == len(cluster.writes)
    if refusal.status == 429:
        assert cluster.writes[0][0] >= 1200.0, "the round has ended, and the server's Retry-After is honoured"


def test_nothing_is_written_while_something_may_have_escaped_us():
    cluster = Cluster(2)
    cluster.follows = False
    play(cluster, Known(), 300)

    assert [] == cluster.writes


def test_a_bug_of_a_source_does_not_end_the_service(caplog):
    cluster, known = Cluster(1), Known()
    known.failure = ZeroDivisionError()
    play(cluster, known, 100, lambda: setattr(known, "failure", None), 100)

    assert 1 == len(cluster.writes)


def test_what_is_lacking_is_said_when_it_changes(caplog):
    cluster, known = Cluster(1), Known()
    with caplog.at_level(logging.INFO, "lamina"):
        play(cluster, known, 200, lambda: setattr(known, "remark", "half of them"), 200)

    assert ["half of them"] == [record.fields["remark"] for record in caplog.records]  # type: ignore[attr-defined]
