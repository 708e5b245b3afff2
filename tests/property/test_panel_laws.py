"""
Laws of the extender's core: what it answers depends on what happened, and on nothing that was asked before.

Histories bring nodes, pods, layers and measurements in any order: pods before their nodes, nodes that leave and come back as
other machines, reports about nobody. Between the events questions are asked, so that whatever is kept is kept.
"""

import random
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.model.events import (
    Event,
    ImagesLearned,
    LayersReported,
    LayersWithdrawn,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    TimePassed,
    UsageReported,
)
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import Owner, Pod, PodUid
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import PluginRegistry
from lamina.scheduling.contract.status import Code
from lamina.scheduling.loop.extender_core import ExtenderCore, NodeVictims
from lamina.scheduling.plugins.agents.safe.args import OverloadArgs
from lamina.scheduling.plugins.in_tree import AGENTS
from lamina.scheduling.plugins.locality.layer_locality import LayerLocality
from lamina.scheduling.plugins.locality.layer_locality.layers_agent import AGENT as LAYERS
from lamina.scheduling.state.view import everything
from lamina.testing.builders import MB, a_node, a_pod, an_image, held

FEWER = settings(max_examples=settings().max_examples * 2 // 5)

NODES = tuple(f"n{number}" for number in range(6))
PODS = tuple(f"p{number}" for number in range(6))
IMAGES = (
    an_image("app:1", {"base": 40 * MB, "app": 200 * MB}),
    an_image("app:2", {"base": 40 * MB, "other": 900 * MB}),
    an_image("tool:1", {"tool": 5 * MB}),
)
OWNERS = (None, Owner("ReplicaSet", "web", "web"))
ARGS = {"SafeOverload": OverloadArgs(threshold=60, tolerance=20)}
"""Such that some nodes are refused."""

Step = Callable[[ExtenderCore], None]

names = st.sampled_from(NODES)
amounts = st.sampled_from([None, "100m", "1", "3"])
sizes = st.sampled_from([None, "200Mi", "5Gi"])
numbers = st.sampled_from(["0", "17", "900", "3000", "1e400", "nan", "much", "-5"])
stamps = st.sampled_from(["1970-01-01T00:00:00Z", "1970-01-01T00:40:00Z", "2999-01-01T00:00:00Z", "once"])
annotations = st.builds(
    lambda said, when: {**said, **when},
    st.dictionaries(
        st.sampled_from(["congestion-factor", "mean-free-cpu", "std-free-cpu", "mean-free-memory"]), numbers, max_size=4
    ),
    st.dictionaries(
        st.sampled_from(["lamina.dev/congestion-observed-at", "lamina.dev/usage-observed-at"]), stamps, max_size=2
    ),
)
nodes = st.builds(
    lambda name, cpu, uid, annotations, closed: a_node(
        name, cpu=cpu, uid=uid, annotations=annotations, unschedulable=closed
    ),
    names,
    st.sampled_from([0, 2, 8]),
    st.sampled_from(["", "first", "second"]),
    annotations,
    st.booleans(),
)


def _pod(name: str, cpu: str | None, memory: str | None, image: str, owner: Owner | None) -> Pod:
    limits = {} if cpu is None else {"cpu": "2500m"}
    return a_pod(name, cpu=cpu, memory=memory, image=image, owner=owner, limits=limits)


shapes = st.tuples(amounts, sizes, st.sampled_from(["app:1", "app:2", "tool:1", "unknown:1"]), st.sampled_from(OWNERS))
placed = st.builds(
    lambda name, shape, on, started, since: replace(
        _pod(name, *shape), node_name=on, started=started, started_at=since if started else 0.0
    ),
    st.sampled_from(PODS),
    shapes,
    names,
    st.booleans(),
    st.sampled_from([0.0, 25.0, 75.0]),
)
loads = st.builds(
    ResourceUsage,
    st.sampled_from([150.0, 0.0, 1900.0, 700.0, 1e300, float("nan")]),
    st.sampled_from([90.0, 0.0, 20.0, 400.0, float("inf")]),
    st.sampled_from([None, 0.0, 1500.0, float("nan")]),
)
usages = st.builds(
    lambda node, cpu, memory, since, length, renews: NodeUsage(
        node, cpu=cpu, memory=memory, since=since, until=since + length, renews_within=renews
    ),
    names,
    loads | loads | st.none(),
    loads | loads | st.none(),
    st.sampled_from([0.0, 20.0, 70.0]),
    st.sampled_from([0.0, 30.0]),
    st.sampled_from([0.0, 15.0]),
)
events = st.one_of(
    nodes.map(NodeSeen),
    nodes.map(NodeSeen),
    names.map(NodeGone),
    placed.map(PodSeen),
    placed.map(PodSeen),
    st.sampled_from(PODS).map(PodUid).map(PodGone),
    st.sampled_from(IMAGES).map(lambda image: ImagesLearned((image,))),
    st.builds(
        lambda node, images, sequence: LayersReported(held(node, *images, sequence=sequence)),
        names,
        st.lists(st.sampled_from(IMAGES), unique=True),
        st.integers(1, 3),
    ),
    names.map(LayersWithdrawn),
    st.lists(usages, min_size=1, max_size=3).map(tuple).map(UsageReported),
    st.lists(usages, min_size=3, max_size=9).map(tuple).map(UsageReported),
    st.integers(1, 200).map(lambda now: TimePassed(float(now))),
    st.sampled_from([1000.0, 1500.0, 2500.0]).map(TimePassed),
)
histories = st.builds(
    lambda first, images, more: [*first, ImagesLearned(tuple(images)), *more],
    st.lists(events, max_size=3),
    st.lists(st.sampled_from(IMAGES), unique=True),
    st.lists(events, max_size=25),
).flatmap(lambda history: st.lists(nodes.map(NodeSeen), max_size=8).map(lambda first: [*first, *history]))
asked = st.lists(st.sampled_from([*NODES, "nobody"]), max_size=9)
waiting = st.builds(lambda shape: _pod("waits", *shape), shapes)


def _ask_everything(panel: ExtenderCore, pod: Pod, names: Sequence[str]) -> list[object]:
    said: list[object] = [panel.filter(verb, pod, names) for verb in panel.predicates]
    said += [panel.prioritize(verb, pod, names) for verb in panel.priorities]
    return said


def _preempt(panel: ExtenderCore, pod: Pod) -> list[object]:
    """Ask whether room can be made everywhere, by everybody: those who are there, elsewhere, named twice and unknown."""
    candidates = [NodeVictims(node, (*PODS, PODS[0], "nobody")) for node in (*NODES, "nobody")]
    return [panel.preempt(verb, pod, candidates) for verb in (*panel.predicates, *panel.priorities)]


def _believed(panel: ExtenderCore) -> list[object]:
    """Write down what is believed of the cluster, as far as agents can look at it."""
    columns, context = panel.cluster.columns, panel.cluster.context
    view = everything(columns)
    arrays = [columns.free, columns.ranked, columns.limited, columns.headroom]
    said: list[object] = [array[:, : columns.size].tolist() for array in arrays]
    said += [sorted((placed.pod.uid, placed.node, placed.pod.started) for placed in panel.cluster.cache)]
    for resource in (CPU, MEMORY):
        known = context.usage.of(view, resource)
        said += [np.nan_to_num(one, nan=-1.0).tolist() for one in (known.mean, known.deviation, known.forecast)]
        said.append(known.trust.tolist())
    return said


@FEWER
@given(
    st.tuples(histories, waiting, asked).flatmap(
        lambda first: st.lists(st.tuples(st.lists(events, max_size=6), waiting, asked), max_size=4).map(
            lambda more: [first, *more]
        )
    ),
    st.booleans(),
)
def test_what_was_asked_before_changes_no_answer(
    rounds: list[tuple[list[Event], Pod, list[str]]], makes_room: bool
) -> None:
    panel = ExtenderCore(AGENTS, ARGS)
    happened: list[Event] = []
    for more, pod, names in rounds:
        happened += more
        panel.take(*more)
        if makes_room:
            _preempt(panel, pod)
        actual = _ask_everything(panel, pod, names)
        # Once more, so that what is kept from the second time on is kept.
        assert actual == _ask_everything(panel, pod, names)
        fresh = ExtenderCore(AGENTS, ARGS)
        fresh.take(*happened)
        expected = _ask_everything(fresh, pod, names)
        assert expected == actual
        assert _believed(fresh) == _believed(panel)
        fresh = ExtenderCore(AGENTS, ARGS)
        fresh.take(*happened)
        assert _preempt(fresh, pod) == _preempt(panel, pod)


@FEWER
@given(histories, waiting, asked)
def test_nodes_that_were_asked_about_alone_get_the_levels_they_get_among_all(
    happened: list[Event], pod: Pod, names: list[str]
) -> None:
    panel = ExtenderCore([LAYERS])
    panel.take(*happened)
    columns = panel.cluster.columns
    rows = [columns.rows[name] for name in names if name in columns.rows]
    plugin = PluginRegistry(LayerLocality).make(LayerLocality.name, panel.cluster.context, None)
    assert isinstance(plugin, LayerLocality)
    state, nodes, feasible = CycleState(), everything(columns), np.zeros(columns.size, dtype=np.bool_)
    feasible[rows] = True
    status = plugin.pre_score(state, pod, nodes)
    if status is not None and status.code is Code.SKIP:
        expected = [0] * len(rows)
    else:
        points = plugin.normalize(state, pod, plugin.score(state, pod, nodes), feasible)
        expected = [LAYERS.levels[points[row]] for row in rows]

    levels = panel.prioritize("layers", pod, names)

    assert expected == [level for name, level in zip(names, levels, strict=True) if name in columns.rows]


@FEWER
@given(histories, waiting, asked, st.randoms(use_true_random=False))
def test_the_order_of_names_changes_no_answer_and_a_name_that_comes_twice_has_the_same_one(
    happened: list[Event], pod: Pod, names: list[str], random: random.Random
) -> None:
    panel = ExtenderCore(AGENTS, ARGS)
    panel.take(*happened)
    once = [name for name in dict.fromkeys(names) if name in panel.cluster.columns.rows]
    shuffled = [*once, *random.choices(once, k=3)] if once else []
    random.shuffle(shuffled)
    for verb in panel.priorities:
        expected = dict(zip(once, panel.prioritize(verb, pod, once), strict=True))
        actual = panel.prioritize(verb, pod, shuffled)
        assert [expected[name] for name in shuffled] == actual
    for verb in panel.predicates:
        reasons = {once[place]: refusal for place, refusal in panel.filter(verb, pod, once)}
        refused = panel.filter(verb, pod, shuffled)
        assert [(place, reasons[name]) for place, name in enumerate(shuffled) if name in reasons] == refused


@FEWER
@given(histories, waiting)
def test_asking_whether_room_can_be_made_leaves_everything_as_it_was(happened: list[Event], pod: Pod) -> None:
    panel = ExtenderCore(AGENTS, ARGS)
    panel.take(*happened)
    expected = _believed(panel)
    _preempt(panel, pod)
    assert expected == _believed(panel)


@FEWER
@given(histories, waiting)
def test_nodes_that_are_tried_together_stay_candidates_as_if_each_were_tried_alone(
    happened: list[Event], pod: Pod
) -> None:
    panel = ExtenderCore(AGENTS, ARGS)
    panel.take(*happened)
    candidates = [NodeVictims(node, (*PODS, "nobody")) for node in (*NODES, "nobody")]
    for verb in panel.predicates:
        alone = [node for one in candidates for node in panel.preempt(verb, pod, [one])]
        assert alone == panel.preempt(verb, pod, candidates)


@FEWER
@given(histories, waiting, names, st.sets(st.sampled_from(PODS)))
def test_a_node_stays_a_candidate_if_the_agent_would_accept_the_pod_after_the_victims_left(
    happened: list[Event], pod: Pod, node: str, uids: set[str]
) -> None:
    """For every verb of every agent; an agent that only scores accepts everywhere."""
    panel, after = ExtenderCore(AGENTS, ARGS), ExtenderCore(AGENTS, ARGS)
    panel.take(*happened)
    on_node = {one.pod.uid for one in panel.cluster.cache if one.node == node}
    after.take(*happened, *[PodGone(PodUid(uid)) for uid in sorted(uids & on_node)])
    candidate = NodeVictims(node, tuple(sorted(uids)))
    for verb in dict.fromkeys((*panel.predicates, *panel.priorities)):
        accepted = verb not in after.predicates or not after.filter(verb, pod, [node])
        assert ([node] if accepted else []) == panel.preempt(verb, pod, [candidate]), verb


@FEWER
@given(histories, waiting, st.sets(names, min_size=1))
def test_who_was_there_before_a_node_changes_nothing_about_it(
    happened: list[Event], pod: Pod, survivors: set[str]
) -> None:
    """A row that has been somebody else's is as good as a new one."""
    panel = ExtenderCore(AGENTS, ARGS)
    panel.take(*happened, TimePassed(300.0))
    # Everybody comes, so that what was reported of those who were not there is about somebody; and leaves.
    panel.take(*[NodeSeen(a_node(name)) for name in NODES])
    panel.take(*[PodGone(PodUid(uid)) for uid in PODS], *[NodeGone(name) for name in NODES])
    fresh = ExtenderCore(AGENTS, ARGS)
    fresh.take(TimePassed(300.0))
    again: list[Event] = [NodeSeen(a_node(name, uid="another")) for name in sorted(survivors)]
    again.append(PodSeen(a_pod("late", cpu=1, on=min(survivors), started=True)))
    for one in (panel, fresh):
        one.take(*again)
    for verb in set(panel.priorities) - {"layers"}:
        # Of images more is known than on the first day, and of how large a usual pod is.
        expected = fresh.prioritize(verb, pod, sorted(survivors))
        assert expected == panel.prioritize(verb, pod, sorted(survivors)), verb
    for verb in panel.predicates:
        assert fresh.filter(verb, pod, sorted(survivors)) == panel.filter(verb, pod, sorted(survivors)), verb
    usage = [one.cluster.usage.of(everything(one.cluster.columns), CPU) for one in (fresh, panel)]
    rows = [[one.cluster.columns.rows[name] for name in sorted(survivors)] for one in (fresh, panel)]
    for field in ("mean", "deviation", "forecast", "trust"):
        of_fresh, of_panel = (getattr(one, field)[where] for one, where in zip(usage, rows, strict=True))
        np.testing.assert_array_equal(of_fresh, of_panel)
    assert [()] * len(NODES) == [panel.cluster.usage.moves(name) for name in NODES]
