"""A queueSort plugin that cannot say, or a signature that cannot be made, costs one pod and not the loop."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import QueuedPod, Reads
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod

LATE = 10.0


class ByLabel:
    """Sorts by a label that may be missing or strange."""

    name: ClassVar = "ByLabel"
    changes_with_time: ClassVar = True

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        rank = queued.pod.labels["rank"]
        if rank == "soon" and now >= LATE:
            raise ZeroDivisionError("too late")
        strange: dict[str, object] = {
            "text": ("a",),
            "list": [1.0],
            "none": None,
            "numpy": (np.int64(2), np.float32(1)),
        }
        return strange.get(rank) or (float(rank),)  # type: ignore[return-value]


class Careless:
    """Cannot say what it goes by."""

    name: ClassVar = "Careless"
    reads: ClassVar = Reads()

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sign(self, pod: Pod) -> Hashable:
        if "raise" in pod.labels:
            raise ZeroDivisionError("sign")
        return pod.labels  # type: ignore[return-value]  # a dictionary, which has no hash: that is the point

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        return np.zeros(len(nodes), dtype=np.int64)


class Nobody:
    """Places many pods at once, and none of them."""

    name: ClassVar = "Nobody"
    batch: ClassVar = 5
    seen: ClassVar[list[list[str]]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        self.seen.append([one.pod.name for one in candidates])
        return Placement({})


CORE = (ByLabel, "NodeResourcesFit", "DefaultBinder")


def ranked(name: str, rank: str | None, cpu: int | None = None) -> Pod:
    return a_pod(name, cpu=cpu, labels={} if rank is None else {"rank": rank})


def told(commands: list[Command]) -> dict[str, str]:
    return {one.pod.name: one.decision.message for one in commands if isinstance(one, ReportUnschedulable)}


def bound(commands: list[Command]) -> list[str]:
    return [one.pod.name for one in commands if isinstance(one, Bind)]


@pytest.mark.parametrize(
    ("rank", "want"),
    [
        pytest.param(None, "a plugin raised KeyError: 'rank'", id="it raises"),
        pytest.param("text", "sort_key returned tuple, not a tuple of numbers", id="words"),
        pytest.param("list", "sort_key returned list, not a tuple of numbers", id="a list"),
    ],
)
def test_a_pod_that_cannot_be_put_in_order_is_told_and_tried_again_later(rank, want):
    """The others are placed, in their order."""
    loop = a_loop([*CORE])
    loop.feed(events.NodeSeen(a_node("n1")))

    commands = loop.feed(*map(events.PodSeen, (ranked("b", "2"), ranked("bad", rank), ranked("a", "1"))))

    assert ({"bad": want}, ["a", "b"]) == (told(commands), bound(commands))
    assert ({}, []) == (told(loop.feed(events.TimePassed(0.5))), bound(loop.feed()))
    loop.feed(events.PodSeen(ranked("bad", "1")))
    assert ["bad"] == bound(loop.feed(events.TimePassed(1.0)))


def test_numbers_of_any_kind_are_numbers():
    """Whoever works with arrays gets them from there."""
    loop = a_loop([*CORE])
    loop.feed(events.NodeSeen(a_node("n1")))

    assert ["one", "two"] == bound(
        loop.feed(events.PodSeen(ranked("two", "numpy")), events.PodSeen(ranked("one", "1")))
    )


def test_the_order_may_break_while_pods_wait():
    """Whether it shows when a group of refused pods is woken, or when the queue is sorted anew because time has passed."""
    loop = a_loop([*CORE])
    full = a_pod("full", cpu=4, on="n1", labels={"rank": "0"})
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(full))
    loop.feed(*(events.PodSeen(ranked(name, "soon", cpu=3)) for name in "ab"))
    loop.take(events.PodSeen(ranked("c", "soon")), events.PodSeen(ranked("d", "1")))

    loop.take(events.TimePassed(LATE), events.PodGone(full.uid))
    commands = loop.decide()

    assert (["d"], dict.fromkeys("abc", "a plugin raised ZeroDivisionError: too late")) == (
        bound(commands),
        told(commands),
    )


def test_a_policy_that_places_many_is_not_shown_who_cannot_be_put_in_order():
    Nobody.seen.clear()
    loop = a_loop([*CORE, Nobody])
    loop.feed(events.NodeSeen(a_node("n1")))

    commands = loop.feed(*map(events.PodSeen, (ranked("bad", None), ranked("worse", None), ranked("a", "1"))))

    assert (["bad", "worse"], ["a"], [["a"]]) == (sorted(told(commands)), bound(commands), Nobody.seen)


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"rank": "1", "raise": "yes"}, "a plugin raised ZeroDivisionError: sign", id="it raises"),
        pytest.param({"rank": "1"}, "a plugin raised TypeError: unhashable type: 'dict'", id="it has no hash"),
    ],
)
def test_a_pod_that_cannot_be_signed_is_told_when_it_is_tried(labels, want):
    """Not when it is taken in, where nobody could be told."""
    loop = a_loop([*CORE, Careless])
    loop.feed(events.NodeSeen(a_node("n1")))

    commands = loop.feed(events.PodSeen(a_pod("a", labels=labels)), events.PodSeen(a_pod("b", labels=labels)))

    assert ([], {"a": want, "b": want}) == (bound(commands), told(commands))
