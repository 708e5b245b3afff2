"""Retold cases about nodes: taints, labels, resources, ports and images."""

from typing import Any, Final

from tests.parity.case_objects import PREFERRED, KubeJson, expression
from tests.upstream_cases.case_model import REFUSED, Stage, UpstreamCase, on_nodes
from tests.upstream_cases.kube_objects import node, node_affinity, pod, taint, toleration

TAINTS: Final = "scheduler/filters/filters_test.go, TestTaintTolerationFilter"
LATER: Final = "scheduler/filters/filters_test.go, TestUnschedulablePodBecomesSchedulable"
AFFINITY_SCORE: Final = "scheduler/scoring/priorities_test.go, TestNodeAffinityScoring"
IMAGE_SCORE: Final = "scheduler/scoring/priorities_test.go, TestImageLocalityScoring"
QUEUE: Final = "scheduler/queueing/queue.go, CoreResourceEnqueueTestCases"

ONE: Final = ("example.com/taint1", "value1")
TWO: Final = ("example.com/taint2", "value2")
NOT_READY: Final = "node.kubernetes.io/not-ready"


def cases() -> list[UpstreamCase]:
    """Return all cases."""
    return [*_taints(), *_scores(), *_later(), *_requeued_by_taints(), *_requeued_by_labels(), *_requeued_by_room()]


def _taints() -> list[UpstreamCase]:
    table: list[tuple[str, tuple[Any, ...], tuple[Any, ...], bool]] = [
        ("Pod tolerates node taint", (ONE,), (ONE,), True),
        ("Pod does not tolerate node taint", (ONE,), (), False),
        ("Pod tolerates some but not all node taints", (ONE, TWO), (ONE,), False),
        ("Pod tolerates all node taints", (ONE, TWO), (ONE, TWO), True),
        ("Node has one taint, pod has multiple tolerations", (ONE,), (ONE, TWO), True),
        ("Node has no taint, pod has one toleration", (), (ONE,), True),
    ]
    return [
        UpstreamCase(
            source=TAINTS,
            case=name,
            before=(node("node-1", taints=[taint(*one) for one in taints]),),
            stages=(
                Stage(
                    show=(
                        pod("pod-1", tolerations=[toleration(key, value, "NoSchedule") for key, value in tolerated]),
                    ),
                    expect={"pod-1": on_nodes("node-1") if fits else REFUSED},
                ),
            ),
        )
        for name, taints, tolerated, fits in table
    ]


def _scores() -> list[UpstreamCase]:
    label = {"kubernetes.io/node-topologyKey": "topologyvalue"}
    wanted = {"matchExpressions": [expression(key, "In", value) for key, value in label.items()]}
    preferred = {"nodeAffinity": {PREFERRED: [{"weight": 20, "preference": wanted}]}}
    large = {"names": ["fake-large-image:v1"], "sizeBytes": 3000 * 1024 * 1024}
    using = pod("pod-using-large-image")
    using["spec"]["containers"][0]["image"] = "fake-large-image:v1"
    return [
        UpstreamCase(
            source=AFFINITY_SCORE,
            case="",
            before=(*(node(f"testnode-{number}") for number in range(4)), node("testnode-4", label)),
            stages=(
                Stage(
                    show=(pod("pod-with-node-affinity", affinity=preferred),),
                    expect={"pod-with-node-affinity": on_nodes("testnode-4")},
                ),
            ),
        ),
        UpstreamCase(
            source=IMAGE_SCORE,
            case="",
            before=(
                node("testnode-large-image", images=[large]),
                *(node(f"testnode-{number}") for number in range(10)),
            ),
            stages=(Stage(show=(using,), expect={"pod-using-large-image": on_nodes("testnode-large-image")}),),
        ),
    ]


def _changed(
    case: str, before: list[KubeJson], pods: list[KubeJson], change: Stage, *, source: str = QUEUE
) -> UpstreamCase:
    """Return a case in which all *pods* are refused at first; the pods that *change* does not name stay refused."""
    names = [one["metadata"]["name"] for one in pods]
    after = Stage(show=change.show, hide=change.hide, expect={**dict.fromkeys(names, REFUSED), **change.expect})
    first = Stage(show=tuple(pods), expect=dict.fromkeys(names, REFUSED))
    return UpstreamCase(source=source, case=case, before=tuple(before), stages=(first, after))


def _later() -> list[UpstreamCase]:
    waiting = [pod("pod-1")]
    small = node("node-scheduler-integration-test", pods="1")
    other = pod("pod-to-be-deleted", on="node-scheduler-integration-test")
    return [
        _changed(
            "node gets added",
            [],
            waiting,
            Stage(show=(node("node-added"),), expect={"pod-1": on_nodes("node-added")}),
            source=LATER,
        ),
        _changed(
            "node gets taint removed",
            [node("node-tainted", taints=[taint("test", "test")])],
            waiting,
            Stage(show=(node("node-tainted"),), expect={"pod-1": on_nodes("node-tainted")}),
            source=LATER,
        ),
        _changed(
            "other pod gets deleted",
            [small, other],
            waiting,
            Stage(hide=(other,), expect={"pod-1": on_nodes("node-scheduler-integration-test")}),
            source=LATER,
        ),
    ]


def _tolerant(name: str, *keys: str, **spec: Any) -> KubeJson:
    return pod(name, tolerations=[toleration(key) for key in keys], **spec)


def _requeued_by_taints() -> list[UpstreamCase]:
    not_ready = node("fake-node", taints=[taint(NOT_READY)])
    cordoned = node("fake-node1")
    cordoned["spec"]["unschedulable"] = True
    another = {**cordoned, "metadata": {**cordoned["metadata"], "name": "fake-node2", "uid": "node-fake-node2"}}
    four = {"requests": {"cpu": "4"}}
    return [
        _changed(
            "Pod without a required toleration to a node isn't requeued to activeQ",
            [node("fake-node", taints=[taint(NOT_READY)], cpu="2")],
            [pod("pod1", **four), _tolerant("pod2", NOT_READY, **four)],
            Stage(
                show=(node("fake-node", taints=[taint(NOT_READY)], cpu="4"),), expect={"pod2": on_nodes("fake-node")}
            ),
        ),
        _changed(
            "Pod updated with toleration requeued to activeQ",
            [node("fake-node", taints=[taint("taint-key")])],
            [pod("pod1"), pod("pod2")],
            Stage(show=(_tolerant("pod1", "taint-key"),), expect={"pod1": on_nodes("fake-node")}),
        ),
        _changed(
            "Pod rejected by the TaintToleration plugin is requeued when the Node's taint is updated",
            [not_ready],
            [_tolerant("pod1", "taint-key"), _tolerant("pod2", "taint-key2"), pod("pod3")],
            Stage(
                show=(node("fake-node", taints=[taint("taint-key")]),),
                expect={"pod1": on_nodes("fake-node")},
            ),
        ),
        _changed(
            "Pod rejected by the TaintToleration plugin is requeued when a Node that has the correspoding taint is added",
            [not_ready],
            [_tolerant("pod1", "taint-key"), pod("pod2")],
            Stage(
                show=(node("fake-node2", taints=[taint("taint-key")]),),
                expect={"pod1": on_nodes("fake-node2")},
            ),
        ),
        _changed(
            "Pod rejected by the NodeUnschedulable plugin is requeued when the node is turned to ready",
            [cordoned],
            [pod("pod1")],
            Stage(show=(node("fake-node1"),), expect={"pod1": on_nodes("fake-node1")}),
        ),
        _changed(
            "Pod rejected by the NodeUnschedulable plugin is requeued when a new node is created",
            [cordoned],
            [pod("pod1")],
            Stage(show=(node("fake-node2"),), expect={"pod1": on_nodes("fake-node2")}),
        ),
        _changed(
            "Pod rejected by the NodeUnschedulable plugin isn't requeued when another unschedulable node is created",
            [cordoned],
            [pod("pod1")],
            Stage(show=(another,), expect={}),
        ),
    ]


def _grouped(name: str, group: str, **spec: Any) -> KubeJson:
    return pod(name, affinity=node_affinity(expression("group", "In", group)), **spec)


def _requeued_by_labels() -> list[UpstreamCase]:
    there = node("fake-node1", {"group": "a"})
    pods = [_grouped("pod1", "b"), _grouped("pod2", "c")]
    named = node_affinity(expression("metadata.name", "In", "fake-node"), field="matchFields")
    return [
        _changed(
            "Pod rejected by the NodeAffinity plugin is requeued when a Node's label is updated",
            [there],
            pods,
            Stage(show=(node("fake-node1", {"group": "b"}),), expect={"pod1": on_nodes("fake-node1")}),
        ),
        _changed(
            "Pod rejected by the NodeAffinity plugin is not requeued when an updated Node haven't changed the 'match'",
            [node("node1", {"group": "a"}, cpu="2"), node("node2", {"group": "b"})],
            [_grouped("pod1", "a", requests={"cpu": "4"})],
            Stage(show=(node("node1", {"group": "a", "node": "fake-node"}, cpu="2"),), expect={}),
        ),
        _changed(
            "Pod rejected by the NodeAffinity plugin is requeued when a Node is added",
            [there],
            pods,
            Stage(show=(node("fake-node2", {"group": "b"}),), expect={"pod1": on_nodes("fake-node2")}),
        ),
        _changed(
            "Pod rejected by the PreFilter of NodeAffinity plugin and Filter of NodeResourcesFit is requeued",
            [node("fake-node", {"node": "fake-node"}, cpu="2"), node("fake-node2", {"zone": "zone1"}, cpu="2")],
            [pod("pod1", affinity=named, requests={"cpu": "4"})],
            Stage(show=(node("fake-node", {"node": "fake-node"}, cpu="4"),), expect={"pod1": on_nodes("fake-node")}),
        ),
    ]


def _with_port(name: str, port: int, **spec: Any) -> KubeJson:
    found = pod(name, **spec)
    found["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": port, "protocol": "TCP"}]
    return found


def _requeued_by_room() -> list[UpstreamCase]:
    large = [pod("pod1", requests={"cpu": "4"}), pod("pod2", requests={"cpu": "5"})]
    user = pod("pod1", on="fake-node", requests={"cpu": "2"})
    port = _with_port("pod1", 8080, on="fake-node")
    return [
        _changed(
            "Pod rejected by the NodeResourcesFit plugin is requeued when a Pod is deleted",
            [node("fake-node", cpu="2"), user],
            [pod("pod2", requests={"cpu": "2"})],
            Stage(hide=(user,), expect={"pod2": on_nodes("fake-node")}),
        ),
        _changed(
            "Pod rejected by the NodeResourcesFit plugin is requeued when a Node is created",
            [node("fake-node1", cpu="2")],
            large,
            Stage(show=(node("fake-node2", cpu="4"),), expect={"pod1": on_nodes("fake-node2")}),
        ),
        _changed(
            "Pod rejected by the NodeResourcesFit plugin is requeued when a Node is updated",
            [node("fake-node", cpu="2")],
            large,
            Stage(show=(node("fake-node", cpu="4"),), expect={"pod1": on_nodes("fake-node")}),
        ),
        _changed(
            "Pod rejected with hostport by the NodePorts plugin is requeued when pod with common hostport is deleted",
            [node("fake-node"), port, _with_port("pod2", 8081, on="fake-node")],
            [_with_port("pod3", 8080), _with_port("pod4", 8081)],
            Stage(hide=(port,), expect={"pod3": on_nodes("fake-node")}),
        ),
        _changed(
            "Pod rejected with hostport by the NodePorts plugin is requeued when new node is created",
            [node("fake-node"), port],
            [_with_port("pod2", 8080)],
            Stage(show=(node("fake-node2"),), expect={"pod2": on_nodes("fake-node2")}),
        ),
    ]
