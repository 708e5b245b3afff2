"""
Random clusters of parity cases: nodes, and pods that run on them.

Everything is drawn from one `random.Random`, so a seed and a number give the same case on every machine. A family says
with `ClusterTraits` how much of each trait its clusters have.
"""

import random
from typing import Any, Final

import msgspec

from tests.parity.case_objects import (
    HOSTNAME,
    RACK,
    ZONE,
    KubeJson,
    container_object,
    node_object,
    pod_object,
    running_status,
)

GPU: Final = "example.com/gpu"
HUGE: Final = "hugepages-2Mi"
NODE_CPU: Final = ("1", "2", "4", "4", "8", "3333m", "16", "64")
NODE_MEMORY: Final = ("1Gi", "4Gi", "8Gi", "16Gi", "16Gi", "3221225479", "256Gi")
NODE_PODS: Final = ("110", "110", "110", "110", "110", "5", "2", "1")
POD_CPU: Final = (None, None, "100m", "250m", "500m", "1", "1500m", "333m", "2", "1m", "0")
POD_MEMORY: Final = (None, None, "64Mi", "200Mi", "1Gi", "2Gi", "500M", "123456789", "3Gi", "1")
IMAGES: Final = {
    "app:1": 300_000_000,
    "app:2": 310_000_000,
    "base:latest": 23 * 1024**2,
    "torch:2": 3_700_000_000,
    "tiny:1": 700_000,
    "huge:1": 9_000_000_000,
}
TAINT_KEYS: Final = ("gpu", "team", "node.kubernetes.io/unschedulable")
TAINT_VALUES: Final = ("", "a", "b")
EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule")
APPS: Final = ("x", "y", "z", None)
NAMESPACES: Final = ("default", "default", "default", "other", "third")


class ClusterTraits(msgspec.Struct, frozen=True, kw_only=True):
    """Probabilities and numbers of a family's clusters."""

    tainted: float = 0.0
    cordoned: float = 0.0
    imaged: float = 0.0
    extended: float = 0.0
    """Nodes with further resources: GPUs, huge pages, ephemeral storage."""
    pods_per_node: float = 2.0
    small: float = 0.5
    """Nodes with few resources."""
    zoned: float = 0.9
    """Nodes with a zone; some zones are empty texts."""
    most_nodes: int = 300


def node_count(rng: random.Random, most: int = 300) -> int:
    """Draw a number of nodes: mostly up to 20."""
    roll = rng.random()
    if roll < 0.08:
        count = rng.randint(1, 2)
    elif roll < 0.955:
        count = rng.randint(3, 20)
    elif roll < 0.99:
        count = rng.randint(21, 100)
    else:
        count = rng.randint(101, 300)
    return min(count, most)


def requests_of(rng: random.Random, extended: float = 0.0) -> dict[str, str]:
    """Draw the requests of a container."""
    drawn: dict[str, str | None] = {"cpu": rng.choice(POD_CPU), "memory": rng.choice(POD_MEMORY)}
    if rng.random() < extended:
        drawn[rng.choice((GPU, GPU, HUGE, "ephemeral-storage"))] = rng.choice(("1", "2", "4Mi", "1Gi", "0"))
    if drawn.get(GPU) in {"4Mi", "1Gi"}:
        drawn[GPU] = "1"
    if drawn.get(HUGE) in {"1", "2"}:
        drawn[HUGE] = "2Mi"
    return {name: amount for name, amount in drawn.items() if amount is not None}


def draw_node(rng: random.Random, name: str, traits: ClusterTraits) -> KubeJson:
    """Draw one node."""
    small = rng.random() < traits.small
    allocatable = {
        "cpu": rng.choice(NODE_CPU[:4] if small else NODE_CPU),
        "memory": rng.choice(NODE_MEMORY[:3] if small else NODE_MEMORY),
        "pods": rng.choice(NODE_PODS if rng.random() < 0.3 else NODE_PODS[:1]),
    }
    if rng.random() < traits.extended:
        allocatable[GPU] = rng.choice(("0", "1", "4", "8"))
    if rng.random() < traits.extended:
        allocatable[HUGE] = rng.choice(("0", "4Mi", "1Gi"))
    if rng.random() < traits.extended:
        allocatable["ephemeral-storage"] = rng.choice(("1Gi", "100Gi", "100"))
    return node_object(
        name,
        allocatable,
        _labels(rng, name, traits),
        taints=_taints(rng) if rng.random() < traits.tainted else None,
        unschedulable=rng.random() < traits.cordoned,
        images=_images(rng) if rng.random() < traits.imaged else None,
    )


def _labels(rng: random.Random, name: str, traits: ClusterTraits) -> dict[str, str]:
    labels = {HOSTNAME: name} if rng.random() < 0.97 else {}
    if rng.random() < traits.zoned:
        labels[ZONE] = rng.choice(("a", "b", "c", "c", "d")) if rng.random() < 0.98 else ""
    if rng.random() < 0.7:
        labels[RACK] = rng.choice(("1", "2", "3"))
    if rng.random() < 0.5:
        labels["disk"] = rng.choice(("ssd", "hdd"))
    if rng.random() < 0.4:
        labels["size"] = rng.choice(("1", "7", "50", "many"))
    return labels


def _taints(rng: random.Random) -> list[KubeJson]:
    drawn: dict[tuple[str, str], KubeJson] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        key, effect = rng.choice(TAINT_KEYS), rng.choice(EFFECTS)
        value = rng.choice(TAINT_VALUES)
        drawn[key, effect] = {"key": key, "effect": effect, **({"value": value} if value else {})}
    return list(drawn.values())


def _images(rng: random.Random) -> dict[str, int]:
    names = rng.sample(list(IMAGES), rng.randint(1, 4))
    return {name: IMAGES[name] if rng.random() < 0.9 else rng.randint(0, 2_000_000_000) for name in names}


def draw_placed(rng: random.Random, number: int, node: str, traits: ClusterTraits, **parts: Any) -> KubeJson:
    """Draw a pod that has a node; *parts* replace what would be drawn."""
    app = rng.choice(APPS)
    labels = {} if app is None else {"app": app}
    if rng.random() < 0.3:
        labels["hash"] = rng.choice(("1", "2"))
    drawn: KubeJson = {
        "namespace": rng.choice(NAMESPACES),
        "labels": labels,
        "status": running_status(f"2026-01-01T00:{rng.randint(0, 59):02}:00Z"),
        "nodeName": node,
        **parts,
    }
    requests = drawn.pop("requests", None)
    if requests is None:
        requests = requests_of(rng, traits.extended)
    containers = drawn.pop("containers", None) or [container_object("c0", requests)]
    return pod_object(f"e{number}", containers, **drawn)


def draw_cluster(rng: random.Random, traits: ClusterTraits) -> tuple[list[KubeJson], list[KubeJson]]:
    """Draw nodes, and plain pods on them."""
    names = [f"n{number}" for number in range(node_count(rng, traits.most_nodes))]
    nodes = [draw_node(rng, name, traits) for name in names]
    count = sum(1 for _ in range(round(len(names) * traits.pods_per_node)) if rng.random() < 0.7)
    placed = [draw_placed(rng, number, rng.choice(names), traits) for number in range(min(count, 200))]
    for pod in placed:
        if rng.random() < 0.03:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T02:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = 30
    return nodes, placed
