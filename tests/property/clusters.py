"""
Random clusters and pods for laws: small, crowded, and with everything in them that makes a difference somewhere.

What is drawn are mostly single numbers that stand for a whole combination, which is an order of magnitude quicker than
drawing every part and still shrinks towards the first choice of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lamina.model.image import Image
from lamina.model.node import Node, NodeImage
from lamina.model.pod import (
    Container,
    HostPort,
    Owner,
    Pod,
    PodTerm,
    PodUid,
    PreferredNodes,
    PreferredPods,
    SpreadConstraint,
    total_requests,
)
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration
from lamina.testing import an_image

GIB = 1024**3
MIB = 1024**2

GPU = "example.com/gpu"
ALLOCATABLE: dict[str, list[int | None]] = {
    "cpu": [4000, 0, 1, 500, 1000, 3333, 64_000],
    "memory": [16 * GIB, 0, 1, GIB, 3 * GIB + 7, 2**45 - 1, 2**45, 2**53],
    "pods": [110, 0, 1, 2, 5],
    "ephemeral-storage": [None, 0, 100, 10 * GIB],
    GPU: [None, None, 0, 1, 8],
    "hugepages-2Mi": [None, None, 2 * MIB],
}
# Every node has cpu and memory, and not too much of them: rankings have a shorter way for such clusters.
PLAIN = ALLOCATABLE | {
    "cpu": [4000, 1, 500, 1000, 3333, 64_000],
    "memory": [16 * GIB, 1, GIB, 3 * GIB + 7, 2**42 - 1],
}
REQUESTS: dict[str, list[int | None]] = {
    "cpu": [None, None, 0, 1, 100, 999, 1000, 4000],
    "memory": [None, None, 0, 1, 200 * MIB, GIB, 3 * GIB, 2**44 + 1],
    "ephemeral-storage": [None, None, None, 10, GIB],
    GPU: [None, None, None, None, 0, 1, 2],
    "hugepages-2Mi": [None, None, None, None, 2 * MIB],
}
KEYS = ("gpu", "team", "node.kubernetes.io/unschedulable")
VALUES = ("", "a", "b")
EFFECTS = (NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE, PREFER_NO_SCHEDULE)

# What pods are spread over; a label may be empty or missing. "zone" and "points" are for plugins of the tests' own.
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NODE_LABELS: dict[str, Sequence[str | None]] = {
    "zone": "0123",
    "points": ["0", "7", "50", "100"],
    ZONE: ["a", "b", "c", "", None],
    "rack": ["1", "2", None],
    "disk": ["ssd", None],
}
OWNERS = [None, Owner("ReplicaSet", "web", "u1"), Owner("ReplicaSet", "db", "u2"), Owner("Job", "once")]
SELECTORS = [
    LabelSelector((("app", "x"),)),
    LabelSelector((("app", "x"), ("hash", "1"))),
    LabelSelector((), (Requirement("app", "In", ("x", "y")),)),
    LabelSelector((), (Requirement("hash", "DoesNotExist"),)),
    LabelSelector((("app", "y"),), (Requirement("hash", "NotIn", ("2",)),)),
    LabelSelector(),
    None,
]
RACK_1 = NodeSelectorTerm((Requirement("rack", "In", ("1",)),))
NO_DISK = NodeSelectorTerm((Requirement("disk", "DoesNotExist"),))
BY_NAME = [NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (name,)),)) for name in ("n1", "n3", "n99")]
AFFINITIES = [
    *[None] * 4,
    NodeSelector((RACK_1,)),
    NodeSelector((NO_DISK,)),
    NodeSelector((BY_NAME[0], BY_NAME[1])),
    NodeSelector((BY_NAME[2],)),
    NodeSelector((NodeSelectorTerm(RACK_1.expressions, BY_NAME[0].fields), NodeSelectorTerm())),
    NodeSelector((NodeSelectorTerm(fields=BY_NAME[0].fields + BY_NAME[1].fields),)),
]
PREFERENCES = [
    *[()] * 3,
    (PreferredNodes(5, RACK_1), PreferredNodes(2, NO_DISK)),
    (PreferredNodes(1, BY_NAME[0]), PreferredNodes(0, RACK_1), PreferredNodes(3, NodeSelectorTerm())),
    (PreferredNodes(4, NodeSelectorTerm((Requirement("rack", "Is", ("1",)),))),),
]
# Ports that get in each other's way, and ports that do not.
PORTS = [
    *[()] * 4,
    (HostPort(80),),
    (HostPort(80, ip="10.0.0.1"), HostPort(443)),
    (HostPort(80, ip="10.0.0.2"),),
    (HostPort(80, "UDP"),),
]
# Whom pods keep away, from where, in which namespaces.
REPELS = [
    *[()] * 6,
    (PodTerm(ZONE, SELECTORS[0]),),
    (PodTerm(HOSTNAME, SELECTORS[3]), PodTerm("rack", SELECTORS[2])),
    (PodTerm("rack", LabelSelector(), ("other",)),),
    (PodTerm(ZONE, SELECTORS[4], (), LabelSelector((("kubernetes.io/metadata.name", "other"),))),),
    (PodTerm(HOSTNAME, LabelSelector(), (), LabelSelector()), PodTerm(ZONE, None)),
]
# Pods that others want to be near, from one group or from several.
NEAR = [
    *[()] * 8,
    (PodTerm(ZONE, SELECTORS[0]),),
    (PodTerm("rack", SELECTORS[2]), PodTerm(ZONE, SELECTORS[3], ("other", "default"))),
    (PodTerm(HOSTNAME, LabelSelector(), (), LabelSelector()),),
    (PodTerm(ZONE, SELECTORS[4], (), LabelSelector((("team", "a"),))),),
    (PodTerm(ZONE, None),),
]
PREFERRED_PODS = [
    *[()] * 6,
    (PreferredPods(7, PodTerm(ZONE, SELECTORS[0])), PreferredPods(100, PodTerm("rack", SELECTORS[1]))),
    (PreferredPods(1, PodTerm("rack", LabelSelector(), (), LabelSelector((("team", "a"),)))),),
    (PreferredPods(0, PodTerm(ZONE, LabelSelector())), PreferredPods(29, PodTerm(HOSTNAME, SELECTORS[2], ("other",)))),
    (PreferredPods(3, PodTerm("rack", None)), PreferredPods(3, PodTerm("rack", SELECTORS[3]))),
]

# What pods ask for, what nodes list, and what the catalog knows overlap, and none contains another.
LAYERS = {"os": 30 * MIB, "python": 100 * MIB, "torch": 800 * MIB, "tiny": 1, "empty": 0, "app": 5 * MIB}
IMAGES: dict[str, Image] = {
    name: an_image(name, {layer: LAYERS[layer] for layer in layers})
    for name, layers in {
        "base:1": ["os"],
        "python:3": ["os", "python"],
        "torch:2": ["os", "python", "torch"],
        "app:1": ["os", "python", "app", "tiny"],
        "nothing:1": ["empty"],
        "app:latest": ["os", "app"],
    }.items()
}
# Other spellings of the same references.
SPELLINGS = {"app": "app:latest", "docker.io/library/python:3": "python:3"}
ASKED = [*IMAGES, *SPELLINGS, "unknown:1"]
LISTED = ["base:1", "python:3", "torch:2", "app:1", "app:latest", "docker.io/library/python:3"]
SIZES = [300 * MIB, 0, 771_000, 23 * MIB, 24 * MIB, 1000 * MIB, 1000 * MIB + 1, 7 * GIB]

Amounts = tuple[tuple[str, int], ...]


def one_of_each(*choices: Sequence[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw one of each list, as a single number."""

    def read(number: int) -> tuple[Any, ...]:
        drawn = []
        for one in choices:
            number, index = divmod(number, len(one))
            drawn.append(one[index])
        return tuple(drawn)

    return st.integers(0, math.prod(map(len, choices)) - 1).map(read)


def amounts(choices: dict[str, list[int | None]]) -> st.SearchStrategy[Amounts]:
    """Draw an amount for each resource; None leaves it out."""
    return one_of_each(*choices.values()).map(
        lambda drawn: tuple(sorted((name, one) for name, one in zip(choices, drawn, strict=True) if one is not None))
    )


# Half of the choices is no taint, or hardly any node would ever pass.
TAINTS = [*[None] * 36, *(Taint(key, value, effect) for key in KEYS for value in VALUES for effect in EFFECTS)]
NODE_IMAGES = [None, *(NodeImage((name,), size) for name in LISTED for size in SIZES)]
HELD = [*((one,) for one in IMAGES.values()), (), *((one, two) for one in IMAGES.values() for two in IMAGES.values())]
TOLERATIONS = [
    Toleration(key, operator, value, effect)
    for key in ("", *KEYS)
    for operator in ("Exists", "Equal", "", "Gt")
    for value in VALUES
    for effect in ("", NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE)
]

taints = one_of_each(TAINTS, TAINTS).map(lambda drawn: tuple(one for one in drawn if one is not None))
node_images = one_of_each(NODE_IMAGES, NODE_IMAGES, NODE_IMAGES).map(
    lambda drawn: tuple(one for one in drawn if one is not None)
)


node_labels = one_of_each([*[True] * 9, False], *NODE_LABELS.values())


def labelled(name: str, drawn: tuple[Any, ...]) -> dict[str, str]:
    """Return the labels of a node; most have their name as host name."""
    given = {key: value for key, value in zip(NODE_LABELS, drawn[1:], strict=True) if value is not None}
    return {HOSTNAME: name, **given} if drawn[0] else given


def nodes(
    names: st.SearchStrategy[str], allocatable: dict[str, list[int | None]] = ALLOCATABLE
) -> st.SearchStrategy[Node]:
    """Draw a node."""
    return st.builds(
        lambda name, allocatable, taints, images, cordoned, drawn: Node(
            name=name,
            allocatable=allocatable,
            taints=taints,
            unschedulable=cordoned,
            images=images,
            labels=labelled(name, drawn),
        ),
        names,
        amounts(allocatable),
        taints,
        node_images,
        st.sampled_from([*[False] * 7, True]),
        node_labels,
    )


def container(image: str, requests: Sequence[int | None], sidecar: bool = False) -> Container:
    """Build a container that asks for these amounts, in the order of REQUESTS."""
    asked = ((name, one) for name, one in zip(REQUESTS, requests, strict=True) if one is not None)
    return Container(image, tuple(sorted(asked)), sidecar=sidecar)


containers = one_of_each(ASKED, *REQUESTS.values()).map(lambda drawn: container(drawn[0], drawn[1:]))
init_containers = one_of_each(ASKED, [False, True], *REQUESTS.values()).map(
    lambda drawn: container(drawn[0], drawn[2:], drawn[1])
)


def a_whole_pod(
    regular: list[Container],
    init: list[Container],
    volumes: list[str],
    tolerated: list[Toleration],
    labels: dict[str, str],
    uid: str = "p",
    **more: Any,
) -> Pod:
    """Put a pod together; *more* are other fields of it."""
    requests, ranked = total_requests(tuple(regular), tuple(init))
    return Pod(
        uid=PodUid(uid),
        name=uid,
        containers=tuple(regular),
        init_containers=tuple(init),
        image_volumes=tuple(volumes),
        requests=requests,
        scoring_requests=ranked,
        tolerations=tuple(tolerated),
        labels=labels,
        **more,
    )


LABELS: dict[str, list[str | None]] = {
    "zone": [None, None, *"0123"],
    "ambitious": [None, "yes"],
    "nodes": [None, None, None, "n0-n1", "n2", "n1-n5-n9", "n99"],
    "door": [None, None, None, None, "open", "shut", "ajar"],
}
# What pods are counted by.
COUNTED: dict[str, list[str | None]] = {"app": ["x", "y", None], "hash": [None, "1", "2"]}


def chosen(choices: dict[str, list[str | None]], drawn: Sequence[str | None]) -> dict[str, str]:
    """Return the labels that were drawn; None leaves one out."""
    return {name: one for name, one in zip(choices, drawn, strict=True) if one is not None}


labels = one_of_each(*LABELS.values(), *COUNTED.values()).map(lambda drawn: chosen(LABELS | COUNTED, drawn))
constraints = one_of_each(
    [1, 2, 5],
    [HOSTNAME, ZONE, "rack"],
    ["DoNotSchedule", "ScheduleAnyway"],
    SELECTORS,
    [None, None, 2, 4],
    ["Honor", "Ignore"],
    ["Ignore", "Honor"],
    [(), ("hash",)],
).map(lambda drawn: SpreadConstraint(*drawn))
spreads = st.lists(constraints, max_size=3).map(tuple)
# What else tells pods that wait apart; in two numbers, because those of one long list are mostly small.
MEMBERS: dict[str, Sequence[Any]] = {
    "namespace": ["default", "default", "other"],
    "owner": OWNERS,
    "node_selector": [(), (), (), (("disk", "ssd"),)],
    "required_nodes": AFFINITIES,
}
DEMANDS: dict[str, Sequence[Any]] = {
    "host_ports": PORTS,
    "preferred_nodes": PREFERENCES,
    "unmet": [*[()] * 9, ("a miracle",)],
}
POD_TERMS: dict[str, Sequence[Any]] = {
    "required_pods": NEAR,
    "repels": REPELS,
    "preferred_pods": PREFERRED_PODS,
    "avoided_pods": PREFERRED_PODS,
}
rest = st.builds(
    lambda members, demands, terms: {
        **dict(zip(MEMBERS, members, strict=True)),
        **dict(zip(DEMANDS, demands, strict=True)),
        **dict(zip(POD_TERMS, terms, strict=True)),
    },
    one_of_each(*MEMBERS.values()),
    one_of_each(*DEMANDS.values()),
    one_of_each(*POD_TERMS.values()),
)
# What tells pods apart that have a node.
KINDS: dict[str, Sequence[Any]] = {
    "namespace": ["default", "default", "other"],
    "owner": OWNERS,
    "deleting": [*[False] * 5, True],
    "host_ports": PORTS,
    "repels": REPELS,
    "required_pods": NEAR,
    "preferred_pods": PREFERRED_PODS,
    "avoided_pods": PREFERRED_PODS,
}
pods = st.builds(
    lambda parts, spread, more: a_whole_pod(*parts, spread=spread, **more),
    st.tuples(
        st.lists(containers, min_size=1, max_size=3),
        st.lists(init_containers, max_size=1),
        st.lists(st.sampled_from(ASKED), max_size=1),
        st.lists(st.sampled_from(TOLERATIONS), max_size=2),
        labels,
    ),
    spreads,
    rest,
)
# What already runs somewhere matters by what it asks for and by what it is counted by.
running_pods = st.builds(
    lambda one, drawn: a_whole_pod(
        [one], [], [], [], chosen(COUNTED, drawn[len(KINDS) :]), **dict(zip(KINDS, drawn, strict=False))
    ),
    containers,
    one_of_each(*KINDS.values(), *COUNTED.values()),
)


@dataclass
class Cluster:
    """What is where, in the order it came."""

    nodes: dict[str, Node] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    """Nodes that were there once and left, so that there are rows without a node."""
    placed: dict[str, list[Pod]] = field(default_factory=dict)
    known: tuple[Image, ...] = ()
    reports: dict[str, tuple[Image, ...]] = field(default_factory=dict)


@st.composite
def clusters(draw: st.DrawFn, most: int = 12) -> Cluster:
    """Draw a cluster of up to *most* nodes, with pods on them, images known and reports made."""
    names = [f"n{number}" for number in range(draw(st.integers(0, most)))]
    allocatable = draw(st.sampled_from([PLAIN, ALLOCATABLE]))
    made = Cluster(known=tuple(draw(st.lists(st.sampled_from(list(IMAGES.values())), max_size=6))))
    for name in names:
        made.nodes[name] = draw(nodes(st.just(name), allocatable))
        made.placed[name] = draw(st.lists(running_pods, max_size=3))
        gone, report = draw(one_of_each([False] * 5 + [True], [None] * 20 + HELD))
        made.gone += (name,) if gone else ()
        if report is not None:
            made.reports[name] = report
    return made
