"""
Resolves which plugins a profile runs, by kube-scheduler's rules.

First the default list is merged with the profile's. Disabled plugins are removed; ``*`` disables all. A default plugin
that is enabled again keeps its position and takes the new weight. Other enabled plugins follow. Then ``multiPoint`` is
expanded to the extension points that each plugin implements. Plugins enabled at the point itself come first and win,
and plugins disabled there are left out. One plugin is part of every profile (`ALWAYS`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from lamina.scheduling.config.schema import PluginRef, Plugins, PluginSet
from lamina.scheduling.contract.plugin_registry import POINTS

ALL: Final = "*"
ALWAYS: Final = "UnmetDemands"
"""Runs first at its extension point and cannot be disabled."""

# Defaults of kube-scheduler 1.36 with its order and weights (default_plugins.go), without those in `NOT_IN_TREE`.
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
            PluginRef(name="VolumeRestrictions"),
            PluginRef(name="NodeVolumeLimits"),
            PluginRef(name="VolumeBinding"),
            PluginRef(name="VolumeZone"),
            PluginRef(name="PodTopologySpread", weight=2),
            PluginRef(name="InterPodAffinity", weight=2),
            PluginRef(name="DefaultPreemption"),
            PluginRef(name="NodeResourcesBalancedAllocation", weight=1),
            PluginRef(name="ImageLocality", weight=1),
            PluginRef(name="DefaultBinder"),
            PluginRef(name="NodeDeclaredFeatures"),
        )
    )
)

NOT_IN_TREE: Final = {
    "DynamicResources": "resource claims",
    "GangScheduling": "pod groups",
}
"""
Upstream's default plugins that are not in tree yet, and what they are for.

Disabling one changes nothing; enabling one is a mistake.
"""


class ProfilePlugins(msgspec.Struct, frozen=True):
    """The plugins of a profile: names in order for each point, and weights of score plugins."""

    by_point: dict[str, tuple[str, ...]]
    weights: dict[str, int]


def field_of(point: str) -> str:
    """Return the struct field of an extension point, given its name in configurations."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)


def merged(defaults: PluginSet, own: PluginSet) -> PluginSet:
    """Merge the defaults of one point with a profile's own set."""
    disabled = {one.name for one in own.disabled}
    enabled = {one.name: one for one in own.enabled}
    kept: list[PluginRef] = []
    if ALL not in disabled:
        kept = [enabled.get(one.name, one) for one in defaults.enabled if one.name not in disabled]
    there = {one.name for one in kept}
    kept += [one for one in own.enabled if one.name not in there]
    return PluginSet(enabled=tuple(kept), disabled=own.disabled)


def choose(own: Plugins, points_of: Callable[[str], Iterable[str]]) -> ProfilePlugins:
    """Resolve the plugins of each point; *points_of* returns the points that a plugin implements."""
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
