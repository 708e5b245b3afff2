"""Runs batch jobs through a loop whose profile has Backfill, on nodes that score alike."""

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lamina.model.events import NodeSeen, PodGone, PodSeen, TimePassed
from lamina.model.pod import Pod
from lamina.model.walltime import WALLTIME
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import a_node, a_pod
from tests.backfill_schedules import BatchJob

PROFILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {{disabled: [{{name: "*"}}]}}
    place: {{disabled: [{{name: GangScheduling}}]}}
    multiPoint: {{enabled: [{{name: GangScheduling}}, {{name: Backfill}}]}}
  pluginConfig: [{{name: Backfill, args: {args}}}]
"""
KNOWN = registry(entry_points=False)


def a_configuration(**args: Any) -> Configuration:
    """Return a profile with Backfill in which nodes have no scores, so that earlier nodes come first."""
    return load(PROFILE.format(args=msgspec.json.encode(args).decode()), "test", KNOWN)


def a_backfilling_loop(**args: Any) -> Loop:
    """Build a loop with such a profile."""
    configuration = a_configuration(**args)
    return Loop(configuration.profiles, lambda _: 0, LoopSettings(backoff=configuration.backoff))


def run_pods(
    loop: Loop, nodes: Sequence[Sequence[int]], jobs: Sequence[BatchJob]
) -> dict[str, tuple[float, list[int]]]:
    """Let pods arrive, run and end; return the start and the node of each that started. All jobs have one pod."""
    loop.feed(
        TimePassed(0.0),
        *(NodeSeen(a_node(f"n{row:03}", cpu, f"{memory}Gi")) for row, (cpu, memory) in enumerate(nodes)),
    )
    events: list[tuple[float, int, str, BatchJob]] = []
    for number, job in enumerate(jobs):
        heapq.heappush(events, (job.at, number, "arrives", job))
    by_name, found = {job.name: job for job in jobs}, dict[str, tuple[float, list[int]]]()
    while events:
        now = events[0][0]
        happened: list[Any] = [TimePassed(now)]
        while events and events[0][0] == now:
            _, _, what, job = heapq.heappop(events)
            pod = as_pod(job)
            happened.append(PodSeen(pod) if what == "arrives" else PodGone(pod.uid))
        while happened:
            binds = [one for one in loop.feed(*happened) if isinstance(one, Bind)]
            happened = [PodSeen(msgspec.structs.replace(one.pod, node_name=one.node, bound_at=now)) for one in binds]
            for one in binds:
                job = by_name[one.pod.name]
                found[job.name] = (now, [int(one.node[1:])])
                heapq.heappush(events, (now + job.seconds, len(jobs) + len(found), "ends", job))
    return found


def as_pod(job: BatchJob) -> Pod:
    """Return the pod of a job that has one."""
    assert job.pods == 1, "one pod"
    walltime: Mapping[str, str] = {} if job.walltime == math.inf else {WALLTIME: f"{job.walltime}"}
    return a_pod(job.name, job.needs[0], f"{job.needs[1]}Gi", annotations=walltime)
