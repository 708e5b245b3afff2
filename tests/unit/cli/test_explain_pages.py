"""
Whole pages of `lamina explain` at three widths: decisions of real runs, compared letter by letter with files.

After a change of the page: `python -m tests.unit.cli.test_explain_pages` writes the files anew; read what changed.
"""

import functools
import io
from pathlib import Path

import pytest
from rich.console import Console

from lamina.cli.explain.decision_table import print_decision
from lamina.cli.explain.verdict_table import folded
from lamina.cli.options.scheduler_profile import configuration
from lamina.cli.output.screen import Screen
from lamina.model.decision import Decision
from lamina.simulator.run import simulate
from lamina.simulator.workloads import load_scenario

FOLDER = Path(__file__).parent / "explanations"
FOUNDING = Path(__file__).resolve().parents[3] / "examples" / "founding" / "scenario.yaml"
MANY_NODES = FOLDER / "many-nodes.yaml"
WIDTHS = (60, 80, 120)

STORIES = {
    "founding": (FOUNDING, "default/p3"),
    "many-nodes": (MANY_NODES, "default/checkout"),
    "no-node-fits": (MANY_NODES, "default/giant"),
}


@functools.cache
def decided(story: str) -> tuple[Decision, str]:
    path, pod = STORIES[story]
    scenario = load_scenario(path)
    result = simulate(scenario, configuration(scenario.profile), seed=1, detail="full")
    return next(one for one in result.decisions if one.pod == pod), scenario.profile


def page(story: str, width: int) -> str:
    text = io.StringIO()
    decision, profile = decided(story)
    print_decision(decision, profile=profile, screen=Screen(Console(file=text, width=width, highlight=False)))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def squeezed(text: str) -> str:
    """The page without what comes from breaking lines."""
    return "".join(letter for letter in text if letter not in " \n|")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("story", STORIES)
def test_a_decision_looks_as_it_is_written_down(story, width):
    found = page(story, width)

    assert (FOLDER / f"{story}-{width}.txt").read_text(encoding="utf-8") == found
    assert width >= max(map(len, found.splitlines()))


@pytest.mark.parametrize("width", [40, *WIDTHS, 200])
@pytest.mark.parametrize("story", STORIES)
def test_at_every_width_the_profile_the_choice_and_every_refusal_can_be_read(story, width):
    decision, profile = decided(story)
    text = squeezed(page(story, width))

    assert f"profile{profile}" in text
    assert "…" not in text, "nothing is cut"
    if decision.chosen is not None:
        assert "*chosen" in text
        assert f"->{decision.chosen.node}" in text
    for reason in {reason for one in decision.verdicts if one.refusal for reason in one.refusal.reasons}:
        assert squeezed(reason) in text


@pytest.mark.parametrize("width", [40, *WIDTHS, 200])
def test_at_every_width_every_node_is_listed(width):
    decision, _ = decided("no-node-fits")
    text = squeezed(page("no-node-fits", width))

    assert len(decision.verdicts) == 13
    assert [] == [one.node for one in decision.verdicts if one.node not in text]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param("n1", ["n1"], id="short"),
        pytest.param("NodeResourcesFit", ["Node", "Resources", "Fit"], id="a plugin, between its words"),
        pytest.param("LRScheduler", ["LR", "Scheduler"], id="capitals stay together"),
        pytest.param("ip-10-0-13-77.internal", ["ip-10-0-", "13-77.", "internal"], id="a node, behind its signs"),
        pytest.param("abcdefghijklmnopqrst", ["abcdefghij", "klmnopqrst"], id="no place to break: anywhere"),
        pytest.param("", [""], id="nothing"),
    ],
)
def test_a_name_is_broken_between_its_words(name, lines):
    assert lines == folded(name, 10)
    assert name == "".join(folded(name, 10))


if __name__ == "__main__":
    for one in STORIES:
        for columns in WIDTHS:
            (FOLDER / f"{one}-{columns}.txt").write_text(page(one, columns), encoding="utf-8")
