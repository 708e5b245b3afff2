"""
Assembly of a scheduler process: builds its parts, runs them and closes them.

On SIGTERM or SIGINT no more pods are decided, bindings in flight get `LAST_BINDINGS` seconds, events are sent, and the
lease is released. SIGUSR2 logs a dump of the state and, with ``--record-dir``, writes a recording of recent events.
"""

import asyncio
import json
import logging
import os
import random
import signal
import socket
import uuid
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec

from lamina.clients.kube.event_recorder import EventRecorder
from lamina.clients.kube.leader_election import LeaderElector, LeaseTimings
from lamina.clients.kube.transport import KubeClient
from lamina.clients.oci.resolver import RegistryResolver
from lamina.clients.rate_limit import RateLimit
from lamina.model.cluster_objects import ClusterObject
from lamina.model.duration import seconds
from lamina.model.errors import InputError
from lamina.model.events import Event, LayersReported
from lamina.model.layer_report import LayerReport
from lamina.model.pod import PodUid
from lamina.scheduling.contract.commands import DoWork
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import what_is_lost
from lamina.scheduling.loop.loop_state import LoopSettings
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
from lamina.services.informers.watched_resources import (
    ALL_RESOURCES,
    NODE_LAYERS,
    PODS,
    WatchedResource,
    object_resources,
    pods,
)
from lamina.services.scheduler.attempt_recorder import AttemptRecorder
from lamina.services.scheduler.debug_endpoints import DebuggedParts, SchedulerDebugEndpoints
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.dump import dump
from lamina.services.scheduler.event_ring import EventRing, TiePicks
from lamina.services.scheduler.executor import Executor
from lamina.services.scheduler.extender_calls import ExtenderCalls
from lamina.services.scheduler.image_layers_gc import ImageLayersGC
from lamina.services.scheduler.image_metrics import ImageMetrics, ImageStateCollector
from lamina.services.scheduler.known_cluster import LoopCluster, LoopVolumes
from lamina.services.scheduler.metrics import SchedulerMetrics, SchedulerStateCollector
from lamina.services.scheduler.options import SchedulerOptions
from lamina.services.scheduler.pod_status import PodQueueState, PodStatusWriter
from lamina.services.scheduler.qos.qos_service import QosHost, QosService, measuring_plugin
from lamina.services.scheduler.recordings import RecordingFiles, RecordingWriter
from lamina.services.scheduler.scheduler_host import SchedulerHost
from lamina.services.scheduler.shadow_executor import ShadowExecutor
from lamina.services.scheduler.volume_worker import VolumeWorker
from lamina.serving.endpoints import ServiceEndpoints
from lamina.serving.http_server import HttpServer
from lamina.serving.listening_sockets import ListenError
from lamina.serving.server_limits import NoServerMetrics, ServerLimits

LAST_BINDINGS: Final = 10.0
"""Seconds for bindings in flight after the process is asked to stop."""
LAST_EVENTS: Final = 2.0
LAST_RECORDINGS: Final = 10.0
LAST_REQUESTS: Final = 1.0
"""Seconds for pending responses of the endpoints when the service stops."""
ENDPOINT_LIMITS: Final = ServerLimits(
    small_body=1024,
    large_body=1024,
    large_at_once=1,
    newcomers_first=True,
    write_seconds=300.0,
    handler_seconds=300.0,
)
"""
Limits of the endpoints.

Every pod may be able to reach the address. A connection beyond the limit replaces another one instead of being rejected:
otherwise a client that holds connections open could block the kubelet's probe, and the kubelet would restart the
scheduler. A recording can be large, and a comparison lists all pods, so both may take minutes.
"""

NOT_MEASURED: Final = "no profile enables QosAware, so there is nothing to log; use --profile qos or omit --qos-log"

log = logging.getLogger(__name__)


class SchedulerService:
    """One scheduler process."""

    def __init__(self, options: SchedulerOptions) -> None:
        """Build all parts; nothing runs or connects yet."""
        self.options = options
        self._stop = asyncio.Event()
        self.clock = SteadyClock()
        self.client = KubeClient(options.access, user_agent="lamina-scheduler")
        # Events have connections of their own: they may be slow and must not delay a binding. A few are left for conditions.
        self._status_client = KubeClient(options.access, connections=20, user_agent="lamina-scheduler")
        config = options.configuration.config
        picks = TiePicks(random.Random(options.seed).randrange)
        self.loop = Loop(
            options.configuration.profiles,
            picks,
            LoopSettings(
                backoff=options.configuration.backoff,
                detail=options.detail,
                extenders=options.configuration.extenders,
            ),
        )
        self.recordings = RecordingWriter(options.configuration, options.detail, what_is_lost(self.loop.profiles))
        self.record_files = None if options.record is None else RecordingFiles(options.record, self.recordings)
        self.ring = self._make_ring(picks)
        self.event_queue = EventQueue()
        self.metrics = SchedulerMetrics(self.clock, config.leader_election.resource_name)
        self.image_metrics = ImageMetrics(self.metrics.registry)
        self.journal = DecisionJournal()
        self.identity = options.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self.leadership = self._election()
        name = next(iter(self.loop.profiles))
        self.recorder = EventRecorder(self._status_client, name, f"{name}-{socket.gethostname()}")
        self.shadow = ShadowExecutor(self.loop, self.event_queue.put, self.clock) if options.observe else None
        connection = config.client_connection
        self.pod_status = PodStatusWriter(
            self._status_client,
            self.recorder,
            RateLimit(connection.qps, connection.burst),
            self._may_act,
            self.clock,
            answer=self.event_queue.put,
            standing=self._pod_state,
        )
        self.qos = self._make_qos()
        attempts = AttemptRecorder(self.metrics, self.journal, None if self.qos is None else self.qos.metrics)
        self.extenders = ExtenderCalls(
            options.configuration, self.client, self.event_queue.put, self.metrics, LoopCluster(self.loop)
        )
        self.executor = Executor(
            self.client,
            self.event_queue.put,
            self.pod_status,
            attempts,
            extenders=self.extenders,
            may_act=self._may_act,
            rate_limit=RateLimit(connection.qps, connection.burst),
            clock=self.clock,
            wake=self.event_queue.wake,
            settled=lambda uid: self._pod_state(uid) != "binding",
            volumes=VolumeWorker(
                self.client,
                self.event_queue.put,
                LoopVolumes(self.loop),
                wanted=self._prepares,
                may_act=self._may_act,
                rate_limit=RateLimit(connection.qps, connection.burst),
            ),
        )
        self.resolver = None if options.rules is None else RegistryResolver(options.rules, options.keyring)
        self.image_resolver = None if self.resolver is None else self._make_image_resolver(self.resolver)
        self.image_gate = None if self.image_resolver is None else self._make_image_gate(self.image_resolver)
        # Not `or`: a gate that holds no pod is false.
        sink = self.event_queue if self.image_gate is None else self.image_gate
        self.informers = InformerSet(self.client, sink, self._watched())
        self.host = SchedulerHost(
            self.ring,
            self.event_queue,
            self.shadow or self.executor,
            attempts,
            self.clock,
            allowed=self._may_decide,
            synced=lambda: self.informers.synced,
        )
        self.image_layers_gc = ImageLayersGC(
            self._status_client,
            self.informers,
            self.loop.cluster.inventory,
            may_act=self._may_act,
            watch=self.image_metrics,
        )
        self._source = self._open_usage_source()
        self.usage = self._make_usage_poller()
        self._register_collectors()
        self.endpoints = HttpServer(self._endpoints(), ENDPOINT_LIMITS, NoServerMetrics())

    @property
    def port(self) -> int:
        """The port of the endpoints; 0 before they are served."""
        return self.endpoints.port

    # -- parts -------------------------------------------------------------------------------------------------------

    def _make_ring(self, picks: TiePicks) -> EventRing:
        """Return the ring between host and loop; its full segments are written if there is a directory for them."""
        if self.record_files is None:
            return EventRing(self.loop, picks, self.clock.now, self.options.ring)
        return EventRing(self.loop, picks, self.clock.now, self.options.ring, self.record_files.put)

    def _watched(self) -> list[WatchedResource[Any]]:
        """Return the watched resources, with the parts that receive some of them first."""
        # How pods ended is read only if a plugin follows pod life cycles: it means reading all ended pods.
        watched_pods = pods(endings=len(self.loop.followers) > 0)
        if self.shadow is not None:
            watched_pods = msgspec.structs.replace(watched_pods, seen=self.shadow.seen, gone=self.shadow.gone)
        replaced: dict[WatchedResource[Any], WatchedResource[Any]] = {
            NODE_LAYERS: msgspec.structs.replace(NODE_LAYERS, seen=self._reported),
            PODS: watched_pods,
        }
        objects = frozenset[type[ClusterObject]]().union(*(profile.objects for profile in self.loop.profiles.values()))
        return [*(replaced.get(one, one) for one in ALL_RESOURCES), *object_resources(objects)]

    def _register_collectors(self) -> None:
        """Report the state of the parts at each scrape."""
        registry = self.metrics.registry
        registry.register(SchedulerStateCollector(self.loop, self.informers))
        if self.qos is not None:
            registry.register(self.qos.metrics)
        if self.image_gate is not None and self.image_resolver is not None and self.resolver is not None:
            registry.register(
                ImageStateCollector(self.image_gate.__len__, self.image_resolver.counts, self.resolver.counts)
            )

    def _endpoints(self) -> ServiceEndpoints:
        debug = SchedulerDebugEndpoints(
            DebuggedParts(
                client=self.client,
                loop=self.loop,
                journal=self.journal,
                ring=self.ring,
                recordings=self.recordings,
                shadow=self.shadow,
                image_gate=self.image_gate,
            )
        )
        return ServiceEndpoints(
            unsynced=lambda: self.informers.unsynced, exposition=self.metrics.exposition, debug=debug.handlers()
        )

    def _make_qos(self) -> QosService | None:
        """Return what shows and stores the measurements of QosAware, if a profile enables it."""
        plugin = measuring_plugin(self.loop.profiles)
        if plugin is None:
            if self.options.qos.log is not None:
                raise InputError.one("--qos-log", NOT_MEASURED)
            return None
        host = QosHost(
            self._status_client,
            self.event_queue.put,
            self.event_queue.wake,
            self._caught_up,
            self._may_act,
            self.clock,
        )
        name = self.options.configuration.config.leader_election.resource_name
        return QosService(plugin, self.options.qos, host, name, stores=not self.options.observe)

    def _open_usage_source(self) -> UsageSource | None:
        settings = self.options.usage
        return None if settings is None else open_source(settings, lambda: self._status_client, "lamina-scheduler")

    def _make_usage_poller(self) -> UsagePoller | None:
        """Return the usage poller, if a source is configured."""
        settings = self.options.usage
        if settings is None or self._source is None:
            return None
        return UsagePoller(
            self._source, seconds(settings.every), self.event_queue, LoopCluster(self.loop).nodes, self.clock
        )

    def _make_image_resolver(self, resolver: RegistryResolver) -> PodImageResolver:
        find = self.loop.cluster.inventory.catalog.find
        return PodImageResolver(find, resolver, self.event_queue.put, PullSecrets(self._status_client))

    def _make_image_gate(self, resolver: PodImageResolver) -> ImageGate:
        """Return the image gate in front of the event queue."""
        return ImageGate(
            self.event_queue,
            resolver,
            ours=lambda pod: pod.scheduler_name in self.loop.profiles,
            # The observed scheduler does not wait either: a held pod would be placed before Lamina decides on it.
            deadline=0.0 if self.options.observe else self.options.registry_deadline,
            may_ask=self._may_act,
            watch=self.image_metrics,
        )

    def _election(self) -> LeaderElector | None:
        election = self.options.configuration.config.leader_election
        wanted = election.leader_elect if self.options.leader_elect is None else self.options.leader_elect
        if not wanted or self.options.observe:
            return None
        return LeaderElector(
            self._status_client,
            election.resource_namespace,
            election.resource_name,
            self.identity,
            terms=LeaseTimings(
                lease=seconds(election.lease_duration),
                renew=seconds(election.renew_deadline),
                retry=seconds(election.retry_period),
            ),
        )

    def _reported(self, report: LayerReport) -> Event:
        self.metrics.reported(report)
        return LayersReported(report)

    def _prepares(self, command: DoWork) -> bool:
        """Return whether the pod's binding cycle waits for the work of a command."""
        cycle = self.loop.bindings.get(command.pod.uid)
        return cycle is not None and cycle.stage == "preparing" and cycle.queued.attempts == command.attempt

    def _pod_state(self, uid: PodUid) -> PodQueueState:
        if self.loop.bindings.get(uid) is not None:
            return "binding"
        waits = self.loop.queue.get(uid) is not None or self.loop.waits.get(uid) is not None
        return "waiting" if waits else "gone"

    # -- leadership --------------------------------------------------------------------------------------------------

    def _may_act(self) -> bool:
        return self.leadership is None or self.leadership.may_act()

    def _may_decide(self) -> bool:
        may_act = self.informers.synced and not self._stop.is_set() and self._may_act()
        return may_act and (self.qos is None or self.qos.ready)

    def _leading(self, leads: bool) -> None:
        election = self.options.configuration.config.leader_election
        self.metrics.leading.labels(election.resource_name).set(int(leads))
        log.info("lease acquired" if leads else "lease lost", extra={"fields": {"id": self.identity}})
        self.event_queue.wake()

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until asked to stop."""
        with gc_paused():
            await self._run()

    async def _run(self) -> None:
        if outdated := self.options.configuration.warnings:
            log.warning("configuration is outdated", extra={"fields": {"problem": " | ".join(map(str, outdated))}})
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.client.close)
            stack.push_async_callback(self._status_client.close)
            stack.push_async_callback(self._close_sources)
            stack.push_async_callback(self.extenders.close)
            await self._open_endpoints(stack)
            self._handle_signals(stack)
            try:
                await self._run_parts()
            except Exception:
                # The last recording shows what made the scheduler fail.
                await self._finish_recordings()
                raise
        if self.shadow is not None:
            log.info(self.shadow.summary())
        log.info("stopped")

    async def _run_parts(self) -> None:
        """Run all parts until asked to stop; if one fails, all end."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(part, name=name)
                for name, part in (
                    ("informers", self.informers.run()),
                    ("host", self.host.run()),
                    ("executor", self.executor.run()),
                    ("extenders", self.extenders.run()),
                    ("pod-status", self.pod_status.run()),
                    ("recorder", self.recorder.run()),
                    ("initial-sync", self._wait_synced()),
                    ("annotation-log", AnnotationLog(self.loop.cluster.columns.annotations).run()),
                    ("endpoints", self.endpoints.run()),
                )
            ]
            if self.record_files is not None:
                running.append(tasks.create_task(self.record_files.run(), name="recordings"))
            if self.image_gate is not None:
                running.append(tasks.create_task(self.image_gate.run(self._caught_up), name="image-gate"))
            if self.usage is not None:
                running.append(tasks.create_task(self.usage.run(), name="usage"))
            if self.qos is not None:
                running += [tasks.create_task(part, name=name) for name, part in self.qos.tasks().items()]
            if self.shadow is None:
                running.append(tasks.create_task(self.image_layers_gc.run(), name="image-layers-gc"))
            if self.leadership is not None:
                running.append(tasks.create_task(self.leadership.run(self._leading), name="leadership"))
            await self._stop.wait()
            await self._shut_down()
            # The leader elector releases its lease when it is cancelled.
            for task in running:
                task.cancel()

    def stop(self) -> None:
        """Ask the process to stop; at the second call, exit at once."""
        if self._stop.is_set():
            log.warning("stopping at once")
            logging.shutdown()
            # Not with an exception: tasks would try to end gracefully.
            os._exit(1)
        log.info("stopping")
        self._stop.set()
        self.event_queue.wake()

    def _caught_up(self) -> bool:
        """Return whether the caches are synced and the loop has processed their events."""
        return self.informers.synced and self.host.caught_up

    async def _wait_synced(self) -> None:
        """Wait until the caches are synced, and log it."""
        await wait_synced(lambda: self._caught_up() and (self.image_gate is None or self.image_gate.opened))
        cluster = self.loop.cluster
        fields = {"nodes": cluster.columns.count, "pods": len(cluster.cache), "waiting": len(self.loop.queue)}
        log.info("caches synced", extra={"fields": fields})
        self.event_queue.wake()

    async def _shut_down(self) -> None:
        try:
            async with asyncio.timeout(LAST_BINDINGS):
                while self.executor.in_flight:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.warning("shutdown: %d bindings not finished", self.executor.in_flight)
        await self.recorder.drain(LAST_EVENTS)
        if self.qos is not None:
            await self.qos.finish()
        await self._finish_recordings()

    async def _finish_recordings(self) -> None:
        if self.record_files is not None:
            await self.record_files.finish(self.ring.newest(), LAST_RECORDINGS)

    async def _close_sources(self) -> None:
        if self._source is not None:
            await self._source.close()
        if self.image_resolver is not None:
            await self.image_resolver.close()
        if self.resolver is not None:
            await self.resolver.close()

    async def _open_endpoints(self, stack: AsyncExitStack) -> None:
        host, port = self.options.host, self.options.port
        try:
            await self.endpoints.start(host, port)
        except ListenError as error:
            raise InputError.one("--listen", f"cannot listen on {host}:{port}: {error.reason}") from error
        stack.push_async_callback(self.endpoints.stop, LAST_REQUESTS)
        log.info("serving endpoints", extra={"fields": {"at": f"http://{host}:{self.port}"}})
        if self.qos is not None:
            await self.qos.open()
            stack.push_async_callback(self.qos.close)

    def _handle_signals(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for number, act in (
            (signal.SIGTERM, self.stop),
            (signal.SIGINT, self.stop),
            (signal.SIGUSR2, self._dump),
        ):
            loop.add_signal_handler(number, act)
            stack.callback(loop.remove_signal_handler, number)

    def _dump(self) -> None:
        if self.record_files is None:
            log.info("recording not written; start with --record-dir, or get /debug/events")
        else:
            self.record_files.put(self.ring.recording())
        log.info("state dump: %s", json.dumps(dump(self.loop)))


async def serve(options: SchedulerOptions) -> None:
    """Run a scheduler until it is asked to stop."""
    await SchedulerService(options).run()
