"""
Registry of plugin classes; each class is verified when it is registered.

A plugin is a class with a `name`, a constructor ``(context, args)`` and optionally `Args`, a struct derived from
PluginArgs. Its methods determine which extension points it implements. Other distributions add plugins through the
entry point group ``lamina.plugins``. A broken entry point raises an error only when a configuration names its plugin.
"""

import importlib.metadata
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from lamina.model.errors import LaminaError, WiringError
from lamina.scheduling.contract import points
from lamina.scheduling.contract.placement import GroupingPlugin, PlacePlugin
from lamina.scheduling.contract.points import Plugin, Reads
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.cluster_objects import EFFECTS
from lamina.scheduling.state.plugin_context import PluginContext

ENTRY_POINTS: Final = "lamina.plugins"
LONGEST: Final = 300
"""How much of an error message is shown, in characters."""

# Extension point as written in configurations → the protocol, and the method that implements the point.
POINTS: Final[dict[str, tuple[type, str]]] = {
    "preEnqueue": (points.PreEnqueuePlugin, "pre_enqueue"),
    "queueSort": (points.QueueSortPlugin, "sort_key"),
    "place": (PlacePlugin, "place"),
    "preFilter": (points.PreFilterPlugin, "pre_filter"),
    "filter": (points.FilterPlugin, "filter"),
    "postFilter": (points.PostFilterPlugin, "post_filter"),
    "preScore": (points.PreScorePlugin, "pre_score"),
    "score": (points.ScorePlugin, "score"),
    "reserve": (points.ReservePlugin, "reserve"),
    "permit": (points.PermitPlugin, "permit"),
    "preBind": (points.PreBindPlugin, "pre_bind"),
    "bind": (points.BindPlugin, "bind"),
    "postBind": (points.PostBindPlugin, "post_bind"),
}
# Methods that belong to a point without being one.
COMPANIONS: Final[tuple[tuple[type, str, str], ...]] = (
    (points.NormalizePlugin, "normalize", "score"),
    (points.FilterNodePlugin, "filter_node", "filter"),
    (points.ScoreNodePlugin, "score_node", "score"),
    (points.FactsPlugin, "facts", "score"),
    (points.ExplainPlugin, "explain", "score"),
    (GroupingPlugin, "group", "place"),
    (GroupingPlugin, "members", "place"),
    (points.NotesPlugin, "notes", ""),
    (points.ReservePlugin, "unreserve", "reserve"),
    (points.SignPlugin, "sign", ""),
    (points.QueueingHintPlugin, "worth_retrying", ""),
    (points.TimedPlugin, "wake", ""),
    (points.PodFollower, "pod_seen", ""),
    (points.PodFollower, "pod_gone", ""),
    (points.AmountHintPlugin, "needs", ""),
    (points.AmountHintPlugin, "offers", ""),
    (points.RetryTimePlugin, "retry_at", ""),
)


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all plugin arguments: the two fields that upstream allows in every ``pluginConfig`` entry."""

    api_version: str = ""
    kind: str = ""


class NoArgs(PluginArgs, frozen=True, kw_only=True):
    """Arguments of a plugin that takes none."""


PluginClass = type[Any]  # Any: plugins have no base class, only methods


def points_of(plugin: object) -> tuple[str, ...]:
    """List the extension points that a plugin or its class implements, as written in configurations."""
    return tuple(point for point, (_, method) in POINTS.items() if callable(getattr(plugin, method, None)))


def _parameters(owner: type, method: str) -> list[str]:
    """Return a method's parameter names without the instance."""
    names = list(inspect.signature(getattr(owner, method)).parameters)
    return names if isinstance(inspect.getattr_static(owner, method), staticmethod) else names[1:]


def faults(plugin: PluginClass) -> list[str]:
    """List everything that is wrong with a plugin class; empty when it can be used."""
    wrong: list[str] = []
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        wrong.append("has no `name`")
    implemented = points_of(plugin)
    if not implemented:
        wrong.append(f"implements no extension point (one of: {', '.join(method for _, method in POINTS.values())})")
    return [*wrong, *_method_faults(plugin, implemented), *_attribute_faults(plugin, implemented)]


def _method_faults(plugin: PluginClass, implemented: tuple[str, ...]) -> Iterator[str]:
    expected = list(POINTS.values())
    for protocol, method, owner in COMPANIONS:
        if owner and callable(getattr(plugin, method, None)) and owner not in implemented:
            yield f"has `{method}` but not `{POINTS[owner][1]}`"
        expected.append((protocol, method))
    for protocol, method in expected:
        if not callable(getattr(plugin, method, None)):
            continue
        want, have = _parameters(protocol, method), _parameters(plugin, method)
        if len(want) != len(have):
            yield f"`{method}` takes ({', '.join(have)}), Lamina calls it with ({', '.join(want)})"
    if "reserve" in implemented and not callable(getattr(plugin, "unreserve", None)):
        yield "has `reserve` but no `unreserve`"


def _attribute_faults(plugin: PluginClass, implemented: tuple[str, ...]) -> Iterator[str]:
    if "queueSort" in implemented and not isinstance(getattr(plugin, "changes_with_time", None), bool):
        yield "has `sort_key` but does not say whether it `changes_with_time` (True or False)"
    if "place" in implemented and not isinstance(getattr(plugin, "batch", None), int):
        yield "has `place` but no `batch` (a number of pods)"
    if callable(getattr(plugin, "pod_seen", None)) != callable(getattr(plugin, "pod_gone", None)):
        yield "has only one of `pod_seen` and `pod_gone`; a plugin that follows pods needs both"
    if hasattr(plugin, "normalize") and hasattr(plugin, "score_node"):
        yield "has both `normalize` and `score_node`; a normalised score cannot be given for one node alone"
    reads = getattr(plugin, "reads", None)
    if reads is not None and not isinstance(reads, Reads):
        yield "has `reads` that is not a Reads"
    retry_on = getattr(plugin, "retry_on", None)
    if retry_on is not None and not (
        isinstance(retry_on, frozenset) and all(isinstance(change, ChangeKind) for change in retry_on)
    ):
        yield "has `retry_on` that is not a frozenset of ChangeKind"
    if retry_on is None and callable(getattr(plugin, "worth_retrying", None)):
        yield "has `worth_retrying` but no `retry_on` (the changes it is called for)"
    objects = getattr(plugin, "objects", None)
    if objects is not None and not (isinstance(objects, frozenset) and all(kind in EFFECTS for kind in objects)):
        known = ", ".join(kind.__name__ for kind in EFFECTS)
        yield f"has `objects` that is not a frozenset of classes of cluster objects ({known})"
    args = getattr(plugin, "Args", NoArgs)
    if not (isinstance(args, type) and issubclass(args, PluginArgs)):
        yield "has `Args` that does not derive from PluginArgs"


def from_entry_points(group: str, register: Callable[[Any], None]) -> dict[str, str]:  # Any: any object
    """Register what other distributions declare under *group*; return an error message for each unusable name."""
    broken: dict[str, str] = {}
    for entry in sorted(importlib.metadata.entry_points(group=group), key=lambda entry: entry.name):
        name: object = entry.name
        try:
            found = entry.load()
            name = getattr(found, "name", None)
            register(found)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - third-party module code can raise anything
            owner = entry.dist.name if entry.dist is not None else "an unknown distribution"
            why = " ".join(str(error).split())[:LONGEST]
            why = why if isinstance(error, LaminaError) else f"{type(error).__name__}: {why}"
            broken[name if isinstance(name, str) else entry.name] = (
                f"entry point {entry.name!r} ({entry.value}) of {owner} cannot be used: {why}: fix or uninstall it"
            )
    return broken


class PluginRegistry:
    """Plugin classes by name."""

    def __init__(self, *plugins: PluginClass) -> None:
        """Register *plugins*."""
        self._classes: dict[str, PluginClass] = {}
        self._broken: dict[str, str] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: PluginClass) -> None:
        """Register a plugin class. Raise WiringError that lists everything wrong with it."""
        wrong = faults(plugin)
        label = f"plugin {getattr(plugin, 'name', None) or getattr(plugin, '__qualname__', plugin)!r}"
        if not wrong and plugin.name in self._classes:
            wrong = ["is registered twice"]
        if wrong:
            raise WiringError(f"{label} {'; '.join(wrong)}")
        self._classes[plugin.name] = plugin

    def load_entry_points(self) -> None:
        """Register the plugins that other distributions declare under ``lamina.plugins``."""
        self._broken.update(from_entry_points(ENTRY_POINTS, self.register))

    def __contains__(self, name: object) -> bool:
        """Return whether a plugin of this name exists; broken ones are included."""
        return name in self._classes or name in self._broken

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of usable plugins, in order of registration."""
        return iter(self._classes)

    def __getitem__(self, name: str) -> PluginClass:
        """Return the class of that name. Raise WiringError with a remedy if its entry point is broken."""
        if name in self._broken:
            raise WiringError(self._broken[name])
        return self._classes[name]

    def args_of(self, name: str) -> type[PluginArgs]:
        """Return the struct that describes the plugin's arguments."""
        args: type[PluginArgs] = getattr(self[name], "Args", NoArgs)
        return args

    def make(self, name: str, context: PluginContext, args: PluginArgs | None = None) -> Plugin:
        """Construct a plugin; without *args* it gets its default arguments."""
        plugin: Plugin = self[name](context, self.args_of(name)() if args is None else args)
        return plugin
