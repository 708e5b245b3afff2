"""
Merged settings of one extender, from flags, environment variables, file and defaults.

    flags  >  environment  >  file  >  defaults

Each field is merged by itself: a port from the environment is combined with an address from the file. An argument from
the environment keeps the file's other arguments of that plugin. Pure; the command passes all input.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent, SchedulingAgentRegistry
from lamina.services.extender.address import ListenAddress, parse_address, parse_port
from lamina.services.extender.configuration import (
    AgentEntry,
    PartialExtenderSettings,
    ReplyMode,
    StateSource,
    TlsEntry,
    UsageEntry,
    args_of,
    tls_gaps,
)
from lamina.services.extender.environment_variables import HTTP_PORT, EnvironmentSettings
from lamina.services.extender.log_level import LogLevel, level_named, level_numbered

SCHEDULER_NAMES: Final = ("my-scheduler",)
USUAL: Final[str | bool] = True
COMMAND: Final = "lamina extender"
CLIENT_NAME: Final = "--client-name"
FLAGS: Final = {
    "certFile": "--tls-cert",
    "keyFile": "--tls-key",
    "clientCAFile": "--tls-client-ca",
    "clientNames": CLIENT_NAME,
}
"""The flag for each field of `TlsEntry`."""
ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - not to listen there, but to recognise it
LONGEST_NAME: Final = 253

T = TypeVar("T")


class ExtenderFlags(PartialExtenderSettings, frozen=True, kw_only=True):
    """Settings from the command line."""

    verbosity: int | None = None
    """``-v``; an alternative to a level name."""


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All settings, merged and checked."""

    agents: tuple[SchedulingAgent, ...]
    arguments: dict[str, PluginArgs]
    """Arguments of each plugin of these scheduling agents."""
    address: ListenAddress = ListenAddress()
    endpoints: ListenAddress | None = None
    """Second address for the endpoints, without TLS."""
    reply: ReplyMode = "sparse"
    state: StateSource = "watch"
    tls: TlsEntry | None = None
    usage: UsageEntry | None = None
    registries: str | bool = True
    """A file with registry rules; True: default rules; False: registries are never queried."""
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    log_level: LogLevel = LogLevel()
    complaints: tuple[str, ...] = ()
    """Warnings to log first."""


def chosen_agents(
    flags: PartialExtenderSettings, file: PartialExtenderSettings, agents: SchedulingAgentRegistry
) -> tuple[SchedulingAgent, ...]:
    """Return the scheduling agents to serve; flags replace the file's list. Raises InputError."""
    names = [entry.name for entry in (flags.agents or file.agents or ())]
    source = "--agents" if flags.agents else COMMAND
    if not names:
        raise InputError.one(COMMAND, f"no agent is chosen; set --agents to some of {', '.join(agents)}")
    wrong = [agents.why_not(name) for name in names if name not in agents]
    wrong += [f"agent {shown(name)} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if wrong:
        raise InputError(Mistake(source, message) for message in wrong)
    return tuple(agents[name] for name in names)


def merge_settings(
    flags: ExtenderFlags,
    environment: EnvironmentSettings,
    file: PartialExtenderSettings,
    agents: SchedulingAgentRegistry,
) -> ExtenderSettings:
    """Merge all sources by precedence. Raises InputError with every conflict."""
    served = chosen_agents(flags, file, agents)
    check_names("--scheduler-name", flags.scheduler_names or ())
    check_names(CLIENT_NAME, flags.tls.client_names if flags.tls is not None else ())
    settings = ExtenderSettings(
        agents=served,
        arguments=_arguments(served, file.agents or (), environment),
        address=_address(flags, environment, file),
        endpoints=_endpoints(flags, file),
        reply=flags.reply or file.reply or "sparse",
        state=flags.state or file.state or "watch",
        tls=_tls(flags.tls, file.tls),
        usage=_usage(flags.usage, file.usage),
        registries=_first(flags.registries, file.registries, USUAL),
        scheduler_names=flags.scheduler_names or file.scheduler_names or SCHEDULER_NAMES,
        log_level=_log_level(flags, environment, file),
    )
    if settings.endpoints is not None and _meet(settings.endpoints, settings.address):
        raise InputError.one("--pages", "is the same address as --listen; choose another port")
    # Certificates on the command line override the file's insecureHTTP.
    without = None if flags.tls is not None else file.insecure_http
    exposed = _exposed(settings, insecure=_first(flags.insecure_http, without, False))
    return msgspec.structs.replace(settings, complaints=(*agents.broken.values(), *environment.complaints, *exposed))


def check_names(flag: str, names: Iterable[str]) -> None:
    """Apply the length limits of a file to names on the command line. Raises InputError."""
    for name in names:
        if not 1 <= len(name) <= LONGEST_NAME:
            raise InputError.one(flag, f"{shown(name)} is not a valid name; write 1 to {LONGEST_NAME} characters")


def _meet(one: ListenAddress, other: ListenAddress) -> bool:
    """Return whether both addresses cannot be used at the same time."""
    hosts = {one.host, other.host}
    return one.port == other.port != 0 and (len(hosts) == 1 or not hosts.isdisjoint(ANYWHERE))


def _first(strong: T | None, weak: T | None, default: T) -> T:
    return strong if strong is not None else weak if weak is not None else default


def _address(
    flags: PartialExtenderSettings, environment: EnvironmentSettings, file: PartialExtenderSettings
) -> ListenAddress:
    if flags.listen is not None:
        try:
            return parse_address(flags.listen)
        except ValueError as error:
            raise InputError.one("--listen", str(error)) from None
    address = ListenAddress() if file.listen is None else parse_address(file.listen)
    if environment.port is None:
        return address
    try:
        return ListenAddress(address.host, parse_port(environment.port))
    except ValueError as error:
        raise InputError.one(HTTP_PORT, str(error)) from None


def _endpoints(flags: PartialExtenderSettings, file: PartialExtenderSettings) -> ListenAddress | None:
    if flags.pages is not None:
        try:
            return parse_address(flags.pages)
        except ValueError as error:
            raise InputError.one("--pages", str(error)) from None
    return None if file.pages is None else parse_address(file.pages)


def _log_level(flags: ExtenderFlags, environment: EnvironmentSettings, file: PartialExtenderSettings) -> LogLevel:
    if flags.verbosity is not None:
        return level_numbered(flags.verbosity)
    if environment.log_level is not None:
        return environment.log_level
    return level_named(file.log_level or "") or LogLevel()


def _arguments(
    agents: tuple[SchedulingAgent, ...], entries: tuple[AgentEntry, ...], environment: EnvironmentSettings
) -> dict[str, PluginArgs]:
    """Merge the arguments of each plugin from file and environment, argument by argument."""
    written = {entry.name: entry.plugins for entry in entries}
    settled: dict[str, PluginArgs] = {}
    mistakes: list[Mistake] = []
    for agent in agents:
        for plugin in agent.plugins:
            said = {**written.get(agent.name, {}).get(plugin.name, {}), **environment.arguments.get(plugin.name, {})}
            try:
                settled[plugin.name] = msgspec.convert(said, args_of(plugin))
            except msgspec.ValidationError as error:
                message = f"arguments of {plugin.name} are in conflict: {error}; check the file and the environment"
                mistakes.append(Mistake(f"agent {agent.name}", message))
    if mistakes:
        raise InputError(mistakes)
    return settled


def _tls(flags: TlsEntry | None, file: TlsEntry | None) -> TlsEntry | None:
    """Merge both, field by field; certificate and key come from the same source."""
    if flags is None:
        return file if file is not None and file.cert_file else None
    joined = msgspec.structs.asdict(file) if file is not None else {}
    if flags.cert_file or flags.key_file:
        joined["cert_file"] = joined["key_file"] = ""
    joined |= {name: value for name, value in msgspec.structs.asdict(flags).items() if value}
    settled = TlsEntry(**joined)
    if gaps := list(tls_gaps(settled)):
        raise InputError(Mistake(FLAGS[field], _by_flags(message)) for field, message in gaps)
    return settled


def _by_flags(message: str) -> str:
    """Replace field names with flags in a message."""
    for field, flag in FLAGS.items():
        message = message.replace(field, flag)
    return message


def _usage(flags: UsageEntry | None, file: UsageEntry | None) -> UsageEntry | None:
    """Return the source that the flags choose, with the file's other settings of it."""
    if flags is None:
        return file
    if flags.prometheus is not None and flags.metrics_server:
        raise InputError.one("--metrics-server", "cannot be combined with --prometheus; choose one source")
    told = file or UsageEntry()
    if flags.prometheus is None:
        return msgspec.structs.replace(told, prometheus=None, metrics_server=True)
    entry = msgspec.structs.replace(told.prometheus or flags.prometheus, url=flags.prometheus.url)
    return msgspec.structs.replace(told, prometheus=entry, metrics_server=False)


def _exposed(settings: ExtenderSettings, *, insecure: bool) -> list[str]:
    """Reject an address that is open to clients without certificates; return warnings about risky settings."""
    address, tls = settings.address, settings.tls or TlsEntry()
    if insecure and tls.cert_file:
        raise InputError.one("--insecure-http", "cannot be combined with certificates; remove one of them")
    open_to_all = f"every client with a certificate of {tls.client_ca_file} is accepted; list the accepted names"
    if address.is_loopback:
        return [f"{open_to_all} with {CLIENT_NAME}"] if tls.cert_file and not tls.client_names else []
    if insecure:
        return [f"{address} serves plain HTTP to every client; restrict it with a NetworkPolicy"]
    if not tls.cert_file:
        message = f"{address} is not a loopback address; set {', '.join(FLAGS.values())}"
        raise InputError.one(
            "--listen", f"{message}; or listen on {ListenAddress(port=address.port)}; or set --insecure-http"
        )
    if not tls.client_names:
        raise InputError.one(CLIENT_NAME, open_to_all)
    return []
