"""What a summary says about a scheduler that is another program."""

import pytest

from lamina.cli.simulate.summary_text import settle_lines

PROVEN = {
    "scheduler": "kube-scheduler 1.36.3",
    "method": "log",
    "proven": True,
    "checks": 9,
    "limits_hit": 0,
    "decisions": 3,
    "ms_per_decision": 12.34,
}
NONE = {"total": 0, "pods": []}
FIRST = "kube-scheduler 1.36.3 settled by log: 9 checks, 12.3 ms per decision"


@pytest.mark.parametrize(
    ("settle", "starved", "lines"),
    [
        pytest.param({}, NONE, [FIRST], id="proven"),
        pytest.param(
            {"ms_per_decision": None}, NONE, ["kube-scheduler 1.36.3 settled by log: 9 checks"], id="no decisions"
        ),
        pytest.param(
            {"proven": False},
            NONE,
            [
                FIRST,
                "[yellow]not proven[/yellow]: nothing shows for certain that the scheduler had finished; it may have decided later",
            ],
            id="not proven",
        ),
        pytest.param(
            {"limits_hit": 1},
            NONE,
            [FIRST, "[yellow]1 time limit ended a wait[/yellow]: the figures may be wrong"],
            id="a limit was hit",
        ),
        pytest.param(
            {},
            {"total": 12, "pods": [f"default/p{number}" for number in range(12)]},
            [
                FIRST,
                "[yellow]12 pods starved[/yellow], pending although a node has room: "
                + ", ".join(f"default/p{number}" for number in range(10))
                + " and 2 more",
            ],
            id="starved pods",
        ),
    ],
)
def test_a_summary_says_how_a_scheduler_settled(settle, starved, lines):
    assert lines == list(settle_lines({**PROVEN, **settle}, starved))
