"""Lamina as Batsim's decision process, asked by a player of Batsim's side that knows nothing of Lamina."""

import json
from collections.abc import Sequence

import pytest

from lamina.model.events import Event, PodGone, PodSeen, TimePassed
from lamina.model.pod import Pod
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind, Command, Evict, WakeAt
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.decision_process.decision_process import DecisionProcess
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.run.simulation import loop_decider
from lamina.wire.batsim.messages import ProtocolError
from tests.batsim_player import PlayedJob, Player

KUBE = named("kube-default", registry())


def a_process(gangs="one-at-a-time"):
    return DecisionProcess(lambda _: loop_decider(KUBE, 0), gangs)


def play(*jobs, hosts=4, gangs="one-at-a-time", changes=(), **more):
    player = Player(hosts, a_process(gangs).answer, **more)
    return player.play(jobs, changes), player


def test_jobs_are_executed_when_they_fit_and_wait_while_they_do_not():
    found, player = play(PlayedJob("a", 1.0, 1, 10.0), PlayedJob("b", 2.0, 1, 5.0), hosts=1)

    assert [(1.0, 11.0), (11.0, 16.0)] == [(one.started, one.ended) for one in found.values()]
    assert [
        (0.0, ["SIMULATION_BEGINS"], []),
        (1.0, ["JOB_SUBMITTED"], ["EXECUTE_JOB"]),
        (2.0, ["JOB_SUBMITTED"], []),
        (11.0, ["JOB_COMPLETED"], ["EXECUTE_JOB"]),
        (16.0, ["JOB_COMPLETED"], []),
        (16.0, ["SIMULATION_ENDS"], []),
    ] == player.log


def test_a_job_of_several_resources_gets_a_host_for_each():
    found, _ = play(PlayedJob("a", 0.0, 3, 10.0))

    assert 3 == len(found["a"].hosts)
    assert ("COMPLETED_SUCCESSFULLY", 10.0) == (found["a"].state, found["a"].ended)


def test_a_gang_that_does_not_fit_leaves_no_pod_behind():
    """Of four hosts one is busy: a gang of four waits, and a single job overtakes it on the others."""
    jobs = PlayedJob("one", 0.0, 1, 10.0), PlayedJob("four", 1.0, 4, 5.0), PlayedJob("two", 2.0, 1, 3.0)

    found, _ = play(*jobs)

    assert {"one": 0.0, "four": 10.0, "two": 2.0} == {name: one.started for name, one in found.items()}


def test_jobs_with_similar_names_have_pods_of_their_own():
    names = ("1", "1-1", "1.2", "1_2")
    jobs = [PlayedJob("x", 0.0, 1, 1.0), *(PlayedJob(name, 0.0, 2, 5.0) for name in names)]

    found, _ = play(*jobs, hosts=2)

    assert {"COMPLETED_SUCCESSFULLY"} == {one.state for one in found.values()}


def test_gangs_that_only_fit_one_after_the_other_do_not_block_each_other():
    jobs = [PlayedJob(name, 0.0, 3, 10.0) for name in "abc"]

    found, _ = play(*jobs)

    assert [0.0, 10.0, 20.0] == sorted(one.started for one in found.values() if one.started is not None)


@pytest.mark.parametrize(
    ("gangs", "res", "state"),
    [
        pytest.param("one-at-a-time", 5, "REJECTED", id="more resources than there are"),
        pytest.param("refuse", 2, "REJECTED", id="gangs are refused"),
        pytest.param("refuse", 1, "COMPLETED_SUCCESSFULLY", id="a single resource is no gang"),
        pytest.param("scheduler", 2, "COMPLETED_SUCCESSFULLY", id="left to the scheduler"),
    ],
)
def test_jobs_that_can_never_run_are_rejected(gangs, res, state):
    found, _ = play(PlayedJob("a", 0.0, res, 1.0), gangs=gangs)

    assert state == found["a"].state


def test_machines_that_are_unavailable_get_no_jobs():
    changes = [(1.0, "unavailable", "0-2"), (20.0, "available", "0-2")]

    found, _ = play(PlayedJob("a", 2.0, 1, 5.0), PlayedJob("b", 3.0, 2, 5.0), changes=changes)

    assert ((3,), 2.0) == (found["a"].hosts, found["a"].started)
    assert 20.0 == found["b"].started


def test_a_job_that_reached_its_walltime_frees_its_hosts():
    found, _ = play(PlayedJob("a", 0.0, 4, 100.0, walltime=7.5), PlayedJob("b", 0.0, 4, 1.0))

    assert ("COMPLETED_WALLTIME_REACHED", 7.5) == (found["a"].state, found["b"].started)


def test_dynamic_registration_is_finished_at_once():
    _, player = play(config={"dynamic-jobs-enabled": True})

    assert (0.0, ["SIMULATION_BEGINS"], ["NOTIFY"]) == player.log[0]


class Hesitating:
    """Places each pod seven seconds after it came."""

    names, attempts, asked_until = ("x",), 0, None

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Pod]] = []
        self._now = 0.0

    @property
    def trying(self) -> bool:
        return bool(self._waiting)

    def feed(self, *events: Event) -> Sequence[Command]:
        for one in events:
            if isinstance(one, TimePassed):
                self._now = one.now
            elif isinstance(one, PodSeen) and not one.pod.node_name:
                self._waiting.append((self._now + 7.0, one.pod))
        due = [pod for at, pod in self._waiting if at <= self._now]
        self._waiting = [one for one in self._waiting if one[0] > self._now]
        binds: list[Command] = [Bind(pod, "host0") for pod in due]
        return [*binds, WakeAt(self._waiting[0][0])] if self._waiting else binds


def test_a_call_is_requested_for_the_time_at_which_the_scheduler_has_more_to_do():
    player = Player(1, DecisionProcess(lambda _: Hesitating()).answer)

    found = player.play([PlayedJob("a", 1.0, 1, 2.0), PlayedJob("b", 4.0, 1, 2.0)])

    assert [8.0, 11.0] == [one.started for one in found.values()]
    assert [
        (1.0, ["JOB_SUBMITTED"], ["CALL_ME_LATER"]),
        (4.0, ["JOB_SUBMITTED"], []),
        (8.0, ["REQUESTED_CALL"], ["EXECUTE_JOB", "CALL_ME_LATER"]),
        (10.0, ["JOB_COMPLETED"], []),
        (11.0, ["REQUESTED_CALL"], ["EXECUTE_JOB"]),
    ] == player.log[1:6]


def test_the_requests_of_a_job_come_from_its_profile_or_its_field():
    seen: list[tuple[str, tuple[tuple[str, int], ...]]] = []

    class Watching:
        names, attempts, trying, asked_until = ("x",), 0, False, None

        def feed(self, *events: Event) -> Sequence[Command]:
            seen.extend((one.pod.name, one.pod.requests) for one in events if isinstance(one, PodSeen))
            return []

    process = DecisionProcess(lambda _: Watching())
    begins = json.loads(beginning(hosts=1, properties={"core": "8", "memory": "16Gi"}, sharing=True))
    begins["events"][0]["data"]["profiles"]["w0"] = {
        "batkube": {"type": "delay", "delay": 1, "cpu": 5.9, "memory": "2Gi"},
        "flops": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
        "smpi": {"type": "smpi", "trace": "x"},
    }
    process.answer(json.dumps(begins).encode())
    for profile, more in (
        ("batkube", {}),
        ("flops", {}),
        ("smpi", {}),
        ("flops", {"kubernetes": {"requests": {"cpu": "250m"}}}),
    ):
        process.answer(message(1.0, submission(f"w0!{len(seen)}", profile=profile, **more)))

    assert [
        ("w0-0", (("cpu", 5900), ("memory", 2 * 1024**3))),
        ("w0-1", (("cpu", 1000),)),
        ("w0-2", (("cpu", 1000),)),
        ("w0-3", (("cpu", 250),)),
    ] == seen


def test_shared_hosts_run_jobs_while_their_resources_last():
    process = a_process()
    process.answer(beginning(hosts=1, properties={"core": "3"}, sharing=True))

    reply = json.loads(process.answer(message(0.0, *(submission(f"w0!{number}") for number in range(4)))))

    assert ["w0!0", "w0!1", "w0!2"] == [event["data"]["job_id"] for event in reply["events"]]


def test_a_gang_on_shared_hosts_says_which_pod_runs_where():
    process = a_process()
    process.answer(beginning(hosts=2, properties={"core": "2"}, sharing=True))

    reply = json.loads(process.answer(message(0.0, submission("w0!0", res=4))))

    (event,) = reply["events"]
    assert "0-1" == event["data"]["alloc"]
    assert {"0", "1", "2", "3"} == set(event["data"]["mapping"])
    assert ["0", "0", "1", "1"] == sorted(event["data"]["mapping"].values())


def test_the_waiting_time_is_estimated_from_the_walltimes_of_running_jobs():
    process = a_process()
    process.answer(beginning(hosts=3))
    process.answer(message(0.0, submission("w0!0", res=2, walltime=50.0), submission("w0!1", walltime=80.0)))

    def asked(res):
        question = {"job_id": "x!y", "job": {"res": res, "walltime": 1.0}}
        reply = json.loads(process.answer(message(20.0, event("QUERY", requests={"estimate_waiting_time": question}))))
        return reply["events"][-1]["data"]["estimate_waiting_time"]

    assert {"job_id": "x!y", "estimated_waiting_time": 30.0} == asked(2)
    assert 60.0 == asked(3)["estimated_waiting_time"]
    assert -1.0 == asked(4)["estimated_waiting_time"]


class Evicting:
    """Evicts what is on the first node for each new pod, and binds that when the node is free."""

    names, attempts, trying, asked_until = ("x",), 0, False, None

    def __init__(self) -> None:
        self._there: Pod | None = None
        self._next: Pod | None = None

    def feed(self, *events: Event) -> Sequence[Command]:
        for one in events:
            if isinstance(one, PodSeen) and not one.pod.node_name and not one.pod.finished:
                self._next = one.pod
                if self._there is not None:
                    return [Evict(self._there, one.pod, "host0")]
            elif isinstance(one, PodGone):
                self._there = None
        if self._next is None or self._there is not None:
            return []
        self._there, self._next = self._next, None
        return [Bind(self._there, "host0")]


def test_a_job_that_the_scheduler_evicts_is_killed_before_its_host_is_used_again():
    process = DecisionProcess(lambda _: Evicting())
    player = Player(1, process.answer)

    found = player.play([PlayedJob("a", 0.0, 1, 100.0), PlayedJob("b", 5.0, 1, 10.0)])

    assert ("COMPLETED_KILLED", 5.0) == (found["a"].state, found["a"].ended)
    assert (5.0, 15.0) == (found["b"].started, found["b"].ended)
    assert [["KILL_JOB"], ["EXECUTE_JOB"]] == [answer for at, _, answer in player.log if at == 5.0]


def test_a_gang_whose_pod_the_scheduler_deletes_is_rejected():
    """A client of the API deletes a pending pod, which is how it refuses one."""
    deleted: list[str] = []

    class Deleting:
        names, attempts, trying, asked_until = ("x",), 0, False, None

        def __init__(self, parts: RunParts) -> None:
            self._cluster = parts.cluster

        def feed(self, *events: Event) -> Sequence[Command]:
            for one in events:
                if isinstance(one, PodSeen) and not one.pod.gates and not deleted:
                    deleted.append(one.pod.name)
                    self._cluster.remove(one.pod.uid)
            return []

    found = Player(4, DecisionProcess(Deleting).answer).play([PlayedJob("a", 0.0, 2, 5.0)])

    assert ["w0-a-1"] == deleted
    assert "REJECTED" == found["a"].state


def event(kind, at=None, **data):
    return {"timestamp": at, "type": kind, "data": data}


def message(now, *events):
    timed = [{**one, "timestamp": now if one["timestamp"] is None else one["timestamp"]} for one in events]
    return json.dumps({"now": now, "events": timed}).encode()


def submission(name, **fields):
    return event("JOB_SUBMITTED", job_id=name, job={"id": name, "profile": "p", "res": 1, "subtime": 0, **fields})


def beginning(hosts=2, properties=None, *, sharing=False, **config):
    resources = [{"id": number, "name": f"host{number}", "properties": properties or {}} for number in range(hosts)]
    return message(
        0.0,
        event(
            "SIMULATION_BEGINS",
            nb_resources=hosts,
            nb_compute_resources=hosts,
            allow_compute_sharing=sharing,
            config=config,
            compute_resources=resources,
            profiles={"w0": {"p": {"type": "delay", "delay": 1}}},
        ),
    )


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        pytest.param([b"x"], "is not JSON", id="bad JSON"),
        pytest.param([message(0.0)], "comes before SIMULATION_BEGINS", id="no beginning"),
        pytest.param([message(0.0, submission("w0!0"))], "comes before SIMULATION_BEGINS", id="a job first"),
        pytest.param([beginning(), beginning()], "a second SIMULATION_BEGINS", id="two beginnings"),
        pytest.param([beginning(), message(5.0), message(4.0)], "now: 4 goes back in time; it was 5 before", id="time"),
        pytest.param(
            [beginning(), message(0.0, submission("w0!0"), submission("w0!0"))],
            "job_id: there is a job w0!0",
            id="twice",
        ),
        pytest.param(
            [beginning(), message(1.0, event("JOB_COMPLETED", job_id="w0!9", job_state="COMPLETED_FAILED"))],
            "job_id: w0!9 cannot be completed: it is unknown",
            id="unknown job",
        ),
        pytest.param(
            [beginning(), message(0.0, submission("w0!0", res=0))], "data.job: Expected `int` >= 1", id="no resources"
        ),
        pytest.param(
            [beginning(), message(0.0, event("JOB_SUBMITTED", job_id="w0!0"))],
            "data: has no job; start Batsim without Redis",
            id="job in Redis",
        ),
        pytest.param([beginning(**{"redis-enabled": True})], "data.config: Redis is not read", id="Redis"),
        pytest.param(
            [beginning(properties={"core": "many"})], "compute_resources: properties of host0", id="cores in words"
        ),
        pytest.param(
            [beginning(), message(0.0, event("NOTIFY", type="event_machine_unavailable", resources="7"))],
            "resources: there is no resource 7",
            id="unknown machine",
        ),
        pytest.param(
            [beginning(), message(0.0, event("QUERY", requests={"weather": {}}))],
            "data.requests: weather cannot be answered",
            id="unknown question",
        ),
        pytest.param(
            [beginning(), message(0.0, event("SIMULATION_ENDS"), submission("w0!0"))],
            "has events after SIMULATION_ENDS",
            id="after the end",
        ),
    ],
)
def test_an_invalid_message_is_one_clear_error(requests, told):
    process = a_process()
    *before, last = requests
    for request in before:
        process.answer(request)

    with pytest.raises(ProtocolError) as caught:
        process.answer(last)

    assert str(caught.value).startswith(told), str(caught.value)
