"""
Whole tables as they are printed, at three widths: real runs, compared letter by letter with files.

After a change of the page: `python -m tests.unit.cli.test_comparison_pages` writes the files anew; read what changed.
"""

import functools
import io
from pathlib import Path

import pytest
from rich.console import Console

from lamina.cli.compare import run_pool
from lamina.cli.compare.comparison_notes import with_unsupported
from lamina.cli.compare.comparison_table import print_comparison
from lamina.cli.output.screen import Screen
from lamina.evaluation.comparison import ProfileComparison, Run, compare

FOLDER = Path(__file__).parent / "comparisons"
SAFE = Path(__file__).resolve().parents[3] / "examples" / "safe"
WIDTHS = (60, 80, 120)

# What each is called in the table, and what is run.
STORIES = {
    "never-starts": (
        FOLDER / "never-starts.yaml",
        {"kube-default": "kube-default", "lamina-balanced": "lamina-balanced"},
    ),
    "safe-short": (SAFE / "short.yaml", {"kube-default": "kube-default", "profile.yaml": str(SAFE / "profile.yaml")}),
}


@functools.cache
def compared(story: str) -> ProfileComparison:
    scenario, profiles = STORIES[story]
    runs = [
        Run(name, seed, run_pool.run_one(run_pool.RunTask(scenario, profile, seed)))
        for seed in (1, 2, 3)
        for name, profile in profiles.items()
    ]
    return with_unsupported(compare(runs, "kube-default"))


def page(story: str, width: int) -> str:
    text = io.StringIO()
    print_comparison(compared(story), None, Screen(Console(file=text, width=width, highlight=False)))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("story", STORIES)
def test_a_comparison_looks_as_it_is_written_down(story, width):
    found = page(story, width)

    assert (FOLDER / f"{story}-{width}.txt").read_text(encoding="utf-8") == found
    assert width >= max(map(len, found.splitlines()))


def test_pods_that_never_start_are_no_reward():
    """
    Under kube-default two or three pods still pull when the run ends: the slowest, and in no start time.
    """
    found = compared("never-starts")
    started = {one.profile: one.started or 0.0 for one in found.populations}
    rows = {row.metric: row for row in found.rows if row.profile == "lamina-balanced"}

    assert started["kube-default"] < started["lamina-balanced"] == 11.0
    assert {None} == {rows[metric].verdict for metric in rows if metric.startswith("startup_")}
    assert all("different numbers of pods" in str(rows[f"startup_{one}"].no_verdict) for one in ("mean", "p50", "p99"))
    assert ("better", "better") == (rows["not_started"].verdict, rows["pulling"].verdict)


if __name__ == "__main__":
    for one in STORIES:
        for columns in WIDTHS:
            (FOLDER / f"{one}-{columns}.txt").write_text(page(one, columns), encoding="utf-8")
