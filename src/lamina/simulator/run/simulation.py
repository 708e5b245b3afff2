"""
One run: a scenario under a configuration, in virtual time.

The same scenario, configuration and seed give the same trace, byte for byte. The images of the scenario are known to
the scheduler from the start, as if every manifest had been resolved when its pod came in.
"""

import random
from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.events import ImagesLearned
from lamina.model.pod import PodUid
from lamina.scheduling.config.load import Configuration
from lamina.scheduling.framework.explain import Detail
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.state import Settings
from lamina.simulator.cluster import Cluster
from lamina.simulator.engine import Environment
from lamina.simulator.run.balance import BalanceMeter, window
from lamina.simulator.run.host import Host
from lamina.simulator.run.result import Result, node_outcomes, pod_outcomes
from lamina.simulator.workloads import Arrival, Happening, Scenario
from lamina.trace.records import Header, Record
from lamina.trace.writer import TraceSink

Observer = Callable[[float, Record, Cluster], object]
"""Called after everything that is written down: when it happened, what, and the cluster as it is then."""

NO_PROFILE: Final = "no profile of this configuration is called {!r}"


def simulate(
    scenario: Scenario,
    configuration: Configuration,
    *,
    seed: int = 0,
    trace: TraceSink | None = None,
    detail: Detail = "brief",
    observer: Observer | None = None,
) -> Result:
    """
    Run *scenario* until nothing more happens in it, or until the end it sets.

    Pods that fit nowhere stay pending and are part of the result. *seed* decides between nodes of equal score. *trace*
    gets every record and is left open; *observer* may look at the cluster and must not change it.
    """
    environment = Environment()
    settings = Settings(backoff=configuration.backoff, detail=detail)
    loop = Loop(configuration.profiles, random.Random(seed).randrange, settings)
    meter = BalanceMeter(*window(scenario))

    def watch(record: Record) -> None:
        meter.see(record)
        if trace is not None:
            trace.write(record)
        if observer is not None:
            observer(record.at, record, cluster)

    host = Host(environment, loop, watch, scenario.delays.bind)
    cluster = Cluster(environment, scenario.images, scenario.delays, host)
    host.connect(cluster)
    if trace is not None:
        trace.write(Header(0.0, scenario=scenario.name, profile=scenario.profile, seed=seed))
    host.tell(ImagesLearned(scenario.images))
    for spec in scenario.nodes:
        cluster.join(spec)
    first = next(iter(loop.state.profiles))
    for arrival in scenario.arrivals:
        environment.at(arrival.at, _arrive, cluster, arrival, first)
    for happening in scenario.happenings:
        environment.at(happening.at, _happen, cluster, happening)
    environment.run(scenario.until)
    asked = dict.fromkeys(arrival.pod.scheduler_name or first for arrival in scenario.arrivals)
    unserved = {name: NO_PROFILE.format(name) for name in asked if name not in loop.state.profiles}
    heating, balance = meter.averages()
    return Result(
        scenario=scenario.name,
        profile=scenario.profile,
        seed=seed,
        seconds=host.last_at,
        heating=heating,
        balance=balance,
        pods=pod_outcomes(cluster, host.decisions, unserved),
        nodes=node_outcomes(cluster),
        decisions=tuple(host.decisions),
    )


def _arrive(cluster: Cluster, arrival: Arrival, first: str) -> None:
    pod = arrival.pod
    if not pod.scheduler_name:
        pod = msgspec.structs.replace(pod, scheduler_name=first)
    cluster.submit(pod, arrival.duration)


def _happen(cluster: Cluster, happening: Happening) -> None:
    match happening.kind:
        case "remove":
            cluster.remove(PodUid(happening.name))
        case "drop":
            cluster.drop(happening.name)
        case "cordon":
            cluster.cordon(happening.name)
