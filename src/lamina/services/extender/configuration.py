"""
The extender's configuration file: its fields, and all mistakes in it with their lines.

    apiVersion: lamina.dev/v1alpha1
    kind: ExtenderConfiguration
    listen: 127.0.0.1:5401
    agents:
    - name: safe
      plugins:
        SafeOverload: {threshold: 85}            # arguments, as under pluginConfig of a scheduler
    usage:
      prometheus: {url: http://prometheus.example:9090}

Every field is optional. Flags and environment variables override the file (`lamina.services.extender.settings`). This
module reads neither of them.
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
        raise ValueError(f"{plain.shown(text)} is not a log level; {suggest(text, LEVELS)}")


AddressText = Annotated[str, msgspec.Meta(extra={"reads": parse_address})]
LevelText = Annotated[str, msgspec.Meta(extra={"reads": _level})]
NameText = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]

ReplyMode = Literal["sparse", "best", "full"]
StateSource = Literal["watch", "body"]


class _Camel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts: camelCase names in YAML."""


class AgentEntry(_Camel, frozen=True, kw_only=True):
    """A scheduling agent to serve, with arguments for its plugins."""

    name: str
    plugins: dict[str, dict[str, Any]] = {}  # Any: every plugin has its own arguments, checked in a second step


class TlsEntry(_Camel, frozen=True, kw_only=True):
    """Certificates of the server, and which clients it accepts; files are relative to the configuration."""

    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = msgspec.field(default="", name="clientCAFile")
    """Clients must have a certificate of this authority."""
    client_names: tuple[NameText, ...] = ()
    """Accepted names of clients: the certificate's common name, or one of its DNS names."""


class PartialExtenderSettings(_Camel, frozen=True, kw_only=True):
    """Settings of an extender from a file or from flags; None where a field is not set."""

    listen: AddressText | None = None
    pages: AddressText | None = None
    """Second address for the endpoints, without TLS: for probes and for Prometheus."""
    agents: tuple[AgentEntry, ...] | None = None
    reply: ReplyMode | None = None
    """Whether nodes of the lowest level are left out of an answer."""
    state: StateSource | None = None
    """Whether the extender watches the cluster, or takes all data from the requests."""
    tls: TlsEntry | None = None
    insecure_http: bool | None = msgspec.field(default=None, name="insecureHTTP")
    """Whether clients without a certificate are accepted."""
    usage: UsageEntry | None = None
    registries: str | bool | None = None
    """File with registry rules, or whether registries are queried at all."""
    scheduler_names: tuple[NameText, ...] | None = None
    log_level: LevelText | None = None


class ExtenderConfiguration(PartialExtenderSettings, frozen=True, kw_only=True):
    """The whole file."""

    api_version: Literal["lamina.dev/v1alpha1"]
    kind: Literal["ExtenderConfiguration"]


def load_configuration(path: Path, agents: SchedulingAgentRegistry) -> ExtenderConfiguration:
    """Read a configuration file; file names in it are relative to it. Raises InputError with every mistake in it."""
    return _beside(path, read_configuration(read_text(path), str(path), agents))


def read_configuration(text: str, source: str, agents: SchedulingAgentRegistry) -> ExtenderConfiguration:
    """Parse the text of a configuration. Raises InputError with every mistake in it."""
    document = read_yaml(text, source)
    mistakes = mistakes_in(document, ExtenderConfiguration)
    # Check the document, not the converted struct: a misspelt field must not hide a wrong name elsewhere.
    mistakes += _ExtenderConfigurationChecker(document, agents).check()
    if mistakes:
        raise InputError(sorted(mistakes, key=lambda mistake: mistake.line))
    return convert(document, ExtenderConfiguration)


def tls_gaps(tls: TlsEntry) -> Iterator[tuple[str, str]]:
    """Return the fields that need another field, each with a message."""
    if tls.cert_file and not tls.key_file:
        yield "certFile", "has no key; set keyFile"
    if tls.key_file and not tls.cert_file:
        yield "keyFile", "has no certificate; set certFile"
    if tls.cert_file and not tls.client_ca_file:
        yield "certFile", "without clientCAFile any client could send requests; set clientCAFile"
    if tls.client_ca_file and not tls.cert_file:
        yield "clientCAFile", "client certificates need a server certificate; set certFile and keyFile"
    if tls.client_names and not tls.client_ca_file:
        yield "clientNames", "client names need an authority that verifies them; set clientCAFile"


def args_of(plugin: PluginClass) -> type[PluginArgs]:
    """Return the struct that describes a plugin's arguments."""
    args: type[PluginArgs] = getattr(plugin, "Args", NoArgs)
    return args


class _ExtenderConfigurationChecker:
    """Finds mistakes that the types of the fields do not show."""

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
                self.mistake(("schedulerNames",), "needs at least one name; leave the field out for the default")
        return self.mistakes

    def entries(self, entries: object) -> None:
        if entries == []:
            self.mistake(("agents",), f"needs at least one agent; choose from {', '.join(self.agents)}")
        seen: dict[object, int] = {}
        for position, entry in enumerate(entries if isinstance(entries, list) else ()):
            name = entry.get("name") if isinstance(entry, dict) else None
            here: plain.Path = ("agents", position)
            if not isinstance(entry, dict) or not isinstance(name, str):
                continue
            if name not in self.agents:
                self.mistake((*here, "name"), self.agents.why_not(name))
            elif seen.setdefault(name, position) != position:
                message = f"agent {name!r} has an entry already, agents[{seen[name]}]; merge them"
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
        """Return the mistakes in arguments; if each is valid, the mistakes in their combination."""
        found = mistakes_in(self.document, kind, path)
        if not found and not self.document.mistakes:
            try:
                convert(self.document, kind, path)
            except InputError as error:
                found = list(error.mistakes)
        return found

    def usage(self, usage: object) -> None:
        """Apply the checks of a separate usage settings file."""
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
    """Make file names relative to the folder of the configuration."""

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
