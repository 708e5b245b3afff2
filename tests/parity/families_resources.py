"""Families of parity cases about resources: requests of all kinds, balance, and resizes in place."""

import random

from tests.parity.case_clusters import GPU, ClusterTraits, draw_cluster, draw_placed, requests_of
from tests.parity.case_objects import KubeJson, container_object, pod_object
from tests.parity.families_nodes import Drawn


def _limited(rng: random.Random, requests: dict[str, str]) -> KubeJson:
    """Return resources with limits as large as the requests, for some pods."""
    return (
        {"requests": requests, "limits": dict(requests)} if requests and rng.random() < 0.2 else {"requests": requests}
    )


def wide_pod(rng: random.Random, name: str, extended: float = 0.3) -> KubeJson:
    """Return a pod with several containers, init containers, sidecars, overhead or resources of its own."""
    containers = []
    for number in range(rng.choice((1, 1, 2, 3))):
        requests = requests_of(rng, extended)
        containers.append(container_object(f"c{number}", {}, resources=_limited(rng, requests)))
    init = []
    for number in range(rng.choice((0, 0, 1, 2, 3))):
        one = container_object(f"i{number}", requests_of(rng, extended))
        if rng.random() < 0.4:
            one["restartPolicy"] = "Always"
        init.append(one)
    parts: KubeJson = {"initContainers": init} if init else {}
    if rng.random() < 0.2:
        parts["overhead"] = {"cpu": "250m", "memory": rng.choice(("120Mi", "1Gi"))}
    if rng.random() < 0.25:
        # The requests of a pod are never below the sum of those of its containers.
        parts["resources"] = {"requests": {"cpu": rng.choice(("6", "8")), "memory": rng.choice(("10Gi", "12Gi"))}}
        if rng.random() < 0.3:
            del parts["resources"]["requests"]["cpu"]
    return pod_object(name, containers, **parts)


def resources_fit(rng: random.Random, name: str) -> Drawn:
    """Return a pod that only some nodes have room for."""
    traits = ClusterTraits(extended=rng.choice((0.0, 0.4)), pods_per_node=rng.choice((1.0, 3.0)), small=0.7)
    nodes, placed = draw_cluster(rng, traits)
    return nodes, placed, wide_pod(rng, name, traits.extended)


def balanced_allocation(rng: random.Random, name: str) -> Drawn:
    """Return a pod with requests among nodes with much room, so that balance and free room decide."""
    traits = ClusterTraits(small=0.1, pods_per_node=rng.choice((0.0, 2.0, 4.0)), extended=0.2)
    nodes, placed = draw_cluster(rng, traits)
    requests = {"cpu": rng.choice(("100m", "1", "777m")), "memory": rng.choice(("64Mi", "1Gi", "3Gi"))}
    if rng.random() < 0.2:
        del requests[rng.choice(("cpu", "memory"))]
    if rng.random() < 0.1:
        requests[GPU] = "1"
    return nodes, placed, pod_object(name, [container_object("c0", requests)])


def in_place_resize(rng: random.Random, name: str) -> Drawn:
    """Return a pod among pods whose resources are being changed: the status differs from the spec."""
    traits = ClusterTraits(small=0.9, pods_per_node=0.5)
    nodes, placed = draw_cluster(rng, traits)
    number = len(placed)
    for node in nodes:
        for _ in range(rng.choice((0, 1, 1, 2))):
            resized = draw_placed(
                rng, number, node["metadata"]["name"], traits, requests={"cpu": "500m", "memory": "1Gi"}
            )
            placed.append(_resized(rng, resized))
            number += 1
    requests = {"cpu": rng.choice(("500m", "1", "1500m")), "memory": rng.choice(("512Mi", "1Gi", "2Gi"))}
    return nodes, placed, pod_object(name, [container_object("c0", requests)])


def _resized(rng: random.Random, pod: KubeJson) -> KubeJson:
    status = pod["status"]
    cpu, memory = rng.choice(("250m", "500m", "1", "2")), rng.choice(("256Mi", "1Gi", "2Gi"))
    one = {
        "name": "c0",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "allocatedResources": {"cpu": rng.choice((cpu, "750m")), "memory": memory},
    }
    if rng.random() < 0.2:
        del one["allocatedResources"]
    status["containerStatuses"] = [one]
    roll = rng.random()
    if roll < 0.5:
        reason = rng.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    elif roll < 0.7:
        status["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}]
    if rng.random() < 0.2:
        pod["spec"]["resources"] = {"requests": {"cpu": rng.choice(("1", "2")), "memory": "2Gi"}}
        if rng.random() < 0.6:
            status["resources"] = {"requests": {"cpu": rng.choice(("1", "3")), "memory": "2Gi"}}
            status["allocatedResources"] = {"cpu": "1", "memory": "2Gi"}
    return pod
