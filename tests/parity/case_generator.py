"""
Generator of parity cases: one family for each plugin or feature, and the objects that exist in all cases.

A case depends on the seed, its family and its number only, so any one of them can be drawn again alone.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

from tests.parity import families_nodes, families_pods, families_resources, families_volumes
from tests.parity.case_files import ParityCase
from tests.parity.case_objects import CREATED, KubeJson, expression
from tests.parity.families_nodes import Drawn
from tests.parity.families_volumes import DrawnStorage

SEED: Final = 1

FAMILIES: Final[dict[str, Callable[[random.Random, str], Drawn | DrawnStorage]]] = {
    "resources-fit": families_resources.resources_fit,
    "balanced-allocation": families_resources.balanced_allocation,
    "in-place-resize": families_resources.in_place_resize,
    "node-affinity": families_nodes.node_affinity,
    "node-names": families_nodes.node_name,
    "taint-toleration": families_nodes.taint_toleration,
    "node-unschedulable": families_nodes.node_unschedulable,
    "node-features": families_nodes.node_features,
    "node-ports": families_nodes.node_ports,
    "image-locality": families_nodes.image_locality,
    "topology-spread": families_pods.topology_spread,
    "default-spread": families_pods.default_spread,
    "default-selectors": families_pods.default_selectors,
    "inter-pod-affinity": families_pods.inter_pod_affinity,
    "affinity-corners": families_pods.affinity_corners,
    "preemption": families_pods.preemption,
    "mixed": families_pods.mixed,
    "volume-restrictions": families_volumes.volume_restrictions,
    "node-volume-limits": families_volumes.node_volume_limits,
    "volume-zone": families_volumes.volume_zone,
    "volume-binding": families_volumes.volume_binding,
}


def draw_case(family: str, number: int, seed: int = SEED) -> ParityCase:
    """Return one case."""
    rng = random.Random(f"{seed}/{family}/{number}")
    nodes, placed, pod, *objects = FAMILIES[family](rng, f"{family}-{number}")
    return ParityCase(family, number, nodes, placed, pod, *objects)


def draw_cases(family: str, count: int, seed: int = SEED) -> Iterator[ParityCase]:
    """Yield the first *count* cases of a family."""
    return (draw_case(family, number, seed) for number in range(count))


# -- objects of all cases ------------------------------------------------------------------------------------------------


def _meta(name: str, namespace: str = "", **more: object) -> KubeJson:
    found: KubeJson = {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED, **more}
    return {**found, "namespace": namespace} if namespace else found


def _namespace(name: str, **labels: str) -> KubeJson:
    return {"metadata": _meta(name, labels={"kubernetes.io/metadata.name": name, **labels})}


def _replica_set(name: str, app: str) -> KubeJson:
    labels = {"app": app, "pod-template-hash": "5"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c0", "image": "app:1"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": _meta(name, "default"), "spec": spec}


def _budget(name: str, selector: KubeJson, allowed: int) -> KubeJson:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 5, "desiredHealthy": 5, "expectedPods": 5}
    return {"metadata": _meta(name, "default"), "spec": {"selector": selector}, "status": status}


def fixtures(family: str = "") -> dict[str, list[KubeJson]]:
    """Return the objects that exist in all cases of a family, by resource."""
    found = _common()
    if family == "default-selectors":
        for resource, more in _selecting().items():
            found[resource] = [*found.get(resource, ()), *more]
    if family == "volume-binding":
        found["csidrivers"] = [{"metadata": _meta("tracked.csi"), "spec": {"storageCapacity": True}}]
    return found


def _service(name: str, namespace: str, selector: KubeJson | None) -> KubeJson:
    spec: KubeJson = {"ports": [{"port": 80}], **({} if selector is None else {"selector": selector})}
    return {"metadata": _meta(name, namespace), "spec": spec}


def _selecting() -> dict[str, list[KubeJson]]:
    """Return further Services and controllers, some of which contradict each other."""
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c0", "image": "app:1"}]}}
    selector = {"matchExpressions": [expression("app", "In", "db", "cache"), expression("tier", "DoesNotExist")]}
    return {
        "services": [
            _service("api", "default", {"app": "api"}),
            _service("front", "default", {"tier": "front"}),
            _service("by-hand", "default", None),
            _service("elsewhere", "other", {"app": "db"}),
        ],
        "statefulsets": [
            {
                "metadata": _meta("db", "default"),
                "spec": {"replicas": 3, "serviceName": "db", "selector": selector, "template": template},
            }
        ],
        "replicationcontrollers": [
            {"metadata": _meta("old", "default"), "spec": {"replicas": 3, "selector": {"app": "old"}}}
        ],
    }


def _common() -> dict[str, list[KubeJson]]:
    """Return the objects of every family."""
    return {
        "namespaces": [_namespace("default"), _namespace("other", team="a"), _namespace("third", team="b")],
        "services": [
            {"metadata": _meta("web", "default"), "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        ],
        "replicasets": [_replica_set("web-5", "web"), _replica_set("batch-5", "batch")],
        "poddisruptionbudgets": [
            *(_budget(f"guard-{allowed}", {"matchLabels": {"guard": str(allowed)}}, allowed) for allowed in range(3)),
            _budget("extra", {"matchExpressions": [{"key": "extra", "operator": "Exists"}]}, 1),
        ],
    }
