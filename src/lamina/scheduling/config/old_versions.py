"""
Configurations written for a version before ``kubescheduler.config.k8s.io/v1``, or without a version.

`load` passes every document through `as_v1` before it checks it. What v1 still has is read as v1, with a warning that says
what to change. What v1 no longer has gets a line with what replaces it:

    a field that says nothing about placement     a warning; the field is ignored
    a plugin that is enabled or configured        a mistake, because pods would be placed differently without it
    a plugin that is disabled                     nothing, or a mistake if another plugin does its work now

The default weights are those of v1 in every version. Sources: kube-scheduler's `config/v1beta1` to `config/v1`, and the
section on migrations of its configuration page.
"""

from dataclasses import replace
from typing import Final

from lamina.model.errors import Mistake
from lamina.model.plain import shown
from lamina.model.yaml_document import YamlDocument, YamlNode
from lamina.scheduling.config.schema import API_VERSION

_GROUP: Final = "kubescheduler.config.k8s.io"
_OLD_WEIGHTS: Final = "the default weights are v1's: TaintToleration 3, NodeAffinity 2, InterPodAffinity 2 (were 1)"

OLD_VERSIONS: Final = {
    f"{_GROUP}/v1beta1": ("1.23", _OLD_WEIGHTS),
    f"{_GROUP}/v1beta2": ("1.28", _OLD_WEIGHTS),
    f"{_GROUP}/v1beta3": ("1.29", ""),
}
"""Version → the Kubernetes release that no longer reads it, and what else differs from v1."""

_ADDRESSES: Final = "is ignored, v1 does not have it; set the address with `lamina scheduler --listen ADDRESS:PORT`"
OLD_FIELDS: Final = {"healthzBindAddress": _ADDRESSES, "metricsBindAddress": _ADDRESSES}
"""Field of v1beta1 and v1beta2 that v1beta3 and v1 do not have → what is done about it."""
_WITHOUT_OLD_FIELDS: Final = frozenset({f"{_GROUP}/v1beta3", API_VERSION})

_STRATEGY: Final = "NodeResourcesFit with args.scoringStrategy.type {}"
REMOVED_PLUGINS: Final = {
    "NodeResourcesLeastAllocated": _STRATEGY.format("LeastAllocated, its default"),
    "NodeResourcesMostAllocated": _STRATEGY.format("MostAllocated"),
    "RequestedToCapacityRatio": _STRATEGY.format("RequestedToCapacityRatio"),
    "NodeLabel": "NodeAffinity with args.addedAffinity",
    "ServiceAffinity": "pod affinity in the specs of the pods",
    "NodePreferAvoidPods": "taints on the nodes",
    "SelectorSpread": "PodTopologySpread",
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
}
"""Plugin that kube-scheduler had under an older version → what to use instead."""

SCORED_BY_DEFAULT: Final = {"NodeResourcesLeastAllocated": "NodeResourcesFit"}
"""Removed plugin that was a default one → the default plugin that gives its score now."""


def removed(name: str) -> str:
    """Say what to use instead of a plugin that kube-scheduler no longer has; empty for any other name."""
    instead = REMOVED_PLUGINS.get(name)
    return f"plugin {name!r} was removed from kube-scheduler; use {instead}" if instead else ""


def removed_default(name: str) -> str:
    """Say what to disable instead of a removed default plugin; empty where there is nothing left to disable."""
    instead = SCORED_BY_DEFAULT.get(name)
    return f"plugin {name!r} was removed from kube-scheduler; disable {instead} under score instead" if instead else ""


def as_v1(document: YamlDocument) -> tuple[YamlDocument, tuple[Mistake, ...]]:
    """Return the document as v1 would have it, and the warnings; a document that is v1, or nothing known, is returned as it is."""
    root = document.root
    if not isinstance(root.value, dict):
        return document, ()
    version = root.value.get("apiVersion", "")
    if not isinstance(version, str) or ("apiVersion" in root.value and version not in OLD_VERSIONS):
        return document, ()
    dropped = [] if version in _WITHOUT_OLD_FIELDS else [name for name in OLD_FIELDS if name in root.value]
    warnings = [
        Mistake(document.source, _about_version(version), "apiVersion", document.line(("apiVersion",))),
        *(Mistake(document.source, OLD_FIELDS[name], name, document.line((name,))) for name in dropped),
    ]
    value = {name: one for name, one in root.value.items() if name not in dropped} | {"apiVersion": API_VERSION}
    inside = {name: one for name, one in root.inside.items() if name not in dropped}
    inside["apiVersion"] = YamlNode(API_VERSION, document.line(("apiVersion",)))
    return replace(document, root=replace(root, value=value, inside=inside)), tuple(warnings)


def _about_version(version: str) -> str:
    if not version:
        return f"is missing, so the file is read as {API_VERSION}; add `apiVersion: {API_VERSION}`"
    release, differs = OLD_VERSIONS[version]
    more = f"; {differs}" if differs else ""
    return f"{shown(version)} is not read by Kubernetes {release} and later; change it to {API_VERSION}{more}"
