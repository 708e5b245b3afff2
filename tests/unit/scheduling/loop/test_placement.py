"""Place plugins: what they see of each pod, in which order their decisions are carried out, and which nodes they keep."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.pod import Pod, PodUid
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.status import Status, unresolvable, unschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod, a_profile

CORE = ("PrioritySort", "TaintToleration", "NodeResourcesFit", "DefaultBinder")
Place = Callable[[Sequence[PlaceCandidate], NodeView, float], Placement]


def placer(place: Place, *, batch: int = 10, name: str = "Placer", retry_at: float | None = None) -> type:
    """Return a plugin class that places with a function."""

    class Placer:
        retry_on = frozenset({ChangeKind.NODE_ADDED})

        def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

        def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
            return place(candidates, nodes, now)

        def retry_at(self, pod: Pod, now: float) -> float | None:
            return retry_at

    Placer.name, Placer.batch = name, batch  # type: ignore[attr-defined]
    return Placer


class Numbered:
    """Scores nodes by row, and counts how often it is called."""

    name: ClassVar = "Numbered"
    calls: ClassVar[list[str]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sign(self, pod: Pod) -> str:
        return pod.labels.get("kind", "")

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        self.calls.append(pod.name)
        if pod.labels.get("kind") == "broken":
            raise ZeroDivisionError("score")
        return nodes.allocatable("cpu") // 1000


def two_profiles(place: type, *, settings: LoopSettings | None = None) -> Loop:
    def make(context: PluginContext) -> dict[str, Profile]:
        batch = a_profile(context, [*CORE, place], name="batch")
        plain = a_profile(context, CORE, name="plain")
        return {one.name: one for one in (batch, plain)}

    return Loop(make, lambda _: 0, settings)


def brief(commands: list[Command]) -> list[str]:
    lines = []
    for command in commands:
        match command:
            case Bind(pod, node, _):
                lines.append(f"{pod.name} -> {node}")
            case ReportUnschedulable(pod, decision):
                lines.append(f"{pod.name} pending: {decision.message}")
    return lines


def see(*pods: Pod) -> list[events.Event]:
    return [events.PodSeen(pod) for pod in pods]


def nodes(**cpu: int) -> list[events.Event]:
    return [events.NodeSeen(a_node(name, cpu=amount)) for name, amount in cpu.items()]


def test_a_candidate_shows_where_its_pod_fits_and_what_each_node_scores():
    """The scores are the totals of the ordinary cycle, which the decision names."""
    seen: dict[str, tuple[list[bool], list[int], float]] = {}

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        seen.update((one.pod.name, (one.feasible.tolist(), one.scores.tolist(), now)) for one in candidates)
        return Placement({})

    loop = a_loop([*CORE, Numbered, placer(place)], weights={"Numbered": 2})
    loop.feed(*nodes(n1=4, n2=8), events.NodeSeen(a_node("n3", cpu=9, taints=[Taint("a", "", NO_SCHEDULE)])))
    commands = loop.feed(events.TimePassed(5.0), *see(a_pod("large", cpu=6), a_pod("small", cpu=1)))

    totals = {one.pod.name: one.decision.chosen.total for one in commands if isinstance(one, Bind)}
    assert ([False, True, False], [0, totals["large"], 0], 5.0) == seen["large"]
    assert ([True, True, False], 0) == (seen["small"][0], seen["small"][1][2])


def test_equal_pods_cost_one_evaluation_and_unread_ones_none():
    keys: list[object] = []

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        keys.extend(one.key for one in candidates)
        for one in candidates:
            if one.pod.labels.get("kind") == "read":
                assert one.feasible.all()
        return Placement({}, {one.pod.uid: unschedulable("not now") for one in candidates if "kind" in one.pod.labels})

    Numbered.calls.clear()
    loop = a_loop([*CORE, Numbered, placer(place, batch=100)])
    loop.feed(*nodes(n1=4))
    loop.take(*see(*(a_pod(f"p{index}", labels={"kind": "read"}) for index in range(50))))
    loop.decide()

    assert (1, 1) == (len(set(keys)), len(Numbered.calls))


def test_what_a_candidate_shows_cannot_be_changed():
    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        candidates[0].scores[0] = 7
        return Placement({})

    loop = a_loop([*CORE, placer(place)])
    loop.feed(*nodes(n1=4))

    assert ["a pending: a plugin raised ValueError: assignment destination is read-only"] == brief(
        loop.feed(*see(a_pod("a")))
    )


def test_a_pod_whose_evaluation_fails_fits_nowhere_and_costs_the_others_nothing():
    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        return Placement({one.pod.uid: 0 for one in candidates if one.feasible[0]})

    loop = a_loop([*CORE, Numbered, placer(place)])
    loop.feed(*nodes(n1=4))

    assert ["good -> n1", "bad pending: a plugin raised ZeroDivisionError: score"] == sorted(
        brief(loop.feed(*see(a_pod("bad", labels={"kind": "broken"}, priority=1), a_pod("good")))), reverse=True
    )


def test_a_second_plugin_gets_what_the_first_left_out_and_sees_the_room_that_is_left():
    asked: list[tuple[str, list[str], int]] = []

    def first(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        asked.append(("first", [one.pod.name for one in candidates], int(view.free("cpu")[0])))
        return Placement({PodUid("a"): 0}, {PodUid("b"): unschedulable("not this one")})

    def second(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        asked.append(("second", [one.pod.name for one in candidates], int(view.free("cpu")[0])))
        return Placement({PodUid("c"): 0})

    loop = a_loop([*CORE, placer(first, name="First"), placer(second, name="Second")])
    loop.feed(*nodes(n1=4))
    commands = loop.feed(*see(*(a_pod(name, cpu=1) for name in "abcd")))

    assert [("first", ["a", "b", "c", "d"], 4000), ("second", ["c", "d"], 3000)] == asked
    assert ["a -> n1", "b pending: 0/1 nodes are available: not this one.", "c -> n1", "d -> n1"] == brief(commands)


def test_pods_of_other_profiles_keep_their_turn_while_a_batch_is_decided():
    """The plugin sees a and c at once, but b comes before c in the queue, and takes the last core."""
    asked: list[list[str]] = []

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        asked.append([one.pod.name for one in candidates])
        return Placement({one.pod.uid: 0 for one in candidates})

    loop = two_profiles(placer(place))
    loop.feed(*nodes(n1=2))
    commands = loop.feed(
        *see(
            a_pod("a", cpu=1, scheduler="batch"),
            a_pod("b", cpu=1, scheduler="plain"),
            a_pod("c", cpu=1, scheduler="batch"),
        )
    )

    assert [["a", "c"]] == asked
    assert ["a -> n1", "b -> n1", "c pending: 0/1 nodes are available: 1 Insufficient cpu."] == brief(commands)


def test_a_limit_of_decisions_per_feed_leaves_pods_of_other_profiles_in_the_queue():
    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        return Placement({one.pod.uid: 0 for one in candidates})

    loop = two_profiles(placer(place), settings=LoopSettings(cycles_per_feed=1))
    loop.feed(*nodes(n1=8))
    names = [("a", "batch"), ("b", "plain"), ("c", "batch"), ("d", "plain")]
    commands = loop.feed(*see(*(a_pod(name, cpu=1, scheduler=profile) for name, profile in names)))

    assert (["a -> n1", "c -> n1"], ["b", "d"], True) == (
        brief(commands),
        [queued.pod.name for queued in loop.queue],
        loop.unfinished,
    )


def test_a_kept_node_is_free_for_the_plugins_pods_only_until_it_lets_go():
    kept = {"big": (0,)}

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        big = {one.pod.uid: unschedulable("waits for n2") for one in candidates if one.pod.name == "big"}
        return Placement(
            {one.pod.uid: 0 for one in candidates if one.pod.name == "filler"}, big, dict(kept) if big else {}
        )

    loop = two_profiles(placer(place))
    loop.feed(*nodes(n1=4))
    held = loop.feed(*see(a_pod("big", cpu=8, scheduler="batch"), a_pod("other", cpu=1, scheduler="plain")))
    freed = loop.feed(events.PodGone("big"), events.TimePassed(2.0))

    assert [
        "big pending: 0/1 nodes are available: waits for n2.",
        "other pending: 0/1 nodes are available: 1 node(s) were kept free for a pod that waits for more room.",
    ] == brief(held)
    assert ["other -> n1"] == brief(freed)


def test_a_kept_node_survives_a_snapshot():
    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        return Placement({}, {one.pod.uid: unschedulable("later") for one in candidates}, {candidates[0].pod.uid: (0,)})

    loop, again = two_profiles(placer(place)), two_profiles(placer(place))
    loop.feed(*nodes(n1=4), *see(a_pod("big", cpu=1, scheduler="batch")))
    again.restore(loop.snapshot())

    assert [
        "other pending: 0/1 nodes are available: 1 node(s) were kept free for a pod that waits for more room."
    ] == brief(again.feed(*see(a_pod("other", cpu=1, scheduler="plain"))))


@pytest.mark.parametrize(
    ("retry_at", "want"),
    [pytest.param(7.0, [1, 2], id="it names a time"), pytest.param(None, [1, 1], id="it names none")],
)
def test_a_refusing_plugin_can_name_the_time_of_the_next_attempt(retry_at: float | None, want: list[int]):
    attempts: list[int] = []

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        attempts.append(candidates[0].attempts)
        return Placement({}, {one.pod.uid: unschedulable("later") for one in candidates})

    loop = a_loop([*CORE, placer(place, retry_at=retry_at)])
    loop.feed(*nodes(n1=4), *see(a_pod("a")))
    counts = [len(attempts)]
    loop.feed(events.TimePassed(7.0))
    counts.append(len(attempts))

    assert want == counts


class Teams:
    """Decides the pods of a team together: all of them on the first node, or none until there are *size* of them."""

    name: ClassVar = "Teams"
    batch: ClassVar = 2
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED})
    asked: ClassVar[list[list[str]]] = []
    seen: ClassVar[dict[str, str]] = {}

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.seen.clear()
        self.asked.clear()

    def pod_seen(self, pod: Pod, now: float) -> None:
        self.seen[pod.uid] = pod.labels.get("team", "")

    def pod_gone(self, uid: PodUid, now: float) -> None:
        self.seen.pop(uid, None)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        team = pod.labels.get("team", "")
        return unresolvable("the team is not complete") if team and len(self.members(team)) < 3 else None

    def group(self, pod: Pod) -> str:
        return pod.labels.get("team", "")

    def members(self, group: str) -> list[PodUid]:
        return [PodUid(uid) for uid, team in self.seen.items() if team == group]

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        self.asked.append([one.pod.name for one in candidates])
        if nodes.total < 2:
            return Placement({}, {one.pod.uid: unschedulable("one node is too few") for one in candidates})
        return Placement({one.pod.uid: 0 for one in candidates})


def member(name: str, **more: int) -> Pod:
    return a_pod(name, cpu=1, labels={"team": "t"}, **more)  # type: ignore[arg-type]


def test_a_group_is_handed_out_whole_once_its_gate_opens_and_beyond_the_batch_size():
    loop = a_loop([*CORE, Teams])
    loop.feed(*nodes(n1=8, n2=8))
    first = loop.feed(*see(member("a"), member("b")))
    counts = loop.queue.counts()["gated"]
    second = loop.feed(*see(member("c"), a_pod("x", cpu=1)))

    assert ([], 2) == (brief(first), counts)
    assert [["c", "a", "b", "x"]] == Teams.asked
    assert ["c -> n1", "a -> n1", "b -> n1", "x -> n1"] == brief(second)


def test_a_refused_group_waits_together_and_comes_back_together():
    loop = a_loop([*CORE, Teams])
    loop.feed(*nodes(n1=8), *see(*map(member, "abc")))
    again = loop.feed(events.NodeSeen(a_node("n2")), events.TimePassed(1.0))

    assert ([["c", "a", "b"]] * 2, ["c -> n1", "a -> n1", "b -> n1"]) == (
        [sorted(asked, key="cab".index) for asked in Teams.asked],
        sorted(brief(again), key=lambda line: "cab".index(line[0])),
    )


def test_a_restored_loop_knows_the_members_of_waiting_groups():
    loop, again = a_loop([*CORE, Teams]), a_loop([*CORE, Teams])
    loop.feed(*nodes(n1=8), *see(*map(member, "ab")))
    Teams.seen.clear()
    again.restore(loop.snapshot())

    assert ["a", "b"] == sorted(Teams.seen)
