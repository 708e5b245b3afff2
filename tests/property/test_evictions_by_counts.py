"""Preemption compares all nodes at once where filters count pods: the same answers as by a dry run of each node."""

from unittest import mock

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from lamina.model import events
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import HostPort, Owner, Pod, PodTerm, SpreadConstraint
from lamina.model.pod_volumes import PodVolume
from lamina.model.selectors import LabelSelector
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Command, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.runtime.dry_run import DryRun
from lamina.testing import a_loop, a_node, a_pod
from tests.property.opaque_filter import OpaqueFilter

pytestmark = pytest.mark.slow

PLUGINS = (
    "PrioritySort",
    "TaintToleration",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultPreemption",
    "DefaultBinder",
)
HOST, ZONE = "kubernetes.io/hostname", "zone"
APPS = ("x", "y", "z")

apps = st.sampled_from(APPS)
selectors = st.one_of(apps.map(lambda app: LabelSelector((("app", app),))), st.just(LabelSelector()))
terms = st.builds(
    PodTerm,
    st.sampled_from((HOST, ZONE)),
    st.one_of(st.none(), selectors),
    st.sampled_from(((), ("default",), ("other",))),
    st.sampled_from((None, None, LabelSelector())),
)
constraints = st.builds(
    SpreadConstraint,
    st.integers(1, 2),
    st.sampled_from((HOST, ZONE)),
    selector=st.one_of(st.none(), selectors),
    min_domains=st.sampled_from((None, 1, 3)),
    node_taints_policy=st.sampled_from(("Honor", "Ignore")),
)
ports = st.builds(HostPort, st.sampled_from((80, 81)), ip=st.sampled_from(("0.0.0.0", "10.0.0.1", "10.0.0.2")))
disks = st.builds(lambda name: PodVolume("gcePersistentDisk", name), st.sampled_from(("d1", "d2")))


def few(strategy, most=1):
    return st.lists(strategy, max_size=most, unique=True).map(tuple)


@st.composite
def pods(draw: st.DrawFn, name: str, *, on: str = "", priorities: tuple[int, ...] = (0, 5, 9)) -> Pod:
    made = a_pod(
        name,
        cpu=draw(st.sampled_from((None, 1, 2))),
        priority=draw(st.sampled_from(priorities)),
        labels=draw(st.one_of(st.just({}), apps.map(lambda app: {"app": app}))),
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        owner=draw(st.sampled_from((None, Owner("ReplicaSet", "rs", "u1")))),
        on=on,
        started=bool(on),
        started_at=float(draw(st.integers(0, 30))),
        deleting=bool(on) and draw(st.integers(0, 9)) == 0,
    )
    return msgspec.structs.replace(made, repels=draw(few(terms)), host_ports=draw(few(ports)), volumes=draw(few(disks)))


@st.composite
def preemptors(draw: st.DrawFn, name: str) -> Pod:
    made = draw(pods(name, priorities=(6, 10)))
    return msgspec.structs.replace(
        made,
        required_pods=draw(few(terms, 2)),
        repels=draw(few(terms, 2)),
        host_ports=draw(few(ports, 2)),
        spread=draw(few(constraints, 2)),
    )


class Story(msgspec.Struct, frozen=True):
    """What happens before the pod arrives."""

    before: list[events.Event]
    pod: Pod

    def told(self, plugins: tuple[object, ...]) -> tuple[list[tuple[str, ...]], ...]:
        loop: Loop = a_loop(plugins)  # type: ignore[arg-type]
        loop.feed(events.TimePassed(50.0))
        seen = [answers(loop.feed(one)) for one in self.before]
        return (*seen, answers(loop.feed(events.PodSeen(self.pod))))

    def without_disks(self) -> "Story":
        """Return the same without the volumes, which no filter counts."""
        bare = [
            events.PodSeen(msgspec.structs.replace(one.pod, volumes=())) if isinstance(one, events.PodSeen) else one
            for one in self.before
        ]
        return Story(bare, msgspec.structs.replace(self.pod, volumes=()))


def answers(commands: list[Command]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for one in commands:
        if isinstance(one, Nominate):
            found.append(("nominate", one.pod.name, one.node))
        elif isinstance(one, Evict):
            found.append(("evict", one.pod.name, one.node))
        elif isinstance(one, ReportUnschedulable):
            found.append(("unschedulable", one.decision.message))
    return found


@st.composite
def stories(draw: st.DrawFn, *, with_disks: bool = False) -> Story:
    before: list[events.Event] = []
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    nodes = {}
    for name in names:
        labels = {HOST: name} if draw(st.integers(0, 5)) else {}
        zone = draw(st.sampled_from((None, "", "a", "b")))
        taints = [Taint("k", "", NO_SCHEDULE)] if draw(st.integers(0, 7)) == 0 else []
        nodes[name] = a_node(
            name, cpu=draw(st.integers(1, 5)), labels=labels if zone is None else {**labels, ZONE: zone}, taints=taints
        )
    before += [events.NodeSeen(one) for one in nodes.values()]
    for number in range(draw(st.integers(0, 2))):
        selector = LabelSelector((("app", draw(apps)),))
        budget = PodDisruptionBudget(
            namespace="default", name=f"b{number}", selector=selector, disruptions_allowed=draw(st.integers(0, 1))
        )
        before.append(events.ObjectSeen(budget))
    placed: dict[str, Pod] = {}
    for name in names:
        for number in range(draw(st.integers(0, 5))):
            pod = draw(pods(f"{name}-{number}", on=name))
            placed[pod.uid] = pod
            before.append(events.PodSeen(pod))
    before += [events.PodSeen(draw(preemptors(f"early-{number}"))) for number in range(draw(st.integers(0, 2)))]
    for _ in range(draw(st.integers(0, 4))):
        if not placed:
            break
        uid = draw(st.sampled_from(sorted(placed)))
        match draw(st.sampled_from(("gone", "later", "label", "node"))):
            case "gone":
                del placed[uid]
                before.append(events.PodGone(uid))
            case "later":
                placed[uid] = msgspec.structs.replace(placed[uid], started_at=99.0)
                before.append(events.PodSeen(placed[uid]))
            case "label":
                placed[uid] = msgspec.structs.replace(placed[uid], labels={"app": draw(apps)})
                before.append(events.PodSeen(placed[uid]))
            case _:
                node = placed[uid].node_name
                before += [events.NodeGone(node), events.NodeSeen(nodes[node])]
    story = Story(before, draw(preemptors("new")))
    return story if with_disks else story.without_disks()


@given(stories(with_disks=True))
def test_a_dry_run_of_each_node_gives_the_same_answers(story):
    assert story.told((*PLUGINS, OpaqueFilter)) == story.told(PLUGINS)


@given(stories())
def test_filters_that_count_pods_need_no_dry_run_of_single_nodes(story):
    expected = story.told((*PLUGINS, OpaqueFilter))

    with mock.patch.object(DryRun, "victims_on", side_effect=AssertionError("a node was tried by itself")):
        assert expected == story.told(PLUGINS)
