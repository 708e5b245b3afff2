"""A run under a scripted decision process: workloads in a folder, messages as dictionaries, and a log to compare."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lamina.simulator.batsim.batsim_decider import BatsimDecider
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.run import SimulationResult, simulate
from lamina.simulator.run.latency import STATED
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads import Scenario, load_scenario

Message = dict[str, Any]
Decide = Callable[[Message], Sequence[tuple[Any, ...]] | bytes | Message]
"""Returns events as (type, data) or (type, data, timestamp), a whole message, or the bytes of one."""

SCENARIO = """
name: story
defaults: {{startDelay: 0s, reportDelay: 0s, statusDelay: 0s}}
images: {{app: {{base: 1MB}}}}
nodes: [{{name: h, count: {hosts}, cpu: {cpu}, memory: 4Gi, holds: [app]}}]
imports: [{{batsim: workload.json, image: app{entry}}}]
{more}
"""


def a_delay(seconds: float, **more: Any) -> dict[str, Any]:
    return {"type": "delay", "delay": seconds, **more}


def a_story(
    folder: Path,
    *jobs: Mapping[str, Any],
    hosts: int = 4,
    cpu: int = 1,
    profiles: Mapping[str, Any] | None = None,
    events: Sequence[Mapping[str, Any]] = (),
    entry: str = "",
    more: str = "",
) -> Scenario:
    """A scenario of Batsim's kind: nothing is pulled, and pods start at once."""
    known = {"short": a_delay(10.0), **(profiles or {})}
    written = [
        {"id": str(number), "subtime": 0, "res": 1, "profile": "short", **job} for number, job in enumerate(jobs)
    ]
    workload = {"nb_res": hosts, "jobs": written, "profiles": known}
    (folder / "workload.json").write_text(json.dumps(workload))
    if events:
        (folder / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
        entry += ", externalEvents: events.jsonl"
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO.format(hosts=hosts, cpu=cpu, entry=entry, more=more))
    return load_scenario(path)


class Peer:
    """A decision process in the test: keeps all messages, and answers with what *decide* returns."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.heard: list[Message] = []

    def __call__(self, request: bytes) -> bytes:
        message = json.loads(request)
        self.heard.append(message)
        answer = self._decide(message)
        if isinstance(answer, bytes):
            return answer
        if isinstance(answer, dict):
            return json.dumps(answer).encode()
        now = message["now"]
        events = [{"timestamp": one[2] if len(one) > 2 else now, "type": one[0], "data": one[1]} for one in answer]
        return json.dumps({"now": max([now, *(one["timestamp"] for one in events)]), "events": events}).encode()

    @property
    def log(self) -> list[tuple[float, str, Any]]:
        """All events that were heard: when, what, and the job or the data."""
        return [
            (event["timestamp"], event["type"], event["data"].get("job_id", event["data"]))
            for message in self.heard
            for event in message["events"]
            if event["type"] != "SIMULATION_BEGINS"
        ]


def play(
    scenario: Scenario, decide: Decide, settings: BatsimSettings | None = None
) -> tuple[SimulationResult, Peer, BatsimDecider]:
    """Run a scenario; return the result, the messages and the decider."""
    peer = Peer(decide)
    made: list[BatsimDecider] = []

    def make(parts: RunParts) -> BatsimDecider:
        decider = BatsimDecider(parts.environment, parts.cluster, parts.request_feed, scenario, peer, settings)
        parts.endings.append(decider.end)
        made.append(decider)
        return decider

    result = simulate(scenario, decider=make, latency=STATED)
    return result, peer, made[0]


def execute(job: str, alloc: str, *at: float, **more: Any) -> tuple[Any, ...]:
    return ("EXECUTE_JOB", {"job_id": job, "alloc": alloc, **more}, *at)


def submitted(message: Message) -> list[str]:
    """The jobs that arrived with a message."""
    return [event["data"]["job_id"] for event in message["events"] if event["type"] == "JOB_SUBMITTED"]


class LowestFirst:
    """A decision process that fills hosts from the lowest on, and lets jobs overtake."""

    def __init__(self, hosts: int) -> None:
        self._free = list(range(hosts))
        self._waiting: list[tuple[str, int]] = []
        self._running: dict[str, list[int]] = {}

    def __call__(self, message: Message) -> list[tuple[Any, ...]]:
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self._waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self._free = sorted([*self._free, *self._running.pop(data["job_id"])])
        answer = []
        for job, count in list(self._waiting):
            if count <= len(self._free):
                self._running[job], self._free = self._free[:count], self._free[count:]
                self._waiting.remove((job, count))
                answer.append(execute(job, " ".join(map(str, self._running[job]))))
        return answer


def never(_: Message) -> list[tuple[Any, ...]]:
    """A decision process that decides nothing."""
    return []
