"""
CustomResourceDefinitions that gang schedulers and Lamina expect to find, without their schemas.

The façade registers them before a scheduler starts, so that an unmodified kube-batch, Volcano or scheduler-plugins
needs no installation. Names, scopes and subresources are those of the projects' own definitions. A PodGroup of Volcano
and kube-batch has no status subresource: these schedulers write its status with an ordinary update.
"""

from typing import Any, Final

import msgspec

from lamina.simulator.facade.kube_object import KubeObject

_AGE: Final = ("Age", "date", ".metadata.creationTimestamp", 0)
_LOUD_AGE: Final = ("AGE", "date", ".metadata.creationTimestamp", 0)
_QUEUE: Final = ("QUEUE", "string", ".spec.queue", 1)
_RUNNING: Final = ("RUNNINGS", "integer", ".status.running", 0)


class _ResourceDefinition(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = False
    categories: tuple[str, ...] = ()
    columns: tuple[tuple[str, str, str, int], ...] = ()


# kubectl takes the first group for a plural name without a group, such as podgroups.
_GANG: Final = (
    _ResourceDefinition(
        "scheduling.volcano.sh",
        "v1beta1",
        "PodGroup",
        "podgroups",
        ("pg", "podgroup-v1beta1"),
        columns=(
            ("STATUS", "string", ".status.phase", 0),
            ("minMember", "integer", ".spec.minMember", 0),
            _RUNNING,
            _LOUD_AGE,
            _QUEUE,
        ),
    ),
    _ResourceDefinition(
        "scheduling.volcano.sh",
        "v1beta1",
        "Queue",
        "queues",
        ("q", "queue-v1beta1"),
        namespaced=False,
        status=True,
        columns=(("PARENT", "string", ".spec.parent", 0),),
    ),
    _ResourceDefinition(
        "topology.volcano.sh",
        "v1alpha1",
        "HyperNode",
        "hypernodes",
        ("hn",),
        namespaced=False,
        status=True,
        columns=(
            ("Tier", "string", ".spec.tier", 0),
            ("TierName", "string", ".spec.tierName", 0),
            ("NodeCount", "integer", ".status.nodeCount", 0),
            _AGE,
        ),
    ),
    _ResourceDefinition(
        "nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", ("numatopo",), namespaced=False
    ),
    _ResourceDefinition(
        "shard.volcano.sh", "v1alpha1", "NodeShard", "nodeshards", ("nsh",), namespaced=False, status=True
    ),
    _ResourceDefinition(
        "batch.volcano.sh",
        "v1alpha1",
        "Job",
        "jobs",
        ("vcjob", "vj"),
        status=True,
        columns=(
            ("STATUS", "string", ".status.state.phase", 0),
            ("minAvailable", "integer", ".status.minAvailable", 0),
            _RUNNING,
            _LOUD_AGE,
            _QUEUE,
        ),
    ),
    _ResourceDefinition("bus.volcano.sh", "v1alpha1", "Command", "commands"),
    _ResourceDefinition(
        "scheduling.x-k8s.io",
        "v1alpha1",
        "PodGroup",
        "podgroups",
        ("pg", "pgs"),
        status=True,
        columns=(
            ("Phase", "string", ".status.phase", 0),
            ("MinMember", "integer", ".spec.minMember", 0),
            ("Running", "integer", ".status.running", 0),
            ("Succeeded", "integer", ".status.succeeded", 0),
            ("Failed", "integer", ".status.failed", 0),
            _AGE,
        ),
    ),
    _ResourceDefinition("scheduling.x-k8s.io", "v1alpha1", "ElasticQuota", "elasticquotas", ("eq", "eqs"), status=True),
    _ResourceDefinition("scheduling.incubator.k8s.io", "v1alpha1", "PodGroup", "podgroups"),
    _ResourceDefinition("scheduling.incubator.k8s.io", "v1alpha1", "Queue", "queues", namespaced=False),
    _ResourceDefinition("scheduling.sigs.dev", "v1alpha2", "PodGroup", "podgroups"),
    _ResourceDefinition("scheduling.sigs.dev", "v1alpha2", "Queue", "queues", namespaced=False),
)
_LAYERS: Final = (
    _ResourceDefinition(
        "lamina.dev",
        "v1alpha1",
        "ImageLayers",
        "imagelayers",
        ("il",),
        namespaced=False,
        categories=("layers",),
        columns=(
            _AGE,
            ("OS", "string", ".spec.platform.os", 1),
            ("Arch", "string", ".spec.platform.architecture", 1),
            ("Variant", "string", ".spec.platform.variant", 1),
        ),
    ),
    _ResourceDefinition(
        "lamina.dev",
        "v1alpha1",
        "NodeLayers",
        "nodelayers",
        ("nl",),
        namespaced=False,
        status=True,
        categories=("layers",),
        columns=(
            ("Images", "integer", ".status.imageCount", 0),
            ("Layers", "integer", ".status.layerCount", 0),
            ("Size", "string", ".status.summary.size", 0),
            ("Free", "string", ".status.summary.free", 0),
            ("Fresh", "date", ".status.observedAt", 0),
            _AGE,
            ("Runtime", "string", ".status.runtime.name", 1),
            ("Condition", "string", '.status.conditions[?(@.type=="Ready")].reason', 1),
        ),
    ),
)


def gang_custom_resources() -> list[KubeObject]:
    """Return the definitions of kube-batch's, Volcano's and scheduler-plugins' resources, and of Lamina's own."""
    return [_rendered(definition) for definition in (*_GANG, *_LAYERS)]


def _rendered(definition: _ResourceDefinition) -> KubeObject:
    version: dict[str, Any] = {
        "name": definition.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if definition.status:
        version["subresources"] = {"status": {}}
    if definition.columns:
        version["additionalPrinterColumns"] = [
            {"name": name, "type": kind, "jsonPath": path, **({"priority": priority} if priority else {})}
            for name, kind, path, priority in definition.columns
        ]
    names: dict[str, Any] = {
        "kind": definition.kind,
        "listKind": f"{definition.kind}List",
        "plural": definition.plural,
        "singular": definition.kind.lower(),
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    if definition.categories:
        names["categories"] = list(definition.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{definition.group}"},
        "spec": {
            "group": definition.group,
            "scope": "Namespaced" if definition.namespaced else "Cluster",
            "names": names,
            "conversion": {"strategy": "None"},
            "versions": [version],
        },
    }
