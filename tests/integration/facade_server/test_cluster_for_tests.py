"""The cluster for tests of clients: time, faults, watches, TLS, and both kinds of tests."""

import asyncio
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator

import pytest

from lamina.testing import ApiCluster, apiserver
from lamina.testing.pytest_plugin import lamina_cluster
from tests.integration.facade_server.raw_client import PODS, ask, open_watch, pod, read_until

__all__ = ["lamina_cluster"]

pytestmark = pytest.mark.realtime


@pytest.fixture
def cluster() -> Iterator[ApiCluster]:
    with apiserver(profile="kube-default") as found:
        yield found


def until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def phase(cluster: ApiCluster, name: str) -> str:
    return str(ask(cluster.url, "GET", f"{PODS}/{name}")[1]["status"]["phase"])


def test_time_passes_when_the_test_says_so(cluster):
    assert 201 == ask(cluster.url, "POST", PODS, pod("a"))[0]
    assert ("Pending", 0.0) == (phase(cluster, "a"), cluster.now)
    cluster.advance(30)
    assert ("Running", 30.0) == (phase(cluster, "a"), cluster.now)


def test_a_pod_with_a_duration_ends_after_its_virtual_seconds(cluster):
    assert 201 == ask(cluster.url, "POST", PODS, pod("a", annotations={"simSpec": "- {seconds: 3600}"}))[0]
    cluster.advance(3500)
    assert "Running" == phase(cluster, "a")
    cluster.advance(200)
    assert "Succeeded" == phase(cluster, "a")


def test_without_a_profile_a_client_binds(lamina_cluster):
    assert 201 == ask(lamina_cluster.url, "POST", PODS, pod("a"))[0]
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "node-1"}}
    assert 201 == ask(lamina_cluster.url, "POST", f"{PODS}/a/binding", binding)[0]
    lamina_cluster.advance(30)
    assert "Running" == phase(lamina_cluster, "a")


@pytest.mark.parametrize("clock", ["virtual", "real-time"])
def test_other_clocks_move_by_themselves(clock):
    with apiserver(profile="kube-default", clock=clock) as cluster:
        assert 201 == ask(cluster.url, "POST", PODS, pod("a"))[0]
        until(lambda: phase(cluster, "a") == "Running")


def test_the_virtual_clock_waits_for_the_first_client():
    with apiserver(nodes=1, clock="virtual") as cluster:
        assert 200 == ask(cluster.url, "GET", "/api/v1/nodes")[0]
        assert 0.0 == cluster.now


def test_faults_apply_to_the_next_requests(cluster):
    cluster.faults.fail(429, path="/api/v1/pods", times=2)
    cluster.faults.fail(500, method="POST")
    found = [ask(cluster.url, "GET", "/api/v1/pods")[0] for _ in "abc"]

    assert ([429, 429, 200], 1) == (found, cluster.faults.pending)
    cluster.faults.clear()
    assert (201, 0) == (ask(cluster.url, "POST", PODS, pod("a"))[0], cluster.faults.pending)


def test_a_delayed_request_is_answered_as_usual(cluster):
    cluster.faults.delay(0.05, path=PODS)

    assert [201, 201] == [ask(cluster.url, "POST", PODS, pod(name))[0] for name in ("a", "b")]


def test_a_watch_can_end_with_an_error_or_without(cluster):
    with open_watch(cluster.url) as one, open_watch(cluster.url, "/api/v1/nodes") as other:
        until(lambda: cluster.watches == 2)
        assert 1 == cluster.faults.close_watches("/api/v1/pods", 410)
        said = read_until(one, b"0\r\n\r\n")
        assert b'"type":"ERROR"' in said
        assert b'"reason":"Expired"' in said
        assert 1 == cluster.faults.close_watches()
        assert b"ERROR" not in read_until(other, b"0\r\n\r\n")
        until(lambda: cluster.watches == 0)


def test_other_languages_have_the_same_functions_over_http(cluster):
    assert 200 == ask(cluster.url, "POST", "/lamina/faults", {"status": 503, "path": PODS})[0]
    assert [{"path": PODS, "status": 503}] == ask(cluster.url, "GET", "/lamina/faults")[1]["rules"]
    assert 503 == ask(cluster.url, "GET", PODS)[0]
    assert {"closed": 0} == ask(cluster.url, "POST", "/lamina/faults", {"close_watches": True})[1]
    assert {"rules": []} == ask(cluster.url, "DELETE", "/lamina/faults")[1]
    assert 12.5 == ask(cluster.url, "POST", "/lamina/clock", {"advance": 12.5})[1]["seconds"]


async def test_a_test_with_asyncio_uses_the_same_cluster():
    with apiserver(nodes=1) as cluster:
        answers = await asyncio.gather(*(asyncio.to_thread(ask, cluster.url, "GET", "/api/v1/nodes") for _ in "abc"))
        cluster.advance(1)

    assert [200, 200, 200] == [status for status, _ in answers]


@pytest.mark.needs("cryptography")
def test_tls_works_without_client_certificates():
    with apiserver(nodes=1, tls=True) as cluster:
        found = json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
        context = ssl.create_default_context(cafile=found["certificate-authority"])
        with urllib.request.urlopen(f"{cluster.url}/readyz", context=context) as answer:
            assert b"ok" == answer.read()
    assert not cluster.kubeconfig.exists()


def test_the_same_seed_gives_the_same_objects():
    def names() -> list[str]:
        with apiserver(seed=5) as cluster:
            made = pod("", generateName="job-")
            made["metadata"].pop("name")
            return [ask(cluster.url, "POST", PODS, made)[1]["metadata"]["name"] for _ in "abc"]

    assert names() == names()
