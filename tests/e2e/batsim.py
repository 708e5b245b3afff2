"""
Batsim's protocol with real programs at the other end.

PyBatsim from the package index, unmodified and in an environment of its own, decides in Lamina's simulated cluster. Its
three contiguous schedulers are compared with a reference: every job starts when and where the reference says.
`fillerSched` iterates over a set and charges 5 ms for each call, so it is only played to its end. `easyBackfillNotopo`
and Lamina's profile `easy` get the same messages from a player of the simulator's side, and start all jobs at the same
times. Then Lamina decides for
Lamina, over the wire and without it, and a real kube-scheduler decides behind `lamina batsim-scheduler`. evalys loads the
tables. RECORD=1 writes the golden logs of tests/data/batsim again.
"""

import contextlib
import filecmp
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from lamina.apiserver.batsim.batsim_peer import batsim_peer
from lamina.apiserver.batsim.batsim_run import BatsimRun, batsim_decider
from lamina.apiserver.batsim.decision_client import DecisionClient
from lamina.cli.options.scheduler_profile import configuration
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.batsim.message_log import MessageLogHeader, MessageLogWriter
from lamina.simulator.decision_process.decision_process import DecisionProcess
from lamina.simulator.run import SimulationResult, simulate
from lamina.simulator.run.batsim_files import jobs, jobs_csv, machine_states_csv, schedule, schedule_csv
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.run.simulation import loop_decider
from lamina.simulator.workloads import Scenario, load_scenario
from testbed import building
from tests.backfill_schedules import BatchJob, Easy, run
from tests.batsim_player import PlayedJob, Player
from tests.contiguous_schedules import ContiguousEasy, FirstFit, Job, Policy
from tests.contiguous_schedules import schedule as reference
from tests.e2e._batsim_workloads import ROOT, Workload, all_workloads, exact_workloads
from tests.e2e._client_environments import temporary_folder, tool_environment

NAME = "batsim"
SUMMARY = "PyBatsim's schedulers, kube-scheduler and Lamina at both ends of Batsim's protocol."

PYBATSIM: Final = "pybatsim==3.2.1"
BESIDE_PYBATSIM: Final = ("docopt==0.6.2", "procset==1.0", "pyzmq==27.3.0", "sortedcontainers==2.4.0")
"""What PyBatsim imports; it pins an older pyzmq, which has no wheel for newer versions of Python."""
EVALYS: Final = "evalys==4.0.7"
POLICIES: Final[dict[str, Callable[[int], Policy] | None]] = {
    "schedFcfs": lambda hosts: FirstFit(hosts, filling=False),
    "schedFiller": lambda hosts: FirstFit(hosts, filling=True),
    "easyBackfill": ContiguousEasy,
    "fillerSched": None,
}
NOTOPO: Final = "easyBackfillNotopo"
PLAYED: Final = {"dynamic-jobs-enabled": False, "dynamic-jobs-acknowledged": False, "forward-unknown-events": False}
"""What PyBatsim reads of the configuration."""
PROFILE: Final = "kube-default"
KUBE_SCHEDULER: Final = "1.36.3"
GOLDEN: Final = ROOT / "tests" / "data" / "batsim"
TABLES: Final = ("jobs.csv", "schedule.csv", "machine_states.csv")
SECONDS: Final = 900

LOAD_TABLES: Final = """
import sys, pandas
from evalys.jobset import JobSet
from evalys.mstates import MachineStatesChanges
found = JobSet.from_csv(sys.argv[1] + "/jobs.csv")
print(len(found.df), len(pandas.read_csv(sys.argv[1] + "/schedule.csv")), len(MachineStatesChanges(sys.argv[1] + "/machine_states.csv").df))
"""


def main() -> dict[str, Any]:
    """Play everything; what does not hold is reported at the end."""
    result: dict[str, Any] = {}
    with temporary_folder() as folder, contextlib.chdir(folder):
        workloads = all_workloads(folder)
        python = tool_environment(folder, "pybatsim", *BESIDE_PYBATSIM, plain=[PYBATSIM])
        if python is None:
            result["skipped"] = ["pybatsim"]
        else:
            result["pybatsim"] = {name: _play_all(python, name, workloads) for name in POLICIES}
            result["pybatsim"][NOTOPO] = _play_easy(python, workloads)
            if os.environ.get("RECORD"):
                _record(python)
        result["both_ways"] = dict(_both_ways(folder, workloads))
        result["both_ways_equal"] = all(result["both_ways"].values())
        result["kube_scheduler"] = _behind(workloads)
        result["evalys"] = _evalys(folder)
    wrong = [name for name, one in result.get("pybatsim", {}).items() if one["equal_to_reference"] is False]
    assert not wrong, f"{', '.join(wrong)}: not equal to the reference"
    assert result["both_ways_equal"], result["both_ways"]
    return result


# -- Lamina simulates ----------------------------------------------------------------------------------------------------


def _play_all(python: Path, scheduler: str, workloads: list[Workload]) -> dict[str, Any]:
    """Let one of PyBatsim's schedulers decide all workloads; return what became of them."""
    policy = POLICIES[scheduler]
    played, equal, makespans = 0, True, {}
    for workload in workloads:
        scenario = load_scenario(workload.scenario)
        result = _run(scenario, f"batsim:{python.with_name('pybatsim')} {scheduler}")
        assert not result.stopped, f"{scheduler}, {workload.name}: {result.stopped}"
        rows = jobs(result, scenario)
        played += sum(row.is_over for row in rows)
        makespans[workload.name] = schedule(rows, len(result.nodes), 0.0)["makespan"]
        if policy is not None:
            expected = {
                name: (start.at, tuple(range(start.first, start.last + 1)))
                for name, start in reference(policy(workload.hosts), workload.jobs).items()
            }
            same = expected == {row.job.job: (row.started, row.nodes) for row in rows}
            equal = equal and same
            if not same:
                print(f"  {scheduler}, {workload.name}: DIFFERS", flush=True)
    print(f"  {scheduler}: {played} jobs in {len(workloads)} workloads", flush=True)
    assert played == sum(len(workload.jobs) for workload in workloads), f"{scheduler}: jobs did not end"
    largest = "hpc" if "hpc" in makespans else workloads[-1].name
    return {
        "jobs": played,
        "workloads": len(workloads),
        "makespan": makespans[largest],
        "makespan_of": largest,
        "equal_to_reference": None if policy is None else equal,
    }


def _play_easy(python: Path, workloads: list[Workload]) -> dict[str, Any]:
    """
    Let PyBatsim's EASY without topology and Lamina's EASY decide for the same player; compare when jobs start.

    Each event has a message of its own, because PyBatsim decides after every event. The player sends no NOTIFY, which
    this scheduler of PyBatsim cannot take.
    """
    played, makespans, differing = 0, dict[str, float](), []
    script = subprocess.run(
        [str(python), "-c", f"import schedulers; print(schedulers.__path__[0] + '/unMaintained/{NOTOPO}.py')"],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    ).stdout.strip()
    for name, hosts, batch in exact_workloads(workloads):
        client = DecisionClient(batsim_peer(f"batsim:{python.with_name('pybatsim')} {script}"))
        try:
            theirs = _starts(client.exchange, hosts, batch)
        finally:
            client.close(ended=True)
        process = DecisionProcess(lambda _: loop_decider(configuration("easy"), 0), "scheduler")
        ours = _starts(process.answer, hosts, batch)
        single = [BatchJob(job.id, job.at, job.res, (1,), job.length, job.walltime) for job in batch]
        expected = {job: start for job, (start, _) in run(Easy([[1]] * hosts), single, single=True).items()}
        played += len(ours)
        lengths = {job.id: job.length for job in batch}
        makespans[name] = max(start + lengths[job] for job, start in ours.items())
        if not theirs == ours == expected:
            print(f"  {NOTOPO}, {name}: DIFFERS", flush=True)
            differing.append(name)
    print(f"  {NOTOPO}: {played} jobs in {len(makespans)} workloads", flush=True)
    largest = "hpc" if "hpc" in makespans else next(iter(makespans))
    return {
        "jobs": played,
        "workloads": len(makespans),
        "makespan": makespans[largest],
        "makespan_of": largest,
        "equal_to_reference": not differing,
    }


def _starts(answer: Callable[[bytes], bytes], hosts: int, batch: list[Job]) -> dict[str, float]:
    """Play jobs; return when each started."""
    played = [PlayedJob(job.id, job.at, job.res, job.seconds, job.walltime) for job in batch]
    outcomes = Player(hosts, answer, config=PLAYED, single=True).play(played)
    return {name: one.started for name, one in outcomes.items() if one.started is not None}


def _run(scenario: Scenario, command: str, sink: io.BytesIO | None = None) -> SimulationResult:
    with BatsimRun(batsim_peer(command), scenario, sink=sink) as started:
        return simulate(scenario, decider=started.make_decider, latency=started.latency)


def _record(python: Path) -> None:
    """Write the golden logs."""
    with contextlib.chdir(GOLDEN):
        scenario = load_scenario("scenario.yaml")
        for scheduler in POLICIES:
            sink = io.BytesIO()
            command = f"batsim:{python.with_name('pybatsim')} {scheduler}"
            _run(scenario, command, sink)
            (GOLDEN / f"pybatsim-{scheduler}.messages").write_bytes(sink.getvalue())
        for litter in GOLDEN.glob("*_events.csv"):
            litter.unlink()


# -- both ends -----------------------------------------------------------------------------------------------------------


def _both_ways(folder: Path, workloads: list[Workload]) -> Iterator[tuple[str, bool]]:
    """Yield for each comparison whether its tables are the same, byte for byte."""
    wire = f"batsim:{sys.executable} -m lamina batsim-scheduler --profile {PROFILE} -s {{endpoint}}"
    for workload in [one for one in workloads if all(job.res == 1 for job in one.jobs)]:
        over, alone = folder / f"over-{workload.name}", folder / f"alone-{workload.name}"
        _simulate(workload, "--scheduler", wire, "--batsim", "compute-sharing", "--out", str(over))
        _simulate(workload, "--profile", PROFILE, "--out", str(alone))
        yield f"{workload.name}: protocol = no protocol", _same(over, alone)
    for workload in [one for one in workloads if any(job.res > 1 for job in one.jobs)][:3]:
        over = folder / f"over-{workload.name}"
        _simulate(workload, "--scheduler", wire, "--decisions", f"{over}.messages", "--out", str(over))
        scenario = load_scenario(workload.scenario.name)
        result, log = _without_wire(scenario)
        tables = zip(
            TABLES,
            (jobs_csv(result, scenario), schedule_csv(result, scenario), machine_states_csv(result)),
            strict=True,
        )
        same = all((over / name).read_bytes() == table for name, table in tables)
        messages = Path(f"{over}.messages").read_bytes().partition(b"\n")[2] == log.partition(b"\n")[2]
        yield f"{workload.name}: wire = function call", same and messages


def _without_wire(scenario: Scenario) -> tuple[SimulationResult, bytes]:
    """Run with the decision process as a function; return the result and the messages."""
    process = DecisionProcess(lambda _: loop_decider(configuration(PROFILE), 0))
    sink = io.BytesIO()
    exchange = MessageLogWriter(sink, MessageLogHeader()).logged(process.answer)

    def make(parts: RunParts) -> Any:
        return batsim_decider(parts, scenario, exchange, BatsimSettings())

    return simulate(scenario, decider=make), sink.getvalue()


def _simulate(workload: Workload, *options: str) -> None:
    command = [sys.executable, "-m", "lamina", "simulate", workload.scenario.name, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{workload.name}: {done.stderr}"


def _same(one: Path, other: Path) -> bool:
    return not any(filecmp.cmpfiles(one, other, TABLES, shallow=False)[1:])


def _behind(workloads: list[Workload]) -> dict[str, Any]:
    """Let a real kube-scheduler decide for the workload with the most gangs."""
    program = building.ensure("kube-scheduler", KUBE_SCHEDULER)
    workload = next((one for one in workloads if one.name == "hpc"), workloads[-1])
    scenario = load_scenario(workload.scenario)
    inner = f"{sys.executable} -m lamina batsim-scheduler --scheduler {program} -s {{endpoint}}"
    result = _run(scenario, f"batsim:{inner}")
    assert not result.stopped, result.stopped
    rows = jobs(result, scenario)
    assert all(row.is_over for row in rows), "jobs did not end"
    found = {
        "workload": workload.name,
        "jobs": len(rows),
        "makespan": schedule(rows, len(result.nodes), 0.0)["makespan"],
    }
    print(f"  kube-scheduler {KUBE_SCHEDULER}: {found}", flush=True)
    return found


# -- evalys --------------------------------------------------------------------------------------------------------------


def _evalys(folder: Path) -> dict[str, int] | None:
    """Load the tables of a run with evalys; return the rows of each, or None if it cannot be installed."""
    python = tool_environment(folder, "evalys", EVALYS)
    if python is None:
        return None
    tables = next(folder.glob("over-*/jobs.csv")).parent
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", LOAD_TABLES, str(tables)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr[-1000:]
    counts = [int(word) for word in done.stdout.split()[-3:]]
    return dict(zip(TABLES, counts, strict=True))
