"""GangScheduling: the pods of a gang start together or not at all."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from lamina.model import events
from lamina.model.cluster_objects import ClusterObject
from lamina.model.pod import Pod, PodUid
from lamina.model.pod_groups import GROUP_ANNOTATION, GROUP_LABEL, LIGHT_MIN, LIGHT_NAME, QUEUE_KEY, PodGroup, Workload
from lamina.model.resources import amounts
from lamina.scheduling.contract.commands import Bind, Command, Evict, ReportUnschedulable
from lamina.scheduling.contract.placement import PlaceCandidate
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.batch.gangs.args import GangSchedulingArgs
from lamina.scheduling.plugins.batch.gangs.reservation import GangReservation
from lamina.scheduling.runtime.gang_directory import GangDirectory
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.view import everything
from lamina.testing import LoopHarness, a_loop, a_node, a_pod

CORE = (
    "SchedulingGates",
    "PrioritySort",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "GangScheduling",
    "DefaultPreemption",
    "DefaultBinder",
)


def gang_loop(**args: object) -> Loop:
    return a_loop(CORE, args={"GangScheduling": GangSchedulingArgs(**args)})  # type: ignore[arg-type]


def light(name: str, gang: str, least: int, cpu: int = 1, **more: object) -> Pod:
    """Build a member of a gang that labels describe."""
    return a_pod(name, cpu=cpu, labels={LIGHT_NAME: gang, LIGHT_MIN: str(least)}, **more)  # type: ignore[arg-type]


def gang(name: str, size: int, least: int | None = None, cpu: int = 1, **more: object) -> list[Pod]:
    return [light(f"{name}{number}", name, least or size, cpu, **more) for number in range(size)]


def see(*pods: Pod) -> list[events.Event]:
    return [events.PodSeen(pod) for pod in pods]


def nodes(**cpu: int) -> list[events.Event]:
    return [events.NodeSeen(a_node(name, cpu=amount)) for name, amount in cpu.items()]


def bound(commands: Sequence[Command]) -> dict[str, str]:
    return {one.pod.name: one.node for one in commands if isinstance(one, Bind)}


def evicted(commands: Sequence[Command]) -> list[str]:
    return [one.pod.name for one in commands if isinstance(one, Evict)]


def said(commands: Sequence[Command]) -> set[str]:
    return {
        one.decision.message.partition("available: ")[2] for one in commands if isinstance(one, ReportUnschedulable)
    }


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        pytest.param(
            {"labels": {GROUP_LABEL: "g"}},
            PodGroup(namespace="default", name="g", min_member=2),
            id="scheduler-plugins",
        ),
        pytest.param(
            {"annotations": {GROUP_ANNOTATION: "g"}},
            PodGroup(namespace="default", name="g", min_member=2),
            id="Volcano and kube-batch",
        ),
        pytest.param({"group": "g"}, PodGroup(namespace="default", name="g", min_member=2), id="Kubernetes 1.36"),
        pytest.param(
            {"group": "w/g/1"}, Workload(namespace="default", name="w", gangs=(("g", 2),)), id="Kubernetes 1.35"
        ),
        pytest.param({"labels": {LIGHT_NAME: "g", LIGHT_MIN: "2"}}, None, id="labels alone"),
    ],
)
def test_a_gang_waits_for_its_object_and_for_enough_pods_in_every_dialect(
    pod: dict[str, object], found: ClusterObject | None
):
    loop = gang_loop()
    loop.feed(*nodes(n1=8))
    made = [msgspec.structs.replace(a_pod(name, cpu=1), **pod) for name in "ab"]
    one = bound(loop.feed(events.PodSeen(made[0])))
    two = bound(loop.feed(events.PodSeen(made[1])))
    with_object = bound(loop.feed(events.ObjectSeen(found))) if found else two

    assert ({}, {} if found else {"a": "n1", "b": "n1"}, {"a": "n1", "b": "n1"}) == (one, two, with_object)


def test_a_gang_that_does_not_fit_takes_nothing_and_starts_when_there_is_room():
    loop = gang_loop()
    waits = loop.feed(*nodes(n1=2), *see(*gang("g", 3), a_pod("small", cpu=1)))
    starts = loop.feed(events.NodeSeen(a_node("n2", cpu=2)), events.TimePassed(2.0))

    assert ({"small": "n1"}, {'gang "default/g" needs room for 3 pods at once.'}) == (bound(waits), said(waits))
    assert {"g0", "g1", "g2"} == bound(starts).keys()


def test_two_gangs_that_fit_only_one_by_one_do_not_block_each_other():
    """Pod by pod, each would take half of the node and wait for the other half."""
    loop = gang_loop()
    pods = [pod for pair in zip(gang("a", 4), gang("b", 4), strict=True) for pod in pair]
    first = loop.feed(*nodes(n1=4), *see(*pods))
    second = loop.feed(*(events.PodGone(pod.uid) for pod in pods if pod.name in bound(first)), events.TimePassed(2.0))

    assert ({f"a{n}" for n in range(4)}, {f"b{n}" for n in range(4)}) == (set(bound(first)), set(bound(second)))


def test_more_pods_than_the_minimum_take_what_room_there_is():
    loop = gang_loop()
    commands = loop.feed(*nodes(n1=3), *see(*gang("g", 5, least=2)))

    assert 3 == len(bound(commands))
    assert {'gang "default/g" has 3 pods on nodes; no room for more.'} == said(commands)


def test_pods_that_repel_each_other_or_share_a_port_go_to_different_nodes():
    from lamina.model.pod import HostPort

    loop = gang_loop()
    pods = [msgspec.structs.replace(pod, host_ports=(HostPort(80),)) for pod in gang("g", 2)]
    alone = loop.feed(*nodes(n1=8), *see(*pods))
    both = loop.feed(events.NodeSeen(a_node("n2", cpu=8)), events.TimePassed(2.0))

    assert ({}, {"n1", "n2"}) == (bound(alone), set(bound(both).values()))


def test_a_member_that_fails_at_its_turn_makes_the_others_give_their_nodes_back():
    """The plugin `Spoiler` refuses the last member only after the others have their nodes."""

    class Spoiler:
        name = "Spoiler"
        left = 1

        def __init__(self, context: object, args: object) -> None: ...

        def reserve(self, state: object, pod: Pod, node: str) -> object:
            from lamina.scheduling.contract.status import unschedulable

            if pod.name == "g0" and Spoiler.left:
                Spoiler.left -= 1
                return unschedulable("not now")
            return None

        def unreserve(self, state: object, pod: Pod, node: str) -> None: ...

    loop = a_loop([*CORE[:-1], Spoiler, CORE[-1]])
    first = loop.feed(*nodes(n1=8), *see(*gang("g", 3)))
    held = [one.pod.name for one in loop.cluster.cache]
    again: dict[str, str] = {}
    for second in range(1, 30):
        again |= bound(loop.feed(events.TimePassed(float(second))))

    assert ({}, []) == (bound(first), held)
    assert {"g0", "g1", "g2"} == again.keys()


def test_resources_that_the_pod_group_demands_must_be_free():
    loop = gang_loop()
    pods = [a_pod(name, cpu=1, labels={GROUP_LABEL: "g"}) for name in "ab"]
    demanding = PodGroup(namespace="default", name="g", min_member=2, min_resources=amounts({"cpu": 6}))
    waits = loop.feed(*nodes(n1=4), events.ObjectSeen(demanding), *see(*pods))
    starts = loop.feed(events.NodeSeen(a_node("n2", cpu=2)), events.TimePassed(2.0))

    assert ([], ["a", "b"]) == (sorted(bound(waits)), sorted(bound(starts)))


def test_nodes_are_kept_for_a_large_gang_that_small_pods_would_starve():
    """One pod of two cores ends at a time, and the next small one takes its place: until nodes are kept."""
    harness = LoopHarness(gang_loop(reserve_after=10.0))
    harness.tell(*nodes(n1=4), *see(*(a_pod(f"s{n}", cpu=2) for n in range(2))))
    harness.see(*gang("big", 2, cpu=2))
    now = 0.0
    for n in range(2, 20):
        now += 5.0
        oldest = next(one.pod for one in harness.loop.cluster.cache)
        harness.tell(events.TimePassed(now), events.PodSeen(a_pod(f"s{n}", cpu=2)), events.PodGone(oldest.uid))
        if "big0" in harness.bound:
            break

    assert (True, True) == ("big1" in harness.bound, now <= 25.0)


def test_a_gang_evicts_less_important_pods_all_at_once_but_leaves_gangs_their_minimum():
    loop = gang_loop()
    low = [light(f"low{n}", "low", 2, on="n1") for n in range(3)]
    loop.feed(*nodes(n1=4), *see(*low, a_pod("lone", cpu=1, on="n1")))
    commands = loop.feed(*see(*gang("high", 2, priority=10)))

    # Of the gang "low" one pod can leave, and the lone pod.
    assert 2 == len([one for one in commands if isinstance(one, Evict)])
    assert 1 == len([one for one in commands if isinstance(one, Evict) and one.pod.name.startswith("low")])
    assert {} == bound(commands)


def test_a_gang_evicts_nothing_where_evictions_do_not_suffice_for_all_of_it():
    loop = gang_loop()
    loop.feed(*nodes(n1=4), *see(*(a_pod(f"p{n}", cpu=1, on="n1", priority=0 if n else 20) for n in range(4))))
    commands = loop.feed(*see(*gang("high", 4, priority=10)))

    assert [] == [one for one in commands if isinstance(one, Evict)]


def test_a_restored_loop_decides_the_same_about_waiting_gangs():
    loop, again = gang_loop(), gang_loop()
    loop.feed(*nodes(n1=2), *see(*gang("g", 3), light("h0", "h", 2)))
    again.restore(loop.snapshot())
    more = [events.NodeSeen(a_node("n2", cpu=4)), *see(light("h1", "h", 2)), events.TimePassed(3.0)]

    assert bound(loop.feed(*more)) == bound(again.feed(*more)) != {}


@pytest.mark.parametrize("order", ["queue", "proportion"])
@pytest.mark.parametrize(
    ("labels", "starts"),
    [
        pytest.param({LIGHT_NAME: "b", LIGHT_MIN: "2", QUEUE_KEY: "its own"}, {"a0", "b1"}, id="joins another gang"),
        pytest.param({}, {"a0"}, id="leaves its gang"),
    ],
)
def test_a_pod_whose_gang_changes_counts_only_where_it_is_now(labels: dict[str, str], starts: set[str], order: str):
    loop = gang_loop(order=order)
    first, second = gang("a", 2)
    loop.feed(*nodes(n1=8), *see(first, light("b1", "b", 2)))
    commands = loop.feed(*see(msgspec.structs.replace(first, labels=labels)))
    commands += loop.feed(*see(second), events.TimePassed(1.0))

    assert starts == bound(commands).keys()


def test_a_pod_that_changes_while_it_waits_for_its_gang_is_known_as_it_is():
    """The directory knows the pod as it is now, also while its node is chosen and not written."""
    gangs = GangDirectory(ClusterObjects())
    pod = light("a0", "a", 2)
    gangs.seen(pod)
    gangs.reserve(pod)
    moved = msgspec.structs.replace(pod, annotations={QUEUE_KEY: "other"})
    gangs.seen(moved)

    assert ["other"] == [gangs.queue_of(one) for one in gangs.placed()]
    gangs.unreserve(pod)
    assert ["other"] == [gangs.queue_of(one) for one in gangs.waiting(pod.scheduler_name)]


def test_a_gang_evicts_again_after_its_evictions_failed():
    loop = gang_loop()
    loop.feed(*nodes(n1=2), *see(*(a_pod(f"low{n}", cpu=1, on="n1") for n in range(2))))
    first = evicted(loop.feed(*see(*gang("high", 2, priority=10))))
    meanwhile = evicted(loop.feed(events.TimePassed(400.0)))
    failed = loop.feed(*(events.EvictFailed(PodUid(uid), PodUid("high0"), "timeout") for uid in ("low0", "low1")))
    again = evicted(failed + [one for now in range(401, 430) for one in loop.feed(events.TimePassed(float(now)))])

    assert (["low0", "low1"], [], {"low0", "low1"}) == (sorted(first), meanwhile, set(again))


def test_a_pod_whose_bound_siblings_are_seen_after_it_starts():
    loop = gang_loop()
    waits = loop.feed(*nodes(n1=8), *see(light("new", "g", 3)))
    siblings = [light(f"old{number}", "g", 3, on="n1") for number in range(2)]
    starts = [one for pod in siblings for one in loop.feed(*see(pod))]

    assert ({}, {"new": "n1"}) == (bound(waits), bound(starts))


@pytest.mark.parametrize(
    ("kind", "pods", "tried"),
    [
        pytest.param(ChangeKind.NODE_ADDED, 1, False, id="a node, and the gang lacks pods"),
        pytest.param(ChangeKind.NODE_ADDED, 2, True, id="a node, and the gang is there"),
        pytest.param(ChangeKind.POD_REMOVED, 1, False, id="a pod left, and the gang lacks pods"),
        pytest.param(ChangeKind.POD_UPDATED, 1, True, id="the pod itself changed"),
        pytest.param(ChangeKind.POD_PLACED, 2, False, id="another pod was placed"),
    ],
)
def test_a_change_of_room_retries_a_gang_only_if_its_pods_are_there(kind: ChangeKind, pods: int, tried: bool):
    loop = gang_loop()
    loop.feed(*nodes(n1=1), *see(*gang("g", 2)[:pods]))
    (profile,) = loop.profiles.values()

    change = ClusterChange(kind, 0, pod=a_pod("other", cpu=1, on="n1"))
    assert tried == profile.worth_retrying("GangScheduling", light("g0", "g", 2), change)


def test_the_time_of_a_reservation_is_kept_only_while_the_gang_waits_for_it():
    context = gang_loop().cluster.context
    reservation = GangReservation(context, after=10.0)
    for name, arrived_at in (("early", 0.0), ("late", 5.0), ("gone", 5.0)):
        candidate = cast(PlaceCandidate, SimpleNamespace(arrived_at=arrived_at))
        reservation.want(name, [candidate], 1, everything(NodeColumns()), now=6.0)
    known = [reservation.due(name, 6.0) for name in ("early", "late", "gone")]
    reservation.forget(10.0, lambda name: name != "gone")

    assert [10.0, 15.0, 15.0] == known
    # Asked about an earlier time, it has no answer for what it forgot.
    assert [None, 15.0, None] == [reservation.due(name, 6.0) for name in ("early", "late", "gone")]
