"""
The extender's own configuration file, read as a whole: what it may say, and every mistake in it with its line.

    apiVersion: lamina.dev/v1alpha1
    kind: ExtenderConfiguration
    listen: 127.0.0.1:5401
    agents:
    - name: safe
      plugins:
        SafeOverload: {threshold: 85}            # arguments, as under pluginConfig of a scheduler
    usage:
      prometheus: {url: http://prometheus.example:9090}

Everything may be left out. What the file says is one voice among three: flags and environment variables are stronger,
which `lamina.services.extender.settings` sees to. Nothing here looks at either.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.clients.bounded_files import read_text
from lamina.model import plain
from lamina.model.conversion import convert, mistakes_in, suggest
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import written_path
from lamina.model.yaml_document import YamlDocument, read_yaml
from lamina.scheduling.contract.plugin_registry import NoArgs, PluginArgs, PluginClass
from lamina.scheduling.contract.scheduling_agent import SchedulingAgentRegistry
from lamina.services.extender.address import parse_address
from lamina.services.extender.log_level import LEVELS, level_named
from lamina.services.informers.usage.usage_settings import PrometheusEntry, settings_problems
from lamina.services.informers.usage.usage_settings import UsageSettings as UsageEntry
from lamina.services.informers.usage.usage_settings import beside as usage_beside

__all__ = [
    "AgentEntry",
    "ExtenderConfiguration",
    "PartialExtenderSettings",
    "PrometheusEntry",
    "ReplyMode",
    "StateSource",
    "TlsEntry",
    "UsageEntry",
    "args_of",
    "load_configuration",
    "read_configuration",
    "tls_gaps",
]

API_VERSION: Final = "lamina.dev/v1alpha1"
KIND: Final = "ExtenderConfiguration"


def _level(text: str) -> None:
    if level_named(text) is None:
        raise ValueError(f"{plain.shown(text)} is no level; {suggest(text, LEVELS)}")


AddressText = Annotated[str, msgspec.Meta(extra={"reads": parse_address})]
LevelText = Annotated[str, msgspec.Meta(extra={"reads": _level})]
NameText = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]

ReplyMode = Literal["sparse", "best", "full"]
StateSource = Literal["watch", "body"]


class _Camel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class AgentEntry(_Camel, frozen=True, kw_only=True):
    """An agent that is served, and arguments for its plugins."""

    name: str
    plugins: dict[str, dict[str, Any]] = {}  # Any: every plugin has arguments of its own, checked in a second step


class TlsEntry(_Camel, frozen=True, kw_only=True):
    """Who we are to those who ask, and whom we believe; files lie beside the configuration."""

    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = msgspec.field(default="", name="clientCAFile")
    """Who asks must have a certificate of this authority."""
    client_names: tuple[NameText, ...] = ()
    """Whose certificate it must be: its common name, or one of the other names in it."""


class PartialExtenderSettings(_Camel, frozen=True, kw_only=True):
    """What a file, or flags, say about an extender; None where they say nothing."""

    listen: AddressText | None = None
    pages: AddressText | None = None
    """Where the pages are served as well, without TLS: for probes and for whoever reads metrics."""
    agents: tuple[AgentEntry, ...] | None = None
    reply: ReplyMode | None = None
    """Whether nodes of the lowest level are left out of an answer."""
    state: StateSource | None = None
    """Whether the cluster is watched, or known only from what each request brings along."""
    tls: TlsEntry | None = None
    insecure_http: bool | None = msgspec.field(default=None, name="insecureHTTP")
    """Whether strangers may ask without showing who they are."""
    usage: UsageEntry | None = None
    registries: str | bool | None = None
    """A file that says which registries may be asked, or whether any may be asked at all."""
    scheduler_names: tuple[NameText, ...] | None = None
    log_level: LevelText | None = None


class ExtenderConfiguration(PartialExtenderSettings, frozen=True, kw_only=True):
    """The whole file."""

    api_version: Literal["lamina.dev/v1alpha1"]
    kind: Literal["ExtenderConfiguration"]


def load_configuration(path: Path, agents: SchedulingAgentRegistry) -> ExtenderConfiguration:
    """Read a configuration; names of files in it begin where it lies. Raises InputError with every mistake in it."""
    return _beside(path, read_configuration(read_text(path), str(path), agents))


def read_configuration(text: str, source: str, agents: SchedulingAgentRegistry) -> ExtenderConfiguration:
    """Read the text of a configuration. Raises InputError with every mistake in it."""
    document = read_yaml(text, source)
    mistakes = mistakes_in(document, ExtenderConfiguration)
    # By the document and not by what is made of it: a misspelt field must not hide a wrong name elsewhere.
    mistakes += _ExtenderConfigurationChecker(document, agents).check()
    if mistakes:
        raise InputError(sorted(mistakes, key=lambda mistake: mistake.line))
    return convert(document, ExtenderConfiguration)


def tls_gaps(tls: TlsEntry) -> Iterator[tuple[str, str]]:
    """List what lacks something else, by field and in words."""
    if tls.cert_file and not tls.key_file:
        yield "certFile", "has no key; name it in keyFile"
    if tls.key_file and not tls.cert_file:
        yield "keyFile", "has no certificate; name it in certFile"
    if tls.cert_file and not tls.client_ca_file:
        yield "certFile", "whoever knows the address could ask; name the authority of those who may in clientCAFile"
    if tls.client_ca_file and not tls.cert_file:
        yield "clientCAFile", "clients show who they are only to a server that does; name certFile and keyFile"
    if tls.client_names and not tls.client_ca_file:
        yield "clientNames", "a name counts only if somebody vouches for it; name clientCAFile"


def args_of(plugin: PluginClass) -> type[PluginArgs]:
    """Return the struct that describes a plugin's arguments."""
    args: type[PluginArgs] = getattr(plugin, "Args", NoArgs)
    return args


class _ExtenderConfigurationChecker:
    """Looks for what the shape alone does not show."""

    def __init__(self, document: YamlDocument, agents: SchedulingAgentRegistry) -> None:
        self.document = document
        self.agents = agents
        self.mistakes: list[Mistake] = []

    def check(self) -> list[Mistake]:
        root = self.document.root.value
        if isinstance(root, dict):
            self.entries(root.get("agents"))
            self.usage(root.get("usage"))
            self.tls(root.get("tls"))
            if root.get("schedulerNames") == []:
                self.mistake(("schedulerNames",), "at least one name is needed; leave the field out for the usual one")
        return self.mistakes

    def entries(self, entries: object) -> None:
        if entries == []:
            self.mistake(("agents",), f"at least one agent is needed; choose from {', '.join(self.agents)}")
        seen: dict[object, int] = {}
        for position, entry in enumerate(entries if isinstance(entries, list) else ()):
            name = entry.get("name") if isinstance(entry, dict) else None
            here: plain.Path = ("agents", position)
            if not isinstance(entry, dict) or not isinstance(name, str):
                continue
            if name not in self.agents:
                self.mistake((*here, "name"), self.agents.why_not(name))
            elif seen.setdefault(name, position) != position:
                message = f"agent {name!r} has an entry already, agents[{seen[name]}]; make them one"
                self.mistake((*here, "name"), message)
            else:
                self.plugins(name, entry.get("plugins"), (*here, "plugins"))

    def plugins(self, agent: str, plugins: object, path: plain.Path) -> None:
        known = {plugin.name: plugin for plugin in self.agents[agent].plugins}
        for name, args in plugins.items() if isinstance(plugins, dict) else ():
            if name not in known:
                message = f"agent {agent!r} has no plugin {plain.shown(name)}; {suggest(name, known)}"
                self.mistake((*path, name), message)
            elif isinstance(args, dict):
                self.mistakes.extend(self.arguments(args_of(known[name]), (*path, name)))

    def arguments(self, kind: type[PluginArgs], path: plain.Path) -> list[Mistake]:
        """List what is wrong with arguments; if each is right, what is wrong with them together."""
        found = mistakes_in(self.document, kind, path)
        if not found and not self.document.mistakes:
            try:
                convert(self.document, kind, path)
            except InputError as error:
                found = list(error.mistakes)
        return found

    def usage(self, usage: object) -> None:
        """Look as whoever reads a file of its own about usage does."""
        if isinstance(usage, dict) and not mistakes_in(self.document, UsageEntry, ("usage",)):
            part = YamlDocument(self.document.source, self.document.at(("usage",)))
            for one in settings_problems(part, convert(part, UsageEntry)):
                path = f"usage.{one.path}" if one.path else "usage"
                self.mistakes.append(msgspec.structs.replace(one, path=path))

    def tls(self, tls: object) -> None:
        if isinstance(tls, dict) and not mistakes_in(self.document, TlsEntry, ("tls",)):
            for field, message in tls_gaps(msgspec.convert(tls, TlsEntry)):
                self.mistake(("tls", field), message)

    def mistake(self, path: plain.Path, message: str) -> None:
        self.mistakes.append(Mistake(self.document.source, message, written_path(path), self.document.line(path)))


def _beside(path: Path, configuration: ExtenderConfiguration) -> ExtenderConfiguration:
    """Let the names of files begin where the configuration lies."""

    def beside(name: str) -> str:
        return str(path.parent / name) if name else ""

    changed: dict[str, object] = {}
    if configuration.tls is not None:
        files = ("cert_file", "key_file", "client_ca_file")
        changed["tls"] = msgspec.structs.replace(
            configuration.tls, **{name: beside(getattr(configuration.tls, name)) for name in files}
        )
    if configuration.usage is not None:
        changed["usage"] = usage_beside(path, configuration.usage)
    if isinstance(configuration.registries, str):
        changed["registries"] = beside(configuration.registries)
    return msgspec.structs.replace(configuration, **changed)
