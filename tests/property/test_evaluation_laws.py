"""
The most important law of the framework: an evaluation that was kept says what a new one would say, and so does one made
from what plugins answered about other shapes.

A loop is fed random histories of a cluster: pods are placed, moved and deleted (also many at once), nodes come, change
and go, images are learned, reports arrive. Whenever somebody looks, the evaluation kept for each shape of pods is
compared with one made from scratch, with nothing to go by: who is feasible, every plugin's points, the totals, every
refusal and its words. The shapes of a history are related, as pods of one controller are to those of another with the same
requests: what is answered about one is used for the others, when and in whichever order somebody looks.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.events import Event
from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.upstream.node_affinity.args import (
    AddedAffinity,
    AddedPreference,
    AddedRequirement,
    AddedTerm,
    AddedTerms,
    NodeAffinityArgs,
)
from lamina.scheduling.plugins.upstream.node_resources_balanced_allocation import (
    BalancedAllocationArgs,
    BalancedResource,
)
from lamina.scheduling.plugins.upstream.node_resources_fit import (
    FitArgs,
    RequestedToCapacityRatio,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
)
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import DefaultConstraint, SpreadArgs
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.explanation import Attempt, explain
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.testing import a_loop, held
from tests.property.clusters import (
    ASKED,
    COUNTED,
    GIB,
    GPU,
    HELD,
    HOSTNAME,
    IMAGES,
    KINDS,
    TOLERATIONS,
    ZONE,
    a_whole_pod,
    amounts,
    chosen,
    container,
    labelled,
    labels,
    node_images,
    node_labels,
    nodes,
    one_of_each,
    rest,
    spreads,
    taints,
)
from tests.unit.scheduling.zoo import AlsoNarrowing, Doorman, Narrowing, Points, Relative, Zone

pytestmark = pytest.mark.slow

STEPS = 15
NAMES = [f"n{number}" for number in range(16)]
UIDS = [f"pod-{number}" for number in range(8)]

# Amounts near each other, so that a pod more or less makes the difference.
ROOM: dict[str, list[int | None]] = {
    "cpu": [4000, 4000, 2000, 1000],
    "memory": [16 * GIB, 16 * GIB, 4 * GIB],
    "pods": [110, 110, 3, 1],
    GPU: [None, None, None, None, 2],
}
# And now and then a node unlike the others: rankings look at those in another way.
ODD_ROOM = ROOM | {"cpu": [0, 4000], "memory": [0, GIB, 2**45, 2**53]}
LOAD: dict[str, list[int | None]] = {
    "cpu": [None, 500, 1000, 2000],
    "memory": [None, GIB, 4 * GIB],
    "ephemeral-storage": [None],
    GPU: [None, None, None, None, 1],
    "hugepages-2Mi": [None],
}


class Change(msgspec.Struct, frozen=True):
    """One thing about a known node is different; what exactly depends on how the node is when it happens."""

    node: str
    what: str
    value: Any


Story = tuple[Event | Change, ...]
"""What happens before anybody can look."""


# ----------------------------------------------------------------------------------------------------------- histories


# What tells placed pods apart, and what they are counted by.
TOLD_APART = (*KINDS.values(), *COUNTED.values())


def running(uid: str, node: str, drawn: Sequence[Any]) -> Event:
    """A pod is seen on a node."""
    more = {"node_name": node, **dict(zip(KINDS, drawn, strict=False))}
    labels, requests = drawn[len(KINDS) : len(TOLD_APART)], drawn[len(TOLD_APART) :]
    return events.PodSeen(a_whole_pod([container("app:1", requests)], [], [], [], chosen(COUNTED, labels), uid, **more))


def some(first: int, count: int) -> list[str]:
    """Name several nodes."""
    return [NAMES[(first + number) % len(NAMES)] for number in range(count)]


placed = one_of_each(UIDS, NAMES, *TOLD_APART, *LOAD.values()).map(
    lambda drawn: (running(drawn[0], drawn[1], drawn[2:]),)
)
burst = one_of_each(range(len(NAMES)), range(6, 13), *TOLD_APART, *LOAD.values()).map(
    lambda drawn: tuple(running(f"one of many on {name}", name, drawn[2:]) for name in some(drawn[0], drawn[1]))
)
deleted = st.sampled_from(UIDS).map(lambda uid: (events.PodGone(PodUid(uid)),))
left = st.sampled_from(NAMES).map(lambda name: (events.NodeGone(name),))
seen = nodes(st.sampled_from(NAMES), ROOM).map(lambda node: (events.NodeSeen(node),))
replaced = st.builds(lambda gone, node: (*gone, *node), left, seen)
learned = one_of_each(HELD).map(lambda drawn: (events.ImagesLearned(drawn[0]),))
reported = one_of_each(NAMES, range(1, 4), HELD).map(
    lambda drawn: (events.LayersReported(held(drawn[0], *drawn[2], sequence=drawn[1])),)
)
differences = st.one_of(
    st.tuples(st.just("allocatable"), amounts(ROOM)),
    st.tuples(st.just("allocatable"), amounts(ODD_ROOM)),
    st.tuples(st.just("taints"), taints),
    st.tuples(st.just("unschedulable"), st.booleans()),
    st.tuples(st.just("images"), node_images),
    st.tuples(st.just("labels"), node_labels),
)
changed = st.builds(lambda name, difference: (Change(name, *difference),), st.sampled_from(NAMES), differences)
swept = st.builds(
    lambda where, difference: tuple(Change(name, *difference) for name in some(*where)),
    one_of_each(range(len(NAMES)), range(6, 13)),
    differences,
)
namespaced = st.sampled_from([{}, {"team": "a"}]).map(lambda labels: (events.NamespaceSeen("other", {}, labels),))
# The second of each pair says whether somebody looks afterwards.
histories = st.lists(
    st.tuples(
        st.one_of(
            *(placed, placed, placed, burst, deleted, left, seen, replaced, changed, changed, swept, learned, reported),
            namespaced,
        ),
        st.sampled_from([True, True, False]),
    ),
    min_size=STEPS,
    max_size=STEPS,
)
shapes = st.builds(
    lambda parts, spread, more: a_whole_pod(*parts, spread=spread, **more),
    st.tuples(
        st.lists(
            one_of_each(ASKED, *LOAD.values()).map(lambda drawn: container(drawn[0], drawn[1:])), min_size=1, max_size=2
        ),
        st.just([]),
        st.lists(st.sampled_from(ASKED), max_size=1),
        st.lists(st.sampled_from(TOLERATIONS), max_size=2),
        labels,
    ),
    spreads,
    rest,
)
beginnings = st.one_of(
    st.tuples(*(nodes(st.just(name), ROOM) for name in NAMES[2:])),
    st.lists(nodes(st.sampled_from(NAMES), ROOM), max_size=4),
)


# ------------------------------------------------------------------------------------------------------------- comparing


def told(evaluation: ShapeEvaluation, pod: Pod) -> Any:
    """Tell all there is to tell about an evaluation."""
    row, tied = (-1, 0) if evaluation.stop is not None else evaluation.choose(lambda count: count - 1)
    return explain(evaluation, pod, Attempt(0.0, 1, row, tied), "full")


class Watcher:
    """Keeps evaluations for the shapes of some pods over the columns of a loop, and compares them with new ones."""

    def __init__(self, loop: Loop, shapes: Sequence[Pod]) -> None:
        self.loop = loop
        self.shapes = shapes
        self.looks = 0
        self.profile: Profile = loop.profiles["default-scheduler"]
        self.kept = EvaluationCache(self.profile, loop.cluster.columns)

    def look(self, *, closely: bool = False) -> None:
        """Compare, shape by shape; what is told only for the first one, unless looking closely: it takes longest."""
        columns = self.loop.cluster.columns
        living = columns.alive[: columns.size]
        self.looks += 1
        # Now this shape, now that is the first to ask, and one is left out: what was answered is of any age.
        order = sorted(enumerate(self.shapes), key=lambda one: (one[0] + self.looks) % len(self.shapes))
        for number, pod in order if closely else order[1:] or order:
            fresh = ShapeEvaluation(self.profile, columns, pod)
            shape = self.profile.sign(pod)
            # One that was kept, and one that is new and may use what was answered before.
            asked = [shape, (shape, self.looks)]
            for kept in [self.kept.of(one, pod) for one in (asked if self.looks % 2 else asked[::-1])]:
                assert fresh.stop == kept.stop
                assert fresh.feasible[living].tolist() == kept.feasible[living].tolist()
                assert fresh.totals[living].tolist() == kept.totals[living].tolist()
                if closely or number == 0:
                    assert told(fresh, pod) == told(kept, pod)

    def live(self, beginning: Sequence[Node], history: Sequence[tuple[Story, bool]]) -> None:
        """Let a history happen."""
        self.loop.feed(*(events.NodeSeen(node) for node in beginning))
        self.look()
        for story, looks in history:
            for happened in story:
                self.loop.feed(*(self.news(happened) if isinstance(happened, Change) else (happened,)))
            if looks:
                self.look()
        self.look(closely=True)

    def news(self, change: Change) -> tuple[Event, ...]:
        """Say how the node is now, if it is there."""
        row = self.loop.cluster.columns.rows.get(change.node)
        node: Node | None = None if row is None else self.loop.cluster.columns.nodes[row]
        if node is None:
            return ()
        value = labelled(node.name, change.value) if change.what == "labels" else change.value
        return (events.NodeSeen(msgspec.structs.replace(node, **{change.what: value})),)


WEIGHED = FitArgs(scoring_strategy=ScoringStrategy("MostAllocated", (ResourceWeight("cpu", 3), ResourceWeight(GPU, 2))))
SHAPED = FitArgs(
    scoring_strategy=ScoringStrategy(
        "RequestedToCapacityRatio",
        (),
        RequestedToCapacityRatio((ShapePoint(0, 3), ShapePoint(50, 10), ShapePoint(90, 0))),
    )
)
BY_THREE = BalancedAllocationArgs(
    resources=(BalancedResource("cpu"), BalancedResource("memory"), BalancedResource(GPU))
)
HARD_BY_DEFAULT = SpreadArgs(
    defaulting_type="List",
    default_constraints=(
        DefaultConstraint(
            max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", node_taints_policy="Honor"
        ),
        DefaultConstraint(max_skew=2, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    ),
)


ADDED = NodeAffinityArgs(
    added_affinity=AddedAffinity(
        required=AddedTerms(
            node_selector_terms=(AddedTerm(match_expressions=(AddedRequirement(key="rack", operator="Exists"),)),)
        ),
        preferred=(
            AddedPreference(
                weight=3, preference=AddedTerm(match_expressions=(AddedRequirement(key="disk", operator="Exists"),))
            ),
        ),
    )
)


def twin_of(pod: Pod, loop: Loop) -> Pod:
    """Equal as far as any plugin can tell, another pod all the same; with other labels, if nobody looks at them yet."""
    twin = msgspec.structs.replace(pod, uid=PodUid("twin"), name="twin", priority=7)
    cousin = msgspec.structs.replace(twin, labels={"app": "y"})
    sign = loop.profiles["default-scheduler"].sign
    return cousin if sign(cousin) == sign(pod) else twin


def relative_of(pod: Pod, other: Pod) -> Pod:
    """Another pod with the same requests: to some plugins the same, to others not."""
    return msgspec.structs.replace(
        other, uid=PodUid("relative"), requests=pod.requests, scoring_requests=pod.scoring_requests
    )


@pytest.mark.parametrize(
    ("plugins", "args"),
    [
        pytest.param(
            [
                "UnmetDemands",
                "NodeUnschedulable",
                "NodeName",
                "TaintToleration",
                "NodeAffinity",
                "NodePorts",
                "NodeResourcesFit",
                "PodTopologySpread",
                "InterPodAffinity",
                "NodeResourcesBalancedAllocation",
                "ImageLocality",
                "LayerLocality",
            ],
            {},
            id="all",
        ),
        # Without a plugin that reads the whole cluster, evaluations outlive the coming and going of nodes.
        pytest.param(["NodeUnschedulable", "NodeName", "TaintToleration", "NodeResourcesFit"], {}, id="row by row"),
        pytest.param(["NodePorts", "TaintToleration", "NodeResourcesFit"], {}, id="ports"),
        pytest.param(["NodeAffinity", "NodeResourcesFit"], {"NodeAffinity": ADDED}, id="affinity"),
        pytest.param(["InterPodAffinity", "NodePorts", "TaintToleration"], {}, id="neighbours"),
        pytest.param(["NodeResourcesFit", "TaintToleration"], {"NodeResourcesFit": WEIGHED}, id="weighed"),
        pytest.param(["TaintToleration", "NodeResourcesFit", "LayerLocality"], {}, id="layers"),
        pytest.param(
            ["NodeResourcesFit", "NodeResourcesBalancedAllocation"],
            {"NodeResourcesFit": SHAPED, "NodeResourcesBalancedAllocation": BY_THREE},
            id="shaped and balanced",
        ),
        pytest.param(["TaintToleration", "NodeResourcesFit", "PodTopologySpread"], {}, id="spread"),
        pytest.param(
            ["PodTopologySpread", "NodeResourcesBalancedAllocation", Points, Relative],
            {"PodTopologySpread": HARD_BY_DEFAULT},
            id="spread by default",
        ),
        pytest.param(
            [Narrowing, AlsoNarrowing, Doorman, Zone, "TaintToleration", Points, Relative], {}, id="foreign plugins"
        ),
    ],
)
@settings(max_examples=max(300, settings().max_examples))
@given(st.lists(shapes, min_size=1, max_size=2), beginnings, histories)
def test_what_is_kept_equals_what_is_made_anew(plugins, args, asked, beginning, history):
    """After any history, for any shape."""
    loop = a_loop(
        ["PrioritySort", "DefaultBinder", *plugins], weights={"TaintToleration": 3, "LayerLocality": 5}, args=args
    )

    related = [relative_of(asked[0], pod) for pod in asked[1:]]
    Watcher(loop, [*asked, *related, twin_of(asked[0], loop)]).live(beginning, history)


def test_the_reports_and_images_of_the_histories_meet():
    """What is learned and reported is what pods ask for, or the histories would say nothing about layers."""
    assert {image for one in HELD for image in one} == set(IMAGES.values())
