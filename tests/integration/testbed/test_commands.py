"""`python -m testbed`: what is left running can be seen, used and ended from another process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import TestbedError, building, leftovers, runs
from tests.integration.testbed.waiting import eventually

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).resolve().parents[3]


def command(*words, cache=None):
    """Run the command; with a *cache* of its own it has notes of its own."""
    environment = {**os.environ, **({"XDG_CACHE_HOME": str(cache)} if cache else {})}
    return subprocess.run(
        [sys.executable, "-m", "testbed", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def cache(tmp_path):
    """A cache folder with the programs that are built, and no testbed."""
    home = tmp_path / "lamina" / "testbed"
    home.mkdir(parents=True)
    for path in building.home().iterdir():
        if path.name != "run":
            (home / path.name).symlink_to(path)
    yield tmp_path
    command("down", "--all", cache=tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("control_plane")
def test_a_testbed_is_left_running_used_and_ended(cache):
    up = command("up", "--nodes", "3", cache=cache)
    assert up.returncode == 0, up.stderr
    _, export, kubectl, down = (line.strip() for line in up.stdout.splitlines())

    # As the person would, with the lines the command printed.
    shown = subprocess.run(["sh", "-c", f"{export}; {kubectl} -o name"], capture_output=True, text=True, check=True)
    status = command("status", cache=cache).stdout
    again = command("up", cache=cache)
    note = json.loads((cache / "lamina/testbed/run/default.json").read_text())

    assert shown.stdout.split() == ["node/node-1", "node/node-2", "node/node-3"]
    assert status.startswith("default: Kubernetes 1.36.3 at https://127.0.0.1:")
    assert f"process {note['parts']['etcd']['pid']}" in status
    assert (again.returncode, again.stderr.split(";")[0]) == (1, "testbed: a testbed 'default' is already up")
    assert down == "python -m testbed down"
    assert command("down", cache=cache).stdout == "default: ended\n"
    assert not list(leftovers.members(note["mark"]))
    assert not Path(note["folder"]).exists()
    assert command("status", cache=cache).stdout == "nothing is up\n"


@pytest.mark.slow
@pytest.mark.usefixtures("control_plane")
def test_a_dead_testbed_is_told_and_cleared_away(cache):
    assert command("up", "--name", "doomed", cache=cache).returncode == 0
    note = json.loads((cache / "lamina/testbed/run/doomed.json").read_text())
    for process in note["parts"].values():
        os.kill(process["pid"], signal.SIGKILL)
    assert eventually(lambda: not list(leftovers.members(note["mark"])))

    assert "kube-apiserver           dead" in command("status", cache=cache).stdout
    assert command("down", "--name", "doomed", cache=cache).stdout == "doomed: was dead; cleared away\n"
    assert not Path(note["folder"]).exists()


def test_a_number_that_was_given_away_again_is_not_ended(tmp_path):
    """The note is old; its process numbers belong to others now."""
    run = tmp_path / "lamina/testbed/run"
    (run / "old").mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as stranger:
        try:
            process = {"pid": stranger.pid, "started": (leftovers.started(stranger.pid) or 0) - 1}
            words = dict.fromkeys(("version", "url", "kubeconfig", "kubectl"), "")
            note = {"name": "old", "mark": "none-such", "folder": str(run / "old"), "parts": {"etcd": process}, **words}
            (run / "old.json").write_text(json.dumps(note))

            assert command("down", "--name", "old", cache=tmp_path).stdout == "old: was dead; cleared away\n"
            assert stranger.poll() is None
            assert list(run.iterdir()) == []
        finally:
            stranger.kill()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param(["up", "--parts", "kube-proxy"], 2, "there is no part 'kube-proxy'; choose from etcd,", id="part"),
        pytest.param(
            ["up", "--version", "1.2"], 2, "'1.2' is not one of '1.36.3', '1.37.1', '1.33.13', '1.30.14'", id="version"
        ),
        pytest.param(["build", "kube-proxy"], 2, "'kube-proxy' is not one of 'etcd', 'kube-apiserver',", id="to build"),
        pytest.param(
            ["build", "kubelet", "--version", "1.37.1"],
            1,
            "testbed: kubelet does not exist in version 1.37.1; choose from 1.36.3",
            id="to build, and version",
        ),
        pytest.param(["up", "--name", "../x"], 1, "testbed: '../x' is not a valid name for a testbed", id="name"),
        pytest.param(
            ["down", "--name", "a/b"], 1, "testbed: 'a/b' is not a valid name for a testbed", id="name of down"
        ),
    ],
)
def test_bad_input_is_said_in_one_line(tmp_path, words, code, told):
    run = command(*words, cache=tmp_path)

    assert run.returncode == code
    assert told in run.stderr
    assert "Traceback" not in run.stderr


def test_a_note_that_cannot_be_read_is_named(tmp_path):
    run = tmp_path / "lamina/testbed/run"
    run.mkdir(parents=True)
    (run / "default.json").write_text("{")

    told = command("status", cache=tmp_path)

    assert told.returncode == 1
    assert told.stderr.startswith(f"testbed: {run}/default.json is not a note of a testbed")


def test_nothing_is_up_on_a_machine_that_never_had_one(tmp_path):
    assert command("status", cache=tmp_path).stdout == "nothing is up\n"
    assert command("down", cache=tmp_path).stdout == "no testbed 'default' is up\n"


@pytest.mark.parametrize("name", ["up", "down", "status", "build"])
def test_every_command_shows_examples(name):
    assert f"python -m testbed {name}" in command(name, "--help").stdout


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a" * 21, "a.b"])
def test_a_name_is_short_and_plain(name):
    with pytest.raises(TestbedError, match="is not a valid name for a testbed"):
        runs.checked(name)
