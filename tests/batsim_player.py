"""
A player of Batsim's side of the protocol, written from its description and independent of Lamina.

It plays a workload of delay jobs on hosts that run one job at a time, and asks a decision process what to do. It is strict:
an answer that Batsim would not accept is an AssertionError. Jobs and times are plain values, so that laws can draw them.
"""

import heapq
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[bytes], bytes]


@dataclass(frozen=True)
class PlayedJob:
    """A job: when it comes, what it needs, how long it runs, and after how long it is killed."""

    name: str
    at: float
    res: int
    seconds: float
    walltime: float | None = None


@dataclass
class Outcome:
    """What became of a job."""

    state: str = "SUBMITTED"
    hosts: tuple[int, ...] = ()
    started: float | None = None
    ended: float | None = None


@dataclass
class Player:
    """One simulation."""

    hosts: int
    answer: Answer
    config: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    single: bool = False
    """Whether each event has a message of its own, also events of one time."""
    log: list[tuple[float, list[str], list[str]]] = field(default_factory=list)
    """Each message: its time, the types that were sent and those that came back."""

    def play(self, jobs: Sequence[PlayedJob], changes: Sequence[tuple[float, str, str]] = ()) -> dict[str, Outcome]:
        """Play *jobs*, and *changes* of machines: time, available or unavailable, and an interval set."""
        self._now = 0.0
        self._serial = itertools.count()
        self._jobs = {f"w0!{job.name}": job for job in jobs}
        self._outcomes = {name: Outcome() for name in self._jobs}
        self._busy: dict[int, str] = {}
        self._heap: list[tuple[float, int, int, str, Any]] = []
        self._send([self._begins()])
        for name, job in self._jobs.items():
            self._at(job.at, 0, "submit", name)
        for at, kind, resources in changes:
            self._at(at, 1, f"event_machine_{kind}", resources)
        while self._heap:
            self._now = self._heap[0][0]
            events: list[dict[str, Any]] = []
            while self._heap and self._heap[0][0] == self._now and not (events and self.single):
                _, _, _, kind, what = heapq.heappop(self._heap)
                events += self._happens(kind, what)
            while events:
                events = self._send(events)
        self._send([self._event("SIMULATION_ENDS", {})])
        return {name.partition("!")[2]: outcome for name, outcome in self._outcomes.items()}

    def _at(self, time: float, priority: int, kind: str, what: Any) -> None:
        heapq.heappush(self._heap, (time, priority, next(self._serial), kind, what))

    def _event(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": self._now, "type": kind, "data": data}

    def _begins(self) -> dict[str, Any]:
        resources = [
            {
                "id": number,
                "name": f"host{number}",
                "state": "idle",
                "properties": self.properties,
                "zone_properties": {},
            }
            for number in range(self.hosts)
        ]
        data = {
            "nb_resources": self.hosts,
            "nb_compute_resources": self.hosts,
            "nb_storage_resources": 0,
            "allow_compute_sharing": False,
            "allow_storage_sharing": True,
            "config": {"redis-enabled": False, "profiles-forwarded-on-submission": False, **self.config},
            "compute_resources": resources,
            "storage_resources": [],
            "workloads": {"w0": "played"},
            "profiles": {"w0": {job.name: {"type": "delay", "delay": job.seconds} for job in self._jobs.values()}},
        }
        return self._event("SIMULATION_BEGINS", data)

    def _happens(self, kind: str, what: Any) -> list[dict[str, Any]]:
        if kind == "submit":
            job = self._jobs[what]
            described = {"id": what, "profile": job.name, "res": job.res, "subtime": job.at}
            if job.walltime is not None:
                described["walltime"] = job.walltime
            return [self._event("JOB_SUBMITTED", {"job_id": what, "job": described})]
        if kind == "end":
            return [self._completed(what, self._end_state(what))] if self._outcomes[what].state == "RUNNING" else []
        if kind == "call":
            return [self._event("REQUESTED_CALL", {})]
        return [self._event("NOTIFY", {"type": kind, "resources": what})]

    def _end_state(self, name: str) -> str:
        job = self._jobs[name]
        late = job.walltime is not None and job.walltime <= job.seconds
        return "COMPLETED_WALLTIME_REACHED" if late else "COMPLETED_SUCCESSFULLY"

    def _completed(self, name: str, state: str) -> dict[str, Any]:
        outcome = self._outcomes[name]
        outcome.state, outcome.ended = state, self._now
        for host in outcome.hosts:
            del self._busy[host]
        code = 0 if state == "COMPLETED_SUCCESSFULLY" else -1
        alloc = " ".join(map(str, outcome.hosts))
        return self._event("JOB_COMPLETED", {"job_id": name, "job_state": state, "return_code": code, "alloc": alloc})

    def _send(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send events; do what the answer says, and return events that follow from it at once."""
        reply = json.loads(self.answer(json.dumps({"now": self._now, "events": events}).encode()))
        assert set(reply) == {"now", "events"}, reply
        assert reply["now"] >= self._now, "the answer is from the past"
        last = self._now
        more: list[dict[str, Any]] = []
        for event in reply["events"]:
            assert set(event) == {"timestamp", "type", "data"}, event
            assert last <= event["timestamp"] <= reply["now"], "events out of order"
            last = event["timestamp"]
            assert last == self._now, "the player knows no decisions that take time"
            more += self._do(event["type"], event["data"])
        self.log.append((self._now, [one["type"] for one in events], [one["type"] for one in reply["events"]]))
        return more

    def _do(self, kind: str, data: dict[str, Any]) -> list[dict[str, Any]]:
        match kind:
            case "EXECUTE_JOB":
                self._execute(data["job_id"], _numbers(data["alloc"]))
            case "REJECT_JOB":
                assert self._outcomes[data["job_id"]].state == "SUBMITTED"
                self._outcomes[data["job_id"]].state = "REJECTED"
            case "CALL_ME_LATER":
                assert data["timestamp"] > self._now, "a call in the past"
                self._at(data["timestamp"], 2, "call", None)
            case "KILL_JOB":
                running = [name for name in data["job_ids"] if self._outcomes[name].state == "RUNNING"]
                done = [self._completed(name, "COMPLETED_KILLED") for name in running]
                progress = {name: {"profile": self._jobs[name].name, "progress": 0.5} for name in running}
                return [*done, self._event("JOB_KILLED", {"job_ids": data["job_ids"], "job_progress": progress})]
            case "NOTIFY":
                assert data["type"] == "registration_finished"
            case "ANSWER":
                assert "estimate_waiting_time" in data
            case _:
                raise AssertionError(f"an answer with {kind}")
        return []

    def _execute(self, name: str, hosts: tuple[int, ...]) -> None:
        outcome, job = self._outcomes[name], self._jobs[name]
        assert outcome.state == "SUBMITTED", f"{name} is executed, and is {outcome.state}"
        assert len(hosts) == len(set(hosts)) == job.res, f"{name} gets {hosts} for {job.res} resources"
        assert all(0 <= host < self.hosts for host in hosts)
        taken = {host: self._busy[host] for host in hosts if host in self._busy}
        assert not taken, f"{name} gets hosts that run {taken}"
        outcome.state, outcome.hosts, outcome.started = "RUNNING", hosts, self._now
        self._busy.update(dict.fromkeys(hosts, name))
        length = job.seconds if job.walltime is None else min(job.seconds, job.walltime)
        self._at(self._now + length, 1, "end", name)


def _numbers(alloc: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in alloc.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
