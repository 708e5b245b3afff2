"""
kube-scheduler drives five scenarios in virtual time, again and again, and every result must be exact.

Each scenario runs with JSON and with Protocol Buffers, on an idle machine and beside three busy loops. RUNS says how often
(default 20), SCENARIOS which ones, VERSION which kube-scheduler (default: the testbed's), SETTLE by which method.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.scheduler_profiles import KUBE_SCHEDULER, KUBE_SCHEDULER_JSON, SchedulerProfile
from lamina.apiserver.settling.settle_method import SchedulerStuckError
from testbed import building
from tests.e2e._settle_scenarios import SettleCase, cases, play

NAME = "settle"
SUMMARY = "kube-scheduler gives exact results in virtual time: five scenarios, RUNS (20) runs each, idle and loaded."
NEEDS = ()

BUSY_LOOPS: Final = 3
PROFILES: Final = {"protobuf": KUBE_SCHEDULER, "json": KUBE_SCHEDULER_JSON}


def main() -> dict[str, Any]:
    """Run all scenarios."""
    runs = int(os.environ.get("RUNS", "20"))
    chosen = os.environ.get("SCENARIOS", "").split() or list(cases())
    version = os.environ.get("VERSION", "")
    program = str(building.ensure("kube-scheduler", version) if version else building.ensure("kube-scheduler"))
    found: dict[str, dict[str, float]] = {name: {"runs": 0, "exact": 0, "seconds": 0.0} for name in chosen}
    limits, wrong = 0, []
    for load in (0, BUSY_LOOPS):
        with busy_loops(load):
            for encoding, profile in PROFILES.items():
                for name in chosen:
                    one = repeat(cases()[name], with_method(profile), program, runs)
                    what = f"{name}, {encoding}, {load} busy loops"
                    print(f"  {what}: {one.exact} of {one.runs} exact, {one.seconds:.1f} s", flush=True)
                    wrong += [f"{what}: {problem}" for problem in one.problems]
                    limits += one.limits
                    total = found[name]
                    total["runs"] += one.runs
                    total["exact"] += one.exact
                    total["seconds"] = round(total["seconds"] + one.seconds, 1)
    for line in wrong[:20]:
        print(f"  wrong: {line}")
    return {
        "runs": sum(int(one["runs"]) for one in found.values()),
        "exact": sum(int(one["exact"]) for one in found.values()),
        "limits_hit": limits,
        **found,
    }


class Repetition(msgspec.Struct):
    """Results of one scenario, again and again."""

    runs: int = 0
    exact: int = 0
    seconds: float = 0.0
    limits: int = 0
    problems: list[str] = msgspec.field(default_factory=list)


def repeat(case: SettleCase, profile: SchedulerProfile, program: str, runs: int) -> Repetition:
    """Play one scenario *runs* times, each with a new scheduler."""
    found = Repetition()
    began = time.monotonic()
    for _ in range(runs):
        found.runs += 1
        problem = ""
        with FacadeRun(profile, [program]) as run:
            try:
                problem = case.problem(play(case, run))
            except SchedulerStuckError as error:
                problem = str(error)
            figures = run.figures
            if figures is not None:
                found.limits += figures.limits_hit
        if problem:
            found.problems.append(problem)
        else:
            found.exact += 1
    found.seconds = time.monotonic() - began
    return found


def with_method(profile: SchedulerProfile) -> SchedulerProfile:
    """Return the profile with the settle method that SETTLE names."""
    method = os.environ.get("SETTLE", "")
    return msgspec.structs.replace(profile, settle=method) if method else profile


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep the processors busy with *count* processes."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
