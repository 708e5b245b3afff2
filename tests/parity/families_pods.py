"""Families of parity cases about other pods: spreading, affinity between pods, and preemption."""

import random
from typing import Final

from tests.parity.case_clusters import NAMESPACES, ClusterTraits, draw_cluster, draw_placed, requests_of
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
    running_status,
)
from tests.parity.families_nodes import Drawn, plain_pod, preferred_nodes, required_nodes, tolerations, with_ports


def label_selector(rng: random.Random) -> KubeJson | None:
    """Draw a label selector; seldom an empty one, or none at all."""
    roll = rng.random()
    if roll < 0.04:
        return None
    if roll < 0.1:
        return {}
    if roll < 0.6:
        return {"matchLabels": {"app": rng.choice("xyz")}}
    if roll < 0.7:
        return {"matchLabels": {"app": rng.choice("xy"), "hash": rng.choice("12")}}
    if roll < 0.8:
        return {"matchExpressions": [expression("app", rng.choice(("In", "NotIn")), "x", "y")]}
    return {"matchExpressions": [expression("hash", rng.choice(("Exists", "DoesNotExist")))]}


def pod_labels(rng: random.Random) -> dict[str, str]:
    """Draw the labels by which pods select each other."""
    labels = {"app": rng.choice("xyz")} if rng.random() < 0.9 else {}
    if rng.random() < 0.4:
        labels["hash"] = rng.choice("12")
    return labels


# -- spreading -------------------------------------------------------------------------------------------------------


def spread_constraint(rng: random.Random, when: str) -> KubeJson:
    """Draw one constraint."""
    one: KubeJson = {
        "maxSkew": rng.choice((1, 1, 2, 5)),
        "topologyKey": rng.choice((ZONE, ZONE, HOSTNAME, RACK)),
        "whenUnsatisfiable": when,
    }
    selector = label_selector(rng)
    if selector is not None:
        one["labelSelector"] = selector
    if when == "DoNotSchedule" and rng.random() < 0.3:
        one["minDomains"] = rng.choice((1, 2, 4, 7))
    if rng.random() < 0.3:
        one["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.3:
        one["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if selector and rng.random() < 0.2:
        one["matchLabelKeys"] = ["hash"]
    return one


def topology_spread(rng: random.Random, name: str) -> Drawn:
    """Return a pod with hard or soft constraints, or both."""
    nodes, placed = draw_cluster(rng, ClusterTraits(tainted=0.15, zoned=rng.choice((0.85, 1.0)), small=0.2))
    constraints: dict[tuple[str, str], KubeJson] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        one = spread_constraint(rng, rng.choice(("DoNotSchedule", "ScheduleAnyway")))
        constraints[one["topologyKey"], one["whenUnsatisfiable"]] = one
    parts: KubeJson = {"labels": pod_labels(rng), "topologySpreadConstraints": list(constraints.values())}
    if rng.random() < 0.25:
        parts["affinity"] = {"nodeAffinity": required_nodes(rng, nodes)}
    if rng.random() < 0.3:
        parts["tolerations"] = tolerations(rng)
    return nodes, placed, plain_pod(rng, name, **parts)


def default_spread(rng: random.Random, name: str) -> Drawn:
    """Return a pod without constraints that a Service selects, or that a ReplicaSet controls, or both."""
    nodes, placed = draw_cluster(rng, ClusterTraits(pods_per_node=0.7, small=0.2, zoned=rng.choice((0.0, 0.8, 1.0))))
    kind = rng.choice(("service", "replicas", "both"))
    own: KubeJson = {"namespace": "default", "labels": {"app": "web" if kind != "replicas" else "batch"}}
    if kind != "service":
        own["labels"]["pod-template-hash"] = "5"
        own["owner"] = ("ReplicaSet", "web-5" if kind == "both" else "batch-5")
    number = len(placed)
    for _ in range(rng.randint(0, 3 * len(nodes))):
        node = rng.choice(nodes)["metadata"]["name"]
        placed.append(draw_placed(rng, number, node, ClusterTraits(), requests={}, **_copy(own)))
        number += 1
    return nodes, placed, plain_pod(rng, name, **_copy(own))


SELECTED: Final = (
    ({"app": "api"}, None),
    ({"app": "api", "tier": "front"}, None),
    ({"app": "db"}, ("StatefulSet", "db")),
    ({"app": "db", "tier": "front"}, ("StatefulSet", "db")),
    ({"app": "old"}, ("ReplicationController", "old", "v1")),
    ({"app": "api"}, ("ReplicationController", "old", "v1")),
    ({"app": "api"}, ("Job", "night", "batch/v1")),
    ({"app": "none"}, ("Job", "night", "batch/v1")),
    ({"app": "api", "pod-template-hash": "5"}, ("ReplicaSet", "web-5")),
    ({"app": "db"}, ("StatefulSet", "db", "apps.example.com/v1")),
    ({"app": "db"}, ("StatefulSet", "gone")),
)
"""Labels and owner of pods for `default_selectors`."""


def default_selectors(rng: random.Random, name: str) -> Drawn:
    """Return a pod without constraints that several Services or controllers of several kinds select, or none."""
    nodes, placed = draw_cluster(rng, ClusterTraits(pods_per_node=0.5, small=0.2, zoned=rng.choice((0.0, 0.8, 1.0))))
    number = len(placed)
    for _ in range(rng.randint(len(nodes), 4 * len(nodes))):
        node, (labels, owner) = rng.choice(nodes)["metadata"]["name"], rng.choice(SELECTED)
        parts: KubeJson = {"namespace": rng.choice(("default", "default", "other")), "labels": dict(labels)}
        placed.append(draw_placed(rng, number, node, ClusterTraits(), requests={}, owner=owner, **parts))
        number += 1
    labels, owner = rng.choice(SELECTED)
    return nodes, placed, plain_pod(rng, name, namespace="default", labels=dict(labels), owner=owner)


def _copy(parts: KubeJson) -> KubeJson:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in parts.items()}


# -- affinity between pods ---------------------------------------------------------------------------------------------


def pod_term(rng: random.Random) -> KubeJson:
    """Draw one term of a pod affinity."""
    term: KubeJson = {"topologyKey": rng.choice((ZONE, ZONE, HOSTNAME, RACK))}
    selector = label_selector(rng)
    if selector is not None:
        term["labelSelector"] = selector
    if rng.random() < 0.25:
        term["namespaces"] = rng.sample(("default", "other", "third"), rng.randint(1, 2))
    if rng.random() < 0.2:
        term["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "none"}}))
    return term


def pod_affinity(rng: random.Random, often: float = 0.4) -> KubeJson:
    """Draw pod affinity and anti-affinity, required and preferred."""
    found: KubeJson = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        parts: KubeJson = {}
        if rng.random() < often:
            parts[REQUIRED] = [pod_term(rng) for _ in range(rng.choice((1, 1, 2)))]
        if rng.random() < often:
            parts[PREFERRED] = [
                {"weight": rng.randint(1, 100), "podAffinityTerm": pod_term(rng)} for _ in range(rng.choice((1, 2)))
            ]
        if parts:
            found[kind] = parts
    return found


def inter_pod_affinity(rng: random.Random, name: str) -> Drawn:
    """Return a pod with affinity to others, or others with affinity to it, or both."""
    nodes, placed = draw_cluster(rng, ClusterTraits(pods_per_node=rng.choice((0.3, 1.5)), small=0.2))
    theirs, own = rng.choice(((0.0, 0.5), (0.3, 0.0), (0.2, 0.4)))
    for pod in placed:
        if rng.random() < theirs and (affinity := pod_affinity(rng, 0.3)):
            pod["spec"]["affinity"] = affinity
    parts: KubeJson = {"labels": pod_labels(rng), "namespace": rng.choice(NAMESPACES)}
    if own and (affinity := pod_affinity(rng, own)):
        parts["affinity"] = affinity
    return nodes, placed, plain_pod(rng, name, **parts)


NAMESPACE_SELECTORS: Final[tuple[KubeJson, ...]] = (
    {"matchExpressions": [expression("team", "Exists")]},
    {"matchExpressions": [expression("team", "In", "a", "b")]},
    {"matchExpressions": [expression("kubernetes.io/metadata.name", "In", "other")]},
    {"matchExpressions": [expression("team", "NotIn", "a")]},
    {"matchExpressions": [expression("team", "DoesNotExist")]},
    {"matchLabels": {"team": "b"}},
    {},
)


def affinity_corners(rng: random.Random, name: str) -> Drawn:
    """
    Return a pod with affinity in unusual clusters.

    Pods match their own terms, select namespaces by expressions, have several terms of one topology or weights that add
    up to less than 0, and many placed pods are being deleted.
    """
    traits = ClusterTraits(pods_per_node=rng.choice((0.1, 0.5, 2.0)), zoned=rng.choice((0.5, 1.0)), most_nodes=40)
    nodes, placed = draw_cluster(rng, traits)
    for pod in placed:
        if rng.random() < 0.3:
            pod["metadata"].update(deletionTimestamp="2026-01-01T02:00:00Z", deletionGracePeriodSeconds=30)
        if rng.random() < 0.3 and (theirs := pod_affinity(rng, 0.3)):
            pod["spec"]["affinity"] = theirs
    labels = {"app": rng.choice("xyz"), "hash": rng.choice("12")}
    affinity: KubeJson = {}
    for kind, often in (("podAffinity", 0.6), ("podAntiAffinity", 0.4)):
        parts: KubeJson = {}
        if rng.random() < often:
            parts[REQUIRED] = [_corner(rng, labels) for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < often:
            drawn = [_corner(rng, labels) for _ in range(rng.choice((1, 2, 4)))]
            parts[PREFERRED] = [{"weight": rng.choice((1, 50, 100)), "podAffinityTerm": one} for one in drawn]
        if parts:
            affinity[kind] = parts
    parts = {"labels": labels, "namespace": rng.choice(NAMESPACES)}
    if affinity:
        parts["affinity"] = affinity
    return nodes, placed, plain_pod(rng, name, **parts)


def _corner(rng: random.Random, labels: dict[str, str]) -> KubeJson:
    term = pod_term(rng)
    if rng.random() < 0.5:
        term["labelSelector"] = {"matchLabels": {"app": labels["app"]}}
    if rng.random() < 0.35:
        term["namespaceSelector"] = rng.choice(NAMESPACE_SELECTORS)
    return term


# -- preemption --------------------------------------------------------------------------------------------------------


def preemption(rng: random.Random, name: str) -> Drawn:
    """Return a pod of some priority in a full cluster whose pods have other priorities and disruption budgets."""
    traits = ClusterTraits(pods_per_node=0.0, tainted=0.1, cordoned=0.05, small=1.0, most_nodes=40)
    nodes, placed = draw_cluster(rng, traits)
    number = 0
    for node in nodes:
        node["status"]["allocatable"].update({"cpu": "2", "memory": "8Gi", "pods": rng.choice(("110", "110", "3"))})
        for _ in range(rng.choice((1, 2, 3, 4))):
            placed.append(_low(rng, number, node["metadata"]["name"]))
            number += 1
    parts: KubeJson = {"priority": rng.choice((1000, 1000, 50, 10, 0)), "labels": pod_labels(rng)}
    roll = rng.random()
    if roll < 0.1:
        parts["preemptionPolicy"] = "Never"
    elif roll < 0.2:
        parts["affinity"] = {"nodeAffinity": required_nodes(rng, nodes)}
    elif roll < 0.3:
        parts["affinity"] = {"podAntiAffinity": {REQUIRED: [pod_term(rng)]}}
    elif roll < 0.4:
        parts["topologySpreadConstraints"] = [spread_constraint(rng, "DoNotSchedule")]
    requests = {"cpu": rng.choice(("1", "1500m", "2", "2", "3")), "memory": rng.choice(("1Gi", "2Gi"))}
    pod = pod_object(name, [container_object("c0", requests)], **parts)
    return nodes, placed, with_ports(rng, pod) if rng.random() < 0.15 else pod


def _low(rng: random.Random, number: int, node: str) -> KubeJson:
    """Return a pod that may be a victim."""
    labels = pod_labels(rng)
    if rng.random() < 0.5:
        labels["guard"] = rng.choice("012")
        if rng.random() < 0.3:
            labels["extra"] = "1"
    requests = {"cpu": rng.choice(("250m", "500m", "1")), "memory": rng.choice(("512Mi", "1Gi"))}
    parts: KubeJson = {
        "namespace": rng.choice(("default", "default", "other")),
        "labels": labels,
        "priority": rng.choice((0, 0, 5, 10, 100, 2000, -10)),
        "status": running_status(f"2026-01-01T{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00Z"),
        "requests": requests,
    }
    pod = draw_placed(rng, number, node, ClusterTraits(), **parts)
    return with_ports(rng, pod) if rng.random() < 0.1 else pod


# -- everything --------------------------------------------------------------------------------------------------------


def mixed(rng: random.Random, name: str) -> Drawn:
    """Return a pod with several demands at once, without affinity between pods in half of the cases."""
    traits = ClusterTraits(tainted=0.3, cordoned=0.05, imaged=0.5, extended=0.2, pods_per_node=1.5)
    nodes, placed = draw_cluster(rng, traits)
    between = rng.random() < 0.5
    for pod in placed:
        if rng.random() < 0.15:
            with_ports(rng, pod)
        if between and rng.random() < 0.1 and (theirs := pod_affinity(rng, 0.3)):
            pod["spec"]["affinity"] = theirs
    parts: KubeJson = {"labels": pod_labels(rng), "tolerations": tolerations(rng)}
    affinity: KubeJson = {}
    if rng.random() < 0.5:
        affinity["nodeAffinity"] = {
            **(required_nodes(rng, nodes) if rng.random() < 0.4 else {}),
            **(preferred_nodes(rng, nodes) if rng.random() < 0.7 else {}),
        }
    if between:
        affinity.update(pod_affinity(rng, 0.3))
    if affinity:
        parts["affinity"] = affinity
    if rng.random() < 0.5:
        parts["topologySpreadConstraints"] = [spread_constraint(rng, rng.choice(("DoNotSchedule", "ScheduleAnyway")))]
    containers = [container_object("c0", requests_of(rng, 0.1), rng.choice(("app:1", "torch:2", "base")))]
    pod = pod_object(name, containers, priority=rng.choice((0, 0, 0, 100)), **parts)
    return nodes, placed, with_ports(rng, pod) if rng.random() < 0.2 else pod
