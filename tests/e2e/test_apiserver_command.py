"""``lamina apiserver`` and ``lamina simulate --scheduler`` as a person meets them: output, files, mistakes, endings."""

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).resolve().parents[2]
FOUNDING = ROOT / "examples" / "founding" / "scenario.yaml"
SCHEDULER = f"{sys.executable} {ROOT / 'tests' / 'e2e' / '_first_node_scheduler.py'} {{kubeconfig}}"
PATIENCE = 60.0
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "app:1"}]},
}


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lamina.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


def until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class Served:
    """A running `lamina apiserver`."""

    def __init__(self, process: subprocess.Popen[str], ready: dict[str, Any]) -> None:
        self.process, self.url, self.kubeconfig = process, ready["url"], Path(ready["kubeconfig"])
        self.pid = ready["pid"]

    def ask(self, method: str, path: str, body: object = None, context: ssl.SSLContext | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, method=method, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
            return json.load(answer)

    def phase(self, name: str) -> str:
        return str(self.ask("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"])


@contextmanager
def serving(folder: Path, *arguments: object) -> Iterator[Served]:
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "lamina.cli.main", "apiserver", "--ready-file", str(ready), *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ}
    ) as process:
        try:
            until(lambda: ready.exists() or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            yield Served(process, json.loads(ready.read_text()))
        finally:
            # Not killed: it would leave its temporary folder behind.
            process.terminate()
            process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_is_an_orderly_stop_that_leaves_nothing_behind(tmp_path, number):
    with serving(tmp_path, "--nodes", 2) as served:
        assert served.pid == served.process.pid
        assert served.kubeconfig.stat().st_mode & 0o077 == 0
        assert ["node-0", "node-1"] == [one["metadata"]["name"] for one in served.ask("GET", "/api/v1/nodes")["items"]]
        served.process.send_signal(number)
        out, err = served.process.communicate(timeout=PATIENCE)

    assert (0, "stopped\n") == (served.process.returncode, err)
    assert "equal nodes: 2 nodes, clock: virtual" in out
    assert f"export KUBECONFIG={served.kubeconfig}" in out
    assert (False, False, []) == (
        served.kubeconfig.exists(),
        served.kubeconfig.parent.exists(),
        list(tmp_path.iterdir()),
    )


def test_with_manual_time_a_pod_starts_when_the_test_says_so(tmp_path):
    with serving(tmp_path, "--manual", "--profile", "kube-default") as served:
        served.ask("POST", "/api/v1/namespaces/default/pods", POD)
        assert "Pending" == served.phase("a")
        clock = served.ask("POST", "/lamina/clock", {"advance": 60})
        assert ("manual", 60.0, "2026-01-01T00:01:00Z") == (clock["mode"], clock["seconds"], clock["time"])
        assert "Running" == served.phase("a")


@pytest.mark.parametrize("words", [(), ("--real-time=100",)], ids=["virtual", "real time"])
def test_with_other_times_a_pod_starts_by_itself(tmp_path, words):
    """The test polls, which must not hold the clock for ever."""
    with serving(tmp_path, "--profile", "kube-default", *words) as served:
        served.ask("POST", "/api/v1/namespaces/default/pods", POD)
        until(lambda: served.phase("a") == "Running")


@pytest.mark.needs("cryptography")
def test_tls_has_an_authority_that_clients_can_check(tmp_path):
    account = tmp_path / "account"
    with serving(tmp_path, "--tls", "--service-account", account) as served:
        authority = json.loads(served.kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority"]
        assert Path(authority).read_bytes() == (account / "ca.crt").read_bytes()
        assert {"ca.crt", "namespace", "token"} == {one.name for one in account.iterdir()}
        context = ssl.create_default_context(cafile=authority)
        assert 3 == len(served.ask("GET", "/api/v1/nodes", context=context)["items"])
        served.process.send_signal(signal.SIGTERM)
        served.process.communicate(timeout=PATIENCE)
    assert [] == list(account.iterdir())


def test_a_kubeconfig_of_the_user_is_never_replaced(tmp_path):
    mine = tmp_path / "config"
    mine.write_text("apiVersion: v1\n")
    ended = lamina("apiserver", "--kubeconfig", mine)

    assert (2, "") == (ended.returncode, ended.stdout)
    assert f"--kubeconfig: {mine} exists, and it may be yours; name a file that does not exist\n" == ended.stderr
    assert "apiVersion: v1\n" == mine.read_text()


# -- runs under another scheduler --------------------------------------------------------------------------------------


def test_a_foreign_run_is_repeated_byte_for_byte_without_the_scheduler(tmp_path):
    log = tmp_path / "my.decisions"
    first = lamina(
        "simulate", FOUNDING, "--scheduler", SCHEDULER, "--settle", "silence=300ms", "--decisions", log,
        "--out", tmp_path / "first", "-o", "json",
    )  # fmt: skip
    again = lamina("simulate", FOUNDING, "--replay", log, "--out", tmp_path / "again", "-o", "json")

    assert (0, "", 0, "") == (first.returncode, first.stderr, again.returncode, again.stderr)
    assert first.stdout == again.stdout
    for name in ("trace.jsonl.zst", "summary.json", "jobs.csv", "schedule.csv"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    figures = json.loads(first.stdout)
    assert ("silence", False, 0) == tuple(figures["settle"][name] for name in ("method", "proven", "limits_hit"))
    assert (3, {"total": 0, "pods": []}) == (figures["pods"]["started"], figures["starved"])
    assert [1, 1, 1] == [node["pods"] for node in figures["nodes"]]


def test_an_attached_scheduler_decides(tmp_path):
    command = [
        sys.executable,
        "-m",
        "lamina.cli.main",
        "simulate",
        str(FOUNDING),
        "--scheduler",
        "attach",
        "-o",
        "json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as run:
        assert run.stderr is not None
        assert "the run begins when your scheduler reads pods" in run.stderr.readline()
        kubeconfig = run.stderr.readline().strip().removeprefix("export KUBECONFIG=")
        words = SCHEDULER.replace("{kubeconfig}", kubeconfig).split()
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as scheduler:
            out, _ = run.communicate(timeout=PATIENCE)
            scheduler.kill()

    assert (0, "attached", 3) == (run.returncode, json.loads(out)["profile"], json.loads(out)["pods"]["started"])
    assert not Path(kubeconfig).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ("--scheduler", "x", "--profile", "ryax"), "--scheduler: not together with --profile", id="profile"
        ),
        pytest.param(("--settle", "log"), "--settle: is about a scheduler", id="settle alone"),
        pytest.param(("--decisions", "x"), "--decisions: is about a scheduler", id="decisions alone"),
        pytest.param(("--replay", "README.md"), "README.md:1: is not a decision log", id="no log"),
        pytest.param(("--scheduler", "no-such-program"), "--scheduler: cannot start no-such-program", id="no program"),
        pytest.param(("--scheduler", "x", "--settle", "soon"), "--settle: 'soon' is no settle method", id="no method"),
    ],
)
def test_a_mistake_gets_one_line(words, said):
    ended = lamina("simulate", FOUNDING, *words)

    assert (2, "", 1) == (ended.returncode, ended.stdout, len(ended.stderr.splitlines()))
    assert ended.stderr.startswith(said)
