"""Pods that ask for thousands of resources: refused in the usual words, and nothing grows with them."""

import pytest

from lamina.model.events import NodeSeen, PodGone, PodSeen, TimePassed
from lamina.scheduling.contract.commands import ReportUnschedulable
from lamina.scheduling.state.columns import WIDE
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = ("PrioritySort", "NodeUnschedulable", "TaintToleration", "NodeResourcesFit", "DefaultBinder")
MANY = {f"example.com/r{number}": 1 for number in range(3200)}


def books(loop) -> tuple[int, ...]:
    """Count what the loop keeps that could grow with a pod's resources."""
    columns = loop.cluster.columns
    scalars = columns.scalars
    shapes = sum(len(profile._shapes) for profile in loop.profiles.values())
    kept = (scalars._offered, scalars._used, scalars._arrays, columns._taken, loop.cluster.load._shares)
    return (columns.free.nbytes, columns.structure, shapes, *map(len, kept))


@pytest.mark.parametrize("bound", [False, True], ids=["waiting", "bound by another scheduler"])
def test_a_wide_pod_leaves_nothing_behind(bound):
    """Neither while it waits nor after it ran: what is kept is as large as before."""
    loop = a_loop(PLUGINS)
    loop.feed(TimePassed(1.0), *[NodeSeen(a_node(f"n{number}")) for number in range(20)])
    before = books(loop)
    pod = a_pod("wide", cpu=0, memory=0, more=MANY, on="n1" if bound else "")

    loop.feed(PodSeen(pod))
    if not bound:
        assert before == books(loop)
    loop.feed(PodGone(pod.uid))

    assert before[:-2] == books(loop)[:-2]
    assert all(len(asked) <= WIDE for asked in loop.cluster.columns._taken)
    assert all(len(asked) <= WIDE for asked in loop.cluster.load._recent)


def test_a_pod_that_asks_for_what_no_node_offers_is_refused_in_the_usual_words():
    """One reason for each resource, as upstream words it; the node that offers one of them lacks the other only."""
    loop = a_loop(PLUGINS)
    loop.feed(TimePassed(1.0), NodeSeen(a_node("a")), NodeSeen(a_node("b", more={"example.com/r0": 4})))

    (told,) = [
        one
        for one in loop.feed(PodSeen(a_pod("p", more={"example.com/r0": 1, "example.com/r1": 1})))
        if isinstance(one, ReportUnschedulable)
    ]

    assert told.decision.message.startswith(
        "0/2 nodes are available: 1 Insufficient example.com/r0, 2 Insufficient example.com/r1."
    )
