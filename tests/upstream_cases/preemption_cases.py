"""Retold cases about preemption; those that need claims too are in `volume_cases`."""

from collections.abc import Mapping
from typing import Any, Final

from tests.parity.case_objects import KubeJson, expression
from tests.upstream_cases.case_model import REFUSED, Expectation, Stage, UpstreamCase, on_nodes, preempts
from tests.upstream_cases.kube_objects import budget, node, node_affinity, pod, pod_affinity, spread, taint, term
from tests.upstream_cases.spread_cases import FOO, default_nodes, numbered

PREEMPTION: Final = "scheduler/preemption/preemption_test.go, TestPreemption"
NEVER: Final = "scheduler/preemption/preemption_test.go, TestNonPreemption"
STARVATION: Final = "scheduler/preemption/preemption_test.go, TestPreemptionStarvation"
RACES: Final = "scheduler/preemption/preemption_test.go, TestPreemptionRaces"
NOMINATED: Final = "scheduler/preemption/nominatednodename/nominatednodename_test.go, TestNominatedNode"
PREFERRED: Final = "scheduler/preemption/nominatednodename/nominatednodename_test.go, TestPreferNominatedNode"
BUDGETS: Final = "scheduler/preemption/preemption_test.go, TestPDBInPreemption"
SPREAD: Final = "scheduler/filters/filters_test.go, TestPodTopologySpreadFilter"

LOW, MEDIUM, HIGH = 100, 200, 300
ROOM: Final = {"cpu": "500m", "memory": "500"}
SMALL: Final = {"cpu": "100m", "memory": "100"}
VICTIM: Final = {"cpu": "400m", "memory": "200"}
PREEMPTOR: Final = {"cpu": "300m", "memory": "200"}


def cases() -> list[UpstreamCase]:
    """Return all cases."""
    return [*_one_node(), *_anti_affinity(), *_waiting(), *_clean_up(), *_preferred(), *_budgets(), *_spread()]


def _preemptor(requests: Mapping[str, str], labels: Mapping[str, str] | None = None, **spec: Any) -> KubeJson:
    return pod("preemptor-pod", labels, requests=requests, priority=HIGH, **spec)


def _case(
    source: str, name: str, before: list[KubeJson], incoming: KubeJson, expected: Expectation, *later: Stage
) -> UpstreamCase:
    first = Stage(show=(incoming,), expect={incoming["metadata"]["name"]: expected})
    return UpstreamCase(source=source, case=name, before=tuple(before), stages=(first, *later))


def _one_node() -> list[UpstreamCase]:
    before = [node("node1", {"node": "node1"}, **ROOM)]
    before.append(pod("victim-pod", on="node1", priority=LOW, requests=VICTIM))
    evicts = preempts(node1=["victim-pod"])
    never = _preemptor(PREEMPTOR, preemptionPolicy="Never")
    return [
        _case(PREEMPTION, "basic pod preemption", before, _preemptor(PREEMPTOR), evicts),
        _case(
            NEVER,
            "pod preemption will happen",
            before,
            _preemptor(PREEMPTOR, preemptionPolicy="PreemptLowerPriority"),
            evicts,
        ),
        _case(NEVER, "pod preemption will not happen", before, never, REFUSED),
    ]


def _anti_affinity() -> list[UpstreamCase]:
    def against(value: str) -> KubeJson:
        return pod_affinity(anti=[term("node", expression("pod", "In", value))])

    there = node("node1", {"node": "node1"}, **ROOM)
    first = pod("pod-0", {"pod": "p0"}, on="node1", priority=MEDIUM, requests=SMALL)
    incoming = _preemptor(SMALL, {"pod": "preemptor"}, affinity=against("p0"))

    def second(priority: int) -> KubeJson:
        affinity = against("preemptor")
        return pod("pod-1", {"pod": "p1"}, on="node1", started=1, priority=priority, requests=SMALL, affinity=affinity)

    return [
        _case(
            PREEMPTION,
            "preemption is performed to satisfy anti-affinity",
            [there, first, second(LOW)],
            incoming,
            preempts(node1=["pod-0", "pod-1"]),
        ),
        _case(
            PREEMPTION,
            "preemption is not performed when anti-affinity is not satisfied",
            [there, first, second(HIGH)],
            incoming,
            REFUSED,
        ),
    ]


def _waiting() -> list[UpstreamCase]:
    """Return the cases in which other pods must not take the room of the preemptor."""
    running = [pod(f"rpod-{one}", on="node1", started=one, priority=MEDIUM, requests=SMALL) for one in range(5)]
    pending = [pod(f"ppod-{one}", priority=MEDIUM, requests=SMALL) for one in range(5)]
    refused = {one["metadata"]["name"]: REFUSED for one in pending}
    # Of five equal pods, the two that started first are spared.
    victims = preempts(node1=["rpod-2", "rpod-3", "rpod-4"])
    starving = UpstreamCase(
        source=STARVATION,
        case="starvation test: higher priority pod is scheduled before the lower priority ones",
        before=(node("node1", **ROOM), *running),
        stages=(
            Stage(show=tuple(pending), expect=refused),
            Stage(show=(_preemptor(PREEMPTOR),), expect={"preemptor-pod": victims, **refused}),
            Stage(hide=tuple(running[2:]), expect={"preemptor-pod": on_nodes("node1"), **refused}),
        ),
    )
    racing = _case(
        RACES,
        "ensures that other pods are not scheduled while preemptor is being marked as nominated",
        [node("node1", cpu="5000m", memory="5000"), *running[:2]],
        _preemptor({"cpu": "4900m", "memory": "4900"}),
        preempts(node1=["rpod-1"]),
        Stage(show=tuple(pending), expect={"preemptor-pod": preempts(node1=["rpod-1"]), **refused}),
        Stage(hide=(running[1],), expect={"preemptor-pod": on_nodes("node1"), **refused}),
    )
    return [starving, racing]


def _clean_up() -> list[UpstreamCase]:
    """Return the cases in which a nomination ends."""

    def cores(name: str, count: int, priority: int, **parts: Any) -> KubeJson:
        return pod(name, requests={"cpu": str(count)}, priority=priority, **parts)

    lows = [cores(f"low-{number}", 1, LOW, on="fake-node", started=number) for number in range(1, 5)]
    low = cores("low", 1, LOW, on="fake-node")
    one = preempts(fake_node=["low"])
    there = node("fake-node", cpu="1")
    tainted = node("taint-node", taints=[taint("taint-node", "true")], cpu="1")
    gone = Stage(hide=(there, low), expect={"medium": REFUSED})
    return [
        _case(
            NOMINATED,
            "mid-priority pod preempts low-priority pod, followed by a high-priority pod with another preemption",
            [node("fake-node", cpu="5"), *lows],
            cores("medium", 3, MEDIUM),
            preempts(fake_node=["low-3", "low-4"]),
            Stage(
                show=(cores("high", 4, HIGH),),
                expect={"high": preempts(fake_node=["low-2", "low-3", "low-4"]), "medium": REFUSED},
            ),
        ),
        _case(
            NOMINATED,
            "mid-priority pod preempts low-priority pod, followed by a high-priority pod without additional preemption",
            [node("fake-node", cpu="2"), low],
            cores("medium", 2, MEDIUM),
            one,
            Stage(show=(cores("high", 1, HIGH),), expect={"high": on_nodes("fake-node")}),
            Stage(hide=(low,), expect={"medium": REFUSED}),
        ),
        _case(
            NOMINATED,
            "mid-priority pod preempts low-priority pod, followed by a node deletion",
            [there, low],
            cores("medium", 1, MEDIUM),
            one,
            gone,
        ),
        _case(
            NOMINATED,
            "mid-priority pod preempts low-priority pod at the beginning, but could not find candidates",
            [tainted, there, low],
            cores("medium", 1, MEDIUM),
            one,
            gone,
        ),
    ]


def _preferred() -> list[UpstreamCase]:
    """Return the cases of pods that are nominated already when they come."""
    nodes = [node(f"node-{number}", **ROOM) for number in (1, 2)]
    incoming = _preemptor({"cpu": "500m", "memory": "200"})
    incoming["status"]["nominatedNodeName"] = "node-1"

    def case(name: str, other: str, place: str) -> UpstreamCase:
        running = pod("low-pod", on=other, priority=LOW, requests=SMALL)
        return _case(PREFERRED, name, [*nodes, running], incoming, on_nodes(place))

    return [
        case("nominated node released all resource, preemptor is scheduled to the nominated node", "node-2", "node-1"),
        case("nominated node cannot pass all the filters, preemptor should find a different node", "node-1", "node-2"),
    ]


def _budgets() -> list[UpstreamCase]:
    bar = {"foo": "bar"}
    ones, twos = {"foo1": "bar"}, {"foo2": "bar"}
    nodes = [node(f"node-{number}", **ROOM) for number in range(1, 4)]

    def running(name: str, place: int, priority: int, labels: Mapping[str, str] | None = None) -> KubeJson:
        return pod(name, labels, on=f"node-{place}", priority=priority, requests=SMALL)

    return [
        _case(
            BUDGETS,
            "A non-PDB violating pod is preempted despite its higher priority",
            [
                nodes[0],
                budget("pdb-1", bar, least=2, healthy=2),
                running("low-pod1", 1, LOW, bar),
                running("low-pod2", 1, LOW, bar),
                running("mid-pod3", 1, MEDIUM),
            ],
            _preemptor(PREEMPTOR),
            preempts(node_1=["mid-pod3"]),
        ),
        _case(
            BUDGETS,
            "A node without any PDB violating pods is preferred for preemption",
            [
                *nodes[:2],
                budget("pdb-1", bar, least=2, healthy=1),
                running("low-pod1", 1, LOW, bar),
                running("mid-pod2", 2, MEDIUM),
            ],
            _preemptor({"cpu": "500m", "memory": "200"}),
            preempts(node_2=["mid-pod2"]),
        ),
        _case(
            BUDGETS,
            "A node with fewer PDB violating pods is preferred for preemption",
            [
                *nodes,
                budget("pdb-1", ones, least=2, healthy=1),
                budget("pdb-2", twos, least=2, healthy=5),
                running("low-pod1", 1, LOW, ones),
                running("mid-pod1", 1, MEDIUM),
                running("low-pod2", 2, LOW, twos),
                running("mid-pod2", 2, MEDIUM, twos),
                *(running(f"low-pod{number}", 3, LOW, twos) for number in (4, 5, 6)),
            ],
            _preemptor({"cpu": "500m", "memory": "400"}),
            preempts(node_3=["low-pod4", "low-pod5", "low-pod6"]),
        ),
    ]


def _spread() -> list[UpstreamCase]:
    # One victim is enough on each of three nodes. The only pod of node-3 started last, so node-3 is chosen.
    incoming = pod(
        "p",
        FOO,
        priority=100,
        affinity=node_affinity(expression("node", "NotIn", "node-0")),
        topologySpreadConstraints=[spread(1, "zone"), spread(1, "node")],
    )
    running = numbered("p", [0, 2, 2, 1])
    return [
        _case(
            SPREAD,
            "high priority pod can preempt others",
            [*default_nodes(), *running],
            incoming,
            preempts(node_3=["p4"]),
            Stage(hide=(running[4],), expect={"p": on_nodes("node-3")}),
        )
    ]
