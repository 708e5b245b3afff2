"""Retold cases about topology spread constraints; those that need preemption are in `preemption_cases`."""

from typing import Any, Final

from tests.parity.case_objects import KubeJson, expression
from tests.upstream_cases.case_model import REFUSED, Expectation, Stage, UpstreamCase, on_nodes
from tests.upstream_cases.kube_objects import (
    UNSCHEDULABLE,
    node,
    node_affinity,
    pod,
    pods_on,
    spread,
    taint,
)

FILTERS: Final = "scheduler/filters/filters_test.go, TestPodTopologySpreadFilter"
SCORING: Final = "scheduler/scoring/priorities_test.go, TestPodTopologySpreadScoring"
QUEUE: Final = "scheduler/queueing/queue.go, CoreResourceEnqueueTestCases"

FOO: Final = {"foo": ""}
SOFT: Final = {"whenUnsatisfiable": "ScheduleAnyway"}
IGNORE_AFFINITY: Final = {"nodeAffinityPolicy": "Ignore"}
HONOR_TAINTS: Final = {"nodeTaintsPolicy": "Honor"}
NOT_FIRST: Final = {"affinity": node_affinity(expression("node", "NotIn", "node-0"))}
MARKED: Final = {"nodeSelector": FOO}


def cases() -> list[UpstreamCase]:
    """Return all cases."""
    return [*_skews(), *_domains(), *_node_inclusion(), *_label_keys(), *_scored(), *_requeued()]


def default_nodes(**taints: list[KubeJson]) -> list[KubeJson]:
    """Return upstream's four nodes in two zones; *taints* by name, with ``_`` for ``-``."""
    return [
        node(
            f"node-{number}",
            {"node": f"node-{number}", "zone": f"zone-{number // 2}"},
            taints=taints.get(f"node_{number}", ()),
        )
        for number in range(4)
    ]


def numbered(prefix: str, counts: list[int]) -> list[KubeJson]:
    """Return pods with the label ``foo`` on node-0, node-1 and so on, as many as *counts* says."""
    places = [place for place, count in enumerate(counts) for _ in range(count)]
    return pods_on(FOO, **{f"{prefix}{number}": f"node-{place}" for number, place in enumerate(places)})


def _case(
    name: str, nodes: list[KubeJson], running: list[KubeJson], incoming: KubeJson, expected: Expectation, **parts: Any
) -> UpstreamCase:
    stage = Stage(show=(incoming,), expect={"p": expected})
    return UpstreamCase(source=parts.get("source", FILTERS), case=name, before=(*nodes, *running), stages=(stage,))


def _incoming(*constraints: KubeJson, **spec: Any) -> KubeJson:
    return pod("p", FOO, topologySpreadConstraints=list(constraints), **spec)


def _skews() -> list[UpstreamCase]:
    zones_and_nodes = (spread(1, "zone"), spread(1, "node"))
    in_zone_0 = {"affinity": node_affinity(expression("zone", "In", "zone-0"))}
    return [
        _case(
            "place pod on a 1/1/0/1 cluster with MaxSkew=1",
            default_nodes(),
            numbered("p", [1, 1, 0, 1]),
            _incoming(spread(1, "node")),
            on_nodes("node-2"),
        ),
        _case(
            "place pod on a 2/0/0/1 cluster with MaxSkew=2",
            default_nodes(),
            numbered("p", [2, 0, 0, 1]),
            _incoming(spread(2, "node")),
            on_nodes("node-1", "node-2", "node-3"),
        ),
        _case(
            "pod is required to be placed on zone0, so only node-1 fits",
            default_nodes(),
            numbered("p", [1, 0, 0, 1]),
            _incoming(spread(1, "node"), **in_zone_0),
            on_nodes("node-1"),
        ),
        _case(
            "two constraints: pod can only be placed to zone-1/node-2",
            default_nodes(),
            numbered("p", [1, 1, 0, 2]),
            _incoming(*zones_and_nodes),
            on_nodes("node-2"),
        ),
        _case(
            "pod cannot be placed onto any node",
            default_nodes(),
            numbered("p", [0, 2, 2, 1]),
            _incoming(*zones_and_nodes, **NOT_FIRST),
            REFUSED,
        ),
    ]


def _domains() -> list[UpstreamCase]:
    return [
        _case(
            "pods spread across nodes as 2/2/1, maxSkew is 2, and the number of domains < minDomains",
            default_nodes(),
            numbered("p", [0, 2, 2, 1]),
            _incoming(spread(2, "node", minDomains=4), **NOT_FIRST),
            on_nodes("node-3"),
        ),
        _case(
            "pods spread across nodes as 2/2/1, maxSkew is 2, and the number of domains > minDomains",
            default_nodes(),
            numbered("p", [0, 2, 2, 1]),
            _incoming(spread(2, "node", minDomains=2), **NOT_FIRST),
            on_nodes("node-1", "node-2", "node-3"),
        ),
        _case(
            "pods spread across zone as 2/1, […] then the third and fourth nodes fit",
            default_nodes(),
            numbered("p", [1, 1, 1, 0]),
            _incoming(spread(2, "zone", minDomains=3)),
            on_nodes("node-2", "node-3"),
        ),
        _case(
            "pods spread across zone as 2/1, […] then the all nodes fit",
            default_nodes(),
            numbered("p", [0, 1, 1, 1]),
            _incoming(spread(2, "zone", minDomains=1)),
            on_nodes("node-0", "node-1", "node-2", "node-3"),
        ),
    ]


def _marked_nodes(unmarked: int, tainted: int = 0) -> list[KubeJson]:
    """Return node-1 to node-4 in two zones; all but one have the label ``foo``, and one may have a taint."""
    return [
        node(
            f"node-{number}",
            {
                "node": f"node-{number}",
                "zone": f"zone-{1 if number < 3 else 2}",
                **({} if number == unmarked else FOO),
            },
            taints=[taint(UNSCHEDULABLE)] if number == tainted else (),
        )
        for number in range(1, 5)
    ]


def _node_inclusion() -> list[UpstreamCase]:
    everywhere = [0, 1, 1, 1, 1]
    tainted = _marked_nodes(0, 3)
    tainted[2]["metadata"]["labels"].pop("foo")
    return [
        _case(
            "NodeAffinityPolicy honored with labelSelectors, pods spread across zone as 2/1",
            _marked_nodes(3),
            numbered("p", everywhere),
            _incoming(spread(1, "zone"), **MARKED),
            on_nodes("node-4"),
        ),
        _case(
            "NodeAffinityPolicy ignored with nodeAffinity, pods spread across zone as 1/~2~",
            _marked_nodes(3),
            numbered("p", [0, 1, 0, 1, 1]),
            _incoming(spread(1, "zone", **IGNORE_AFFINITY), affinity=node_affinity(expression("foo", "In", ""))),
            on_nodes("node-1", "node-2"),
        ),
        _case(
            "NodeTaintsPolicy honored, pods spread across zone as 2/1",
            tainted,
            numbered("p", everywhere),
            _incoming(spread(1, "zone", **HONOR_TAINTS)),
            on_nodes("node-4"),
        ),
        _case(
            "NodeTaintsPolicy ignored, pods spread across zone as 2/2",
            tainted,
            numbered("p", everywhere),
            _incoming(spread(1, "zone")),
            on_nodes("node-1", "node-2", "node-4"),
        ),
        _case(
            "two node inclusion Constraints, zone: honor/ignore, node: honor/ignore",
            _marked_nodes(3, 2),
            numbered("p", everywhere),
            _incoming(spread(1, "zone"), spread(1, "node"), **MARKED),
            on_nodes("node-4"),
        ),
        _case(
            "two node inclusion Constraints, zone: ignore/ignore, node: honor/honor",
            _marked_nodes(3, 2),
            numbered("p", everywhere),
            _incoming(spread(1, "zone", **IGNORE_AFFINITY), spread(1, "node", **HONOR_TAINTS), **MARKED),
            on_nodes("node-1", "node-4"),
        ),
    ]


def _label_keys() -> list[UpstreamCase]:
    both = {"foo": "", "bar": ""}
    two_and_one = [*pods_on(FOO, p1a="node-0", p2a="node-1"), pod("p3a", both, on="node-2")]

    def incoming(labels: dict[str, str], constraint: KubeJson) -> KubeJson:
        return pod("p", labels, topologySpreadConstraints=[constraint])

    return [
        _case(
            "matchLabelKeys ignored when feature gate disabled, pods spread across zone as 2/1",
            default_nodes(),
            two_and_one,
            incoming(both, spread(1, "zone")),  # without the feature, the API server drops the keys
            on_nodes("node-2", "node-3"),
        ),
        _case(
            "matchLabelKeys ANDed with LabelSelector when LabelSelector isn't empty",
            default_nodes(),
            two_and_one,
            incoming(both, spread(1, "zone", matchLabelKeys=["bar"])),
            on_nodes("node-0", "node-1"),
        ),
        _case(
            "matchLabelKeys ANDed with LabelSelector when LabelSelector is empty",
            default_nodes(),
            numbered("p", [1, 1, 1, 0]),
            incoming(FOO, spread(1, "zone", {}, matchLabelKeys=["foo"])),
            on_nodes("node-2", "node-3"),
        ),
    ]


def _scored() -> list[UpstreamCase]:
    tainted = default_nodes(node_0=[taint("k1", "v1")])
    marked = _marked_nodes(4, 2)
    running = numbered("p", [0, 1, 2, 0, 1])
    return [
        _case(
            "place pod on a ~0~/1/2/3 cluster with MaxSkew=1, node-1 is the preferred fit",
            tainted,
            numbered("p", [0, 1, 2, 3]),
            _incoming(spread(1, "node", **SOFT)),
            on_nodes("node-1"),
            source=SCORING,
        ),
        _case(
            "combined with hardSpread constraint on a ~4~/0/1/2 cluster",
            tainted,
            numbered("p", [4, 0, 1, 2]),
            _incoming(spread(1, "node", **SOFT), spread(1, "zone")),
            on_nodes("node-2"),
            source=SCORING,
        ),
        _case(
            "soft constraint with two node inclusion Constraints, zone: honor/ignore, node: honor/ignore",
            marked,
            running,
            _incoming(spread(1, "zone", **SOFT), spread(1, "node", **SOFT), **MARKED),
            on_nodes("node-3"),
            source=SCORING,
        ),
        _case(
            "soft constraint with two node inclusion Constraints, zone: ignore/ignore, node: honor/honor",
            marked,
            running,
            _incoming(
                spread(1, "zone", **SOFT, **IGNORE_AFFINITY), spread(1, "node", **SOFT, **HONOR_TAINTS), **MARKED
            ),
            on_nodes("node-3"),
            source=SCORING,
        ),
    ]


def _about(name: str, label: str, topology: str, domains: int) -> KubeJson:
    selector = {"matchExpressions": [expression(label, "Exists")]}
    constraint = spread(1, topology, selector, minDomains=domains)
    return pod(name, {label: "val"}, topologySpreadConstraints=[constraint])


def _requeued() -> list[UpstreamCase]:
    there = node("fake-node", {"node": "fake-node"}, cpu="2")
    first, second = pod("pod1", {"key1": "val"}, on="fake-node"), pod("pod2", {"key2": "val"}, on="fake-node")
    after = {"pod3": on_nodes("fake-node"), "pod4": REFUSED}

    def case(name: str, domains: int, **change: tuple[KubeJson, ...]) -> UpstreamCase:
        pods = (_about("pod3", "key1", "node", domains), _about("pod4", "key2", "node", 3))
        before = Stage(show=pods, expect=dict.fromkeys(after, REFUSED))
        stages = (before, Stage(**change, expect=after))
        return UpstreamCase(source=QUEUE, case=name, before=(there, first, second), stages=stages)

    return [
        case(
            "Pods with PodTopologySpread should be requeued when a scheduled Pod label is updated",
            3,
            show=(pod("pod1", {"key3": "val"}, on="fake-node"),),
        ),
        case(
            "Pods with PodTopologySpread should be requeued when a scheduled Pod with matching label is deleted",
            2,
            hide=(first,),
        ),
    ]
