"""What a pod itself tells, as a page: placed, waiting, not ours, and written by who wishes us ill."""

import pytest

from lamina.cli.explain.pod_status_text import print_pod_status
from lamina.wire.decision_note import DecisionNote, NotedSaving, OtherNode
from lamina.wire.kube.pod_placement import PodPlacement

NOTE = DecisionNote(
    node="n1",
    attempt=2,
    nodes=5,
    feasible=3,
    tied=1,
    total=300,
    points={"LayerLocality": 200, "NodeResourcesFit": 100},
    runner_up=OtherNode("n2", 250),
    seconds=1.5,
    download=771_000,
    against_mean=NotedSaving(2.0, 1000),
    against_runner_up=NotedSaving(-3.0, -500),
)


def page(capsys, **told: object) -> str:
    print_pod_status(PodPlacement(pod="shop/web-0", scheduler="lamina", **told))
    out: str = capsys.readouterr().out
    return out


def test_a_placed_pod_is_told_in_full(capsys):
    text = page(capsys, node="n1", note=NOTE)

    for line in (
        "shop/web-0 -> n1, by scheduler lamina",
        "attempt 2: 3 of 5 nodes fit",
        "50 points ahead of n2",
        "images ready in 1.5 s, 771 kB to download, as estimated",
        "against the mean feasible node: 2.0 s sooner, 1.0 kB less to download",
        "against n2, which came second: 3.0 s later, 500 B more to download",
    ):
        assert line in text
    words = text.replace("|", " ").split()
    table = {word: words[words.index(word) + 1] for word in ("LayerLocality", "NodeResourcesFit", "total")}
    assert {"LayerLocality": "200", "NodeResourcesFit": "100", "total": "300"} == table


@pytest.mark.parametrize(
    ("told", "words"),
    [
        pytest.param(
            {"reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."},
            "shop/web-0 waits for scheduler lamina (Unschedulable): 0/3 nodes are available: 3 Insufficient cpu.",
            id="in kube-scheduler's words",
        ),
        pytest.param(
            {}, "shop/web-0 waits for scheduler lamina, and its scheduler has given no reason", id="nobody looked"
        ),
        pytest.param({"reason": "SchedulingGated"}, "waits for scheduler lamina (SchedulingGated)", id="gated"),
        pytest.param({"note": NOTE}, "and its scheduler has given no reason", id="with a note from nowhere"),
    ],
)
def test_a_waiting_pod_is_told_in_a_line(capsys, told, words):
    assert words in page(capsys, **told).replace("\n", " ")


def test_a_pod_that_is_not_ours_is_told_so(capsys):
    assert "the pod has no decision by Lamina" in page(capsys, node="n1")


def test_a_note_about_another_node_is_told_so(capsys):
    assert "the pod's decision names another node: n1" in page(capsys, node="n9", note=NOTE)


def test_equals_are_told_so(capsys):
    assert "one of 4 equally good nodes" in page(capsys, node="n1", note=DecisionNote(node="n1", tied=4))


def test_a_note_of_the_fewest_words_is_a_page(capsys):
    assert "its images were unknown: layers did not influence the choice" in page(
        capsys, node="n1", note=DecisionNote(node="n1")
    )


MARKUP = "[bold red]x[/bold red] [link=http://evil]y[/link] \\[z]"


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"reason": MARKUP, "message": MARKUP}, id="why it waits"),
        pytest.param({"node": MARKUP, "note": DecisionNote(node=MARKUP, points={MARKUP: 1})}, id="names"),
        pytest.param({"node": "n1", "note": DecisionNote(node=MARKUP, runner_up=OtherNode(MARKUP))}, id="the second"),
    ],
)
def test_nothing_a_stranger_wrote_is_taken_for_markup(capsys, told):
    assert "[bold red]x[/bold red]" in page(capsys, **told)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"reason": "x", "message": "\x1b]0;owned\x07\x1b[2J"}, id="why it waits"),
        pytest.param({"node": "n1", "note": DecisionNote(node="n1", points={"\x1b[2J": 1})}, id="a plugin"),
        pytest.param({"node": "n1", "note": DecisionNote(node="\x1b[2J")}, id="a node"),
    ],
)
def test_nothing_a_stranger_wrote_reaches_the_terminal_as_a_command(capsys, told):
    assert "\x1b" not in page(capsys, **told)


@pytest.mark.parametrize(
    "note",
    [
        pytest.param(DecisionNote(node="n1", total=10**3000, points={"x": 10**3000}), id="points"),
        pytest.param(DecisionNote(node="n1", seconds=1e308, download=10**3000), id="seconds and bytes"),
        pytest.param(
            DecisionNote(node="n1", seconds=-1.0, download=-5, against_mean=NotedSaving(-1e308, -(10**3000))), id="less"
        ),
        pytest.param(DecisionNote(node="n1", attempt=-(10**3000), tied=10**3000), id="counts"),
        pytest.param(DecisionNote(node="", points={"": 0}), id="empty"),
    ],
)
def test_absurd_figures_are_told_and_break_nothing(capsys, note):
    assert "shop/web-0" in page(capsys, node="n1", note=note)
