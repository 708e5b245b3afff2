"""The example of backfill starts its jobs when its page says."""

from pathlib import Path

import pytest

from lamina.cli.options.scheduler_profile import configuration
from lamina.simulator.run import simulate
from lamina.simulator.run.simulation import loop_decider
from lamina.simulator.workloads import load_scenario

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "backfill"
JOBS = ("first", "wide", "whole", "short", "long")


def from_the_page(column: int) -> dict[str, float]:
    rows = [line.split("|")[1:-1] for line in (EXAMPLE / "README.md").read_text().splitlines() if line.startswith("|")]
    return {row[0].strip(): float(row[column]) for row in rows if row[0].strip() in JOBS}


@pytest.mark.parametrize(
    ("profile", "column"),
    [
        pytest.param(str(EXAMPLE / "fcfs.yaml"), 4, id="first come, first served"),
        pytest.param("easy", 5, id="EASY"),
        pytest.param("conservative", 6, id="conservative"),
    ],
)
def test_jobs_start_when_the_page_says(profile: str, column: int) -> None:
    scenario = load_scenario(EXAMPLE / "scenario.yaml")

    result = simulate(scenario, decider=lambda _: loop_decider(configuration(profile), 0))

    starts = {pod.pod.removeprefix("default/"): pod.bound for pod in result.pods}
    assert from_the_page(column) == starts
    assert set(JOBS) == set(starts)
