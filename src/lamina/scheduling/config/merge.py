"""
Which plugins a profile ends up with, by kube-scheduler's rules.

First the default list is merged with the profile's (disabled ones out, ``*`` means all; a default one that is enabled
again keeps its place and takes the new weight; others come behind). Then ``multiPoint`` is spread over the extension
points each plugin implements: what is named at a point itself comes first and wins, what is disabled there stays out.
One plugin of ours is in every profile, whatever it says (`ALWAYS`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from lamina.scheduling.config.schema import PluginRef, Plugins, PluginSet
from lamina.scheduling.contract.plugin_registry import POINTS

ALL: Final = "*"
ALWAYS: Final = "UnmetDemands"
"""Runs before everybody else at its point, and cannot be disabled."""

# kube-scheduler 1.36's default list, in its order and with its weights (default_plugins.go), as far as it is in tree.
DEFAULTS: Final = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginRef(name="SchedulingGates"),
            PluginRef(name="PrioritySort"),
            PluginRef(name="NodeUnschedulable"),
            PluginRef(name="NodeName"),
            PluginRef(name="TaintToleration", weight=3),
            PluginRef(name="NodeAffinity", weight=2),
            PluginRef(name="NodePorts"),
            PluginRef(name="NodeResourcesFit", weight=1),
            PluginRef(name="PodTopologySpread", weight=2),
            PluginRef(name="InterPodAffinity", weight=2),
            PluginRef(name="NodeResourcesBalancedAllocation", weight=1),
            PluginRef(name="ImageLocality", weight=1),
            PluginRef(name="DefaultBinder"),
        )
    )
)

NOT_IN_TREE: Final = {
    "DefaultPreemption": "preemption",
    "DynamicResources": "resource claims",
    "GangScheduling": "pod groups",
    "NodeDeclaredFeatures": "features that nodes declare",
    "NodeVolumeLimits": "volumes",
    "VolumeBinding": "volumes",
    "VolumeRestrictions": "volumes",
    "VolumeZone": "volumes",
}
"""
Upstream's default plugins that are not in tree yet, and what they are for.

Disabling one changes nothing; enabling one is a mistake.
"""

PARTLY_IN_TREE: Final = {"InterPodAffinity": "pod affinity and anti-affinity that the pod itself asks for"}
"""Upstream's default plugins of which one half is in tree, and what the other half is for."""


class ProfilePlugins(msgspec.Struct, frozen=True):
    """What a profile runs: plugin names in order for each point, and weights."""

    by_point: dict[str, tuple[str, ...]]
    weights: dict[str, int]


def field_of(point: str) -> str:
    """Return the struct field that stands for an extension point as configuration spells it."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)


def merged(defaults: PluginSet, own: PluginSet) -> PluginSet:
    """Merge what is there by default with what a profile says."""
    disabled = {one.name for one in own.disabled}
    enabled = {one.name: one for one in own.enabled}
    kept: list[PluginRef] = []
    if ALL not in disabled:
        kept = [enabled.get(one.name, one) for one in defaults.enabled if one.name not in disabled]
    there = {one.name for one in kept}
    kept += [one for one in own.enabled if one.name not in there]
    return PluginSet(enabled=tuple(kept), disabled=own.disabled)


def choose(own: Plugins, points_of: Callable[[str], Iterable[str]]) -> ProfilePlugins:
    """Work out what runs where; *points_of* says which points a plugin implements."""
    multi = merged(DEFAULTS.multi_point, own.multi_point)
    by_point: dict[str, tuple[str, ...]] = {}
    weights: dict[str, int] = {}
    for point in POINTS:
        at_point: PluginSet = getattr(own, field_of(point))
        spread = [one for one in multi.enabled if point in points_of(one.name)]
        refs = _at(point_set=at_point, multi=spread)
        if point in points_of(ALWAYS):
            refs = [PluginRef(name=ALWAYS), *(one for one in refs if one.name != ALWAYS)]
        by_point[point] = tuple(one.name for one in refs)
        if point == "score":
            weights = {one.name: one.weight or 1 for one in refs}
    return ProfilePlugins(by_point, weights)


def _at(point_set: PluginSet, multi: Sequence[PluginRef]) -> list[PluginRef]:
    """Order the plugins of one point: overriding ones, then those of multiPoint, then the rest."""
    disabled = {one.name for one in point_set.disabled}
    in_multi = set() if ALL in disabled else {one.name for one in multi} - disabled
    overriding = [one for one in point_set.enabled if one.name in in_multi]
    named = {one.name for one in point_set.enabled}
    spread = [] if ALL in disabled else [one for one in multi if one.name not in disabled | named]
    rest = [one for one in point_set.enabled if one.name not in in_multi]
    return [*overriding, *spread, *rest]
