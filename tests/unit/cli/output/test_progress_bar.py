"""Progress is shown to people who wait, and to nobody else."""

import io
import sys

import pytest

from lamina.cli.output import progress_bar
from lamina.cli.output.progress_bar import with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "patience", "drawn"),
    [
        pytest.param(Terminal(), -1.0, True, id="somebody waits"),
        pytest.param(Terminal(), 60.0, False, id="done before anybody wonders"),
        pytest.param(io.StringIO(), -1.0, False, id="a pipe"),
        pytest.param(None, -1.0, False, id="nowhere to draw"),
    ],
)
def test_things_are_passed_on_and_a_bar_is_drawn_for_those_who_wait(monkeypatch, stderr, patience, drawn):
    monkeypatch.setattr(progress_bar, "QUIET_SECONDS", patience)
    monkeypatch.setattr(sys, "stderr", stderr)

    assert [1, 2, 3] == list(with_progress(iter([1, 2, 3]), 3, "sources"))
    assert drawn == (stderr is not None and "sources" in stderr.getvalue())
