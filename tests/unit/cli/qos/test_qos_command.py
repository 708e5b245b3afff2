"""`lamina qos`: from an address or through the API server's proxy, in every form, and in one line if it cannot be had."""

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import yaml

from lamina.cli.main import run
from lamina.cli.qos import page_source
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.service_endpoint import EndpointError
from lamina.wire.errors import WireError

TABLE = "          CONTROLLER    QOS/SLO\n                gold  1.00/1.00\n"
PAGES = {"/controllers": TABLE.encode(), "/replicas": b"replicas\n", "/qos.json": b'{"at":5.0,"controllers":[]}'}


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The addresses that were read."""
    found: list[str] = []

    async def read(url: str, limit: int) -> tuple[int, bytes]:
        found.append(url)
        return 200, PAGES["/" + url.rpartition("/")[2]]

    monkeypatch.setattr(page_source, "read_endpoint", read)
    return found


def lamina(monkeypatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lamina", "qos", *words])
    return run()


@pytest.mark.parametrize(
    ("words", "address"),
    [
        pytest.param((), "http://127.0.0.1:10000/controllers", id="this machine"),
        pytest.param(("--format", "replicas"), "http://127.0.0.1:10000/replicas", id="replicas"),
        pytest.param(("--url", "http://[::1]:9/x/"), "http://[::1]:9/x/controllers", id="another address"),
        pytest.param(("-o", "json"), "http://127.0.0.1:10000/qos.json", id="json"),
    ],
)
def test_the_page_is_read_where_the_options_say(monkeypatch, capsys, asked, words, address):
    assert 0 == lamina(monkeypatch, *words)
    assert [address] == asked
    assert capsys.readouterr().out


def test_the_table_is_printed_as_it_is(monkeypatch, capsys, asked):
    assert 0 == lamina(monkeypatch)
    assert TABLE == capsys.readouterr().out


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_figures_are_printed_as_data(monkeypatch, capsys, asked, form, read):
    assert 0 == lamina(monkeypatch, "-o", form)
    assert {"at": 5.0, "controllers": []} == read(capsys.readouterr().out)


def test_control_characters_in_names_do_not_reach_the_terminal(monkeypatch, capsys):
    async def read(url: str, limit: int) -> tuple[int, bytes]:
        return 200, b"gold\x1b[2J\n"

    monkeypatch.setattr(page_source, "read_endpoint", read)

    assert 0 == lamina(monkeypatch)
    assert "gold\N{REPLACEMENT CHARACTER}[2J\n" == capsys.readouterr().out


def test_watching_goes_on_while_the_scheduler_restarts(monkeypatch, capsys):
    answers: Iterator[tuple[int, bytes] | BaseException] = iter(
        [(200, b"one\n"), EndpointError("refused"), (200, b"two\n"), KeyboardInterrupt()]
    )
    pauses: list[float] = []

    async def read(url: str, limit: int) -> tuple[int, bytes]:
        found = next(answers)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(page_source, "read_endpoint", read)
    monkeypatch.setattr("lamina.cli.qos.printing.time.sleep", pauses.append)

    assert 130 == lamina(monkeypatch, "--watch", "--every", "0.5")
    shown = capsys.readouterr()
    assert "one\n\n\ntwo\n\n" == shown.out
    assert "cannot be read: refused" in shown.err.splitlines()[0]
    assert [0.5] * 3 == pauses


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(("--url", "localhost"), "--url: 'localhost' is not an address", id="no scheme"),
        pytest.param(("--url", "http://me:secret@x"), "is not an address", id="a password"),
        pytest.param(("--url", "http://x", "--pod", "p"), "--url: not together with --kubeconfig", id="two places"),
        pytest.param(("--every", "0"), "0.2<=x<=3600", id="too often"),
        pytest.param(("--format", "html"), "'controllers', 'replicas'", id="unknown format"),
    ],
)
def test_wrong_options_are_one_error(monkeypatch, capsys, asked, words, problem):
    assert 2 == lamina(monkeypatch, *words)
    assert problem in capsys.readouterr().err
    assert [] == asked


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(EndpointError("connection refused"), "cannot be read: connection refused", id="nothing listens"),
        pytest.param(
            (404, b"not found; available: /livez\n"), "answered 404: not found; available", id="other service"
        ),
    ],
)
def test_a_page_that_cannot_be_read_is_one_line(monkeypatch, capsys, answer, problem):
    async def read(url: str, limit: int) -> tuple[int, bytes]:
        if isinstance(answer, BaseException):
            raise answer
        found: tuple[int, bytes] = answer
        return found

    monkeypatch.setattr(page_source, "read_endpoint", read)

    assert 2 == lamina(monkeypatch)
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
    assert "enables QosAware" in line


# ----------------------------------------------------------------------------------------------------------- the proxy


class Cluster:
    """An API server with some pods, one of which serves the page."""

    def __init__(self, *pods: str) -> None:
        self.pods = pods
        self.asked: list[str] = []
        self.problem: Exception | None = None

    async def request(self, method: str, path: str, query: dict[str, str] | None = None, **_: object) -> bytes:
        self.asked.append(path)
        if query is not None:
            assert "app.kubernetes.io/component=scheduler" in query["labelSelector"]
            return json.dumps({"items": [{"metadata": {"name": name}} for name in self.pods]}).encode()
        if self.problem is not None:
            raise self.problem
        return PAGES["/" + path.rpartition("/")[2]]

    async def close(self) -> None:
        return


@pytest.fixture
def cluster(monkeypatch) -> Cluster:
    made = Cluster("lamina-scheduler-1", "lamina-scheduler-2")
    monkeypatch.setattr(page_source, "load_access", lambda *_: SimpleNamespace())
    monkeypatch.setattr(page_source, "KubeClient", lambda *_, **__: made)
    return made


PODS = "/api/v1/namespaces/lamina-system/pods"


def test_without_a_pod_the_first_one_of_the_deployment_answers(monkeypatch, capsys, cluster):
    assert 0 == lamina(monkeypatch, "--context", "production")
    assert [PODS, f"{PODS}/lamina-scheduler-1:10000/proxy/controllers"] == cluster.asked
    assert TABLE == capsys.readouterr().out


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        pytest.param("p", f"{PODS}/p:7/proxy/controllers", id="in Lamina's namespace"),
        pytest.param("kube-system/q", "/api/v1/namespaces/kube-system/pods/q:7/proxy/controllers", id="a static pod"),
    ],
)
def test_a_named_pod_answers(monkeypatch, cluster, pod, path):
    assert 0 == lamina(monkeypatch, "--pod", pod, "--port", "7")
    assert [path] == cluster.asked


@pytest.mark.parametrize("pod", ["../secrets", "a/b/c", "P", "x/"])
def test_a_name_that_would_change_the_path_is_an_error(monkeypatch, capsys, cluster, pod):
    assert 2 == lamina(monkeypatch, "--pod", pod)
    assert "is not the name of a pod" in capsys.readouterr().err
    assert [] == cluster.asked


def test_a_cluster_without_the_scheduler_is_one_line(monkeypatch, capsys, cluster):
    cluster.pods = ()

    assert 2 == lamina(monkeypatch, "--context", "c")
    assert "there is no running pod in lamina-system" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("during", "said"),
    [
        pytest.param(ApiError("GET pods/proxy", 404, "NotFound", "no"), "lamina-scheduler-1: GET", id="no such pod"),
        pytest.param(UnreachableError("GET pods/proxy", "refused"), "GET pods/proxy: refused", id="no API server"),
        pytest.param(WireError("PodList", "cut off"), "cannot read PodList: cut off", id="a broken list"),
    ],
)
def test_watching_through_the_proxy_goes_on_with_the_pod_of_a_restarted_scheduler(
    monkeypatch, capsys, cluster, during, said
):
    changes: Iterator[tuple[tuple[str, ...], Exception | None] | None] = iter(
        [(("lamina-scheduler-1",), during), (("lamina-scheduler-3",), None), None]
    )

    def pause(_: float) -> None:
        change = next(changes)
        if change is None:
            raise KeyboardInterrupt
        cluster.pods, cluster.problem = change

    monkeypatch.setattr("lamina.cli.qos.printing.time.sleep", pause)

    assert 130 == lamina(monkeypatch, "--context", "c", "--watch")
    shown = capsys.readouterr()
    assert f"{TABLE}\n\n{TABLE}\n" == shown.out
    assert said in shown.err.splitlines()[0]
    assert f"{PODS}/lamina-scheduler-3:10000/proxy/controllers" == cluster.asked[-1]


@pytest.mark.parametrize(
    ("problem", "code", "hint"),
    [
        pytest.param(ApiError("GET pods/proxy", 403, "Forbidden", "no"), 2, "qos-viewer.yaml", id="forbidden"),
        pytest.param(ApiError("GET pods/proxy", 404, "NotFound", "no"), 2, "--pod NAMESPACE/NAME", id="no such pod"),
        pytest.param(ApiError("GET pods/proxy", 503, "", "refused"), 2, "--qos-listen 0.0.0.0:10000", id="loopback"),
        pytest.param(UnreachableError("GET pods/proxy", "timed out"), 1, "timed out", id="no API server"),
    ],
)
def test_what_went_wrong_behind_the_proxy_is_one_line_with_what_to_try(
    monkeypatch, capsys, cluster, problem, code, hint
):
    cluster.problem = problem

    assert code == lamina(monkeypatch, "--pod", "p")
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line
