"""What is believed, written down: everything that counts, and never more than a page or two."""

import json

from lamina.model.events import NodeSeen, PodSeen
from lamina.services.scheduler.dump import MOST, dump
from lamina.testing import a_loop, a_node, a_pod


def test_everything_that_counts_is_written_down():
    loop = a_loop()
    loop.feed(NodeSeen(a_node()), PodSeen(a_pod("old", on="n1")), PodSeen(a_pod("p1")), PodSeen(a_pod("huge", cpu=64)))
    told = json.loads(json.dumps(dump(loop)))

    assert (1, 2, 1) == (told["nodes"], told["pods"], told["assumed"])
    assert {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0} == told["queue"]
    assert [{"node": "n1", "pods": 2, "layers": False}] == told["nodesSample"]
    (waiting,) = told["waiting"]
    assert ("default/huge", "unschedulable", 1, ["NodeResourcesFit"]) == tuple(
        waiting[field] for field in ("pod", "queue", "attempts", "refusedBy")
    )
    assert [{"pod": "default/p1", "node": "n1", "stage": "binding"}] == told["underway"]


def test_an_empty_cluster_can_be_written_down():
    assert 0 == dump(a_loop())["nodes"]


def test_long_lists_are_cut():
    loop = a_loop()
    loop.take(*(NodeSeen(a_node(f"n{number}")) for number in range(MOST + 50)))
    loop.take(*(PodSeen(a_pod(f"p{number}")) for number in range(2 * MOST + 50)))
    loop.decide(MOST + 20)
    told = dump(loop)

    assert (MOST, MOST, MOST) == tuple(len(told[field]) for field in ("nodesSample", "waiting", "underway"))
    assert MOST + 50 == told["nodes"]
    assert 200_000 > len(json.dumps(told))
