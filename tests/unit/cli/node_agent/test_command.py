"""`lamina node-agent`: every mistake of the command line is one line and exit code 2; what it prints is what it promises."""

import json
import logging
import socket
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from lamina.cli.main import run
from lamina.cli.node_agent import inventory_text, node_inventory
from lamina.cli.node_agent.node_inventory import InventoryPrinter, inventory, look_once
from lamina.clients.cri import runtime_discovery
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.layer_report import ActivePull
from lamina.services.log_lines import Verbosity
from lamina.services.node_agent import wiring
from lamina.services.node_agent.inventory_frames import InventoryFrameBuilder
from tests.unit.clients.kube.kubeconfigs import config, saved
from tests.unit.services.fakes import leaping
from tests.unit.services.node_agent.scripted import ScriptedSource, an_image, holding, unmeasured

NOON = 1772366400.0


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch, tmp_path) -> Iterator[None]:
    """No cluster by accident, no confinement of the tests themselves, logging as it was found."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(wiring, "confined", lambda: None)
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level
    yield
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])


@pytest.fixture
def runtime(monkeypatch) -> list[object]:
    """What is found as the runtime."""
    found: list[object] = []

    async def find_source(wanted, **places):
        assert ("auto", {"socket", "storage", "disk"}) == (wanted, set(places))
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]

    monkeypatch.setattr(runtime_discovery, "find_source", find_source)
    return found


def lamina(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["lamina", "node-agent", *map(str, arguments)])
    return run()


def one_line(capsys) -> str:
    err: str = capsys.readouterr().err
    assert 1 == len(err.splitlines()), err
    return err


# --------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(["--once", "--watch"], "--once: not together with --watch", id="once and watch"),
        pytest.param(["--once", "--role", "reader"], "--once: not together with --role", id="once and a role"),
        pytest.param(["--watch", "--pipe", "x"], "--watch: not together with --pipe", id="watch and a pipe"),
        pytest.param(
            ["--watch", "--role", "publisher", "--pipe", "x"],
            "--watch: not with --role publisher",
            id="a publisher that watches",
        ),
        pytest.param(["--pipe", "x"], "--pipe: needs --role", id="a pipe without a role"),
        pytest.param(["--role", "reader"], "--role: reader needs the named pipe", id="a reader without a pipe"),
        pytest.param(
            ["--role", "publisher"], "--role: publisher needs the named pipe", id="a publisher without a pipe"
        ),
        pytest.param(["--role", "publisher", "--pipe", "fd:3"], "--pipe: a publisher needs a path", id="a number"),
        pytest.param(["--role", "reader", "--pipe", "fd:x"], "is not an open pipe; write a path", id="no number"),
        pytest.param(["--role", "reader", "--pipe", "fd:999"], "is not an open pipe; write a path", id="not open"),
        pytest.param(["--role", "publisher", "--pipe", "/nowhere/x/p"], "/nowhere/x is not a folder", id="no folder"),
        pytest.param([], "no cluster configured", id="no cluster"),
        pytest.param(["--kubeconfig", "/nowhere"], "/nowhere", id="no such file"),
    ],
)
def test_a_mistake_is_one_line(monkeypatch, capsys, words, line):
    assert 2 == lamina(monkeypatch, *words)
    assert line in one_line(capsys)


def test_who_cannot_say_which_node_this_is_is_told(monkeypatch, capsys, tmp_path):
    access = saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))

    assert 2 == lamina(monkeypatch, "--kubeconfig", access)
    assert "--node: node identity unknown; use the token of a pod" in one_line(capsys)


def test_a_reader_that_could_read_a_token_does_not_start(monkeypatch, capsys, tmp_path):
    token = tmp_path / "token"
    token.write_text("x")
    refuse = wiring.refuse_token
    monkeypatch.setattr(wiring, "refuse_token", lambda: refuse(token))

    assert 2 == lamina(monkeypatch, "--role", "reader", "--pipe", tmp_path / "pipe")
    line = one_line(capsys)
    assert "--role reader: there is a token at" in line
    assert "automountServiceAccountToken: false" in line


def test_without_a_token_a_reader_starts(tmp_path):
    wiring.refuse_token(tmp_path / "token")


# ------------------------------------------------------------------------------------------------------------------- once

PULL = ActivePull("registry.example/big:1", None, 30, 120)
HOLDS = holding(
    an_image(1, "docker.io/library/nginx:1.27", "docker.io/library/nginx@sha256:" + "0" * 64),
    msgspec.structs.replace(an_image(2, layers=3), lazy=True),
    unmeasured(an_image(3)),
    pulling=(PULL,),
    reuse="set",
    download_rate=5e6,
)
HOLDS_BY_SIZE = sorted(HOLDS.images, key=lambda image: -image.size)


def test_once_prints_a_table(monkeypatch, capsys, runtime):
    runtime.append(ScriptedSource(HOLDS, every=100.0))
    monkeypatch.setattr(node_inventory, "SIZES_WITHIN", 0.0)
    assert 0 == lamina(monkeypatch, "--once", "--node", "n1")
    text = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line]

    assert "n1  containerd 2.4.2  linux/amd64  reuse: set" in text
    assert "3 images of 7 layers" in text
    assert "measured on pulls: download 5.0 MB/s" in text
    assert "pulling registry.example/big:1: 30 B of 120 B, 25 %" in text
    # The layers of the first have 5001 and 1001 bytes, and unpack to twice that; the second is lazy, the third not measured.
    assert ["nginx:1.27", HOLDS_BY_SIZE[2].digest[7:19], "6.0 kB", "2", "12 kB", ""] in cells
    assert ["registry.example/team/app-2:1.2", HOLDS_BY_SIZE[0].digest[7:19], "7.0 kB", "3", "14 kB", "lazy"] in cells
    assert ["registry.example/team/app-3:1.3", HOLDS_BY_SIZE[1].digest[7:19], "6.0 kB", "2", "-", ""] in cells


def test_once_prints_json_of_the_promised_shape(monkeypatch, capsys, runtime):
    runtime.append(ScriptedSource(HOLDS, every=100.0))
    monkeypatch.setattr(node_inventory, "SIZES_WITHIN", 0.0)
    assert 0 == lamina(monkeypatch, "--once", "-o", "json")
    told = json.loads(capsys.readouterr().out)

    assert [
        "node",
        "observed_at",
        "runtime",
        "platform",
        "reuse",
        "totals",
        "disk",
        "rates",
        "pulling",
        "images",
    ] == list(told)
    assert socket.gethostname() == told["node"]
    assert [{"name": "registry.example/big:1", "digest": None, "done": 30, "total": 120}] == told["pulling"]
    assert ["digest", "names", "bytes", "unpacked_bytes", "lazy", "layers"] == list(told["images"][0])
    assert ["digest", "bytes", "diff_id", "unpacked_bytes"] == list(told["images"][0]["layers"][0])
    assert sorted(told["images"], key=lambda one: -one["bytes"]) == told["images"]
    assert [None] == [one["unpacked_bytes"] for one in told["images"] if one["digest"] == an_image(3).digest]


def test_once_in_trouble_is_one_line_and_the_exit_code_says_so(monkeypatch, capsys, runtime):
    runtime.append(RuntimeSourceError("auto", "no runtime found: tried /run/x"))

    assert 1 == lamina(monkeypatch, "--once")
    assert "auto: no runtime found: tried /run/x\n" == one_line(capsys)


def looked(source: ScriptedSource, capsys) -> list[dict[str, Any]]:
    async def open_source():
        return source

    printer = InventoryPrinter("n1", "json")
    printer.lines = True
    leaping(look_once(open_source, printer))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_once_waits_a_little_for_sizes(capsys):
    source = ScriptedSource(holding(unmeasured(an_image(1))), holding(an_image(1)), every=3.0)
    told = looked(source, capsys)

    assert [12_004] == [image["unpacked_bytes"] for image in told[0]["images"]]
    assert (2, 1) == (len(source.looked), source.closed)


def test_once_does_not_wait_for_ever(capsys):
    source = ScriptedSource(holding(unmeasured(an_image(1))), every=4.0)
    told = looked(source, capsys)

    assert [None] == [image["unpacked_bytes"] for image in told[0]["images"]]
    assert 4 == len(source.looked)


def test_what_did_not_change_is_not_printed_again(capsys):
    printer = InventoryPrinter("n1", "json")
    printer.lines = True
    for moment, holds in enumerate((HOLDS, HOLDS, holding(an_image(1)))):
        printer.send(InventoryFrameBuilder().of(holds, NOON + moment), holds.images)

    assert 2 == len(capsys.readouterr().out.splitlines())


def test_an_inventory_is_the_same_for_the_same_runtime():
    shuffled = msgspec.structs.replace(HOLDS, images=HOLDS.images[::-1])
    one, other = (inventory("n1", InventoryFrameBuilder().of(holds, NOON), holds.images) for holds in (HOLDS, shuffled))

    assert json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        pytest.param([], "<none>", id="no name"),
        pytest.param(["docker.io/library/nginx:1", "docker.io/library/nginx@sha256:0"], "nginx:1", id="docker.io"),
        pytest.param(["quay.io/a/b@sha256:0"], "quay.io/a/b@sha256:0", id="only a digest"),
        pytest.param(["x.example/" + "a" * 80 + ":v1"], "..." + "a" * 54 + ":v1", id="long"),
    ],
)
def test_the_shown_name_is_the_one_a_person_would_use(names, short):
    assert short == inventory_text.short_name(names)
    assert inventory_text.NAME >= len(short)


def test_a_name_is_no_markup(capsys):
    holds = holding(an_image(1, "registry.example/[bold]x[/bold]\x1b[2J:1"))
    InventoryPrinter("n1", "table").send(InventoryFrameBuilder().of(holds, NOON), holds.images)
    text = capsys.readouterr().out

    assert "[bold]x[/bold]" in text
    assert "\x1b" not in text
