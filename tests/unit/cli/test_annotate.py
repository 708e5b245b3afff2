"""`lamina annotate`: every mistake of the command line is one line and exit code 2; a dry run prints a table."""

import json
import logging
from collections.abc import Iterator

import click
import pytest
import yaml

from lamina.cli import annotate as command
from lamina.model.errors import InputError
from lamina.services.annotator import wiring
from lamina.services.annotator.annotation_plan import MOVED, UNKNOWN, AnnotationWrite
from lamina.services.log_lines import Verbosity
from tests.unit.clients.kube.kubeconfigs import config, saved


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch, tmp_path) -> Iterator[None]:
    """No cluster by accident, logging as it was found."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level
    yield
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])


def annotate(*words: object) -> None:
    command.annotate.main(list(map(str, words)), prog_name="annotate", standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(["usage"], "usage: needs a source; add --prometheus URL", id="no source"),
        pytest.param(["congestion"], "congestion: needs a source", id="no source of congestion"),
        pytest.param(
            ["usage", "--prometheus", "p"],
            "--prometheus: 'p' is not a usable URL; write it as http://",
            id="no address",
        ),
        pytest.param(
            ["usage", "--prometheus", "http://p", "--metrics-server"],
            "--prometheus: not together with --metrics-server",
            id="two sources",
        ),
        pytest.param(["allocation", "--metrics-server"], "--metrics-server: allocation is the sum", id="needless"),
        pytest.param(["congestion", "--metrics-server"], "has no congestion data", id="cannot know"),
        pytest.param(["usage", "--metrics-server", "--once"], "one sample has no deviation", id="one look"),
        pytest.param(
            ["usage", "--metrics-server", "--every", "450"],
            "--every: is too long: 3 samples must fit into the window of 900 s; use less than 409 s",
            id="never enough samples",
        ),
        pytest.param(["usage", "--config", "none.yaml"], "none.yaml: cannot be read", id="no such file"),
        pytest.param(["allocation", "--forget", "500"], "--forget: must be longer than --refresh", id="forgetful"),
        pytest.param(["allocation"], "kubeconfig: no cluster configured", id="no cluster"),
    ],
)
def test_a_mistake_is_one_line(words, line):
    with pytest.raises(InputError) as refused:
        annotate(*words)

    assert line in str(refused.value)
    assert 1 == len(str(refused.value).splitlines())
    assert 2 == refused.value.exit_code


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="nothing to write"),
        pytest.param(["weather"], id="nobody knows that"),
        pytest.param(["allocation", "--every", "0"], id="without a pause"),
        pytest.param(["allocation", "--max-writes-per-second", "0"], id="no write at all"),
    ],
)
def test_what_the_command_line_does_not_know_is_bad_usage(words):
    with pytest.raises(click.UsageError):
        annotate(*words)


def test_what_was_said_reaches_the_annotator(monkeypatch, tmp_path):
    seen: list[wiring.AnnotatorOptions] = []

    async def run(options, show):
        seen.append(options)
        show([AnnotationWrite("n1", "u", {"a": "1"}, MOVED)], "a remark")

    monkeypatch.setattr(wiring, "annotate", run)
    annotate(
        "usage",
        *("--kubeconfig", saved(tmp_path / "kubeconfig", config()), "--prometheus", "http://p:9090/"),
        *("--every", 30, "--max-writes-per-second", 2, "--once"),
    )
    (options,) = seen

    assert ("usage", True, False, False) == (options.what, options.once, options.dry_run, options.remove)
    assert (30.0, 2.0, 600.0, 1800.0) == (options.every, options.per_second, options.refresh, options.forget)
    assert options.settings.prometheus is not None
    assert "http://p:9090" == options.settings.prometheus.url


@pytest.mark.parametrize(
    ("words", "file", "every"),
    [
        pytest.param([], None, 60.0, id="nobody says anything"),
        pytest.param([], "", 60.0, id="the file says nothing"),
        pytest.param([], "every: 90s\n", 90.0, id="the file"),
        pytest.param(["--every", "20"], "every: 90s\n", 20.0, id="the command line counts before the file"),
        pytest.param(["--every", "20"], None, 20.0, id="the command line"),
    ],
)
def test_how_often_is_what_the_command_line_says_or_else_the_file(monkeypatch, tmp_path, words, file, every):
    seen: list[wiring.AnnotatorOptions] = []

    async def run(options, show):
        seen.append(options)

    monkeypatch.setattr(wiring, "annotate", run)
    source = ["--prometheus", "http://p"]
    if file is not None:
        (tmp_path / "usage.yaml").write_text(f"{file}prometheus: {{url: 'http://p'}}")
        source = ["--config", str(tmp_path / "usage.yaml")]
    annotate("usage", *source, *words, "--kubeconfig", saved(tmp_path / "kubeconfig", config()))

    assert [every] == [options.every for options in seen]


def test_removing_needs_no_source(monkeypatch, tmp_path):
    seen: list[wiring.AnnotatorOptions] = []

    async def run(options, show):
        seen.append(options)

    monkeypatch.setattr(wiring, "annotate", run)
    for what in ("usage", "allocation", "congestion"):
        annotate(what, "--remove", "--kubeconfig", saved(tmp_path / "kubeconfig", config()))

    assert [True] * 3 == [options.remove for options in seen]


def test_a_dry_run_prints_a_table_that_others_cannot_draw_in(capsys):
    changes = [
        AnnotationWrite("n1", "u", {"mean-free-cpu": "2500", "std-free-cpu": "100"}, MOVED),
        AnnotationWrite("n2[red]\x1b[31m", "u", {"mean-free-cpu": None}, UNKNOWN),
    ]
    command._show(changes, "1 of 2 nodes are measured; no series for n2")
    shown = capsys.readouterr().out

    assert "mean-free-cpu=2500" in shown
    assert "mean-free-cpu -" in shown
    assert "2 nodes would be written" in shown
    assert "1 of 2 nodes are measured" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_a_dry_run_prints_data_with_every_node_and_remarks_beside_it(capsys, output, read):
    changes = [AnnotationWrite(f"n{n}", "u", {"a": "1", "b": None}, MOVED) for n in range(201)]
    command._print(output, changes, "1 node is not measured")
    told = capsys.readouterr()

    assert [{"node": one.node, "why": MOVED, "annotations": {"a": "1", "b": None}} for one in changes] == read(told.out)
    assert "1 node is not measured\n" == told.err


def test_a_dry_run_of_many_nodes_shows_some(capsys):
    command._show([AnnotationWrite(f"n{n}", "u", {"a": "1"}, MOVED) for n in range(201)], "")

    assert "201 nodes would be written, of which 200 are shown" in capsys.readouterr().out
