"""
Puts an extender together, runs it, and takes it apart again.

    watches ──> inbox ──> keeper ──> panel <── answering <── http ── kube-scheduler

On SIGTERM or SIGINT no new connection is accepted and questions under way are answered.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec

from lamina.clients.kube.access import ApiAccess
from lamina.clients.kube.transport import KubeClient
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.clients.oci.resolver import RegistryResolver
from lamina.model.duration import seconds
from lamina.model.node import Node
from lamina.scheduling.contract.plugin_registry import PluginClass
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.state.facets import Facet
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.endpoints import ExtenderEndpoints
from lamina.services.extender.handlers import Handlers
from lamina.services.extender.http.http_server import HttpServer
from lamina.services.extender.http.response import Routes
from lamina.services.extender.http.server_limits import ServerLimits
from lamina.services.extender.http.tls import ServerTlsSettings
from lamina.services.extender.metrics import ExtenderMetrics
from lamina.services.extender.settings import ExtenderSettings
from lamina.services.extender.state_feeder import StateFeeder
from lamina.services.informers.annotation_log import AnnotationLog
from lamina.services.informers.clock import SteadyClock
from lamina.services.informers.event_queue import EventQueue, EventSink
from lamina.services.informers.image_gate import ImageGate
from lamina.services.informers.informer_set import InformerSet
from lamina.services.informers.initial_sync import gc_paused, wait_synced
from lamina.services.informers.pod_image_resolver import PodImageResolver
from lamina.services.informers.pull_secrets import PullSecrets
from lamina.services.informers.usage.usage_poller import UsagePoller
from lamina.services.informers.usage.usage_settings import open_source
from lamina.services.informers.usage.usage_source import UsageSource

LAST_ANSWERS: Final = 2.0
"""Seconds for questions under way once the process is asked to stop."""
AGENTS: Final = "agents"
LAYERS: Final = frozenset({Facet.LAYERS, Facet.CATALOG})
ENDPOINT_LIMITS: Final = ServerLimits(
    small_body=1024, large_body=1024, large_at_once=1, connections=16, newcomers_first=True, idle_seconds=5.0
)
"""Whoever reads pages is not asked who they are, has nothing to send, and keeps no probe from its page by staying."""

log = logging.getLogger(__name__)


class ExtenderOptions(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the command line said, checked."""

    settings: ExtenderSettings
    access: ApiAccess | None = None
    """How to reach the cluster; None: nodes are known only from the questions."""
    rules: RegistryConfig | None = None
    """Which registries may be asked what an image consists of; None: none, ever."""
    keyring: Keyring | None = None
    limits: ServerLimits = ServerLimits()


def reads_layers(agent: SchedulingAgent) -> bool:
    """Say whether an agent says that it goes by what nodes hold; for others no registry is asked anything."""
    return any(not LAYERS.isdisjoint(reads.rows | reads.others | reads.whole) for reads in map(_reads, agent.plugins))


def _reads(plugin: PluginClass) -> Reads:
    reads: Reads = getattr(plugin, "reads", Reads())
    return reads


class ExtenderService:
    """One extender process."""

    def __init__(self, options: ExtenderOptions) -> None:
        """Put everything together; nothing runs and nothing is connected yet."""
        self.options = options
        settings = options.settings
        self._stop = asyncio.Event()
        self.clock = SteadyClock()
        self.metrics = ExtenderMetrics()
        self.panel = ExtenderCore(settings.agents, settings.arguments)
        self.inbox = EventQueue()
        self.attendance = BypassDetector(self.metrics, settings.scheduler_names)
        self.keeper = StateFeeder(self.panel, self.inbox, self.clock, self.attendance, self.metrics)
        self.client: KubeClient | None = None
        self.intake: InformerSet | None = None
        self.door: ImageGate | None = None
        self._resolver: RegistryResolver | None = None
        self._resolving: PodImageResolver | None = None
        self._source: UsageSource | None = None
        if options.access is not None:
            self._watch_cluster(options.access)
        self.metrics.watch(self.panel, lambda: not self.lacking(), self.stale)
        self.answering = Handlers(
            self.panel,
            self.metrics,
            self.attendance,
            lambda: self._seen,
            reply=settings.reply,
            from_bodies=options.access is None,
        )
        pages = ExtenderEndpoints(self.lacking, self.metrics.exposition, [agent.name for agent in settings.agents])
        self.listener = HttpServer(self.answering.routes(pages.gets()), options.limits, self.metrics)
        self.pages = HttpServer(Routes(posts={}, gets=pages.gets()), ENDPOINT_LIMITS, EndpointMetrics(self.metrics))
        """The pages once more, for those who cannot reach the other address or have no certificate."""
        self.usage = self._measurements()
        self._seen = options.access is None
        """Whether everything was seen once; from then on answers are made, whatever happens to the watches."""

    def _watch_cluster(self, access: ApiAccess) -> None:
        self.client = client = KubeClient(access, user_agent="lamina-extender")
        entrance: EventSink = self.inbox
        if self.options.rules is not None and any(map(reads_layers, self.options.settings.agents)):
            self._resolver = RegistryResolver(self.options.rules, self.options.keyring)
            find = self.panel.cluster.inventory.catalog.find
            self._resolving = PodImageResolver(find, self._resolver, PullSecrets(client))
            # Nobody is held: whoever places the pod does not wait for us either. What is learned helps the next one.
            self.door = ImageGate(self.inbox, self._resolving, ours=self.attendance.expects, deadline=0.0)
            self.door.may_open = lambda: self.intake is not None and self.intake.synced and self.keeper.caught_up
            entrance = self.door
        self.intake = InformerSet(client, entrance)

    def _measurements(self) -> UsagePoller | None:
        """Ask again and again what nodes are used for, if somebody is named who knows."""
        settings = self.options.settings.usage
        if settings is None:
            return None
        if self.client is None:
            log.warning("nobody is asked what nodes are used for: that takes --state watch")
            return None
        client = self.client
        self._source = open_source(settings, lambda: client, "lamina-extender")
        return UsagePoller(self._source, seconds(settings.every), self.inbox, self.nodes, self.clock)

    def lacking(self) -> list[str]:
        """Name what has not been seen in full, or not taken in."""
        if self.intake is None or self._seen:
            return []
        return self.intake.lacking or [AGENTS]

    def stale(self) -> dict[str, float]:
        """Say for how many seconds changes of each kind may have been missed; 0 while it is watched."""
        if self.intake is None:
            return {}
        now, seen = time.monotonic(), self.intake.reflectors.items()
        since = {kind: reflector.stale_since for kind, reflector in seen if reflector.synced}
        return {kind: 0.0 if began is None else now - began for kind, began in since.items()}

    def nodes(self) -> dict[str, Node]:
        """Return the nodes there are, by name."""
        return {node.name: node for node in self.panel.cluster.columns.nodes if node is not None}

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Answer until asked to stop."""
        with gc_paused():
            await self._run()

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            await self._listen(stack)
            self._heed_signals(stack)
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(part, name=name) for name, part in self._parts()]
                await self._stop.wait()
                for task in running:
                    task.cancel()
        log.info("stopped")

    def _parts(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        parts: list[tuple[str, Coroutine[Any, Any, None]]] = [
            ("listener", self.listener.run()),
            ("keeper", self.keeper.run()),
            ("settling in", self._settle_in()),
            ("annotation log", AnnotationLog(self.panel.cluster.columns.annotations).run()),
        ]
        if self.intake is not None:
            parts.append(("intake", self.intake.run()))
        if self.door is not None:
            parts.append(("door", self.door.run()))
        if self.usage is not None:
            parts.append(("usage", self.usage.run()))
        if self.options.settings.pages is not None:
            parts.append(("pages", self.pages.run()))
        return parts

    async def _listen(self, stack: AsyncExitStack) -> None:
        address, tls = self.options.settings.address, self.options.settings.tls
        certificates = None
        if tls is not None:
            certificates = ServerTlsSettings(
                cert=tls.cert_file, key=tls.key_file, client_ca=tls.client_ca_file, client_names=tls.client_names
            )
        await self.listener.start(address.host, address.port, certificates)
        stack.push_async_callback(self.listener.stop, LAST_ANSWERS)
        beside = self.options.settings.pages
        if beside is not None:
            await self.pages.start(beside.host, beside.port)
            stack.push_async_callback(self.pages.stop, 0.0)
            where = f"http://{beside.host}:{self.pages.port}"
            log.info("pages are served as well", extra={"fields": {"at": where}})
        names = ", ".join(agent.name for agent in self.options.settings.agents)
        scheme = "https" if certificates else "http"
        log.info(
            "agents are served",
            extra={"fields": {"at": f"{scheme}://{address.host}:{self.listener.port}", "agents": names}},
        )

    async def _settle_in(self) -> None:
        """Say when everything was seen."""
        intake = self.intake
        await wait_synced(lambda: intake is None or (intake.synced and self.keeper.caught_up))
        self._seen = True
        state = self.panel.cluster
        if self.intake is not None:
            log.info("everything was seen", extra={"fields": {"nodes": state.columns.count, "pods": len(state.cache)}})

    def stop(self) -> None:
        """Ask to stop."""
        log.info("stopping")
        self._stop.set()

    async def _close(self) -> None:
        if self._source is not None:
            await self._source.close()
        if self._resolving is not None:
            await self._resolving.close()
        if self._resolver is not None:
            await self._resolver.close()
        if self.client is not None:
            await self.client.close()

    def _heed_signals(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
            stack.callback(loop.remove_signal_handler, number)


class EndpointMetrics:
    """
    Counts whom the server of the pages turns away, for themselves, and nothing else.

    Anybody may reach it: what happens there is not to be taken for something about those who ask.
    """

    def __init__(self, metrics: ExtenderMetrics) -> None:
        """Count in *metrics*."""
        self._metrics = metrics

    def served(self, path: str, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """Count nothing."""

    def abandoned(self, path: str) -> None:
        """Count nothing."""

    def refused(self, why: str) -> None:
        """Count it apart from what is refused to those who ask."""
        self._metrics.reader_refused(why)

    def connections(self, count: int) -> None:
        """Count nothing."""

    def reload(self, ok: bool) -> None:
        """Count nothing."""


async def serve(options: ExtenderOptions) -> None:
    """Run an extender until it is asked to stop."""
    await ExtenderService(options).run()
