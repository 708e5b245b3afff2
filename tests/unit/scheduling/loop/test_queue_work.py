"""What the queue costs, counted in work: entries that are kept, and questions that plugins are asked."""

from typing import ClassVar

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import QueuedPod
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ClusterChange
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod

REST = ("NodeUnschedulable", "TaintToleration", "NodeResourcesFit", "DefaultBinder")
CORE = ("SchedulingGates", "PrioritySort", *REST)
# What a heap may keep at most beside its live entries, when there are none.
A_FEW = 50


class CountingSort:
    """PrioritySort that counts how often it is asked."""

    name: ClassVar = "CountingSort"
    changes_with_time: ClassVar = False
    asked: ClassVar[list[str]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        self.asked.append(queued.pod.name)
        return (-queued.pod.priority, queued.queued_at)


class CountingAgeing(CountingSort):
    """The same in an order that changes with time."""

    name: ClassVar = "CountingAgeing"
    changes_with_time: ClassVar = True


class ShyGate:
    """Holds pods without naming a change that could open it."""

    name: ClassVar = "ShyGate"
    asked: ClassVar[list[str]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked.append(pod.name)
        return unschedulable("closed") if "closed" in pod.labels else None


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plugins whose hints were asked for, one after the other."""
    asked: list[str] = []
    ask = Profile.worth_retrying

    def counted(self: Profile, plugin: str, pod: Pod, change: ClusterChange) -> bool:
        asked.append(plugin)
        return ask(self, plugin, pod, change)

    monkeypatch.setattr(Profile, "worth_retrying", counted)
    return asked


def kept(loop: Loop) -> int:
    """Count what the queue keeps, whatever it is kept in; of heaps also what is stale."""
    parts = [part for part in vars(loop.queue).values() if hasattr(part, "__len__")]
    return sum(getattr(part, "entries", 0) or len(part) for part in parts)


# ----------------------------------------------------------------------------------------------------------------- memory


def test_a_standby_keeps_nothing_of_pods_that_came_and_went() -> None:
    """It takes in events for as long as another instance decides, and never pops."""
    loop = a_loop(CORE)
    loop.take(events.NodeSeen(a_node("n", pods=1000)))
    for number in range(500):
        pod = a_pod(f"p{number}")
        loop.take(
            events.TimePassed(1.0 + number),
            events.PodSeen(pod),
            events.PodSeen(msgspec.structs.replace(pod, node_name="n")),
            events.PodGone(pod.uid),
        )

    assert 0 == len(loop.queue)
    assert kept(loop) <= A_FEW


def test_updates_of_an_active_pod_leave_no_entries_behind() -> None:
    loop = a_loop(CORE)
    for number in range(500):
        loop.take(events.PodSeen(a_pod("p", labels={"version": str(number)})))

    assert kept(loop) <= A_FEW


def test_pods_that_are_refused_and_deleted_leave_no_entries_behind() -> None:
    """Neither a back-off nor the five-minute flush outlives the pod."""
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n", cpu=1)))
    for number in range(500):
        uid = f"p{number}"
        loop.feed(events.TimePassed(1.0 + number / 100), events.PodSeen(a_pod(uid, cpu=2)))
        # Changed while it rests: it goes from the unschedulable pods to those in back-off.
        loop.take(events.PodSeen(a_pod(uid, cpu=3)))
        loop.take(events.PodGone(PodUid(uid)))

    assert 0 == len(loop.queue)
    assert kept(loop) <= A_FEW


def test_the_host_is_not_woken_for_pods_that_are_gone() -> None:
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n", cpu=1)), events.PodSeen(a_pod("p", cpu=2)))

    assert 300.0 == loop.queue.next_time()
    loop.feed(events.PodGone(PodUid("p")))
    assert loop.queue.next_time() is None


# --------------------------------------------------------------------------------------------------------------- one event


def gated(count: int) -> Loop:
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n", cpu=8)), events.PodSeen(a_pod("foreign", cpu=1, on="n")))
    pods = [msgspec.structs.replace(a_pod(f"g{number}"), gates=("a",)) for number in range(count)]
    loop.feed(*(events.PodSeen(pod) for pod in pods))
    return loop


def shapes(count: int) -> Loop:
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n", cpu=1)), events.PodSeen(a_pod("foreign", cpu=1, on="n")))
    loop.feed(*(events.PodSeen(a_pod(f"s{number}", cpu=f"{2000 + number}m")) for number in range(count)))
    return loop


def things_no_node_has(count: int) -> Loop:
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n", cpu=1)), events.PodSeen(a_pod("foreign", cpu=1, on="n")))
    loop.feed(*(events.PodSeen(a_pod(f"s{number}", more={f"example.com/{number}": 1})) for number in range(count)))
    return loop


@pytest.mark.parametrize("waiting", [gated, shapes, things_no_node_has])
def test_an_event_asks_no_plugin_about_pods_it_cannot_help(waiting, questions: list[str]) -> None:  # type: ignore[no-untyped-def]
    """However many wait: those behind gates, and those that need more than the node has now."""
    loop = waiting(200)
    questions.clear()

    loop.feed(events.TimePassed(30.0), events.PodGone(PodUid("foreign")))

    assert 200 == len(loop.queue)
    assert [] == questions


def test_an_event_asks_about_the_pods_that_could_fit(questions: list[str]) -> None:
    """Of a hundred shapes the ten smallest."""
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(a_pod("foreign", cpu=4, on="n")))
    loop.feed(*(events.PodSeen(a_pod(f"s{number}", cpu=f"{3901 + 10 * number}m")) for number in range(100)))
    questions.clear()

    commands = loop.feed(events.TimePassed(30.0), events.PodGone(PodUid("foreign")))

    assert ["NodeResourcesFit"] * 10 == questions
    assert ["s0"] == [command.pod.name for command in commands if isinstance(command, Bind)]


def test_a_gate_that_names_no_change_is_asked_after_each() -> None:
    loop = a_loop([ShyGate, *CORE])
    loop.feed(events.NodeSeen(a_node("n")), events.PodSeen(a_pod("a", labels={"closed": ""})))
    ShyGate.asked.clear()

    loop.feed(events.PodSeen(a_pod("foreign", on="n")))
    loop.feed(events.PodGone(PodUid("foreign")))

    assert ["a", "a"] == ShyGate.asked


# ------------------------------------------------------------------------------------------------------------ large groups


@pytest.mark.parametrize("sort", [CountingSort, CountingAgeing])
@pytest.mark.parametrize("later", [pytest.param(20.0, id="rested"), pytest.param(0.0, id="tried in this very instant")])
def test_waking_a_large_group_asks_for_each_place_a_few_times(sort: type[CountingSort], later: float) -> None:
    """Not for all places at every placement."""
    count = 200
    loop = a_loop([sort, *REST])
    loop.feed(events.NodeSeen(a_node("small", cpu=1)))
    loop.feed(*(events.PodSeen(a_pod(f"p{number}", cpu=2)) for number in range(count)))
    loop.feed(events.TimePassed(later))
    sort.asked.clear()

    loop.feed(events.NodeSeen(a_node("big", cpu=1000, memory="1000Gi", pods=1000)))
    loop.feed(events.TimePassed(later + 0.5))

    assert 0 == len(loop.queue)
    assert len(sort.asked) <= 5 * count
