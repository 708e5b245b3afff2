"""Families of parity cases about properties of nodes: names, labels, taints, ports, cordons and images."""

import random
from typing import Final

from tests.parity.case_clusters import IMAGES, TAINT_KEYS, TAINT_VALUES, ClusterTraits, draw_cluster, requests_of
from tests.parity.case_objects import (
    HOSTNAME,
    PREFERRED,
    RACK,
    REQUIRED,
    ZONE,
    KubeJson,
    container_object,
    expression,
    pod_object,
)

Drawn = tuple[list[KubeJson], list[KubeJson], KubeJson]

PORTS: Final = (80, 443, 8080)
IPS: Final = (None, None, "10.0.0.1", "10.0.0.2", "0.0.0.0")
PROTOCOLS: Final = ("TCP", "TCP", "TCP", "UDP", "SCTP")
FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
OPERATORS: Final = ("Exists", "Equal", "Equal")


def plain_pod(rng: random.Random, name: str, **parts: object) -> KubeJson:
    """Return a pod with one container."""
    return pod_object(name, [container_object("c0", requests_of(rng))], **parts)


# -- node affinity ---------------------------------------------------------------------------------------------------


def node_term(rng: random.Random, nodes: list[KubeJson]) -> KubeJson:
    """Draw one term of a node selector: expressions, fields or both, and seldom neither."""
    term: KubeJson = {}
    if rng.random() < 0.85:
        term["matchExpressions"] = [_requirement(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.25:
        name = rng.choice(nodes)["metadata"]["name"] if rng.random() < 0.8 else "n999"
        term["matchFields"] = [expression("metadata.name", rng.choice(("In", "In", "NotIn")), name)]
    return term


def _requirement(rng: random.Random) -> KubeJson:
    key = rng.choice((ZONE, RACK, "disk", "size", "none"))
    operator = rng.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    if key == "size" and rng.random() < 0.7:
        return expression(key, rng.choice(("Gt", "Lt")), rng.choice(("5", "40", "0")))
    if operator in {"Exists", "DoesNotExist"}:
        return expression(key, operator)
    return expression(key, operator, *rng.sample(("a", "b", "c", "1", "2", "ssd", "7"), rng.randint(1, 4)))


def required_nodes(rng: random.Random, nodes: list[KubeJson]) -> KubeJson:
    """Draw a required node affinity."""
    terms = [node_term(rng, nodes) for _ in range(rng.choice((1, 1, 2, 3)))]
    return {REQUIRED: {"nodeSelectorTerms": terms}}


def preferred_nodes(rng: random.Random, nodes: list[KubeJson]) -> KubeJson:
    """Draw preferred node affinities."""
    terms = [{"weight": rng.randint(1, 100), "preference": node_term(rng, nodes)} for _ in range(rng.randint(1, 4))]
    return {PREFERRED: terms}


def node_affinity(rng: random.Random, name: str) -> Drawn:
    """Return a pod with a node selector, required terms, preferred terms, or several of them."""
    nodes, placed = draw_cluster(rng, ClusterTraits())
    affinity: KubeJson = {}
    if rng.random() < 0.6:
        affinity.update(required_nodes(rng, nodes))
    if rng.random() < 0.7:
        affinity.update(preferred_nodes(rng, nodes))
    parts: KubeJson = {"affinity": {"nodeAffinity": affinity}} if affinity else {}
    if rng.random() < 0.25:
        parts["nodeSelector"] = dict(rng.sample([(RACK, "1"), ("disk", "ssd"), (ZONE, "c")], rng.randint(1, 2)))
    return nodes, placed, plain_pod(rng, name, **parts)


# -- taints, cordons and names -----------------------------------------------------------------------------------------


def tolerations(rng: random.Random) -> list[KubeJson]:
    """Draw up to three tolerations."""
    drawn = []
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        operator = rng.choice(OPERATORS)
        one: KubeJson = {"operator": operator}
        if operator == "Equal" or rng.random() < 0.8:
            one["key"] = rng.choice(TAINT_KEYS)
        value = rng.choice(TAINT_VALUES)
        if operator == "Equal" and value:
            one["value"] = value
        effect = rng.choice(("", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        if effect:
            one["effect"] = effect
        drawn.append(one)
    return drawn


def taint_toleration(rng: random.Random, name: str) -> Drawn:
    """Return a pod among tainted nodes."""
    nodes, placed = draw_cluster(rng, ClusterTraits(tainted=rng.choice((0.4, 0.8, 1.0))))
    return nodes, placed, plain_pod(rng, name, tolerations=tolerations(rng))


def node_unschedulable(rng: random.Random, name: str) -> Drawn:
    """Return a pod among cordoned nodes; some pods tolerate that."""
    nodes, placed = draw_cluster(rng, ClusterTraits(cordoned=rng.choice((0.3, 0.6, 1.0))))
    tolerated: list[KubeJson] = []
    if rng.random() < 0.4:
        tolerated = [{"key": TAINT_KEYS[2], "operator": "Exists"}]
        if rng.random() < 0.7:
            tolerated[0]["effect"] = rng.choice(("NoSchedule", "NoSchedule", "NoExecute"))
    return nodes, placed, plain_pod(rng, name, tolerations=tolerated)


def node_name(rng: random.Random, name: str) -> Drawn:
    """Return a pod that names a single node by a field: one that exists, or another one."""
    nodes, placed = draw_cluster(rng, ClusterTraits(tainted=0.1))
    wanted = [
        rng.choice(nodes)["metadata"]["name"] if rng.random() < 0.85 else "n999" for _ in range(rng.randint(1, 3))
    ]
    terms = [{"matchFields": [expression("metadata.name", "In", one)]} for one in wanted]
    if rng.random() < 0.2:
        terms[0]["matchExpressions"] = [expression(HOSTNAME, "Exists")]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return nodes, placed, plain_pod(rng, name, affinity=affinity)


def node_features(rng: random.Random, name: str) -> Drawn:
    """Return a pod that requires features, among nodes that declare some."""
    nodes, placed = draw_cluster(rng, ClusterTraits(tainted=0.1, cordoned=0.05))
    for node in nodes:
        declared = [one for one in FEATURES if rng.random() < 0.6]
        if declared:
            node["status"]["declaredFeatures"] = declared
    pod = plain_pod(rng, name)
    roll = rng.random()
    if roll < 0.55:
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}}
        container = pod["spec"]["containers"][0]
        if rng.random() < 0.3:
            container = container_object("i0", {})
            pod["spec"]["initContainers"] = [container]
        container.update(restartPolicy="Never", restartPolicyRules=[rule])
    if roll > 0.4:
        pod["spec"].update(hostNetwork=True, hostUsers=rng.random() < 0.15)
    return nodes, placed, pod


# -- ports and images --------------------------------------------------------------------------------------------------


def port_list(rng: random.Random) -> list[KubeJson]:
    """Draw ports of a container, most of them ports of the host."""
    drawn = []
    for _ in range(rng.randint(1, 2)):
        port = rng.choice(PORTS)
        one: KubeJson = {"containerPort": port, "protocol": rng.choice(PROTOCOLS)}
        if rng.random() < 0.9:
            one["hostPort"] = port
            address = rng.choice(IPS)
            if address is not None:
                one["hostIP"] = address
        drawn.append(one)
    return drawn


def with_ports(rng: random.Random, pod: KubeJson) -> KubeJson:
    """Give a pod's first container ports, or add a sidecar or an init container that has some."""
    spec, ports = pod["spec"], port_list(rng)
    roll = rng.random()
    if roll < 0.8:
        spec["containers"][0]["ports"] = ports
    else:
        init = container_object("i0", {}, ports=ports)
        if roll < 0.9:
            init["restartPolicy"] = "Always"
        spec["initContainers"] = [init]
    return pod


def node_ports(rng: random.Random, name: str) -> Drawn:
    """Return a pod with host ports among pods with host ports."""
    nodes, placed = draw_cluster(rng, ClusterTraits(pods_per_node=1.5))
    for pod in placed:
        if rng.random() < 0.6:
            with_ports(rng, pod)
    return nodes, placed, with_ports(rng, plain_pod(rng, name))


def image_locality(rng: random.Random, name: str) -> Drawn:
    """Return a pod whose images some nodes have."""
    nodes, placed = draw_cluster(rng, ClusterTraits(imaged=rng.choice((0.4, 0.9)), small=0.2))
    pod = plain_pod(rng, name)
    containers = [
        container_object(f"c{number}", requests_of(rng) if number == 0 else {}, image)
        for number, image in enumerate(rng.choices(list(IMAGES), k=rng.choice((1, 1, 2, 3))))
    ]
    if rng.random() < 0.2:
        containers[0]["image"] = rng.choice(("base", "unknown:1", "docker.io/library/app:1"))
    pod["spec"]["containers"] = containers
    if rng.random() < 0.25:
        pod["spec"]["initContainers"] = [container_object("i0", {}, rng.choice(list(IMAGES)))]
    if rng.random() < 0.15:
        volume = {"name": "v", "image": {"reference": rng.choice(list(IMAGES)), "pullPolicy": "IfNotPresent"}}
        pod["spec"]["volumes"] = [volume]
    return nodes, placed, pod
