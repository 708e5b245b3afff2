"""Pods from Kubernetes JSON: each field the scheduler looks at, and what is wrong with those that cannot be read."""

import json

import pytest

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
)
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Toleration
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_pod

MEBIBYTE = 2**20


def read(*, metadata=None, spec=None, status=None):
    """The pod that *metadata*, *spec* and *status* describe."""
    return decode_pod(json.dumps({"metadata": metadata or {}, "spec": spec or {}, "status": status or {}}).encode())


def a_container(image="app", **resources):
    return {"name": "c", "image": image, "resources": resources}


WHOLE = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "cart-0",
        "namespace": "shop",
        "uid": "3f5a",
        "resourceVersion": "812",
        "creationTimestamp": "2026-03-01T12:30:05Z",
        "deletionTimestamp": "2026-03-01T13:00:00Z",
        "labels": {"app": "cart"},
        "annotations": {"note": "first"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "seed", "uid": "c1"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "cart", "uid": "s1", "controller": True},
        ],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    },
    "spec": {
        "initContainers": [
            {"name": "setup", "image": "setup:1", "resources": {"requests": {"cpu": "2"}}},
            {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
        ],
        "containers": [
            {
                "name": "app",
                "image": "cart:7",
                "env": [{"name": "A", "value": "b"}],
                "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "64Mi", "cpu": "100m"}},
                "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "protocol": "UDP"}],
            },
            {"name": "side", "image": "side:2"},
        ],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "model", "image": {"reference": "models/small:3", "pullPolicy": "IfNotPresent"}},
        ],
        "nodeSelector": {"disk": "ssd", "arch": "arm"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                                {"key": "gpu", "operator": "DoesNotExist"},
                            ],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                        }
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}},
                    {"weight": 1, "preference": {}},
                ],
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "cart"}},
                        "namespaces": ["shop"],
                        "namespaceSelector": {},
                    }
                ],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}],
            },
        },
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 3,
            },
            {"key": "team", "value": "shop"},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"tier": "web", "app": "cart"}},
            },
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["cart"]}]},
                "minDomains": 3,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["pod-template-hash"],
            },
        ],
        "priority": 1000,
        "schedulerName": "lamina",
        "nodeName": "n1",
        "schedulingGates": [{"name": "quota"}, {"name": "review"}],
        "imagePullSecrets": [{"name": "team"}, {}],
        "overhead": {"cpu": "10m"},
    },
    "status": {"phase": "Running", "nominatedNodeName": "n2"},
}

EXPECTED = Pod(
    uid=PodUid("3f5a"),
    name="cart-0",
    namespace="shop",
    containers=(
        Container("cart:7", (("cpu", 100), ("memory", 64 * MEBIBYTE)), "app", limits=(("memory", 1024 * MEBIBYTE),)),
        Container("side:2", (), "side"),
    ),
    init_containers=(
        Container("setup:1", (("cpu", 2000),), "setup"),
        Container("mesh:1", (("cpu", 50),), "mesh", sidecar=True),
    ),
    image_volumes=("models/small:3",),
    # The first init container alone needs more processor than everything that runs in the end; the overhead is on top.
    requests=(("cpu", 2010), ("memory", 64 * MEBIBYTE)),
    # Containers that ask for no memory count 200 MiB each: 64 + 200 in the end, and 200 for the sidecar.
    scoring_requests=(("cpu", 2010), ("memory", 464 * MEBIBYTE)),
    limits=(("cpu", 2010), ("memory", 1024 * MEBIBYTE)),
    labels={"app": "cart"},
    annotations={"note": "first"},
    priority=1000,
    scheduler_name="lamina",
    node_name="n1",
    nominated_node="n2",
    node_selector=(("arch", "arm"), ("disk", "ssd")),
    required_nodes=NodeSelector(
        (
            NodeSelectorTerm(
                (Requirement("zone", "In", ("a", "b")), Requirement("gpu", "DoesNotExist")),
                (Requirement("metadata.name", "In", ("n1",)),),
            ),
        )
    ),
    preferred_nodes=(
        PreferredNodes(5, NodeSelectorTerm((Requirement("disk", "Exists"),))),
        PreferredNodes(1, NodeSelectorTerm()),
    ),
    repels=(PodTerm("kubernetes.io/hostname", LabelSelector((("app", "cart"),)), ("shop",), LabelSelector()),),
    host_ports=(HostPort(8080),),
    avoided_pods=(PreferredPods(1, PodTerm("")),),
    tolerations=(
        Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
        Toleration("team", "Equal", "shop"),
    ),
    spread=(
        SpreadConstraint(
            2,
            "topology.kubernetes.io/zone",
            "ScheduleAnyway",
            LabelSelector((("app", "cart"), ("tier", "web"))),
            min_domains=None,
            node_affinity_policy="Honor",
            node_taints_policy="Ignore",
        ),
        SpreadConstraint(
            1,
            "kubernetes.io/hostname",
            "DoNotSchedule",
            LabelSelector((), (Requirement("app", "In", ("cart",)),)),
            min_domains=3,
            node_affinity_policy="Ignore",
            node_taints_policy="Honor",
            match_label_keys=("pod-template-hash",),
        ),
    ),
    gates=("quota", "review"),
    pull_secrets=("team", ""),
    owner=Owner("StatefulSet", "cart", "s1", "apps/v1"),
    created_at=1772368205.0,
    started=True,
    deleting=True,
    deleting_since=1772370000.0,
)


def test_a_pod_is_read_field_by_field():
    assert EXPECTED == decode_pod(json.dumps(WHOLE).encode())


def test_a_pod_that_says_little_is_read_with_what_the_api_takes_for_granted():
    assert Pod(uid=PodUid(""), name="a") == read(metadata={"name": "a"})


def test_a_bookmark_is_not_an_error():
    """This is how a watch says that nothing happened: a pod without name, with null for a list and for a time."""
    bookmark = (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12746","creationTimestamp":null},'
        b'"spec":{"containers":null},"status":{}}'
    )

    assert Pod(uid=PodUid(""), name="") == decode_pod(bookmark)


NULLS = {
    "metadata": {"name": "a", "labels": None, "annotations": None, "ownerReferences": None, "deletionTimestamp": None},
    "spec": dict.fromkeys(
        [
            "containers",
            "initContainers",
            "volumes",
            "resources",
            "overhead",
            "nodeName",
            "nodeSelector",
            "affinity",
            "tolerations",
            "topologySpreadConstraints",
            "priority",
            "schedulerName",
            "schedulingGates",
            "imagePullSecrets",
            "resourceClaims",
            "schedulingGroup",
            "workloadRef",
            "hostNetwork",
            "hostUsers",
        ]
    ),
    "status": {"phase": None, "nominatedNodeName": None},
}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(NULLS, id="every field"),
        pytest.param({"metadata": {"name": "a"}, "status": None}, id="the status"),
        pytest.param({"kind": None, "metadata": {"name": "a"}}, id="the kind"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"affinity": {"nodeAffinity": None}}}, id="node affinity"),
        pytest.param(
            {
                "metadata": {"name": "a"},
                "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
            },
            id="required affinity",
        ),
        pytest.param({"metadata": {"name": "a"}, "spec": {"volumes": [{"image": None}]}}, id="an image volume"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"volumes": [{"persistentVolumeClaim": None}]}}, id="a claim"),
        *(
            pytest.param({"metadata": {"name": "a"}, "spec": {"affinity": {kind: said}}}, id=f"{kind}: {said}")
            for kind in ("podAffinity", "podAntiAffinity")
            for said in (None, {}, {"requiredDuringSchedulingIgnoredDuringExecution": None})
        ),
    ],
)
def test_null_is_nothing(document):
    """Clients in languages without a difference between the two send it."""
    assert Pod(uid=PodUid(""), name="a") == decode_pod(json.dumps(document).encode())


def test_an_affinity_whose_lists_are_null_matches_no_node():
    """It was given, so it is not the same as none."""
    required = {"nodeSelectorTerms": [{"matchExpressions": None, "matchFields": None}]}
    pod = read(spec={"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})

    assert NodeSelector((NodeSelectorTerm(),)) == pod.required_nodes


NULL_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": None,
    "minDomains": None,
    "nodeAffinityPolicy": None,
    "nodeTaintsPolicy": None,
    "matchLabelKeys": None,
}


@pytest.mark.parametrize(
    ("written", "selector"),
    [
        pytest.param({}, None, id="all of them null: no pod is counted"),
        pytest.param({"labelSelector": {}}, LabelSelector(), id="an empty selector: every pod"),
        pytest.param(
            {"labelSelector": {"matchLabels": None, "matchExpressions": None}}, LabelSelector(), id="null inside it"
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": None}]}},
            LabelSelector((), (Requirement("a", "Exists"),)),
            id="an expression without values",
        ),
    ],
)
def test_a_spread_constraint_that_says_little_has_the_defaults_of_the_api(written, selector):
    """Affinity is honoured, taints are not, and any number of domains will do."""
    pod = read(spec={"topologySpreadConstraints": [NULL_SPREAD | written]})

    assert (SpreadConstraint(1, "zone", "DoNotSchedule", selector, None, "Honor", "Ignore", ()),) == pod.spread


@pytest.mark.parametrize(
    ("phase", "started", "finished"),
    [
        pytest.param(None, False, False, id="no phase yet"),
        pytest.param("", False, False, id="an empty one"),
        pytest.param("Pending", False, False, id="pending"),
        pytest.param("Running", True, False, id="running"),
        pytest.param("Succeeded", True, True, id="succeeded"),
        pytest.param("Failed", True, True, id="failed"),
    ],
)
def test_the_phase_says_whether_a_pod_has_started_and_finished(phase, started, finished):
    pod = read(status={"phase": phase})

    assert (started, finished) == (pod.started, pod.finished)


def test_what_is_alike_in_two_pods_is_one_thing():
    """Ten thousand pods of one deployment hold their requests, tolerations and owner once."""
    first, second = decode_pod(json.dumps(WHOLE).encode()), decode_pod(json.dumps(WHOLE).encode())

    assert first.requests is second.requests
    assert first.tolerations is second.tolerations
    assert first.required_nodes is second.required_nodes
    assert first.repels is second.repels
    assert first.owner is second.owner


def test_only_the_owner_that_controls_the_pod_is_its_owner():
    assert read(metadata={"ownerReferences": [{"kind": "Job", "name": "j", "controller": False}]}).owner is None


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), ("Unknown", False), ("", False)],
)
def test_a_pod_that_came_to_an_end_is_finished(phase, finished):
    assert finished is read(status={"phase": phase}).finished


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"metadata":{"name":7}}', id="a number as name"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', id="not UTF-8"),
        pytest.param(b'{"metadata":{"name":"\\ud800"}}', id="half a character"),
        pytest.param(b'{"spec":{"priority":1e400}}', id="a huge number"),
        pytest.param(b'{"spec":{"priority":' + b"9" * 5000 + b"}}", id="a long number"),
        pytest.param(b'{"spec":' + b"[" * 100_000, id="deep, and wrong"),
        pytest.param(b'{"x":' + b"[" * 100_000, id="deep, and passed over"),
        pytest.param(b'{"spec":{"affinity":' + b'{"x":' * 100_000, id="deep, and left for later"),
        pytest.param(b'{"metadata":{"name":"a"}} {}', id="two documents"),
    ],
)
def test_what_is_not_a_pod_is_refused(document):
    with pytest.raises(
        WireError, match=r"^cannot read Pod: .*; check that a Kubernetes API server sent it$"
    ) as refusal:
        decode_pod(document)

    assert "Pod" == refusal.value.kind


def test_another_kind_of_object_is_called_by_its_name():
    with pytest.raises(WireError, match=r"^cannot read Pod: this is a Node; ask for pods$"):
        decode_pod(b'{"kind":"Node","metadata":{"name":"n1"}}')


@pytest.mark.parametrize(
    ("part", "words"),
    [
        pytest.param(
            {"spec": {"containers": [a_container(requests={"cpu": "lots"})]}},
            "spec: containers[].resources: 'lots' is not a quantity",
            id="request",
        ),
        pytest.param(
            {"spec": {"initContainers": [a_container(requests={"cpu": ""})]}},
            "spec: initContainers[].resources: '' is not a quantity",
            id="request of an init container",
        ),
        pytest.param(
            {"spec": {"containers": [a_container(requests={"cpu": None})]}},
            "spec: containers[].resources: Expected",
            id="null as an amount",
        ),
        pytest.param({"spec": {"resources": {"requests": []}}}, "spec: resources: Expected", id="of the pod"),
        pytest.param({"spec": {"overhead": {"cpu": "1Q"}}}, "spec: overhead: '1Q' is not a quantity", id="overhead"),
        pytest.param({"spec": {"tolerations": [{"key": 1}]}}, "spec.tolerations: Expected", id="toleration"),
        pytest.param(
            {"spec": {"topologySpreadConstraints": [{"maxSkew": 2**31}]}},
            "spec.topologySpreadConstraints: Expected",
            id="a skew beyond 32 bits",
        ),
        pytest.param(
            {"spec": {"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"a": 1}}}]}},
            "spec.topologySpreadConstraints: Expected",
            id="spread selector",
        ),
        pytest.param({"spec": {"affinity": {"nodeAffinity": 1}}}, "spec.affinity: Expected", id="affinity"),
        pytest.param({"spec": {"nodeSelector": {"a": 1}}}, "spec.nodeSelector: Expected", id="node selector"),
        pytest.param({"metadata": {"ownerReferences": [1]}}, "metadata.ownerReferences: Expected", id="owner"),
        pytest.param({"metadata": {"creationTimestamp": "now"}}, "'now' is not a time", id="time"),
    ],
)
def test_what_is_wrong_with_a_pod_is_said_with_its_name_and_the_place(part, words):
    document = {**part, "metadata": {"name": "a", "namespace": "shop", **part.get("metadata", {})}}

    with pytest.raises(WireError) as refusal:
        decode_pod(json.dumps(document).encode())

    assert str(refusal.value).startswith(f"cannot read Pod shop/a: {words}")
