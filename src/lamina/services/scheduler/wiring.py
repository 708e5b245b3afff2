"""
Puts a scheduler together, runs it, and takes it apart again.

On SIGTERM or SIGINT nothing more is decided, bindings on their way are given a moment to end, events are sent, the lease
is given back. SIGUSR2 writes down what is believed, and with ``--record-dir`` what the loop was fed lately.
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
from lamina.model.duration import seconds
from lamina.model.errors import InputError
from lamina.model.events import Event, LayersReported
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.pod import PodUid
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
from lamina.services.informers.watched_resources import ALL_RESOURCES, NODE_LAYERS, PODS, WatchedResource, pods
from lamina.services.scheduler.attempt_recorder import AttemptRecorder
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.dump import dump
from lamina.services.scheduler.endpoint_server import EndpointServer
from lamina.services.scheduler.endpoints import SchedulerEndpoints
from lamina.services.scheduler.event_ring import EventRing, TiePicks
from lamina.services.scheduler.executor import Executor
from lamina.services.scheduler.image_layers_gc import ImageLayersGC
from lamina.services.scheduler.image_metrics import ImageMetrics
from lamina.services.scheduler.metrics import SchedulerMetrics
from lamina.services.scheduler.options import SchedulerOptions
from lamina.services.scheduler.pod_status import PodQueueState, PodStatusWriter
from lamina.services.scheduler.recordings import RecordingFiles, RecordingWriter
from lamina.services.scheduler.scheduler_host import SchedulerHost
from lamina.services.scheduler.scheduler_parts import SchedulerParts
from lamina.services.scheduler.shadow_executor import ShadowExecutor

LAST_BINDINGS: Final = 10.0
"""Seconds for bindings on their way to end once the process is asked to stop."""
LAST_EVENTS: Final = 2.0
LAST_RECORDINGS: Final = 10.0

log = logging.getLogger(__name__)


class SchedulerService:
    """One scheduler process."""

    def __init__(self, options: SchedulerOptions) -> None:
        """Put everything together; nothing runs and nothing is connected yet."""
        self.options = options
        self._stop = asyncio.Event()
        self.clock = SteadyClock()
        self.client = KubeClient(options.access, user_agent="lamina-scheduler")
        # Events have connections of their own: they may be slow, and a binding must not stand behind one.
        self._talking = KubeClient(options.access, connections=8, user_agent="lamina-scheduler")
        config = options.configuration.config
        self.loop, self.ring, self.recordings = self._recorded_loop()
        self.record_files = self._recording_files()
        self.inbox = EventQueue()
        self.metrics = SchedulerMetrics(self.clock, config.leader_election.resource_name)
        self.journal = DecisionJournal()
        attempts = AttemptRecorder(self.metrics, self.journal)
        self.identity = options.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self.leadership = self._election()
        connection = config.client_connection
        name = next(iter(self.loop.profiles))
        self.recorder = EventRecorder(self._talking, name, f"{name}-{socket.gethostname()}")
        self.observer: ShadowExecutor | None = None
        replaced: dict[WatchedResource[Any], WatchedResource[Any]] = {
            NODE_LAYERS: msgspec.structs.replace(NODE_LAYERS, seen=self._reported),
            # How pods ended is read only where a plugin follows their lives: it means reading all that still exist.
            PODS: pods(endings=len(self.loop.followers) > 0),
        }
        if options.observe:
            self.observer = ShadowExecutor(self.inbox.put, self.clock)
            self.observer.connect(self.loop)
            replaced[PODS] = msgspec.structs.replace(replaced[PODS], seen=self.observer.seen, gone=self.observer.gone)
        self.teller = PodStatusWriter(
            self._talking,
            self.recorder,
            RateLimit(connection.qps, connection.burst),
            self._may_act,
            self.clock,
            answer=self.inbox.put,
            standing=self._standing,
        )
        self.executor = Executor(
            self.client,
            self.inbox.put,
            self.teller,
            attempts,
            may_act=self._may_act,
            rate_limit=RateLimit(connection.qps, connection.burst),
            clock=self.clock,
            ring=self.inbox.ring,
            settled=lambda uid: self._standing(uid) != "binding",
        )
        self.image_metrics = ImageMetrics(self.metrics.registry)
        self.resolver: RegistryResolver | None = None
        self.resolving: PodImageResolver | None = None
        self.door = self._doorkeeper()
        entrance = self.inbox if self.door is None else self.door
        self.intake = InformerSet(self.client, entrance, [replaced.get(one, one) for one in ALL_RESOURCES])
        self.host = self._host(attempts)
        self.metrics.watch(self.loop, self.intake)
        self.custodian = ImageLayersGC(
            self._talking,
            self.intake,
            self.loop.cluster.inventory,
            may_act=self._may_act,
            watch=self.image_metrics,
        )
        self.parts = SchedulerParts(
            client=self.client,
            intake=self.intake,
            loop=self.loop,
            host=self.host,
            metrics=self.metrics,
            journal=self.journal,
            ring=self.ring,
            recordings=self.recordings,
            observer=self.observer,
            door=self.door,
        )
        self._source: UsageSource | None = None
        self.usage = self._measurements()
        self.port = options.port

    def _host(self, attempts: AttemptRecorder) -> SchedulerHost:
        host = SchedulerHost(self.ring, self.inbox, self.observer or self.executor, attempts, self.clock)
        host.synced = lambda: self.intake.synced
        host.allowed = self._may_decide
        return host

    def _recorded_loop(self) -> tuple[Loop, EventRing, RecordingWriter]:
        """Make the loop, the ring through which it is fed, and what makes recordings of the ring."""
        options = self.options
        settings = LoopSettings(backoff=options.configuration.backoff, detail=options.detail)
        picks = TiePicks(random.Random(options.seed).randrange)
        loop = Loop(options.configuration.profiles, picks, settings)
        writer = RecordingWriter(options.configuration, options.detail, what_is_lost(loop.profiles))
        return loop, EventRing(loop, picks, self.clock.now, options.ring), writer

    def _recording_files(self) -> RecordingFiles | None:
        """Write every segment of the ring to a file once it is full, if a directory is named."""
        if self.options.record is None:
            return None
        files = RecordingFiles(self.options.record, self.recordings)
        self.ring.full = files.put
        return files

    def _measurements(self) -> UsagePoller | None:
        """Ask again and again what nodes are used for, if somebody is named who knows."""
        settings = self.options.usage
        if settings is None:
            return None
        self._source = open_source(settings, lambda: self._talking, "lamina-scheduler")
        return UsagePoller(self._source, seconds(settings.every), self.inbox, self._nodes, self.clock)

    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.loop.cluster.columns.nodes if node is not None}

    def _doorkeeper(self) -> ImageGate | None:
        """Stand before the inbox, if registries may be asked."""
        options = self.options
        if options.rules is None:
            return None
        self.resolver = RegistryResolver(options.rules, options.keyring)
        find = self.loop.cluster.inventory.catalog.find
        self.resolving = PodImageResolver(find, self.resolver, PullSecrets(self._talking))
        door = ImageGate(
            self.inbox,
            self.resolving,
            ours=lambda pod: pod.scheduler_name in self.loop.profiles,
            # Whom we observe does not wait either; a pod that is held would be placed before we have decided on it.
            deadline=0.0 if options.observe else options.registry_deadline,
            watch=self.image_metrics,
        )
        door.may_open = lambda: self.intake.synced and self.host.caught_up
        door.may_ask = self._may_act
        self.image_metrics.watch(door.__len__, self.resolving.counts, self.resolver.counts)
        return door

    def _election(self) -> LeaderElector | None:
        election = self.options.configuration.config.leader_election
        wanted = election.leader_elect if self.options.leader_elect is None else self.options.leader_elect
        if not wanted or self.options.observe:
            return None
        return LeaderElector(
            self._talking,
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

    def _standing(self, uid: PodUid) -> PodQueueState:
        if self.loop.bindings.get(uid) is not None:
            return "binding"
        return "gone" if self.loop.queue.get(uid) is None else "waiting"

    # -- what is allowed ---------------------------------------------------------------------------------------------

    def _may_act(self) -> bool:
        return self.leadership is None or self.leadership.may_act()

    def _may_decide(self) -> bool:
        return self.intake.synced and not self._stop.is_set() and self._may_act()

    def _leading(self, leads: bool) -> None:
        election = self.options.configuration.config.leader_election
        self.metrics.leading.labels(election.resource_name).set(int(leads))
        log.info("leading from now on" if leads else "not leading any more", extra={"fields": {"id": self.identity}})
        self.inbox.ring()

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
            stack.push_async_callback(self._talking.close)
            stack.push_async_callback(self._close_sources)
            await self._open_pages(stack)
            self._heed_signals(stack)
            try:
                await self._run_parts()
            except Exception:
                # What broke the scheduler is what its last recording is looked at for.
                await self._finish_recordings()
                raise
        if self.observer is not None:
            log.info(self.observer.summary())
        log.info("stopped")

    async def _run_parts(self) -> None:
        """Run everything until asked to stop; when one part breaks, all of them end."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(part, name=name)
                for name, part in (
                    ("intake", self.intake.run()),
                    ("host", self.host.run()),
                    ("executor", self.executor.run()),
                    ("teller", self.teller.run()),
                    ("recorder", self.recorder.run()),
                    ("settling in", self._settle_in()),
                    ("annotation log", AnnotationLog(self.loop.cluster.columns.annotations).run()),
                )
            ]
            if self.record_files is not None:
                running.append(tasks.create_task(self.record_files.run(), name="recordings"))
            if self.door is not None:
                running.append(tasks.create_task(self.door.run(), name="door"))
            if self.usage is not None:
                running.append(tasks.create_task(self.usage.run(), name="usage"))
            if self.observer is None:
                running.append(tasks.create_task(self.custodian.run(), name="custodian"))
            if self.leadership is not None:
                running.append(tasks.create_task(self.leadership.run(self._leading), name="leadership"))
            await self._stop.wait()
            await self._wind_up()
            # Leadership gives its lease back when it is cancelled.
            for task in running:
                task.cancel()

    def stop(self) -> None:
        """Ask to stop; asked a second time, stop at once."""
        if self._stop.is_set():
            log.warning("stopping at once")
            logging.shutdown()
            # Not by an exception: whoever is in the middle of something would try to end it in order.
            os._exit(1)
        log.info("stopping")
        self._stop.set()
        self.inbox.ring()

    async def _settle_in(self) -> None:
        """Say when everything was seen."""
        await wait_synced(
            lambda: self.intake.synced and self.host.caught_up and (self.door is None or self.door.opened)
        )
        cluster = self.loop.cluster
        fields = {"nodes": cluster.columns.count, "pods": len(cluster.cache), "waiting": len(self.loop.queue)}
        log.info("everything was seen", extra={"fields": fields})
        self.inbox.ring()

    async def _wind_up(self) -> None:
        try:
            async with asyncio.timeout(LAST_BINDINGS):
                while self.executor.underway:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.warning("%d bindings were not finished", self.executor.underway)
        await self.recorder.drain(LAST_EVENTS)
        await self._finish_recordings()

    async def _finish_recordings(self) -> None:
        if self.record_files is not None:
            await self.record_files.finish(self.ring.newest(), LAST_RECORDINGS)

    async def _close_sources(self) -> None:
        if self._source is not None:
            await self._source.close()
        if self.resolving is not None:
            await self.resolving.close()
        if self.resolver is not None:
            await self.resolver.close()

    async def _open_pages(self, stack: AsyncExitStack) -> None:
        listener = EndpointServer(SchedulerEndpoints(self.parts).app())
        stack.push_async_callback(listener.close)
        host, port = self.options.host, self.options.port
        try:
            self.port = await listener.open(host, port)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError.one("--listen", f"cannot listen on {host}:{port}: {why}") from error
        log.info("pages are served", extra={"fields": {"at": f"http://{host}:{self.port}"}})

    def _heed_signals(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for number, act in (
            (signal.SIGTERM, self.stop),
            (signal.SIGINT, self.stop),
            (signal.SIGUSR2, self._write_down),
        ):
            loop.add_signal_handler(number, act)
            stack.callback(loop.remove_signal_handler, number)

    def _write_down(self) -> None:
        if self.record_files is None:
            log.info("no recording written; start with --record-dir, or ask for /debug/events")
        else:
            self.record_files.put(self.ring.recording())
        log.info("dump of what is believed: %s", json.dumps(dump(self.loop)))


async def serve(options: SchedulerOptions) -> None:
    """Run a scheduler until it is asked to stop."""
    await SchedulerService(options).run()
