"""
Laws of what comes from outside: a model object that is written as the API server writes it is read as the same, and
whatever else is sent is read or refused by the room's own error.

The writer is part of these tests: the product reads pods and never writes them.
"""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform
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
    total_limits,
    total_requests,
)
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Taint, Toleration
from lamina.wire import timestamps
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_node, decode_node_list, decode_pod, decode_pod_list, encode_binding
from lamina.wire.oci.manifest import decode_manifest
from tests.property.pod_volume_forms import pod_volumes, written_volume

# ------------------------------------------------------------------------------------------------ objects of the model

texts = st.text(st.characters(codec="utf-8"), max_size=8)
words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
labels = st.dictionaries(texts, texts, max_size=3)
resource_names = st.sampled_from(["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"])
amounts = st.dictionaries(resource_names, st.integers(0, 2**62), max_size=3).map(
    lambda held: tuple(sorted(held.items()))
)


def tuples(elements, most=3):
    return st.lists(elements, max_size=most).map(tuple)


requirements = st.builds(Requirement, texts, texts, tuples(texts))
node_terms = st.builds(NodeSelectorTerm, tuples(requirements), tuples(requirements))
selectors = st.builds(NodeSelector, tuples(node_terms))
sorted_labels = labels.map(lambda held: tuple(sorted(held.items())))
int32 = st.integers(-(2**31), 2**31 - 1)
label_selectors = st.none() | st.builds(LabelSelector, sorted_labels, tuples(requirements))
constraints = st.builds(
    SpreadConstraint,
    int32,
    texts,
    texts,
    label_selectors,
    st.none() | int32,
    texts,
    texts,
    tuples(texts),
)

containers = tuples(st.builds(Container, texts, amounts, texts, limits=amounts))
init_containers = tuples(st.builds(Container, texts, amounts, texts, st.booleans(), amounts))
platforms = st.builds(Platform, words, words)


PHASES = ["Pending", "Running", "Failed"]


@st.composite
def lives(draw, phase):
    """When what happened to a pod."""
    times = st.integers(1, 2**32).map(float)
    life = {"bound_at": draw(st.just(0.0) | times)}
    if draw(st.booleans()):
        life |= {"ready": True, "ready_at": draw(times)}
    if draw(st.booleans()):
        life |= {"deleting": True, "deleting_since": draw(times)}
    if phase == "Failed":
        life["ended_at"] = draw(st.just(0.0) | times)
    return life


pod_terms = st.builds(PodTerm, texts, label_selectors, tuples(texts), label_selectors)


@st.composite
def pods(draw):
    """A pod, with the two things it does not keep: what it asked for as a whole, and its overhead."""
    running, init = draw(containers), draw(init_containers)
    pod_level, overhead = draw(amounts), draw(amounts)
    requests, scoring_requests = total_requests(running, init, pod_level, overhead)
    limited = any(container.limits for container in (*running, *init))
    phase = draw(st.sampled_from(PHASES))
    pod = Pod(
        uid=PodUid(draw(texts)),
        name=draw(texts),
        namespace=draw(words),
        containers=running,
        init_containers=init,
        image_volumes=draw(tuples(words)),
        volumes=draw(tuples(pod_volumes)),
        requests=requests,
        scoring_requests=scoring_requests,
        limits=total_limits(running, init, pod_level, overhead) if limited else (),
        labels=draw(labels),
        annotations=draw(labels),
        priority=draw(st.integers(-(2**31), 2**31 - 1)),
        scheduler_name=draw(words),
        node_name=draw(texts),
        nominated_node=draw(texts),
        node_selector=draw(sorted_labels),
        required_nodes=draw(st.none() | selectors),
        preferred_nodes=draw(tuples(st.builds(PreferredNodes, int32, node_terms), most=2)),
        required_pods=draw(tuples(pod_terms, most=2)),
        repels=draw(tuples(pod_terms, most=2)),
        preferred_pods=draw(tuples(st.builds(PreferredPods, int32, pod_terms), most=2)),
        avoided_pods=draw(tuples(st.builds(PreferredPods, int32, pod_terms), most=2)),
        host_ports=draw(tuples(st.builds(HostPort, st.integers(1, 2**16), words, words))) if running else (),
        tolerations=draw(tuples(st.builds(Toleration, texts, texts, texts, texts))),
        spread=draw(tuples(constraints, most=2)),
        gates=draw(tuples(texts)),
        owner=draw(st.none() | st.builds(Owner, texts, texts, texts)),
        created_at=float(draw(st.integers(0, 2**32))),
        started=phase != "Pending",
        finished=phase == "Failed",
        failed=phase == "Failed",
        **draw(lives(phase)),
    )
    return pod, pod_level, overhead


nodes = st.builds(
    Node,
    name=texts,
    uid=texts,
    labels=labels,
    taints=tuples(st.builds(Taint, texts, texts, texts)),
    unschedulable=st.booleans(),
    allocatable=amounts,
    images=tuples(st.builds(NodeImage, tuples(texts), st.integers(0, 2**63 - 1))),
    platform=platforms,
    declared_features=tuples(texts),
)


# ------------------------------------------------------------------------------------- as the API server writes them


def written_time(second):
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written_amounts(held):
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in held}


def written_container(container):
    written = {"name": container.name, "image": container.image}
    if container.requests or container.limits:
        limits, requests = written_amounts(container.limits), written_amounts(container.requests)
        written["resources"] = {"limits": limits, "requests": requests}
    return {**written, "restartPolicy": "Always"} if container.sidecar else written


def written_requirements(held):
    return [{"key": one.key, "operator": one.operator, "values": list(one.values)} for one in held]


def written_term(term):
    return {
        "matchExpressions": written_requirements(term.expressions),
        "matchFields": written_requirements(term.fields),
    }


REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


def written_affinity(pod):
    required = pod.required_nodes
    return {
        "nodeAffinity": {
            REQUIRED: None
            if required is None
            else {"nodeSelectorTerms": [written_term(one) for one in required.terms]},
            PREFERRED: [{"weight": one.weight, "preference": written_term(one.term)} for one in pod.preferred_nodes],
        },
        "podAffinity": written_pod_terms(pod.required_pods, pod.preferred_pods),
        "podAntiAffinity": written_pod_terms(pod.repels, pod.avoided_pods),
    }


def written_pod_terms(required, preferred):
    return {
        REQUIRED: [written_pod_term(one) for one in required],
        PREFERRED: [{"weight": one.weight, "podAffinityTerm": written_pod_term(one.term)} for one in preferred],
    }


def written_pod_term(one):
    return {
        "topologyKey": one.topology_key,
        "labelSelector": None if one.selector is None else written_selector(one.selector),
        "namespaces": list(one.namespaces),
        "namespaceSelector": one.namespace_selector and written_selector(one.namespace_selector),
    }


def written_ports(pod):
    """The ports of a node that a pod wants, among others; they stand in a container of their own."""
    ports = [{"hostPort": one.port, "protocol": one.protocol, "hostIP": one.ip} for one in pod.host_ports]
    return [{"containerPort": 80}, *ports, {"containerPort": 81, "hostPort": 0, "hostIP": "10.0.0.1"}]


def written_tolerations(held):
    return [{"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect} for one in held]


def written_selector(selector):
    return {
        "matchLabels": dict(selector.match_labels),
        "matchExpressions": written_requirements(selector.expressions),
    }


def written_spread(held):
    return [
        {
            "maxSkew": one.max_skew,
            "topologyKey": one.topology_key,
            "whenUnsatisfiable": one.when_unsatisfiable,
            "labelSelector": None if one.selector is None else written_selector(one.selector),
            "minDomains": one.min_domains,
            "nodeAffinityPolicy": one.node_affinity_policy,
            "nodeTaintsPolicy": one.node_taints_policy,
            "matchLabelKeys": list(one.match_label_keys),
        }
        for one in held
    ]


def written_life(pod):
    """The conditions and container statuses that tell what happened to a pod when."""
    conditions = [{"type": "Initialized", "status": "True", "lastTransitionTime": written_time(1.0)}]
    if pod.bound_at:
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": written_time(pod.bound_at)})
    since = written_time(pod.ready_at or 1.0)
    conditions.append({"type": "Ready", "status": str(pod.ready), "lastTransitionTime": since})
    ended = {"terminated": {"finishedAt": written_time(pod.ended_at)}} if pod.ended_at else {"running": {}}
    return {"conditions": conditions, "containerStatuses": [{"name": "c", "state": ended}]}


def written_pod(pod, pod_level, overhead):
    """A pod as an API server sends it, fields we do not look at included."""
    owner = pod.owner
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": pod.labels,
        "annotations": pod.annotations,
        "creationTimestamp": written_time(pod.created_at),
        "deletionTimestamp": written_time(pod.deleting_since + 30) if pod.deleting else None,
        "deletionGracePeriodSeconds": 30 if pod.deleting else None,
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:spec": {}}}],
        "ownerReferences": [{"kind": "Event", "name": "another"}],
    }
    if owner:
        metadata["ownerReferences"] += [{"kind": owner.kind, "name": owner.name, "uid": owner.uid, "controller": True}]
    spec = {
        "containers": [written_container(container) for container in pod.containers],
        "initContainers": [written_container(container) for container in pod.init_containers],
        "volumes": [
            {"emptyDir": {}},
            *({"image": {"reference": name}} for name in pod.image_volumes),
            *map(written_volume, pod.volumes),
        ],
        "resources": {"requests": written_amounts(pod_level)},
        "overhead": written_amounts(overhead),
        "nodeName": pod.node_name,
        "nodeSelector": dict(pod.node_selector),
        "affinity": written_affinity(pod),
        "tolerations": written_tolerations(pod.tolerations),
        "topologySpreadConstraints": written_spread(pod.spread),
        "priority": pod.priority,
        "schedulerName": pod.scheduler_name,
        "schedulingGates": [{"name": gate} for gate in pod.gates],
    }
    if pod.containers:
        spec["containers"][-1]["ports"] = written_ports(pod)
    phase = PHASES[pod.started + pod.finished]
    status = {"phase": phase, "nominatedNodeName": pod.nominated_node, **written_life(pod)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}


def written_node(node):
    """A node as an API server sends it."""
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": node.name, "uid": node.uid, "labels": node.labels},
        "spec": {"taints": taints, "unschedulable": node.unschedulable},
        "status": {
            "capacity": {"cpu": "64"},
            "allocatable": written_amounts(node.allocatable),
            "images": [{"names": list(image.names), "sizeBytes": image.size} for image in node.images],
            "nodeInfo": {"operatingSystem": node.platform.os, "architecture": node.platform.architecture},
            "declaredFeatures": list(node.declared_features),
        },
    }


@given(pods(), st.booleans())
def test_a_pod_that_is_written_is_read_as_the_same(parts, as_ascii):
    """Whether or not its characters are spelled out."""
    document = json.dumps(written_pod(*parts), ensure_ascii=as_ascii)

    assert parts[0] == decode_pod(document.encode())


@given(nodes)
def test_a_node_that_is_written_is_read_as_the_same(node):
    assert node == decode_node(json.dumps(written_node(node)).encode())


@given(st.lists(pods(), max_size=3), st.lists(nodes, max_size=3))
def test_a_list_is_its_members(some_pods, some_nodes):
    pod_page = {"kind": "PodList", "items": [written_pod(*parts) for parts in some_pods]}
    node_page = {"kind": "NodeList", "items": [written_node(node) for node in some_nodes]}

    assert tuple(pod for pod, *_ in some_pods) == decode_pod_list(json.dumps(pod_page).encode()).items
    assert tuple(some_nodes) == decode_node_list(json.dumps(node_page).encode()).items


@given(pods(), words, labels)
def test_a_binding_is_one_json_object_that_names_pod_and_node(parts, node, annotations):
    pod = parts[0]
    binding = json.loads(encode_binding(pod, node, annotations))

    assert (pod.name, pod.namespace, pod.uid) == tuple(binding["metadata"][key] for key in ("name", "namespace", "uid"))
    assert annotations == binding["metadata"].get("annotations", {})
    assert node == binding["target"]["name"]


@given(st.datetimes(timezones=st.timezones()))
def test_a_time_is_what_the_calendar_says(moment):
    """Any zone whose distance from Greenwich is in whole minutes, which are those that RFC 3339 can say."""
    assume(not moment.utcoffset() % timedelta(minutes=1))

    assert timestamps.seconds(moment.isoformat()) == pytest.approx(moment.timestamp(), abs=1e-5)
    assert timestamps.seconds(moment.replace(microsecond=0).isoformat()) == moment.replace(microsecond=0).timestamp()


# ---------------------------------------------------------------------------------------------- whatever else is sent

FIELDS = [
    *("kind", "metadata", "spec", "status", "items", "name", "namespace", "uid", "labels", "annotations", "continue"),
    *("creationTimestamp", "deletionTimestamp", "ownerReferences", "controller", "containers", "initContainers"),
    *("resources", "requests", "overhead", "cpu", "memory", "image", "reference", "restartPolicy", "volumes", "phase"),
    *("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "key"),
    *("matchExpressions", "matchFields", "operator", "values", "value", "tolerations", "effect", "priority", "taints"),
    *("schedulingGates", "nodeSelector", "nodeName", "unschedulable", "allocatable", "images", "names", "sizeBytes"),
    *("topologySpreadConstraints", "maxSkew", "topologyKey", "labelSelector", "matchLabels", "minDomains"),
    *("nodeInfo", "architecture", "schemaVersion", "mediaType", "layers", "manifests", "digest", "size"),
]
VALUES = [
    "Pod",
    "Node",
    "PodList",
    "Always",
    "1",
    "100m",
    "1Gi",
    "-1",
    "1e9",
    "2026-03-01T12:30:05Z",
    "sha256:" + "a" * 64,
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(VALUES),
)
field_names = st.sampled_from(FIELDS) | st.text(max_size=3)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(field_names, inner, max_size=6), max_leaves=30
)
parts = st.dictionaries(field_names, documents, max_size=6)
objects = st.fixed_dictionaries(
    {}, optional={"metadata": parts, "spec": parts, "status": parts, "items": st.lists(parts)}
)


@st.composite
def damaged(draw):
    """A good pod or node, with a few bytes gone, changed or put in."""
    good = draw(pods().map(lambda parts: written_pod(*parts)) | nodes.map(written_node))
    data = bytearray(json.dumps(good).encode())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


def as_bytes(document):
    return json.dumps(document).encode("utf-8", "surrogatepass")


strange = st.one_of(st.binary(), documents.map(as_bytes), objects.map(as_bytes), damaged())


def attempt(read, *arguments):
    """What *read* makes of it; None when it refuses with the room's own error, and any other exception is a failure."""
    try:
        return read(*arguments)
    except WireError as refusal:
        return None if str(refusal).startswith("cannot read ") else pytest.fail("a refusal that does not say of what")


@given(strange)
@example(b'{"spec":{"containers":[{"resources":{"requests":{"cpu":"1' + b"0" * 5000 + b'"}}}]}}')
@example(b'{"spec":{"tolerations":' + b"[" * 5000 + b"]" * 5000 + b"}}")
@example(b'{"metadata":{"labels":{"a":"\\ud83d"}}}')
def test_any_bytes_are_an_object_or_an_error_of_the_wire(data):
    """Never another exception."""
    assert isinstance(attempt(decode_pod, data), Pod | None)
    assert isinstance(attempt(decode_node, data), Node | None)


@given(strange, st.lists(objects, max_size=3), st.lists(pods(), max_size=2))
def test_any_list_is_read_as_far_as_it_can_be(data, odd, good):
    """What is good is found, what is not is counted."""
    attempt(decode_node_list, data)
    attempt(decode_pod_list, data)

    page = decode_pod_list(as_bytes({"items": [*odd, *(written_pod(*parts) for parts in good)]}))
    assert len(odd) + len(good) == len(page.items) + len(page.refused)
    assert tuple(pod for pod, *_ in good) == page.items[len(page.items) - len(good) :]


digests = st.binary(max_size=4).map(digest_of)
layers = st.dictionaries(digests, st.integers(0, 2**40), max_size=6).map(
    lambda sizes: tuple(Layer(digest, size) for digest, size in sizes.items())
)


@given(layers, tuples(texts), platforms)
def test_an_image_whose_manifest_is_written_is_read_as_the_same(held, names, platform):
    listed = [{"digest": layer.digest, "size": layer.size, "urls": ["ftp://x"]} for layer in held]
    data = json.dumps({"schemaVersion": 2, "config": {}, "layers": listed}).encode()

    expected = Image(digest=digest_of(data), layers=held, names=names, platform=platform)
    assert expected == decode_manifest(data, digest_of(data), names=names, platform=platform)


manifests = st.fixed_dictionaries(
    {"schemaVersion": st.just(2) | scalars},
    optional={"layers": st.lists(parts), "manifests": documents, "mediaType": scalars},
)


@given(st.one_of(st.binary(), documents.map(as_bytes), manifests.map(as_bytes)), st.text(max_size=5))
def test_any_bytes_are_an_image_or_an_error_of_the_wire(data, content_type):
    image = attempt(lambda: decode_manifest(data, digest_of(data), content_type=content_type))

    assert image is None or all(layer.size >= 0 for layer in image.layers)


@given(layers, st.data())
def test_a_manifest_with_one_bit_changed_is_not_the_one_that_was_asked_for(held, draw):
    data = json.dumps(
        {"schemaVersion": 2, "layers": [{"digest": one.digest, "size": one.size} for one in held]}
    ).encode()
    place, bit = draw.draw(st.integers(0, len(data) - 1)), draw.draw(st.integers(0, 7))
    changed = bytearray(data)
    changed[place] ^= 1 << bit

    with pytest.raises(WireError, match="the bytes have digest"):
        decode_manifest(bytes(changed), digest_of(data))
