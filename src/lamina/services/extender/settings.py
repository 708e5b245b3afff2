"""
How one extender is to run: flags, environment variables, a file and defaults, the first that says something having it.

    flags  >  environment  >  file  >  defaults

Each field is settled by itself: a port from the environment goes with an address from the file, and an argument from the
environment leaves the file's other arguments of that plugin alone. Pure; the command hands in what it was told.
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
"""What the fields of `TlsEntry` are called on a command line."""
ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - not to listen there, but to know who does
LONGEST_NAME: Final = 253

T = TypeVar("T")


class ExtenderFlags(PartialExtenderSettings, frozen=True, kw_only=True):
    """What the command line says."""

    verbosity: int | None = None
    """``-v``; stands for a level of its own."""


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything settled and checked."""

    agents: tuple[SchedulingAgent, ...]
    arguments: dict[str, PluginArgs]
    """For each plugin of these agents."""
    address: ListenAddress = ListenAddress()
    pages: ListenAddress | None = None
    """Where the pages are served as well, to anybody."""
    reply: ReplyMode = "sparse"
    state: StateSource = "watch"
    tls: TlsEntry | None = None
    usage: UsageEntry | None = None
    registries: str | bool = True
    """A file of rules; True: the usual rules; False: no registry is asked, ever."""
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    loudness: LogLevel = LogLevel()
    complaints: tuple[str, ...] = ()
    """What to warn about before anything else is said."""


def chosen_agents(
    flags: PartialExtenderSettings, file: PartialExtenderSettings, agents: SchedulingAgentRegistry
) -> tuple[SchedulingAgent, ...]:
    """Find the agents that are served; flags name all of them or none. Raises InputError."""
    names = [entry.name for entry in (flags.agents or file.agents or ())]
    source = "--agents" if flags.agents else COMMAND
    if not names:
        raise InputError.one(COMMAND, f"no agent is chosen; name some with --agents, from {', '.join(agents)}")
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
    """Let the strongest voice have each setting. Raises InputError with everything that does not go together."""
    served = chosen_agents(flags, file, agents)
    check_names("--scheduler-name", flags.scheduler_names or ())
    check_names(CLIENT_NAME, flags.tls.client_names if flags.tls is not None else ())
    settings = ExtenderSettings(
        agents=served,
        arguments=_arguments(served, file.agents or (), environment),
        address=_address(flags, environment, file),
        pages=_pages(flags, file),
        reply=flags.reply or file.reply or "sparse",
        state=flags.state or file.state or "watch",
        tls=_tls(flags.tls, file.tls),
        usage=_usage(flags.usage, file.usage),
        registries=_first(flags.registries, file.registries, USUAL),
        scheduler_names=flags.scheduler_names or file.scheduler_names or SCHEDULER_NAMES,
        loudness=_loudness(flags, environment, file),
    )
    if settings.pages is not None and _meet(settings.pages, settings.address):
        raise InputError.one("--pages", "is where --listen is; choose another port")
    # Who names certificates on the command line does not mean what the file says of going without.
    without = None if flags.tls is not None else file.insecure_http
    exposed = _exposed(settings, insecure=_first(flags.insecure_http, without, False))
    return msgspec.structs.replace(settings, complaints=(*agents.broken.values(), *environment.complaints, *exposed))


def check_names(flag: str, names: Iterable[str]) -> None:
    """Refuse names on a command line that a file could not have either. Raises InputError."""
    for name in names:
        if not 1 <= len(name) <= LONGEST_NAME:
            raise InputError.one(flag, f"{shown(name)} is no name; write 1 to {LONGEST_NAME} characters")


def _meet(one: ListenAddress, other: ListenAddress) -> bool:
    """Whether only one of both can be listened at."""
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


def _pages(flags: PartialExtenderSettings, file: PartialExtenderSettings) -> ListenAddress | None:
    if flags.pages is not None:
        try:
            return parse_address(flags.pages)
        except ValueError as error:
            raise InputError.one("--pages", str(error)) from None
    return None if file.pages is None else parse_address(file.pages)


def _loudness(flags: ExtenderFlags, environment: EnvironmentSettings, file: PartialExtenderSettings) -> LogLevel:
    if flags.verbosity is not None:
        return level_numbered(flags.verbosity)
    if environment.loudness is not None:
        return environment.loudness
    return level_named(file.log_level or "") or LogLevel()


def _arguments(
    agents: tuple[SchedulingAgent, ...], entries: tuple[AgentEntry, ...], environment: EnvironmentSettings
) -> dict[str, PluginArgs]:
    """Join what file and environment say to each plugin, argument by argument."""
    written = {entry.name: entry.plugins for entry in entries}
    settled: dict[str, PluginArgs] = {}
    mistakes: list[Mistake] = []
    for agent in agents:
        for plugin in agent.plugins:
            said = {**written.get(agent.name, {}).get(plugin.name, {}), **environment.arguments.get(plugin.name, {})}
            try:
                settled[plugin.name] = msgspec.convert(said, args_of(plugin))
            except msgspec.ValidationError as error:
                message = f"arguments of {plugin.name} do not go together: {error}; see the file and the environment"
                mistakes.append(Mistake(f"agent {agent.name}", message))
    if mistakes:
        raise InputError(mistakes)
    return settled


def _tls(flags: TlsEntry | None, file: TlsEntry | None) -> TlsEntry | None:
    """Join both, field by field; certificate and key come from the same place."""
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
    """Say the same to somebody who writes flags."""
    for field, flag in FLAGS.items():
        message = message.replace(field, flag)
    return message


def _usage(flags: UsageEntry | None, file: UsageEntry | None) -> UsageEntry | None:
    """Take the source that flags name, with what the file says about it."""
    if flags is None:
        return file
    if flags.prometheus is not None and flags.metrics_server:
        raise InputError.one("--metrics-server", "not together with --prometheus; one source is enough")
    told = file or UsageEntry()
    if flags.prometheus is None:
        return msgspec.structs.replace(told, prometheus=None, metrics_server=True)
    entry = msgspec.structs.replace(told.prometheus or flags.prometheus, url=flags.prometheus.url)
    return msgspec.structs.replace(told, prometheus=entry, metrics_server=False)


def _exposed(settings: ExtenderSettings, *, insecure: bool) -> list[str]:
    """Refuse to be asked by strangers; say what is only unwise."""
    address, tls = settings.address, settings.tls or TlsEntry()
    if insecure and tls.cert_file:
        raise InputError.one("--insecure-http", "not together with certificates; leave one of them out")
    anybody = f"whoever has a certificate of {tls.client_ca_file} may ask; name those who should"
    if address.is_loopback:
        return [f"{anybody} with {CLIENT_NAME}"] if tls.cert_file and not tls.client_names else []
    if insecure:
        return [f"anybody who reaches {address} may ask, and nobody can tell who answers; let a NetworkPolicy decide"]
    if not tls.cert_file:
        message = f"{address} can be reached from elsewhere; name {', '.join(FLAGS.values())}"
        raise InputError.one(
            "--listen", f"{message}; or listen on {ListenAddress(port=address.port)}; or say --insecure-http"
        )
    if not tls.client_names:
        raise InputError.one(CLIENT_NAME, anybody)
    return []
