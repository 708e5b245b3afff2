"""
One run: a scenario under a configuration, in virtual time.

The same scenario, configuration and seed give the same trace, byte for byte, unless the latency is measured. The images
of the scenario are known to the scheduler from the start, as if every manifest had been resolved when its pod came in.
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
from lamina.simulator.cluster.lag import lag_sampler
from lamina.simulator.engine import Environment
from lamina.simulator.run.cpu_usage import used_seconds
from lamina.simulator.run.decider import Decider, LoopDecider
from lamina.simulator.run.latency import FREE, DecisionTimer, Latency
from lamina.simulator.run.load_imbalance import ImbalanceMeter, arrival_window
from lamina.simulator.run.result import SimulationResult, Utilisation
from lamina.simulator.run.run_counters import RunCounters, joined
from lamina.simulator.run.run_outcomes import node_outcomes, pod_outcomes
from lamina.simulator.run.scenario_player import ScenarioPlayer
from lamina.simulator.run.simulation_host import SimulationHost
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import TraceHeader, TraceRecord
from lamina.trace.trace_writer import TraceSink

RunObserver = Callable[[float, TraceRecord, VirtualCluster], object]
"""Called after everything that is written down: when it happened, what, and the cluster as it is then."""

OBJECTS: Final = 50_000
"""New objects between two looks of the garbage collector; as Python comes, 700."""


def simulate(  # noqa: PLR0913 - one for each thing that may be said of a run
    scenario: Scenario,
    configuration: Configuration | None = None,
    *,
    seed: int = 0,
    trace: TraceSink | None = None,
    detail: Detail = "brief",
    observer: RunObserver | None = None,
    latency: Latency = FREE,
    decider: Decider | None = None,
) -> SimulationResult:
    """
    Run *scenario* until nothing more happens in it, or until the end it sets.

    Pods that fit nowhere stay pending and are part of the result. *seed* decides between nodes of equal score, and
    draws delays that vary. *trace* gets every record and is left open; *observer* may look at the cluster and must not
    change it. *latency* is what deciding costs. A *decider* decides in place of the loop, and *configuration* is not
    needed then. Decisions are kept in the result under full detail only.
    """
    environment = Environment()
    decides = decider or _loop(configuration, seed, detail)
    draw = lag_sampler(seed)
    first, last = arrival_window(scenario)
    meter, tally = ImbalanceMeter(first, last), RunCounters()
    concerns = joined(meter.concerns, tally.concerns)
    thinking = None if latency.kind == "free" else DecisionTimer(decides, latency, draw)
    host = SimulationHost(environment, decides, concerns, scenario.delays.bind, thinking)
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
    )
    host.connect(cluster)
    if trace is not None:
        trace.write(TraceHeader(0.0, scenario=scenario.name, profile=scenario.profile, seed=seed))
        host.watchers.append(trace.write)
    if observer is not None:
        host.watchers.append(lambda record: observer(record.at, record, cluster))
    host.tell(ImagesLearned(scenario.images))
    for spec in scenario.nodes:
        cluster.join(spec)
    ScenarioPlayer(environment, cluster, scenario, next(iter(decides.names))).begin()
    with _seldom_collecting():
        environment.run(scenario.until)
    averages = meter.averages()
    used = used_seconds(cluster.pods.values(), tally.restarts, first, last)
    there = averages.capacity
    return SimulationResult(
        scenario=scenario.name,
        profile=scenario.profile,
        seed=seed,
        latency=latency.name,
        seconds=host.last_at,
        attempts=host.told,
        heating=averages.heating,
        balance=averages.balance,
        utilisation=Utilisation(requested=averages.requested / there, used=used / there) if there else Utilisation(),
        overload_seconds=_overload_seconds(cluster, host.last_at if scenario.until is None else environment.now),
        cleared=tally.cleared,
        evictions=tally.evictions,
        failures=tally.failures,
        pull_failures=tally.pull_failures,
        pods=pod_outcomes(cluster, host, frozenset(decides.names)),
        nodes=node_outcomes(cluster),
        decisions=tuple(host.decisions or ()),
    )


def _overload_seconds(cluster: VirtualCluster, end: float) -> float | None:
    return None if cluster.metering is None else cluster.metering.crowded_seconds(end)


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Let the garbage collector look less often: a run makes many objects that stay, and hardly a cycle."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _loop(configuration: Configuration | None, seed: int, detail: Detail) -> Decider:
    if configuration is None:
        raise WiringError("a run needs a configuration or a decider")
    settings = LoopSettings(backoff=configuration.backoff, detail=detail)
    return LoopDecider(Loop(configuration.profiles, random.Random(seed).randrange, settings))
