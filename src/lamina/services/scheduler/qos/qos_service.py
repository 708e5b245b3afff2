"""
The parts that show and store the measurements of one scheduler: page, metrics, log and history.

They exist while a profile enables a plugin that measures (`QosPlugin`). All profiles of a process share one engine.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec

from lamina.model.errors import InputError
from lamina.model.events import Event, PluginHistoryLoaded
from lamina.qos.engine import QosEngine
from lamina.qos.qos_summary import QosSummary, encoded
from lamina.scheduling.contract.kept_state import QosPlugin
from lamina.scheduling.runtime.profile import Profile
from lamina.services.informers.clock import SteadyClock
from lamina.services.scheduler.qos.history_keeper import ApiClient, QosHistoryKeeper
from lamina.services.scheduler.qos.qos_log import QosLog, QosLogSettings
from lamina.services.scheduler.qos.qos_metrics import QosMetrics
from lamina.services.scheduler.qos.qos_page import PAGE_LIMITS, QosPage
from lamina.serving.http_server import HttpServer
from lamina.serving.listening_sockets import ListenError
from lamina.serving.server_limits import NoServerMetrics, is_loopback

LAST_REQUESTS: Final = 0.5
LAST_WRITE: Final = 3.0
"""Seconds for the last write of the history at the end."""

log = logging.getLogger(__name__)


class QosOptions(msgspec.Struct, frozen=True):
    """Options that concern these parts."""

    host: str = "127.0.0.1"
    port: int = 10000
    """Port of the page; 0 means any free port."""
    log: QosLogSettings | None = None
    """Where finished incarnations are logged; None: nowhere."""


class QosHost(msgspec.Struct, frozen=True, eq=False):
    """What these parts need of the scheduler."""

    client: ApiClient
    put: Callable[[Event], None]
    """Passes an event to the loop."""
    wake: Callable[[], None]
    """Wakes the loop: pods may be decided now."""
    synced: Callable[[], bool]
    """Returns whether all existing pods are known."""
    may_act: Callable[[], bool]
    clock: SteadyClock


def measuring_plugin(profiles: Mapping[str, Profile]) -> QosPlugin | None:
    """Return a plugin that measures, if a profile has one; they share an engine."""
    plugins = (plugin for profile in profiles.values() for plugin in profile.plugins.values())
    return next((plugin for plugin in plugins if isinstance(plugin, QosPlugin)), None)


class QosService:
    """Page, metrics, log and history of one plugin's engine."""

    def __init__(self, plugin: QosPlugin, options: QosOptions, host: QosHost, name: str, *, stores: bool) -> None:
        """Build the parts; the history has *name*, and is written only if *stores*."""
        self._plugin, self._options, self._host = plugin, options, host
        self.metrics = QosMetrics(self._engine, host.clock)
        page = QosPage(self._engine, host.clock, loopback_only=is_loopback(options.host))
        self.server = HttpServer(page, PAGE_LIMITS, NoServerMetrics())
        self._log = None if options.log is None else QosLog(options.log, self._engine)
        self._keeper = (
            QosHistoryKeeper(
                host.client,
                name,
                self._engine,
                adopt=self._adopt,
                synced=host.synced,
                may_act=host.may_act,
                wake=host.wake,
                clock=host.clock,
            )
            if stores
            else None
        )

    @property
    def ready(self) -> bool:
        """Whether pods may be decided: an earlier history is adopted, or there is none."""
        return self._keeper is None or self._keeper.ready

    async def open(self) -> None:
        """Listen. Raises InputError."""
        host, port = self._options.host, self._options.port
        try:
            await self.server.start(host, port)
        except ListenError as error:
            hint = "; write --qos-listen ADDRESS:PORT to use another address"
            raise InputError.one("--qos-listen", f"cannot listen on {host}:{port}: {error.reason}{hint}") from error
        log.info("serving QoS page", extra={"fields": {"at": f"http://{host}:{self.server.port}"}})

    async def close(self) -> None:
        """Answer pending requests and stop listening."""
        await self.server.stop(LAST_REQUESTS)

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return what runs as long as the scheduler, by name."""
        found: dict[str, Coroutine[Any, Any, None]] = {"qos-page": self.server.run()}
        if self._log is not None:
            found["qos-log"] = self._log.run()
        if self._keeper is not None:
            found["qos-history"] = self._keeper.run()
        return found

    async def finish(self) -> None:
        """Write what is not written yet."""
        if self._log is not None:
            await self._log.finish()
        if self._keeper is not None:
            await self._keeper.finish(LAST_WRITE)

    def _engine(self) -> QosEngine:
        return self._plugin.qos

    def _adopt(self, summary: QosSummary) -> None:
        self._host.put(PluginHistoryLoaded(self._plugin.name, encoded(summary)))
