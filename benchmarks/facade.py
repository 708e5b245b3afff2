"""
Measure the API façade: bindings a second, deliveries to many watchers, and a day in virtual time.

    bindings   a scripted binder in its own process binds 10,000 pods on 5,000 nodes over 8 connections, with 18 watches
               on all pods open beside
    watch      100 watchers while one client writes 1,000 objects a second
    day        24 hours with 10,000 pods on 1,000 nodes, with the real kube-scheduler attached; the factor is virtual
               time / real time

Server, clients and kube-scheduler share the machine's cores. LAMINA_QUICK=1 runs a tenth of everything.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from lamina.apiserver.facade_parts import FacadeParts, assemble_facade
from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.facade_server import FacadeServer
from lamina.apiserver.scheduler_profiles import profile_of
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.serving.event_loop import new_loop
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.facade.facade_decider import FacadeDecider
from lamina.simulator.run import simulate
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads.scenario import PodArrival, Scenario
from testbed.building import ensure

NAME: Final = "facade"
SUMMARY: Final = "The API façade: bindings/s at 5,000 nodes, deliveries to 100 watchers, a day with kube-scheduler"

QUICK: Final = bool(os.environ.get("LAMINA_QUICK"))
CLIENT: Final = Path(__file__).resolve().parent / "_facade_client.py"
DAY: Final = 24 * 3600.0
WATCHES: Final = 18
CONNECTIONS: Final = 8


def pod(name: str, cpu: int, at: float = 0.0) -> Pod:
    """Return a pending pod."""
    containers = (Container("image", ((CPU, cpu), (MEMORY, 2**28)), "main"),)
    requests, scoring = total_requests(containers)
    return Pod(
        uid=PodUid(name),
        name=name,
        containers=containers,
        requests=requests,
        scoring_requests=scoring,
        scheduler_name="",
        created_at=at,
    )


def nodes(count: int) -> tuple[VirtualNodeSpec, ...]:
    """Return equal nodes in ten zones."""
    offer = ((CPU, 16_000), (MEMORY, 2**36), (PODS, 110))
    zone = "topology.kubernetes.io/zone"
    return tuple(
        VirtualNodeSpec(name=f"n{number}", allocatable=offer, bandwidth=1e9, labels={zone: f"z{number % 10}"})
        for number in range(count)
    )


class ClientRun:
    """A run at time 0 whose only client is the benchmark's."""

    def __init__(self, *words: str) -> None:
        """Run the client with these arguments."""
        self._words = words
        self._loop = new_loop()
        self.found: dict[str, Any] = {}

    def make_decider(self, parts: RunParts) -> FacadeDecider:
        """Return a decider that lets the client act once."""
        facade = assemble_facade(parts, NAME)
        done = False

        def settle() -> None:
            nonlocal done
            if not done:
                done = True
                self._loop.run_until_complete(self._serve(facade))

        return FacadeDecider(facade.state, facade.reader, facade.writer, settle, ("default-scheduler",))

    async def _serve(self, facade: FacadeParts) -> None:
        server = FacadeServer(facade.handler)
        await server.start()
        kind, *numbers = self._words
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(CLIENT), kind, server.url, *numbers, stdout=subprocess.PIPE
        )
        output, _ = await process.communicate()
        self.found = json.loads(output)
        await server.stop()


def bindings(node_count: int, pod_count: int) -> dict[str, Any]:
    """Measure bindings a second."""
    client = ClientRun("bind", str(WATCHES), str(CONNECTIONS))
    arrivals = tuple(PodArrival(0.0, pod(f"p{number}", 100)) for number in range(pod_count))
    scenario = Scenario(name="bindings", nodes=nodes(node_count), arrivals=arrivals, until=0.0)
    simulate(scenario, decider=client.make_decider)
    found = client.found
    assert found["bound"] == found["of"] == pod_count, found
    assert found["least"] == 2 * pod_count, found
    return found


def deliveries(watches: int, rate: int, seconds: int) -> dict[str, Any]:
    """Measure deliveries to many watchers."""
    client = ClientRun("watch", str(watches), str(rate), str(seconds))
    simulate(Scenario(name="watch", nodes=nodes(1), until=0.0), decider=client.make_decider)
    return client.found


def day(node_count: int, pod_count: int) -> dict[str, Any]:
    """Measure a day with the real kube-scheduler."""
    random_ = random.Random(7)
    times = sorted(random_.uniform(0.0, DAY) for _ in range(pod_count))
    arrivals = tuple(
        PodArrival(
            at,
            pod(f"p{number}", random_.choice((250, 500, 1000, 2000)), at),
            PodLifecycle(seconds=random_.uniform(60.0, 7200.0)),
        )
        for number, at in enumerate(times)
    )
    scenario = Scenario(name="day", nodes=nodes(node_count), arrivals=arrivals, delays=Delays(start=1.0), until=DAY)
    profile, command = profile_of(str(ensure("kube-scheduler")))
    began = time.perf_counter()
    with FacadeRun(profile, command) as run:
        result = simulate(scenario, decider=run.make_decider)
        figures = run.figures
    seconds = time.perf_counter() - began
    assert figures is not None
    return {
        "factor": DAY / seconds,
        "seconds": seconds,
        "bound": sum(one.bound is not None for one in result.pods),
        "of": len(result.pods),
        "limits_hit": figures.limits_hit,
    }


def main() -> dict[str, Any]:
    """Run all three parts."""
    part = 10 if QUICK else 1
    bound = bindings(5_000 // part, 10_000 // part)
    per_second = bound["of"] / bound["seconds"]
    print(f"bindings    {per_second:9,.0f} a second, {bound['events']:,} events delivered to {WATCHES} watches")
    told = deliveries(100, 1_000, 10 // (5 if QUICK else 1))
    delivered = told["delivered"] / told["seconds"]
    lost = 100 * told["written"] - told["delivered"]
    rate = told["written"] / told["write_seconds"]
    print(f"watch       {delivered:9,.0f} deliveries a second to 100 watchers at {rate:,.0f} events/s, {lost} lost")
    whole = day(1_000 // part, 10_000 // part)
    print(f"day         {whole['factor']:9,.0f} times real time, {whole['bound']:,} of {whole['of']:,} pods bound")
    return {
        "bindings_per_s_5000": round(per_second),
        "watch_events_per_s_100": round(delivered),
        "watch_write_rate": round(rate),
        "watch_lost": lost,
        "realtime_factor_24h": round(whole["factor"]),
        "day_bound": whole["bound"],
        "day_limits_hit": whole["limits_hit"],
    }
