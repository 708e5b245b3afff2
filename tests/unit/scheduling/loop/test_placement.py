"""Place plugins: what they see of each pod, in which order their decisions are carried out, and which nodes they keep."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.extender_answer import AllowedVictims, ExtenderAnswer, ExtenderRefusal
from lamina.model.pod import Pod, PodUid
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import AskExtenders, Bind, Command, Evict, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import PostFilterResult, QueuedPod, Wait
from lamina.scheduling.contract.status import Status, unresolvable, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.extender_waits import MOST_WAITS
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod, a_profile

EXTENDERS = LoopSettings(extenders=(CalledExtender(name="e", filters=True),))
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


def two_profiles(place: type, *others: type | str, settings: LoopSettings | None = None) -> Loop:
    """Return a loop with the profile batch, which has *place*, and the profile plain, which has *others*."""

    def make(context: PluginContext) -> dict[str, Profile]:
        batch = a_profile(context, [*CORE, place], name="batch")
        plain = a_profile(context, [*CORE, *others], name="plain")
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
            case AskExtenders(pod, _, _, nodes, _, _):
                lines.append(f"{pod.name} asked about {', '.join(nodes)}")
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


def keeps_first_node(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
    """Refuse the pod `big` and keep the first node for it; leave the others out."""
    big = {one.pod.uid: unschedulable("later") for one in candidates if one.pod.name == "big"}
    return Placement({}, big, dict.fromkeys(big, (0,)))


def test_each_profile_keeps_nodes_by_its_own_instance_of_a_plugin():
    loop = two_profiles(placer(keeps_first_node), placer(keeps_first_node))
    loop.feed(*nodes(n1=4), *see(a_pod("big", cpu=8, scheduler="batch")))

    assert [
        "other pending: 0/1 nodes are available: 1 node(s) were kept free for a pod that waits for more room."
    ] == brief(loop.feed(*see(a_pod("other", cpu=1, scheduler="plain"))))


def test_extenders_are_not_asked_again_because_of_a_node_that_is_kept():
    loop = two_profiles(placer(keeps_first_node), settings=EXTENDERS)
    loop.feed(*nodes(n1=4, n2=4), *see(a_pod("big", cpu=8, scheduler="batch")))
    asked = loop.feed(*see(a_pod("other", cpu=1, scheduler="plain")))
    (question,) = [one for one in asked if isinstance(one, AskExtenders)]
    no = ExtenderAnswer(refusals=(ExtenderRefusal(("n2",), ("no license",)),))
    answered = loop.feed(events.ExtendersAnswered(question.pod.uid, question.number, no))

    assert ["other asked about n2"] == brief(asked)
    reasons = "1 no license, 1 node(s) were kept free for a pod that waits for more room"
    assert [f"other pending: 0/2 nodes are available: {reasons}."] == brief(answered)


def test_what_extenders_allow_to_evict_is_evicted_although_the_pod_fits_on_a_node_that_is_kept():
    extenders = (CalledExtender(name="e", preempts=True),)
    loop = two_profiles(placer(keeps_first_node), "DefaultPreemption", settings=LoopSettings(extenders=extenders))
    loop.feed(*nodes(n1=4, n2=4), *see(a_pod("low", cpu=4, on="n2"), a_pod("big", cpu=8, scheduler="batch")))
    asked = loop.feed(*see(a_pod("high", cpu=4, priority=9, scheduler="plain")))
    (question,) = [one for one in asked if isinstance(one, AskExtenders)]
    low = ExtenderAnswer(victims=(AllowedVictims("n2", (PodUid("low"),), 0),))
    answered = loop.feed(events.ExtendersAnswered(question.pod.uid, question.number, low))

    assert ["high asked about n2"] == brief(asked)
    assert ["low"] == [one.pod.name for one in answered if isinstance(one, Evict)]


def test_extenders_are_asked_about_a_placed_pod_without_the_nodes_that_are_kept():
    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        return Placement({one.pod.uid: 1 for one in candidates})

    loop = a_loop([*CORE, placer(keeps_first_node, name="First"), placer(place)], settings=EXTENDERS)
    loop.feed(*nodes(n1=4, n2=4, n3=4))

    assert ["big pending: 0/3 nodes are available: later.", "other asked about n2, n3"] == brief(
        loop.feed(*see(a_pod("big", cpu=8), a_pod("other", cpu=1)))
    )


def test_the_pods_of_a_batch_are_decided_although_no_further_pod_may_wait_for_extenders():
    """The last pod of the other profile comes before c, and stays in the queue."""

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        return Placement({one.pod.uid: 0 for one in candidates})

    gpu = "example.com/gpu"
    extenders = (CalledExtender(name="e", filters=True, managed=frozenset({gpu})),)
    loop = two_profiles(placer(place, batch=100), settings=LoopSettings(extenders=extenders))
    loop.feed(*nodes(n1=100))
    plain = [a_pod(f"p{number}", limits={gpu: 1}, scheduler="plain") for number in range(MOST_WAITS + 1)]
    commands = loop.feed(*see(a_pod("a", cpu=1, scheduler="batch"), *plain, a_pod("c", cpu=1, scheduler="batch")))

    assert ["a -> n1", "c -> n1"] == [line for line in brief(commands) if "asked" not in line]
    assert [f"p{MOST_WAITS}"] == [queued.pod.name for queued in loop.queue]


class Patience:
    """Holds the pod `low` before its binding."""

    name: ClassVar = "Patience"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        return Wait(600.0) if pod.name == "low" else None


def test_a_refused_pod_is_tried_again_if_its_victim_left_at_once():
    """The victim is not bound yet, so that no later change wakes the pod."""
    low = a_pod("low", cpu=4)

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        high = [one.pod.uid for one in candidates if one.pod.name == "high" and not one.feasible.any()]
        no = {uid: unschedulable("evicts") for uid in high}
        return Placement({}, no, room={uid: PostFilterResult("n1", (low,)) for uid in high})

    loop = a_loop([*CORE, Patience, placer(place)])
    loop.feed(*nodes(n1=4), *see(low))
    evicted = loop.feed(*see(a_pod("high", cpu=4, priority=9)))

    assert "high pending: 0/1 nodes are available: evicts." in brief(evicted)
    assert "high -> n1" in brief(loop.feed(events.TimePassed(20.0)))


class Guests:
    """Keeps the room of nominated pods free, but not from the pod `vip`."""

    name: ClassVar = "Guests"
    changes_with_time: ClassVar = False

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        return (queued.arrived_at,)

    def goes_first(self, nominated: Pod, pod: Pod) -> bool:
        return pod.name != "vip"


def test_equal_pods_see_different_nodes_if_the_order_lets_one_of_them_use_the_room_of_a_nominated_pod():
    seen: dict[str, list[bool]] = {}

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        seen.update((one.pod.name, one.feasible.tolist()) for one in candidates)
        return Placement({}, {one.pod.uid: unschedulable("later") for one in candidates})

    loop = a_loop([Guests, *CORE[1:], placer(place)])
    loop.feed(*nodes(n1=4), *see(a_pod("nominated", cpu=4, nominated="n1", scheduler="another")))
    loop.feed(*see(a_pod("a", cpu=4), a_pod("vip", cpu=4)))

    assert {"a": [False], "vip": [True]} == seen


class Deadlines:
    """Orders by slack, which shrinks with time times urgency."""

    name: ClassVar = "Deadlines"
    changes_with_time: ClassVar = True

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        return (float(queued.pod.labels["slack"]) - now * float(queued.pod.labels["urgency"]),)


def test_a_batch_takes_pods_in_back_off_in_the_order_of_now():
    asked: list[list[str]] = []

    def place(candidates: Sequence[PlaceCandidate], view: NodeView, now: float) -> Placement:
        asked.append([one.pod.name for one in candidates])
        return Placement({}, {one.pod.uid: unschedulable("later") for one in candidates})

    loop = a_loop([Deadlines, *CORE[1:], placer(place, batch=2)])
    slow, fast = {"slack": "10", "urgency": "1"}, {"slack": "11", "urgency": "5"}
    loop.feed(*nodes(n1=4), *see(a_pod("slow", labels=slow), a_pod("fast", labels=fast)))
    loop.take(events.TimePassed(0.1), *nodes(n2=4))
    loop.feed(events.TimePassed(0.5), *see(a_pod("new", labels={"slack": "0", "urgency": "0"})))

    assert [["slow", "fast"], ["new", "fast"], ["slow"]] == asked


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
