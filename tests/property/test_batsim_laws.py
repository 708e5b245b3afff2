"""
Laws of Batsim's protocol: both of Lamina's ends agree with a player that knows nothing of Lamina, and with each other.

The player asserts what Batsim would: no host runs two jobs, a job gets as many hosts as it asked for, and time only goes
forward. So playing a workload to its end is a check of every answer.
"""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.batsim.batsim_decider import BatsimDecider
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.decision_process.decision_process import DecisionProcess
from lamina.simulator.run import simulate
from lamina.simulator.run.batsim_files import jobs, jobs_csv, machine_states_csv, schedule_csv
from lamina.simulator.run.simulation import loop_decider
from lamina.wire.batsim.interval_sets import read_intervals, write_intervals
from tests.batsim_player import PlayedJob, Player
from tests.unit.simulator.batsim.harness import LowestFirst, a_delay, a_story, play

HOSTS = 5
KUBE = named("kube-default", registry())

# Few distinct times, so that jobs often arrive and end together; quarters are exact as floats.
moments = st.integers(4, 40).map(lambda quarters: quarters / 4)
played = st.builds(
    PlayedJob,
    name=st.just(""),
    at=moments,
    res=st.integers(1, HOSTS),
    seconds=moments,
    walltime=st.none() | moments,
)
workloads = st.lists(played, min_size=1, max_size=12)


def named_jobs(drawn):
    ordered = sorted(drawn, key=lambda job: job.at)
    return [PlayedJob(str(number), job.at, job.res, job.seconds, job.walltime) for number, job in enumerate(ordered)]


def story(folder, drawn, *, cpu=1, profiles=None):
    wanted = [
        {
            "id": job.name,
            "subtime": job.at,
            "res": job.res,
            "profile": f"p{job.seconds}",
            **({} if job.walltime is None else {"walltime": job.walltime}),
        }
        for job in drawn
    ]
    known = {f"p{job.seconds}": a_delay(job.seconds, **(profiles or {})) for job in drawn}
    return a_story(Path(folder), *wanted, hosts=HOSTS, cpu=cpu, profiles=known)


@settings(max_examples=40)
@given(workloads)
def test_a_decision_process_gets_the_same_schedule_from_lamina_and_from_the_player(drawn):
    wanted = named_jobs(drawn)
    with tempfile.TemporaryDirectory() as folder:
        scenario = story(folder, wanted)
        result, _, _ = play(scenario, LowestFirst(HOSTS))
    scheduler = LowestFirst(HOSTS)

    def answer(request):
        message = json.loads(request)
        events = [{"timestamp": message["now"], "type": kind, "data": data} for kind, data in scheduler(message)]
        return json.dumps({"now": message["now"], "events": events}).encode()

    expected = Player(HOSTS, answer).play(wanted)

    assert {name: (one.state, one.hosts, one.started, one.ended) for name, one in expected.items()} == {
        one.job.job: (one.state, one.nodes, one.started, one.ended) for one in jobs(result, scenario)
    }


@settings(max_examples=30)
@given(workloads, st.sampled_from(["one-at-a-time", "refuse"]))
def test_every_job_is_placed_as_a_whole_and_all_jobs_end(drawn, gangs):
    wanted = named_jobs(drawn)
    player = Player(HOSTS, DecisionProcess(lambda _: loop_decider(KUBE, 0), gangs).answer)

    found = player.play(wanted)

    refused = {job.name for job in wanted if job.res > 1 and gangs == "refuse"}
    assert {job.name: "REJECTED" if job.name in refused else "ended" for job in wanted} == {
        name: "ended" if one.ended is not None else one.state for name, one in found.items()
    }


@settings(max_examples=25)
@given(st.lists(played, min_size=1, max_size=12), st.sampled_from([0.5, 1, 1.5]), st.integers(0, 3))
def test_single_jobs_are_placed_the_same_with_the_protocol_and_without_it(drawn, cpu, seed):
    wanted = [PlayedJob(job.name, job.at, 1, job.seconds, job.walltime) for job in named_jobs(drawn)]
    with tempfile.TemporaryDirectory() as folder:
        scenario = story(folder, wanted, cpu=2, profiles={"cpu": cpu})
        alone = simulate(scenario, KUBE, seed=seed)
        process = DecisionProcess(lambda _: loop_decider(KUBE, seed))

        def make(parts):
            shared = BatsimSettings(compute_sharing=True)
            decider = BatsimDecider(
                parts.environment, parts.cluster, parts.request_feed, scenario, process.answer, shared
            )
            parts.endings.append(decider.end)
            return decider

        both = simulate(scenario, decider=make, seed=seed)

    assert "" == both.stopped
    assert jobs_csv(alone, scenario) == jobs_csv(both, scenario)
    assert schedule_csv(alone, scenario) == schedule_csv(both, scenario)
    assert machine_states_csv(alone) == machine_states_csv(both)


@given(st.sets(st.integers(0, 400)))
def test_sets_of_resources_survive_being_written_and_read(numbers):
    assert tuple(sorted(numbers)) == read_intervals(write_intervals(numbers), 401)
