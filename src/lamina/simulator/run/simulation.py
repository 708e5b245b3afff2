"""
One simulation run: a scenario under a configuration, in virtual time.

The same scenario, configuration and seed give the same trace, byte for byte, unless the latency is measured. The
scheduler knows all images of the scenario from the start, as if every manifest had been resolved before its pod
arrived.
"""

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from lamina.model.errors import WiringError
from lamina.model.events import ImagesLearned
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.runtime.explanation import Detail
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.cluster.image_reports import empty_image
from lamina.simulator.cluster.lag import lag_sampler
from lamina.simulator.controllers.claim_controller import ClaimController
from lamina.simulator.controllers.disruption_controller import DisruptionController
from lamina.simulator.decider import Decider, LoopDecider, RunStoppedError
from lamina.simulator.engine import Environment
from lamina.simulator.run.cpu_usage import used_seconds
from lamina.simulator.run.latency import FREE, DecisionTimer, Latency
from lamina.simulator.run.load_imbalance import ImbalanceMeter, arrival_window
from lamina.simulator.run.promised_pods import CapacityRecorder, run_service_levels
from lamina.simulator.run.result import SimulationResult, Utilisation
from lamina.simulator.run.run_counters import RunCounters, join_handlers
from lamina.simulator.run.run_outcomes import node_outcomes, pod_outcomes
from lamina.simulator.run.run_parts import DeciderFactory, LazyControllers, RunParts
from lamina.simulator.run.scenario_player import ScenarioPlayer, put_object
from lamina.simulator.run.simulation_host import SimulationHost
from lamina.simulator.run.volume_work import VolumeWork
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import TraceHeader, TraceRecord
from lamina.trace.trace_writer import TraceSink

RunObserver = Callable[[float, TraceRecord, VirtualCluster], object]
"""Called after every trace record with its time, the record and the cluster."""

OBJECTS: Final = 50_000
"""Threshold of Python's garbage collector during a run, in new objects; Python's default is 700."""


def simulate(  # noqa: PLR0913 - one for each thing that may be said of a run
    scenario: Scenario,
    configuration: Configuration | None = None,
    *,
    seed: int = 0,
    trace: TraceSink | None = None,
    detail: Detail = "brief",
    observer: RunObserver | None = None,
    latency: Latency = FREE,
    decider: Decider | DeciderFactory | None = None,
) -> SimulationResult:
    """
    Run *scenario* until no events are left, or until its end; return the result.

    Unschedulable pods stay pending in the result. *seed* breaks ties between nodes and draws random delays. *trace*
    receives every record and is not closed. *observer* may read the cluster but must not change it. *latency* is the
    decision latency. A *decider* replaces the scheduling loop; *configuration* is not needed then. A decider that acts on
    the cluster itself is made by a factory. The result contains decisions only with full *detail*.
    """
    environment = Environment()
    draw = lag_sampler(seed)
    first, last = arrival_window(scenario)
    meter, counters = ImbalanceMeter(first, last), RunCounters()
    recorder = CapacityRecorder()
    handlers = join_handlers(meter.handlers, counters.handlers, recorder.handlers)
    host = SimulationHost(environment, handlers, scenario.delays.bind)
    if detail == "full":
        host.decisions = []
    cluster = VirtualCluster(
        environment,
        scenario.images,
        scenario.delays,
        host,
        draw=draw,
        registry=scenario.registry,
        uplinks=scenario.uplinks,
        usage=scenario.usage,
        unknown_image=empty_image if callable(decider) else None,
    )
    controllers = LazyControllers(environment, cluster)
    DisruptionController(environment, cluster, controllers.scale_of)
    if not callable(decider):
        # Behind an API, its volume controller does this.
        ClaimController(environment, cluster, scenario.delays.provision)
        host.volume_work = VolumeWork(environment, cluster, host)
    for one in scenario.objects:
        # Before the decider: another scheduler finds them when it starts.
        put_object(cluster, one)
    parts = RunParts(environment, cluster, controllers.get, host.request_feed)
    scheduler: Decider
    if decider is not None:
        scheduler = decider(parts) if callable(decider) else decider
    elif configuration is not None:
        scheduler = loop_decider(configuration, seed, detail)
    else:
        raise WiringError("a run needs a configuration or a decider")
    controllers.scheduler = next(iter(scheduler.names))
    host.connect(
        cluster, scheduler, None if latency.kind in {"free", "stated"} else DecisionTimer(scheduler, latency, draw)
    )
    if trace is not None:
        trace.write(TraceHeader(0.0, scenario=scenario.name, profile=scenario.profile, seed=seed))
        host.watchers.append(trace.write)
    if observer is not None:
        host.watchers.append(lambda record: observer(record.at, record, cluster))
    host.publish(ImagesLearned(scenario.images))
    for spec in scenario.nodes:
        cluster.join(spec)
    ScenarioPlayer(environment, cluster, scenario, controllers).begin()
    stopped = _play(parts, scenario.until)
    averages = meter.averages()
    used = used_seconds(cluster.pods.values(), counters.restarts, first, last)
    capacity = averages.capacity
    end = host.last_at if scenario.until is None else environment.now
    return SimulationResult(
        scenario=scenario.name,
        profile=scenario.profile,
        seed=seed,
        latency=latency.name,
        seconds=host.last_at,
        attempts=host.attempts,
        peak_load=averages.peak_load,
        imbalance=averages.imbalance,
        utilisation=Utilisation(requested=averages.requested / capacity, used=used / capacity)
        if capacity
        else Utilisation(),
        overload_seconds=_overload_seconds(cluster, end),
        cleared=counters.cleared,
        evictions=counters.evictions,
        preemptions=host.preemptions,
        failures=counters.failures,
        pull_failures=counters.pull_failures,
        pods=pod_outcomes(cluster, host, frozenset(scheduler.names)),
        nodes=node_outcomes(cluster),
        service_levels=run_service_levels(cluster, recorder.steps, end),
        stopped=stopped,
        decisions=tuple(host.decisions or ()),
    )


def _overload_seconds(cluster: VirtualCluster, end: float) -> float | None:
    return None if cluster.usage_sampler is None else cluster.usage_sampler.overloaded_seconds(end)


def _play(parts: RunParts, until: float | None) -> str:
    """Run until no events are left, or until *until*; return why the run ended too early, or an empty string."""
    with _infrequent_gc():
        try:
            parts.environment.run(until)
            for ending in parts.endings:
                ending()
        except RunStoppedError as stop:
            return str(stop)
    return ""


@contextmanager
def _infrequent_gc() -> Iterator[None]:
    """Run Python's garbage collector less often: a run creates many long-lived objects and hardly any cycles."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def loop_decider(configuration: Configuration, seed: int, detail: Detail = "none") -> LoopDecider:
    """Return Lamina's scheduling loop under *configuration*; *seed* breaks ties between nodes."""
    configuration.refuse_extenders("the configuration", "a simulation")
    settings = LoopSettings(backoff=configuration.backoff, detail=detail)
    return LoopDecider(Loop(configuration.profiles, random.Random(seed).randrange, settings))
