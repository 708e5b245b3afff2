"""The page of a run that is under way: what it shows, and how seldom it is drawn."""

import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from lamina.cli.simulate.command import simulate as command
from lamina.cli.simulate.live_view import LiveView
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving

SCENARIO = a_scenario(
    [a_node_spec("n1", 8), a_node_spec("n2", 8, holds=["web"])],
    [arriving(0.0, "done", duration=5.0), arriving(10.0, "runs", cpu=6), arriving(100.0, "waits", cpu=20)],
    profile="lamina-local",
)


def drawn(step: float, scenario=SCENARIO) -> tuple[str, int]:
    """Run under a clock that goes on by *step* at each look; return what was drawn, and how often."""
    text = io.StringIO()
    ticks = iter(range(10_000))
    page = LiveView(Console(file=text, force_terminal=True, width=110, color_system=None), lambda: step * next(ticks))
    with page:
        simulate(scenario, named("lamina-local", registry()), observer=page.observe)
    return text.getvalue(), page.draws


def test_the_last_page_shows_where_the_pods_are_and_what_was_pulled():
    text, _ = drawn(1.0)
    last = text[text.rindex("virtual time") :]

    assert "100.0 s" in last
    assert "1 waiting   0 pulling   1 running   1 done" in last
    assert "0 B in 0 pulls   100% of the needed bytes were on the node" in last
    # 6 of 8 cpu on one of two nodes.
    assert "n2: 75% of its cpu requested, 2.00 times the mean" in last
    assert "0 images, 0 B" in last


@pytest.mark.parametrize(
    ("step", "draws"),
    [
        # 13 records: each looks at the clock once.
        pytest.param(0.25, 13, id="time for each record"),
        pytest.param(0.125, 7, id="time for every second record"),
        pytest.param(0.0, 1, id="all at once"),
    ],
)
def test_it_is_drawn_at_most_five_times_a_second(step, draws):
    assert draws == drawn(step)[1]


@pytest.mark.parametrize(("option", "shown"), [("--live", False), ("--live-always", True)])
def test_in_a_pipe_nothing_is_drawn_unless_it_is_wanted_always(tmp_path, option, shown):
    (tmp_path / "s.yaml").write_text(
        "images: {a: {b: 1MB}}\nnodes: [{name: n, cpu: 1, memory: 1Gi}]\npods: [{name: p, image: a}]\n"
    )
    told = CliRunner().invoke(command, [str(tmp_path / "s.yaml"), option, "-o", "json"], catch_exceptions=False)

    assert shown is ("virtual time" in told.stderr)
    assert told.stdout.startswith("{")
