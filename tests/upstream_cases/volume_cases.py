"""
Retold cases about volumes.

Upstream runs the controller that binds claims at once if their class says so. Here such claims are bound from the
beginning, and claims whose class waits are not.
"""

from collections.abc import Sequence
from typing import Any, Final

from tests.parity.case_objects import KubeJson, expression
from tests.upstream_cases.case_model import REFUSED, Expectation, Stage, UpstreamCase, on_nodes, preempts
from tests.upstream_cases.kube_objects import HOSTNAME, node, node_affinity, pod, pod_affinity, term
from tests.upstream_cases.storage_objects import (
    DYNAMIC,
    IMMEDIATE,
    ONE_POD,
    WAIT,
    both_classes,
    bound_pair,
    claim,
    csi_node,
    host,
    storage_class,
    volume,
)

BINDING: Final = "volumescheduling/volume_binding_test.go, TestVolumeBinding"
LATER: Final = "volumescheduling/volume_binding_test.go, TestVolumeBindingRescheduling"
PROVISION: Final = "volumescheduling/volume_binding_test.go, TestVolumeProvision"
CONFLICT: Final = "volumescheduling/volume_binding_test.go, TestPVAffinityConflict"
ANTI: Final = "volumescheduling/volume_binding_test.go, TestVolumeBindingWithAntiAffinity"
BECOMES: Final = "scheduler/filters/filters_test.go, TestUnschedulablePodBecomesSchedulable"
ONE_POD_PREEMPTION: Final = "scheduler/preemption/misc/miscpreemption_test.go, TestReadWriteOncePodPreemption"
QUEUE: Final = "scheduler/queueing/queue.go, CoreResourceEnqueueTestCases"

ZONE: Final = "topology.kubernetes.io/zone"
HERE: Final = on_nodes("node-1")


def cases() -> list[UpstreamCase]:
    """Return all cases."""
    return [
        *_binding(),
        *_later(),
        *_provision(),
        *_conflict(),
        *_anti_affinity(),
        *_becoming(),
        *_zones(),
        *_requeued(),
    ]


def preemption_cases() -> list[UpstreamCase]:
    """Return the cases that also need preemption."""
    return _one_pod_preemption()


def _case(
    source: str,
    name: str,
    before: Sequence[KubeJson],
    claims: Sequence[str],
    expected: Expectation,
    *later: Stage,
    **spec: Any,
) -> UpstreamCase:
    first = Stage(show=(pod("pod", claims=claims, **spec),), expect={"pod": expected})
    return UpstreamCase(source=source, case=name, before=tuple(before), stages=(first, *later))


def _binding() -> list[UpstreamCase]:
    cluster = [host(1), host(2), *both_classes()]
    two = [claim("pvc-a", WAIT), claim("pvc-b", WAIT)]
    bound = bound_pair("i", IMMEDIATE, on="node-1")

    def case(name: str, objects: list[KubeJson], claims: list[str], expected: Expectation) -> UpstreamCase:
        return _case(BINDING, name, [*cluster, *objects], claims, expected)

    return [
        case("immediate can bind", bound, ["pvc-i"], HERE),
        case("immediate cannot bind", [claim("pvc-i", IMMEDIATE)], ["pvc-i"], REFUSED),
        case("immediate pvc prebound", bound, ["pvc-i"], HERE),
        case("immediate pv prebound", bound, ["pvc-i"], HERE),
        case("wait can bind", [claim("pvc-w", WAIT), volume("pv-w", WAIT, on="node-1")], ["pvc-w"], HERE),
        case("wait cannot bind", [claim("pvc-w", WAIT)], ["pvc-w"], REFUSED),
        case("wait pvc prebound", bound_pair("w", WAIT, on="node-1"), ["pvc-w"], HERE),
        case(
            "wait pv prebound",
            [claim("pvc-w", WAIT), volume("pv-w", WAIT, on="node-1", of="pvc-w")],
            ["pvc-w"],
            HERE,
        ),
        case(
            "wait can bind two",
            [
                *two,
                volume("pv-2", WAIT, on="node-2"),
                volume("pv-3", WAIT, on="node-2"),
                volume("pv-5", WAIT, on="node-1"),
            ],
            ["pvc-a", "pvc-b"],
            on_nodes("node-2"),
        ),
        case(
            "wait cannot bind two",
            [*two, volume("pv-1", WAIT, on="node-2"), volume("pv-2", WAIT, on="node-1")],
            ["pvc-a", "pvc-b"],
            REFUSED,
        ),
        case(
            "mix immediate and wait",
            [*bound, claim("pvc-w", WAIT), volume("pv-w", WAIT, on="node-1")],
            ["pvc-w", "pvc-i"],
            HERE,
        ),
    ]


def _later() -> list[UpstreamCase]:
    local = "local-storage"
    cluster = [host(1), host(2)]
    return [
        _case(
            LATER,
            "reschedule on WaitForFirstConsumer dynamic storage class add",
            [*cluster, claim("pvc", local)],
            ["pvc"],
            REFUSED,
            Stage(
                show=(storage_class(local, waits=True, provisioner=DYNAMIC),),
                expect={"pod": on_nodes("node-1", "node-2")},
            ),
        ),
        _case(
            LATER,
            "reschedule on WaitForFirstConsumer static storage class add",
            [*cluster, claim("pvc", local)],
            ["pvc"],
            REFUSED,
            Stage(show=(storage_class(local, waits=True), volume("pv", local, on="node-1")), expect={"pod": HERE}),
        ),
        _case(
            LATER,
            "reschedule on delay binding PVC add",
            [*cluster, *both_classes(), volume("pv", WAIT, on="node-1")],
            ["pvc"],
            REFUSED,
            Stage(show=(claim("pvc", WAIT),), expect={"pod": HERE}),
        ),
    ]


def _provision() -> list[UpstreamCase]:
    elsewhere = storage_class("topomismatch", waits=True, provisioner=DYNAMIC, only_on="node-2")
    cluster = [host(1), *both_classes(DYNAMIC), elsewhere]
    new = claim("pvc-new", WAIT)

    def case(name: str, objects: list[KubeJson], claims: list[str], expected: Expectation) -> UpstreamCase:
        return _case(PROVISION, name, [*cluster, *objects], claims, expected)

    return [
        case("wait provisioned", [new], ["pvc-new"], HERE),
        case("topolgy unsatisfied", [claim("pvc-new", "topomismatch")], ["pvc-new"], REFUSED),
        case(
            "wait one bound, one provisioned",
            [claim("pvc-w", WAIT), volume("pv-w", WAIT, on="node-1"), new],
            ["pvc-w", "pvc-new"],
            HERE,
        ),
        case(
            "one immediate pv prebound, one wait provisioned",
            [*bound_pair("i", IMMEDIATE, on="node-1"), new],
            ["pvc-i", "pvc-new"],
            HERE,
        ),
        case(
            "wait one pv prebound, one provisioned",
            [claim("pvc-w", WAIT), volume("pv-w", WAIT, on="node-1", of="pvc-w"), new],
            ["pvc-w", "pvc-new"],
            HERE,
        ),
        case("immediate provisioned by controller", bound_pair("i", IMMEDIATE), ["pvc-i"], HERE),
    ]


def _conflict() -> list[UpstreamCase]:
    before = [*(host(number) for number in (1, 2, 3)), *both_classes(), *bound_pair("i", IMMEDIATE, on="node-1")]
    wanted = node_affinity(expression(HOSTNAME, "In", "node-2"))
    return [
        _case(CONFLICT, "markNodeAffinity", before, ["pvc-i"], REFUSED, affinity=wanted),
        _case(CONFLICT, "markNodeSelector", before, ["pvc-i"], REFUSED, nodeSelector={HOSTNAME: "node-2"}),
    ]


def _anti_affinity() -> list[UpstreamCase]:
    labels = {"app": "volume-binding-test"}
    apart = pod_affinity(anti=[term(HOSTNAME, expression("app", "In", "volume-binding-test"))])
    before = [
        *(host(1), host(2)),
        *both_classes(),
        *bound_pair("0", WAIT, on="node-1"),
        *(volume(f"pv-node1-{number}", WAIT, on="node-1") for number in range(1, 4)),
        *(volume("pv-node2", WAIT, on="node-2"), claim("pvc-1", WAIT), claim("pvc-2", WAIT)),
        pod("pod-0", labels, on="node-1", claims=["pvc-0"], affinity=apart),
    ]
    stages = (
        Stage(show=(pod("pod-1", labels, claims=["pvc-1"], affinity=apart),), expect={"pod-1": on_nodes("node-2")}),
        Stage(show=(pod("pod-2", labels, claims=["pvc-2"], affinity=apart),), expect={"pod-2": REFUSED}),
    )
    return [UpstreamCase(source=ANTI, case="", before=tuple(before), stages=stages)]


def _becoming() -> list[UpstreamCase]:
    shared = bound_pair("rwop", mode=ONE_POD)
    user = pod("pod-to-be-deleted", on="node-1", claims=["pvc-rwop"])
    return [
        _case(
            BECOMES,
            "scheduled pod uses read-write-once-pod pvc",
            [host(1), *shared, user],
            ["pvc-rwop"],
            REFUSED,
            Stage(hide=(user,), expect={"pod": HERE}),
        ),
        _case(
            BECOMES,
            "pod with pvc has node-affinity to non-existent/illegal nodes",
            bound_pair("x", on="node-1,non-existing", mode=ONE_POD),
            ["pvc-x"],
            REFUSED,
            Stage(show=(host(1),), expect={"pod": HERE}),
        ),
        _case(
            BECOMES,
            "pod with pvc got scheduled after node updated it's label",
            [node("node-1", {"foo": "foo"}), *bound_pair("foo", on="bar", key="foo", mode=ONE_POD)],
            ["pvc-foo"],
            REFUSED,
            Stage(show=(node("node-1", {"foo": "bar"}),), expect={"pod": HERE}),
        ),
    ]


def _zones() -> list[UpstreamCase]:
    west, east = {ZONE: "us-west1-a"}, {ZONE: "us-east1"}
    there = host(1, west)
    bound = claim("pvc2", to="pv2", mode=ONE_POD)
    right = volume("pv2", of="pvc2", labels=west)
    return [
        _case(
            QUEUE,
            "Pod rejected with node by the VolumeZone plugin is requeued when the PV is added",
            [there, bound],
            ["pvc2"],
            REFUSED,
            Stage(show=(right,), expect={"pod": HERE}),
        ),
        _case(
            QUEUE,
            "Pod rejected with node by the VolumeZone plugin is requeued when the PV is updated",
            [there, bound, volume("pv2", of="pvc2", labels=east)],
            ["pvc2"],
            REFUSED,
            Stage(show=(right,), expect={"pod": HERE}),
        ),
    ]


def _requeued() -> list[UpstreamCase]:
    there = host(1, {ZONE: "us-west-1a"})
    away = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-west-1c"]}]}]}
    here = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-west-1a"]}]}]}
    waits = storage_class("sc1", waits=True, provisioner="p")
    user = pod("pod1", on="node-1", claims=["pvc-1"])
    limited = [host(1), csi_node("node-1", 1), *bound_pair("1", driver=True), *bound_pair("2", driver=True), user]
    bound = Stage(show=(claim("pvc1", to="pv1"),), expect={"pod": HERE, "other": REFUSED})
    both = Stage(
        show=(pod("pod", claims=["pvc1"]), pod("other", claims=["pvc2"])), expect={"pod": REFUSED, "other": REFUSED}
    )
    return [
        UpstreamCase(
            source=QUEUE,
            case="Pod rejected with node by the VolumeBinding plugin is requeued when the PVC is updated",
            before=(host(1), volume("pv1"), claim("pvc1"), claim("pvc2")),
            stages=(both, bound),
        ),
        _case(
            QUEUE,
            "Pod rejected with node by the VolumeBinding plugin is requeued when the StorageClass is created",
            [host(1), volume("pv1", "sc1"), claim("pvc1", "sc1")],
            ["pvc1"],
            REFUSED,
            Stage(show=(waits,), expect={"pod": HERE}),
        ),
        # Upstream's case also has a volume that fits everywhere, with which the pod would not wait for the class.
        _case(
            QUEUE,
            "Pod rejected with node by the VolumeBinding plugin is requeued when the StorageClass's AllowedTopologies",
            [there, {**waits, **away}, claim("pvc1", "sc1")],
            ["pvc1"],
            REFUSED,
            Stage(show=({**waits, **here},), expect={"pod": HERE}),
        ),
        _case(
            QUEUE,
            "Pod rejected with PVC by the CSI NodeVolumeLimits plugin is requeued when the pod having related PVC",
            limited,
            ["pvc-2"],
            REFUSED,
            Stage(hide=(user,), expect={"pod": HERE}),
        ),
    ]


def _one_pod_preemption() -> list[UpstreamCase]:
    there = node("node1", {"node": "node1"}, cpu="500m", memory="500")
    pairs = [*bound_pair("1", mode=ONE_POD), *bound_pair("2", mode=ONE_POD)]
    low, high = {"priority": 100}, {"priority": 300}
    both = ["pvc-1", "pvc-2"]
    victims = [pod(f"victim-pod-{one}", on="node1", started=one, claims=[f"pvc-{one}"], **low) for one in (1, 2)]
    of_both = pod("victim-pod", on="node1", claims=both, **low)

    def case(name: str, running: list[KubeJson], claims: list[str]) -> UpstreamCase:
        expected = preempts(node1=[one["metadata"]["name"] for one in running])
        return _case(ONE_POD_PREEMPTION, name, [there, *pairs, *running], claims, expected, **high)

    return [
        case("preempt single pod", victims[:1], ["pvc-1"]),
        case("preempt two pods", victims, both),
        case("preempt single pod with two volumes", [of_both], both),
    ]
