"""Loads a configuration file into a `Configuration`, or reports every mistake in it."""

from collections.abc import Iterator, Mapping
from typing import Final, Self

import msgspec

from lamina.model.conversion import convert, mistakes_in, suggest
from lamina.model.duration import seconds
from lamina.model.errors import InputError, Mistake, WiringError
from lamina.model.plain import Path, written_path
from lamina.model.pod import DEFAULT_SCHEDULER
from lamina.model.yaml_document import YamlDocument, YamlNode, read_yaml
from lamina.scheduling.config.extenders import called, check_extenders, with_ignored_resources
from lamina.scheduling.config.extenders import warnings as extender_warnings
from lamina.scheduling.config.merge import ALL, ALWAYS, NOT_IN_TREE, ProfilePlugins, choose
from lamina.scheduling.config.old_versions import REMOVED_PLUGINS, as_v1, removed, removed_default
from lamina.scheduling.config.schema import KubeSchedulerConfiguration, LeaderElection, ProfileConfig
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.scheduling.contract.plugin_registry import POINTS, PluginArgs, PluginRegistry, points_of
from lamina.scheduling.contract.points import Plugin
from lamina.scheduling.loop.scheduling_queue import PodBackoff
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.plugin_context import PluginContext

STAYS: Final = (
    f"plugin {ALWAYS!r} cannot be disabled: it refuses pods that need features which are not implemented yet and that "
    "would otherwise be placed without them; remove this entry"
)
NO_EXTENDERS: Final = "{} calls no extenders, and would decide differently without them; remove the list"

JITTER: Final = 1.2
"""Jitter factor of lease renewals: upstream renews up to this much later than retryPeriod."""

FOREIGN_POINTS: Final = ("placementGenerate", "placementScore")


class Configuration:
    """A valid configuration."""

    def __init__(
        self, config: KubeSchedulerConfiguration, registry: PluginRegistry, warnings: tuple[Mistake, ...] = ()
    ) -> None:
        """Store the configuration, the registry of its plugins, and what its author should change."""
        self.config = config
        self._registry = registry
        self.warnings = warnings
        """What its author should change although it was read; the command or service that loaded it reports them."""

    @property
    def backoff(self) -> PodBackoff:
        """Back-off of pods after an attempt."""
        return PodBackoff(float(self.config.pod_initial_backoff_seconds), float(self.config.pod_max_backoff_seconds))

    def called(self, scheduler_name: str) -> "Configuration":
        """Return a copy under another scheduler name. Raise WiringError unless there is exactly one profile."""
        if len(self.config.profiles) != 1:
            raise WiringError("the scheduler name can only be changed in a configuration with one profile")
        profiles = (msgspec.structs.replace(self.config.profiles[0], scheduler_name=scheduler_name),)
        return Configuration(msgspec.structs.replace(self.config, profiles=profiles), self._registry, self.warnings)

    def profiles(self, context: PluginContext) -> Mapping[str, Profile]:
        """Build the profiles, by scheduler name."""
        return {
            one.scheduler_name: make_profile(
                with_ignored_resources(one, self.config.extenders),
                _chosen(one, self._registry),
                self._registry,
                context,
            )
            for one in self.config.profiles
        }

    @property
    def extenders(self) -> tuple[CalledExtender, ...]:
        """Extenders of other vendors, which the host calls for the loop."""
        return called(self.config.extenders)

    def refuse_extenders(self, source: str, what: str) -> Self:
        """Return the configuration. Raise InputError if it has extenders, which *what* cannot call."""
        if self.config.extenders:
            raise InputError.one(source, NO_EXTENDERS.format(what), path="extenders")
        return self


def load(text: str, source: str, registry: PluginRegistry) -> Configuration:
    """Parse and verify a configuration, also one of an older version. Raise InputError with every mistake in it."""
    document, warnings = as_v1(read_yaml(text, source))
    mistakes = [*mistakes_in(document, KubeSchedulerConfiguration), *_ConfigurationChecker(document, registry).check()]
    if not mistakes:
        config = convert(document, KubeSchedulerConfiguration)
        mistakes = _fit_together(document, config, registry)
        if not mistakes:
            return Configuration(config, registry, (*warnings, *extender_warnings(document, config)))
    raise InputError(sorted(mistakes, key=lambda mistake: mistake.line))


def make_profile(
    config: ProfileConfig, chosen: ProfilePlugins, registry: PluginRegistry, context: PluginContext
) -> Profile:
    """Build one profile; a plugin that is enabled at several points is constructed once."""
    args = {one.name: msgspec.convert(one.args, registry.args_of(one.name)) for one in config.plugin_config}
    made: dict[str, Plugin] = {}
    by_point: dict[str, list[Plugin]] = {}
    for point, names in chosen.by_point.items():
        for name in names:
            if name not in made:
                made[name] = registry.make(name, context, args.get(name))
            by_point.setdefault(point, []).append(made[name])
    return Profile(config.scheduler_name, by_point, chosen.weights)


def _chosen(profile: ProfileConfig, registry: PluginRegistry) -> ProfilePlugins:
    return choose(profile.plugins, lambda name: points_of(registry[name]) if name in registry else ())


class _ConfigurationChecker:
    """
    Checks rules that the types alone do not express.

    It reads the YAML document, not the converted structs: a misspelt field in one place must not hide a wrong plugin
    name in another.
    """

    def __init__(self, document: YamlDocument, registry: PluginRegistry) -> None:
        self.document = document
        self.registry = registry
        self.mistakes: list[Mistake] = []

    def check(self) -> list[Mistake]:
        seen: set[object] = set()
        for index in self.inside(("profiles",)):
            path = ("profiles", index)
            name = str(self.value((*path, "schedulerName")) or DEFAULT_SCHEDULER)
            if name in seen:
                self.mistake((*path, "schedulerName"), f"two profiles for schedulerName {name!r}; rename one")
            seen.add(name)
            self.plugin_set((*path, "plugins", "multiPoint"))
            for point in (*POINTS, *FOREIGN_POINTS):
                self.plugin_set((*path, "plugins", point), point=point)
            self.arguments((*path, "pluginConfig"))
        return self.mistakes

    def plugin_set(self, path: Path, *, point: str = "") -> None:
        seen: set[str] = set()
        for here, name in self.names((*path, "enabled")):
            self.plugin(name, here, point=point)
            if name in seen:
                self.mistake(here, f"plugin {name!r} is enabled twice")
            seen.add(name)
        for here, name in self.names((*path, "disabled")):
            if name == ALWAYS:
                self.mistake(here, STAYS)
            elif name in REMOVED_PLUGINS:
                if message := removed_default(name):
                    self.mistake(here, message)
            elif name != ALL and name not in NOT_IN_TREE:
                self.plugin(name, here)

    def arguments(self, path: Path) -> None:
        seen: set[str] = set()
        for here, name in self.names(path):
            args = (*here[:-1], "args")
            if name in seen:
                self.mistake(here, f"arguments for plugin {name!r} are given twice; keep one of them")
            seen.add(name)
            if name not in self.registry:
                self.plugin(name, here)
            elif isinstance(self.value(args), dict):
                self.mistakes.extend(self.wrong(self.registry.args_of(name), args))

    def wrong(self, kind: type[PluginArgs], path: Path) -> list[Mistake]:
        """List mistakes in single arguments; if there are none, mistakes in their combination."""
        found = mistakes_in(self.document, kind, path)
        if not found and not self.document.mistakes:
            try:
                convert(self.document, kind, path)
            except InputError as error:
                found = list(error.mistakes)
        return found

    def plugin(self, name: str, path: Path, *, point: str = "") -> None:
        if name not in self.registry:
            if name in NOT_IN_TREE:
                self.mistake(path, f"plugin {name!r} is part of kube-scheduler and not implemented here yet; remove it")
            elif message := removed(name):
                self.mistake(path, message)
            else:
                self.mistake(path, f"there is no plugin {name!r}; {suggest(name, self.registry)}")
        elif point and point not in (implemented := points_of(self.registry[name])):
            self.mistake(path, f"plugin {name!r} does not extend {point}: it extends {', '.join(implemented)}")

    def names(self, path: Path) -> Iterator[tuple[Path, str]]:
        for index in self.inside(path):
            here = (*path, index, "name")
            name = self.value(here)
            if isinstance(name, str):
                yield here, name

    def inside(self, path: Path) -> dict[str | int, YamlNode]:
        place: YamlNode | None = self.document.root
        for step in path:
            place = place.inside.get(step) if place is not None else None
        return {} if place is None else place.inside

    def value(self, path: Path) -> object:
        here = self.inside(path[:-1]).get(path[-1])
        return None if here is None else here.value

    def mistake(self, path: Path, message: str) -> None:
        self.mistakes.append(Mistake(self.document.source, message, written_path(path), self.document.line(path)))


def _fit_together(
    document: YamlDocument, config: KubeSchedulerConfiguration, registry: PluginRegistry
) -> list[Mistake]:
    """Check rules that concern several fields."""
    checker = _ConfigurationChecker(document, registry)
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        longest = config.pod_max_backoff_seconds
        if checker.value(("podMaxBackoffSeconds",)) is None:
            checker.mistake(
                ("podInitialBackoffSeconds",), f"must not be more than podMaxBackoffSeconds, which is {longest}"
            )
        else:
            checker.mistake(("podMaxBackoffSeconds",), "must not be less than podInitialBackoffSeconds")
    _check_leader_election(checker, config.leader_election)
    check_extenders(config.extenders, checker.mistake)
    if not config.profiles:
        checker.mistake(("profiles",), "at least one profile is needed: omit the field for the default one")
    sorts: set[tuple[str, ...]] = set()
    for index, profile in enumerate(config.profiles):
        chosen = _chosen(profile, registry)
        sorts.add(chosen.by_point["queueSort"])
        path = ("profiles", index, "plugins")
        if len(chosen.by_point["queueSort"]) != 1:
            checker.mistake(path, "exactly one queueSort plugin is needed, e.g. PrioritySort")
        if not chosen.by_point["bind"]:
            checker.mistake(path, "at least one bind plugin is needed, e.g. DefaultBinder")
    if len(sorts) > 1:
        checker.mistake(("profiles",), "all profiles share one queue and must use the same queueSort plugin")
    return checker.mistakes


def _check_leader_election(checker: _ConfigurationChecker, election: LeaderElection) -> None:
    """Check the times of leader election by upstream's rules, if it is enabled."""
    if not election.leader_elect:
        return
    if election.resource_lock != "leases":
        checker.mistake(("leaderElection", "resourceLock"), "only leases are supported: omit the field")
    times: dict[str, float] = {}
    for name, value in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        try:
            times[name] = seconds(value)
        except ValueError as error:
            checker.mistake(("leaderElection", name), str(error))
    if len(times) < 3:
        return
    if times["leaseDuration"] <= times["renewDeadline"]:
        checker.mistake(("leaderElection", "leaseDuration"), "must be longer than renewDeadline")
    if times["renewDeadline"] <= JITTER * times["retryPeriod"]:
        checker.mistake(("leaderElection", "renewDeadline"), f"must be longer than {JITTER} times retryPeriod")
    if times["retryPeriod"] <= 0:
        checker.mistake(("leaderElection", "retryPeriod"), "must be more than 0")
