"""
A façade that serves clients live, without a run around it: `lamina apiserver` and the test cluster.

    clients --requests--> FacadeServer --> store --> commands of LiveDecider --> simulated cluster
                                            ^                                      |
    ClockPace moves the virtual clock       +--------------- events ---------------+

Time does not stand still while clients decide, as it does in `facade_run`. So a live façade is good for trying things
out and for tests of clients, and not for measurements.
"""

import asyncio
from collections.abc import Collection, Sequence

from lamina.apiserver.control_endpoints import ControlEndpoints
from lamina.apiserver.facade_parts import EPOCH, FacadeParts, assemble_facade
from lamina.apiserver.facade_server import FacadeServer, is_write
from lamina.apiserver.live_clock import LiveClock
from lamina.apiserver.real_time import ClockPace
from lamina.apiserver.watch_streams import MOST_UNSENT
from lamina.model.events import Event
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.contract.commands import Command
from lamina.serving.tls import ServerTlsSettings
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.image_reports import empty_image
from lamina.simulator.cluster.lag import lag_sampler
from lamina.simulator.controllers.disruption_controller import DisruptionController
from lamina.simulator.decider import LoopDecider
from lamina.simulator.engine import Environment
from lamina.simulator.facade.api_messages import ApiRequest
from lamina.simulator.run.run_parts import LazyControllers, RunParts
from lamina.simulator.run.scenario_player import ScenarioPlayer, put_object
from lamina.simulator.run.simulation import loop_decider
from lamina.simulator.run.simulation_host import SimulationHost
from lamina.simulator.run.volume_work import VolumeWork
from lamina.simulator.workloads import Scenario

DEFAULT_SCHEDULER = "default-scheduler"
PROFILE = "clients"
"""Name of the clients' scheduler in decisions."""


class LiveDecider:
    """Decider that never waits: clients decide at any time, and a loop of Lamina may decide as well."""

    def __init__(self, facade: FacadeParts, loop: LoopDecider | None) -> None:
        """Show events to the clients of *facade*, and to *loop*."""
        self._facade = facade
        self._loop = loop
        self.names: Collection[str] = (DEFAULT_SCHEDULER,) if loop is None else loop.names
        self.attempts = 0
        self.asked_until: float | None = None

    @property
    def trying(self) -> bool:
        """Whether the passing of time alone has an effect."""
        return self._loop is not None and self._loop.trying

    def feed(self, *events: Event) -> Sequence[Command]:
        """Show the events to the clients; return what they wrote before, and what the loop decides now."""
        self._facade.reader.apply(events)
        commands, _ = self._facade.writer.take()
        if self._loop is not None:
            commands = [*commands, *self._loop.feed(*events)]
            self.asked_until = self._loop.asked_until
        self.attempts = len(commands)
        return commands


class LiveFacade:
    """A simulated cluster and its API, served from one event loop."""

    def __init__(
        self,
        scenario: Scenario,
        pace: ClockPace,
        *,
        epoch: float = EPOCH,
        seed: int = 0,
        configuration: Configuration | None = None,
        watch_buffer: int = MOST_UNSENT,
    ) -> None:
        """
        Serve the cluster of *scenario*; with a *configuration*, Lamina schedules the pods of its profiles.

        All watches together hold *watch_buffer* bytes at most for clients that do not read.
        """
        environment = self._environment = Environment()
        host = self._host = SimulationHost(environment, {}, scenario.delays.bind)
        cluster = VirtualCluster(
            environment,
            scenario.images,
            scenario.delays,
            host,
            draw=lag_sampler(seed),
            registry=scenario.registry,
            uplinks=scenario.uplinks,
            usage=scenario.usage,
            unknown_image=empty_image,
        )
        controllers = LazyControllers(environment, cluster)
        DisruptionController(environment, cluster, controllers.scale_of)
        for one in scenario.objects:
            put_object(cluster, one)
        facade = self._facade = assemble_facade(
            RunParts(environment, cluster, controllers.get, host.request_feed), PROFILE, epoch=epoch, seed=seed
        )
        if configuration is not None and facade.reader.objects is not None:
            host.volume_work = VolumeWork(environment, cluster, host)
            facade.reader.objects.follow()
        decider = LiveDecider(facade, None if configuration is None else loop_decider(configuration, seed))
        controllers.scheduler = next(iter(decider.names))
        host.connect(cluster, decider)
        for spec in scenario.nodes:
            cluster.join(spec)
        ScenarioPlayer(environment, cluster, scenario, controllers).begin()
        self._pace = pace
        store = facade.state.store
        self.clock = LiveClock(environment, lambda: store.revision)
        self.server = FacadeServer(facade.handler, before=self._before, after=self._after, watch_buffer=watch_buffer)
        self.control = self.server.control = ControlEndpoints(
            self.clock, pace, epoch, self.server.faults, self.server.close_watches
        )

    async def start(self, port: int = 0, tls: ServerTlsSettings | None = None) -> None:
        """Fire what is due at time 0, and listen. Raises InputError."""
        self.clock.run_until(0.0)
        await self.server.start(port, tls)

    async def run(self) -> None:
        """Serve until cancelled; raises if the simulation or the server fails."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.server.run())
            tasks.create_task(self._pace.run(self.clock))

    async def stop(self) -> None:
        """End all watches and stop."""
        await self.server.stop()

    def _before(self, _: ApiRequest) -> None:
        self._pace.catch_up(self.clock)

    def _after(self, request: ApiRequest) -> None:
        """Let the consequences of a write happen at once, so that the client's next request sees them."""
        writes = is_write(request)
        if self._facade.writer.inputs:
            self._host.request_feed()
        if writes:
            self.clock.run_until(self.clock.now)
        self.clock.note_request(writes=writes, begins=writes or "watch=" in request.query)
