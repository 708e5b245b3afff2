"""
Assembly of an extender process: builds its parts, runs them and closes them.

    informers ──> event queue ──> state feeder ──> extender core <── handlers <── HTTP server ── kube-scheduler

On SIGTERM or SIGINT the server accepts no new connection and answers pending requests.
"""

import asyncio
import logging
import signal
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
from lamina.model.pod import Pod
from lamina.scheduling.contract.plugin_registry import PluginClass
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.state.facets import Facet
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.handlers import Handlers
from lamina.services.extender.metrics import ExtenderMetrics, ExtenderStateCollector
from lamina.services.extender.settings import ExtenderSettings
from lamina.services.extender.state_feeder import StateFeeder
from lamina.services.extender.sync_state import SyncState
from lamina.services.informers.annotation_log import AnnotationLog
from lamina.services.informers.clock import SteadyClock
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.image_gate import ImageGate
from lamina.services.informers.informer_set import InformerSet
from lamina.services.informers.initial_sync import gc_paused, wait_synced
from lamina.services.informers.pod_image_resolver import PodImageResolver
from lamina.services.informers.pull_secrets import PullSecrets
from lamina.services.informers.usage.usage_poller import UsagePoller
from lamina.services.informers.usage.usage_settings import open_source
from lamina.services.informers.usage.usage_source import UsageSource
from lamina.services.informers.watched_resources import PODS
from lamina.serving.endpoints import ServiceEndpoints
from lamina.serving.http_server import HttpServer
from lamina.serving.server_limits import NoServerMetrics, ServerLimits
from lamina.serving.tls import ServerTlsSettings

LAST_ANSWERS: Final = 2.0
"""Seconds for pending requests after the process is asked to stop."""
USER_AGENT: Final = "lamina-extender"
LAYERS: Final = frozenset({Facet.LAYERS, Facet.CATALOG})
ENDPOINT_LIMITS: Final = ServerLimits(
    small_body=1024, large_body=1024, large_at_once=1, connections=16, newcomers_first=True, idle_seconds=5.0
)
"""For clients without certificates: they send no bodies, and an idle one cannot block a probe."""

log = logging.getLogger(__name__)


class ExtenderOptions(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Checked options of the command line."""

    settings: ExtenderSettings
    access: ApiAccess | None = None
    """How to reach the cluster; None: all nodes come from the requests."""
    rules: RegistryConfig | None = None
    """Which registries may be queried for images; None: none."""
    keyring: Keyring | None = None
    limits: ServerLimits = ServerLimits()


def reads_layers(agent: SchedulingAgent) -> bool:
    """Return whether a scheduling agent declares that it reads layers; without such an agent no registry is queried."""
    return any(not LAYERS.isdisjoint(reads.rows | reads.others | reads.whole) for reads in map(_reads, agent.plugins))


def _reads(plugin: PluginClass) -> Reads:
    reads: Reads = getattr(plugin, "reads", Reads())
    return reads


class ExtenderService:
    """One extender process."""

    def __init__(self, options: ExtenderOptions) -> None:
        """Build all parts; nothing runs or connects yet."""
        self.options = options
        settings = options.settings
        self._stop = asyncio.Event()
        self.clock = SteadyClock()
        self.metrics = ExtenderMetrics()
        self.core = ExtenderCore(settings.agents, settings.arguments)
        self.event_queue = EventQueue()
        self.bypass_detector = BypassDetector(self.metrics, settings.scheduler_names)
        self.feeder = StateFeeder(self.core, self.event_queue, self.clock, self.bypass_detector, self.metrics)
        self.client = None if options.access is None else KubeClient(options.access, user_agent=USER_AGENT)
        self._resolver = self._make_registry_resolver()
        self._image_resolver = self._make_image_resolver()
        self.image_gate = self._make_image_gate()
        # Not `or`: a gate that holds no pod is false.
        sink = self.event_queue if self.image_gate is None else self.image_gate
        self.informers = None if self.client is None else InformerSet(self.client, sink)
        self._sync = SyncState(self.informers)
        self._source = self._open_usage_source()
        self.usage = self._make_usage_poller()
        self.metrics.registry.register(
            ExtenderStateCollector(self.core, lambda: not self._sync.unsynced(), self._sync.stale)
        )
        self.handlers = Handlers(
            self.core,
            self.metrics,
            self.bypass_detector,
            self._sync.ready,
            reply=settings.reply,
            from_bodies=options.access is None,
            pods=self._known_pod,
        )
        endpoints = ServiceEndpoints(
            unsynced=self._sync.unsynced,
            exposition=self.metrics.exposition,
            about={"agents": [agent.name for agent in settings.agents]},
        )
        routes = self.handlers.routes(endpoints.gets())
        self.listener = HttpServer(routes, options.limits, self.metrics, routes.label)
        self.endpoints = HttpServer(endpoints, ENDPOINT_LIMITS, EndpointMetrics(self.metrics))
        """
        Second server with the same endpoints, for clients that cannot reach the other address or have no certificate.
        """

    # -- parts -------------------------------------------------------------------------------------------------------

    def _make_registry_resolver(self) -> RegistryResolver | None:
        """Return the registry client, if registries may be queried and an agent reads layers."""
        rules = self.options.rules
        if self.client is None or rules is None or not any(map(reads_layers, self.options.settings.agents)):
            return None
        return RegistryResolver(rules, self.options.keyring)

    def _make_image_resolver(self) -> PodImageResolver | None:
        if self.client is None or self._resolver is None:
            return None
        find = self.core.cluster.inventory.catalog.find
        return PodImageResolver(find, self._resolver, self.event_queue.put, PullSecrets(self.client))

    def _make_image_gate(self) -> ImageGate | None:
        if self._image_resolver is None:
            return None
        # No pod is held: kube-scheduler does not wait for this extender. Resolved images help the next pods.
        return ImageGate(self.event_queue, self._image_resolver, ours=self.bypass_detector.expects, deadline=0.0)

    def _open_usage_source(self) -> UsageSource | None:
        settings, client = self.options.settings.usage, self.client
        if settings is None:
            return None
        if client is None:
            log.warning("usage source ignored: it needs --state watch")
            return None
        return open_source(settings, lambda: client, USER_AGENT)

    def _make_usage_poller(self) -> UsagePoller | None:
        """Return the usage poller, if a source is configured."""
        settings = self.options.settings.usage
        if settings is None or self._source is None:
            return None
        return UsagePoller(self._source, seconds(settings.every), self.event_queue, self.nodes, self.clock)

    def _known_pod(self, name: str, uid: str, version: str) -> Pod | None:
        """Return a pod if its watch has decoded exactly this version."""
        if self.informers is None:
            return None
        found: Pod | None = self.informers.reflectors[PODS.resource.kind].store.find(name, uid, version)
        return found

    def nodes(self) -> dict[str, Node]:
        """Return the known nodes by name."""
        return {node.name: node for node in self.core.cluster.columns.nodes if node is not None}

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until asked to stop."""
        with gc_paused():
            await self._run()

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            await self._listen(stack)
            self._handle_signals(stack)
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(part, name=name) for name, part in self._parts()]
                await self._stop.wait()
                for task in running:
                    task.cancel()
        log.info("stopped")

    def _parts(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        parts: list[tuple[str, Coroutine[Any, Any, None]]] = [
            ("http-server", self.listener.run()),
            ("state-feeder", self.feeder.run()),
            ("initial-sync", self._wait_synced()),
            ("annotation-log", AnnotationLog(self.core.cluster.columns.annotations).run()),
        ]
        if self.informers is not None:
            parts.append(("informers", self.informers.run()))
        if self.image_gate is not None:
            parts.append(("image-gate", self.image_gate.run(self._caught_up)))
        if self.usage is not None:
            parts.append(("usage", self.usage.run()))
        if self.options.settings.endpoints is not None:
            parts.append(("endpoints", self.endpoints.run()))
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
        beside = self.options.settings.endpoints
        if beside is not None:
            await self.endpoints.start(beside.host, beside.port)
            stack.push_async_callback(self.endpoints.stop, 0.0)
            where = f"http://{beside.host}:{self.endpoints.port}"
            log.info("serving endpoints", extra={"fields": {"at": where}})
        names = ", ".join(agent.name for agent in self.options.settings.agents)
        scheme = "https" if certificates else "http"
        log.info(
            "serving scheduling agents",
            extra={"fields": {"at": f"{scheme}://{address.host}:{self.listener.port}", "agents": names}},
        )

    def _caught_up(self) -> bool:
        """Return whether the caches are synced and their events are processed."""
        return self.informers is None or (self.informers.synced and self.feeder.caught_up)

    async def _wait_synced(self) -> None:
        """Wait until the caches are synced, and log it."""
        await wait_synced(self._caught_up)
        self._sync.complete()
        state = self.core.cluster
        if self.informers is not None:
            log.info("caches synced", extra={"fields": {"nodes": state.columns.count, "pods": len(state.cache)}})

    def stop(self) -> None:
        """Ask the process to stop."""
        log.info("stopping")
        self._stop.set()

    async def _close(self) -> None:
        if self._source is not None:
            await self._source.close()
        if self._image_resolver is not None:
            await self._image_resolver.close()
        if self._resolver is not None:
            await self._resolver.close()
        if self.client is not None:
            await self.client.close()

    def _handle_signals(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
            stack.callback(loop.remove_signal_handler, number)


class EndpointMetrics(NoServerMetrics):
    """
    Metrics of the second server: counts its rejections separately, and nothing else.

    Every client can reach that server, so its traffic must not affect the metrics of extender requests.
    """

    def __init__(self, metrics: ExtenderMetrics) -> None:
        """Count in *metrics*."""
        self._metrics = metrics

    def refused(self, why: str) -> None:
        """Count a rejection separately from those of extender requests."""
        self._metrics.reader_refused(why)


async def serve(options: ExtenderOptions) -> None:
    """Run an extender until it is asked to stop."""
    await ExtenderService(options).run()
