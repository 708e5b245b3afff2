"""Progress of a simulation."""

import io
import itertools

import pytest

from lamina.cli.output.run_progress import RunProgress
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving

SCENARIO = a_scenario([a_node_spec("n1", 8, holds=["web"])], [arriving(float(at), f"p{at}", cpu=2) for at in range(3)])


class Terminal(io.StringIO):
    """Standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_nobody_is_called_when_nobody_looks(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())

    assert RunProgress(SCENARIO).observe is None


@pytest.mark.parametrize(
    ("step", "shown"),
    [pytest.param(0.1, False, id="over in a second"), pytest.param(1.0, True, id="takes some seconds")],
)
def test_a_bar_comes_after_two_seconds(monkeypatch, step, shown):
    text = Terminal()
    monkeypatch.setattr("sys.stderr", text)
    monkeypatch.setenv("TERM", "xterm")
    ticks = itertools.count()
    monkeypatch.setattr("lamina.cli.output.run_progress.time.monotonic", lambda: step * next(ticks))
    with RunProgress(SCENARIO) as bar:
        simulate(SCENARIO, named("kube-default", registry()), observer=bar.observe)

    assert shown is ("pods started" in text.getvalue())
