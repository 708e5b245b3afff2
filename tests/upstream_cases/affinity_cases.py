"""Retold cases about affinity between pods."""

from typing import Final

from tests.parity.case_objects import PREFERRED, KubeJson, expression
from tests.upstream_cases.case_model import REFUSED, Expectation, Stage, UpstreamCase, on_nodes
from tests.upstream_cases.kube_objects import namespace, node, node_affinity, pod, pod_affinity, term

FILTERS: Final = "scheduler/filters/filters_test.go, TestInterPodAffinity"
SELECTOR: Final = "scheduler/filters/filters_test.go, TestInterPodAffinityWithNamespaceSelector"
LATER: Final = "scheduler/filters/filters_test.go, TestUnschedulablePodBecomesSchedulable"
SCORING: Final = "scheduler/scoring/priorities_test.go, TestPodAffinityScoring"
QUEUE: Final = "scheduler/queueing/queue.go, CoreResourceEnqueueTestCases"

SCAN: Final = {"service": "securityscan"}
S1: Final = {"security": "S1"}
BOTH: Final = on_nodes("testnode-0", "anothernode-0")


def cases() -> list[UpstreamCase]:
    """Return all cases."""
    return [*_affinity(), *_anti_affinity(), *_label_keys(), *_namespaces(), *_scoring(), *_later(), *_requeued()]


def _service(operator: str, *values: str) -> KubeJson:
    return expression("service", operator, *values)


def _filtered(case: str, incoming: KubeJson, running: list[KubeJson], expected: Expectation) -> UpstreamCase:
    """Return a case with upstream's two nodes in one zone and one region."""
    nodes = (
        node("testnode-0", {"region": "r1", "zone": "z11", "node": "n1"}, memory="1G"),
        node("anothernode-0", {"region": "r1", "zone": "z11", "node": "n2"}, memory="1G"),
    )
    spaces = (namespace("ns1", team="team1"), namespace("ns2", team="team1"), namespace("ns3", team="team2"))
    stage = Stage(show=(incoming,), expect={incoming["metadata"]["name"]: expected})
    return UpstreamCase(source=FILTERS, case=case, before=(*spaces, *nodes, *running), stages=(stage,))


def _incoming(labels: dict[str, str], **spec: object) -> KubeJson:
    return pod("fakename", labels, inside="ns1", **spec)


def _running(**spec: object) -> KubeJson:
    return pod("fakename2", SCAN, on="testnode-0", inside="ns1", **spec)


def _affinity() -> list[UpstreamCase]:
    near = _service("In", "securityscan", "value2")
    absent = expression("wrongkey", "DoesNotExist")
    return [
        _filtered(
            "validates that a pod with an invalid podAffinity is rejected",
            _incoming(S1, affinity=pod_affinity(term("region", expression("security", "DoesNotExist")))),
            [],
            REFUSED,
        ),
        _filtered(
            "validates that Inter-pod-Affinity is respected if not matching",
            _incoming(S1, affinity=pod_affinity(term("region", expression("security", "In", "securityscan")))),
            [],
            REFUSED,
        ),
        _filtered(
            "validates that InterPodAffinity is respected if matching. […] using In operator",
            _incoming(S1, affinity=pod_affinity(term("region", near))),
            [_running()],
            BOTH,
        ),
        _filtered(
            "validates that InterPodAffinity is respected if matching. […] using not in operator",
            _incoming(S1, affinity=pod_affinity(term("region", _service("NotIn", "securityscan3", "value3")))),
            [_running()],
            BOTH,
        ),
        _filtered(
            "validates that inter-pod-affinity is respected when pods have different Namespaces",
            _incoming(S1, affinity=pod_affinity(term("region", near, namespaces=["diff-namespace"]))),
            [pod("fakename2", SCAN, on="testnode-0", inside="ns2")],
            REFUSED,
        ),
        _filtered(
            "Doesn't satisfy the PodAffinity because of unmatching labelSelector with the existing pod",
            _incoming(SCAN, affinity=pod_affinity(term("region", _service("In", "antivirusscan", "value2")))),
            [_running()],
            REFUSED,
        ),
        _filtered(
            "validates that InterPodAffinity is respected if matching with multiple affinities",
            _incoming(
                S1,
                affinity=pod_affinity(
                    term("region", _service("Exists"), absent),
                    term("region", _service("In", "securityscan"), _service("NotIn", "WrongValue")),
                ),
            ),
            [_running()],
            BOTH,
        ),
        _filtered(
            "The labelSelector requirements(items of matchExpressions) are ANDed",
            _incoming(
                S1,
                affinity=pod_affinity(
                    term("region", _service("Exists"), absent),
                    term("region", _service("In", "securityscan2"), _service("NotIn", "WrongValue")),
                ),
            ),
            [_running()],
            REFUSED,
        ),
        _filtered(
            "pod matches its own Label in PodAffinity and that matches the existing pod Labels",
            _incoming(SCAN, affinity=pod_affinity(term("region", _service("NotIn", "securityscan", "value2")))),
            [pod("fakename2", SCAN, on="machine2", inside="ns1")],
            REFUSED,
        ),
    ]


def _anti_affinity() -> list[UpstreamCase]:
    near = term("region", _service("In", "securityscan", "value2"))
    far = term("node", _service("In", "antivirusscan", "value2"))
    return [
        _filtered(
            "validates that InterPod Affinity and AntiAffinity is respected if matching",
            _incoming(S1, affinity=pod_affinity(near, anti=[far])),
            [_running()],
            BOTH,
        ),
        _filtered(
            "satisfies the PodAffinity and PodAntiAffinity and PodAntiAffinity symmetry",
            _incoming(S1, affinity=pod_affinity(near, anti=[far])),
            [_running(affinity=pod_affinity(anti=[far]))],
            BOTH,
        ),
        _filtered(
            "satisfies the PodAffinity but doesn't satisfies the PodAntiAffinity with the existing pod",
            _incoming(S1, affinity=pod_affinity(near, anti=[term("zone", _service("In", "securityscan", "value2"))])),
            [_running()],
            REFUSED,
        ),
        _filtered(
            "satisfies the PodAffinity and PodAntiAffinity but doesn't satisfies PodAntiAffinity symmetry",
            _incoming(SCAN, affinity=pod_affinity(near, anti=[far])),
            [_running(affinity=pod_affinity(anti=[term("zone", _service("In", "securityscan", "value3"))]))],
            REFUSED,
        ),
        _filtered(
            "Verify that PodAntiAffinity of an existing pod is respected when […] not satisfied",
            _incoming(SCAN),
            [_running(affinity=pod_affinity(anti=[term("zone", _service("In", "securityscan", "value2"))]))],
            REFUSED,
        ),
        _filtered(
            "Verify that PodAntiAffinity from existing pod is respected when pod statisfies […]",
            _incoming(SCAN),
            [_running(affinity=pod_affinity(anti=[term("zone", _service("NotIn", "securityscan", "value2"))]))],
            BOTH,
        ),
        _filtered(
            "nodes[0] and nodes[1] have same topologyKey and label value.",
            _incoming(
                {},
                nodeSelector={"region": "r1"},
                affinity=pod_affinity(anti=[term("region", expression("foo", "In", "abc"))]),
            ),
            [pod("fakename2", {"foo": "abc"}, on="testnode-0", inside="ns1")],
            REFUSED,
        ),
    ]


def _label_keys() -> list[UpstreamCase]:
    labels = {"foo": "", "bar": "a"}
    exists = expression("foo", "Exists")
    full = {"memory": "1G"}

    def neighbours(*bars: str, full_one: bool) -> list[KubeJson]:
        found = [
            pod(f"pod{number}", {"foo": "", "bar": bar}, on="testnode-0", inside="ns1", started=number)
            for number, bar in enumerate(bars, 1)
        ]
        if full_one:
            found[0] = pod("pod1", {"foo": "", "bar": bars[0]}, on="anothernode-0", inside="ns1", requests=full)
        return found

    return [
        _filtered(
            "anti affinity: matchLabelKeys is merged",
            _incoming(labels, affinity=pod_affinity(anti=[term("zone", exists, matchLabelKeys=["bar"])])),
            neighbours("fuga", "hoge", full_one=False),
            BOTH,
        ),
        _filtered(
            "anti affinity: mismatchLabelKeys is merged",
            _incoming(labels, affinity=pod_affinity(anti=[term("zone", exists, mismatchLabelKeys=["bar"])])),
            neighbours("a", "a", full_one=False),
            BOTH,
        ),
        _filtered(
            "affinity: matchLabelKeys is merged",
            _incoming(labels, requests=full, affinity=pod_affinity(term("node", exists, matchLabelKeys=["bar"]))),
            neighbours("a", "hoge", "fuga", full_one=True),
            REFUSED,
        ),
        _filtered(
            "affinity: mismatchLabelKeys is merged",
            _incoming(labels, requests=full, affinity=pod_affinity(term("node", exists, mismatchLabelKeys=["bar"]))),
            neighbours("fuga", "a", "a", full_one=True),
            REFUSED,
        ),
    ]


def _namespaces() -> list[UpstreamCase]:
    team = {"matchExpressions": [expression("team", "In", "team1")]}
    near = term("region", _service("In", "securityscan"), namespaceSelector=team)
    nodes = [node(f"testnode-{number}", {"region": "r1", "zone": "z11"}) for number in range(2)]
    spaces = [namespace("ns1", team="team1"), namespace("ns2", team="team1"), namespace("ns3", team="team2")]
    incoming = pod("pod-ns-selector", inside="ns1", affinity=pod_affinity(near))
    return [
        UpstreamCase(
            source=SELECTOR,
            case=case,
            before=(*spaces, *nodes, pod("fakename2", SCAN, on="testnode-0", inside=inside)),
            stages=(Stage(show=(incoming,), expect={"pod-ns-selector": expected}),),
        )
        for case, inside, expected in (
            ("MatchingNamespaces", "ns2", on_nodes("testnode-0", "testnode-1")),
            ("MismatchingNamespaces", "ns3", REFUSED),
        )
    ]


def _scoring() -> list[UpstreamCase]:
    inside = [f"in-topology-{number}" for number in range(5)]
    nodes = [node(one, {"node-topologykey": "topologyvalue"}) for one in inside]
    nodes += [node(f"other-node-{number}") for number in range(5)]
    spaces = [namespace("ns1", team="team1"), namespace("ns2", team="team1")]
    attractor = pod("attractor-pod", {"service": "S1"}, on="in-topology-0", inside="ns1")

    def case(name: str, where: str, **parts: object) -> UpstreamCase:
        wanted = term("node-topologykey", _service("In", "S1", "S3"), **parts)
        preferred = {"podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": wanted}]}}
        stage = Stage(show=(pod("pod1", inside=where, affinity=preferred),), expect={"pod1": on_nodes(*inside)})
        return UpstreamCase(source=SCORING, case=name, before=(*spaces, *nodes, attractor), stages=(stage,))

    return [
        case("pod affinity", "ns1"),
        case("pod affinity with namespace selector", "ns2", namespaceSelector={}),
    ]


def _later() -> list[UpstreamCase]:
    friend = {"pod-with-affinity": "true"}
    wanted = term("region")
    wanted["labelSelector"] = {"matchLabels": friend}
    waiting = Stage(show=(pod("pod-1", affinity=pod_affinity(wanted)),), expect={"pod-1": REFUSED})
    there = node("node-1", {"region": "test"})
    arrived = {"pod-1": on_nodes("node-1")}
    return [
        UpstreamCase(
            source=LATER,
            case="pod with pod-affinity gets added",
            before=(there,),
            stages=(
                waiting,
                Stage(
                    show=(pod("pod-with-affinity", friend),),
                    expect={"pod-with-affinity": on_nodes("node-1"), **arrived},
                ),
            ),
        ),
        UpstreamCase(
            source=LATER,
            case="scheduled pod gets updated to match affinity",
            before=(there, pod("pod-to-be-updated", on="node-1")),
            stages=(waiting, Stage(show=(pod("pod-to-be-updated", friend, on="node-1"),), expect=arrived)),
        ),
    ]


def _waiting(name: str, label: str, topology: str, *, anti: bool, labelled: bool = True, **spec: KubeJson) -> KubeJson:
    """Return a pod with one term about pods that have a label; *labelled*: it has the label itself."""
    wanted = term(topology, expression(label, "Exists"))
    affinity = pod_affinity(anti=[wanted]) if anti else pod_affinity(wanted)
    return pod(name, {label: label} if labelled else None, affinity={**affinity, **spec.pop("near", {})}, **spec)


def _requeued() -> list[UpstreamCase]:
    return [*_requeued_by_pods(), *_requeued_by_nodes()]


def _changed(
    case: str, before: list[KubeJson], pods: list[KubeJson], change: Stage, *, source: str = QUEUE
) -> UpstreamCase:
    """Return a case in which all *pods* are refused at first; the pods that `change` does not name stay refused."""
    names = [one["metadata"]["name"] for one in pods]
    after = Stage(show=change.show, hide=change.hide, expect={**dict.fromkeys(names, REFUSED), **change.expect})
    first = Stage(show=tuple(pods), expect=dict.fromkeys(names, REFUSED))
    return UpstreamCase(source=source, case=case, before=tuple(before), stages=(first, after))


def _requeued_by_pods() -> list[UpstreamCase]:
    there = node("fake-node", {"node": "fake-node"})
    both = {"anti1": "anti1", "anti2": "anti2"}
    first, second = pod("pod1", {"anti1": "anti1"}, on="fake-node"), pod("pod2", {"anti2": "anti2"}, on="fake-node")
    against = [
        pod(f"pod{number}", on="fake-node", affinity=pod_affinity(anti=[term("node", expression(label, "Exists"))]))
        for number, label in enumerate(both, 1)
    ]
    here = on_nodes("fake-node")
    return [
        _changed(
            "Pod rejected by the InterPodAffinity plugin is requeued when deleting the existed pod's label",
            [there, pod("pod1", both, on="fake-node")],
            [_waiting("pod2", "anti1", "node", anti=True), _waiting("pod3", "anti2", "node", anti=True)],
            Stage(show=(pod("pod1", {"anti2": "anti2"}, on="fake-node"),), expect={"pod2": here}),
        ),
        _changed(
            "Pod rejected by the InterPodAffinity plugin is requeued when deleting the existing pod that matches",
            [there, first, second],
            [_waiting("pod3", "anti1", "node", anti=True), _waiting("pod4", "anti2", "node", anti=True)],
            Stage(hide=(first,), expect={"pod3": here}),
        ),
        _changed(
            "Pod rejected by the InterPodAffinity plugin is requeued when deleting the existing pod with podAntiAffinity",
            [there, *against],
            [pod("pod3", {"anti1": "anti1"}), pod("pod4", {"anti2": "anti2"})],
            Stage(hide=(against[0],), expect={"pod3": here}),
        ),
        _changed(
            "Pod rejected by the PodAffinity plugin is requeued when updating the existed pod's label",
            [there, pod("pod1", on="fake-node")],
            [
                _waiting("pod2", "aaa", "node", anti=False, labelled=False),
                _waiting("pod3", "bbb", "node", anti=False, labelled=False),
            ],
            Stage(show=(pod("pod1", {"aaa": "bbb"}, on="fake-node"),), expect={"pod2": here}),
        ),
    ]


def _requeued_by_nodes() -> list[UpstreamCase]:
    anti = {"anti1": "anti1"}
    labels = {"service": "service-a", "other": "fake-node"}
    group = node_affinity(expression("group", "In", "b"))
    return [
        _changed(
            "Pod rejected by the PodAffinity plugin is requeued when a new Node is created",
            [
                node("fake-node", {"node": "fake-node"}, cpu="2"),
                pod(
                    "pod1",
                    {"anti": "anti"},
                    on="fake-node",
                    affinity=pod_affinity(anti=[term("node", expression("anti", "Exists"))]),
                ),
            ],
            [_waiting("pod2", "anti", "node", anti=True)],
            Stage(show=(node("fake-node2", {"node": "fake-node2"}, cpu="2"),), expect={"pod2": on_nodes("fake-node2")}),
        ),
        _changed(
            "Pod rejected by the InterPodAffinity plugin is requeued when updating the node with the topologyKey label "
            "of the pod affinity",
            [
                node("fake-node", {"region": "region-1"}),
                node("fake-node2", {"region": "region-2", "group": "b"}),
                pod("pod1", {"affinity1": "affinity1"}, on="fake-node"),
            ],
            [
                _waiting("pod2", "affinity1", "node", anti=False),
                _waiting("pod3", "affinity1", "other", anti=False),
                _waiting("pod4", "affinity1", "region", anti=False, labelled=False, near=group),
            ],
            Stage(
                show=(node("fake-node", {"node": "fake-node", "region": "region-2"}),),
                expect={"pod2": on_nodes("fake-node"), "pod4": on_nodes("fake-node2")},
            ),
        ),
        _changed(
            "Pod rejected by the InterPodAffinity plugin is requeued when updating the node with the topologyKey label "
            "of the pod anti affinity",
            [node("fake-node", {"node": "fake-node", **labels}), pod("pod1", anti, on="fake-node")],
            [
                _waiting("pod2", "anti1", "node", anti=True),
                _waiting("pod3", "anti1", "service", anti=True),
                _waiting("pod4", "anti1", "other", anti=True),
            ],
            # Upstream expects that pod3 is tried again too. It stays refused: pod1 is in its new domain as well.
            Stage(
                show=(node("fake-node", {"service": "service-b", "region": "fake-node", "other": "fake-node"}),),
                expect={"pod2": on_nodes("fake-node")},
            ),
        ),
        _changed(
            "Pod rejected by the InterPodAffinity plugin is requeued when creating the node with the topologyKey label "
            "of the pod anti affinity",
            [node("fake-node1", {"zone": "fake-node", "node": "fake-node"}), pod("pod1", anti, on="fake-node1")],
            [
                _waiting("pod2", "anti1", "zone", anti=True, labelled=False),
                _waiting("pod3", "anti1", "node", anti=True, labelled=False),
            ],
            # Upstream expects that pod2 is tried again too. It stays refused: the new node is in the same zone.
            Stage(show=(node("fake-node2", {"zone": "fake-node"}),), expect={"pod3": on_nodes("fake-node2")}),
        ),
    ]
