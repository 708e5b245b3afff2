"""kubectl against the test cluster: what people type first. `make e2e NAME=clients` tries much more, and other clients."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.testing import ApiCluster, apiserver
from testbed import building

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("kubectl", alone=True)]

SECONDS = 120
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"terminationGracePeriodSeconds": 5, "containers": [{"name": "main", "image": "nginx:1.27"}]},
}
BINDING = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "web"},
    "target": {"kind": "Node", "name": "node-1"},
}

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Iterator[Kubectl]:
    with apiserver(nodes=3) as cluster:
        yield kubectl(cluster, tmp_path_factory.mktemp("reader"))


def kubectl(cluster: ApiCluster, home: Path) -> Kubectl:
    """Return a function that runs kubectl, and returns its output; an object is sent to its standard input."""
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(cluster.kubeconfig)}

    def run(line: str, body: object = None) -> str:
        done = subprocess.run(
            [str(building.ensure("kubectl")), *line.split()],
            input=None if body is None else json.dumps(body),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {line}: {done.stdout}{done.stderr}"
        return " ".join((done.stdout + done.stderr).split())

    return run


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("version", "Server Version: v1.", id="version"),
        pytest.param("get nodes", "NAME STATUS ROLES AGE VERSION node-0 Ready", id="a table"),
        pytest.param("get nodes -o name", "node/node-0 node/node-1 node/node-2", id="names"),
        pytest.param("get nodes -o jsonpath={.items[*].metadata.name}", "node-0 node-1 node-2", id="a path"),
        pytest.param("get nodes --chunk-size=1 -o name", "node/node-0 node/node-1 node/node-2", id="pages"),
        pytest.param("get pods -A", "No resources found", id="nothing"),
        pytest.param("describe node node-1", "Allocated resources", id="a description"),
        pytest.param("api-resources", "pods po v1 true Pod", id="the resources"),
        pytest.param("explain pod", "KIND: Pod VERSION: v1", id="an explanation"),
        pytest.param("auth can-i create pods", "yes", id="a permission"),
        pytest.param("auth can-i --list", "*.* [] [] [*]", id="all permissions"),
        pytest.param("auth whoami", "Username lamina", id="the user"),
    ],
)
def test_kubectl_shows(reader, line, words):
    assert words in reader(line)


@pytest.mark.parametrize("tls", [pytest.param(False, id="HTTP"), pytest.param(True, id="HTTPS")])
def test_kubectl_sees_a_pod_come_run_and_go(tls, tmp_path):
    with apiserver(nodes=3, tls=tls) as cluster:
        run = kubectl(cluster, tmp_path)

        assert "pod/web created" in run("apply -f -", POD)
        assert "web 0/1 Pending" in run("get pods")
        assert "Success" in run("create --raw /api/v1/namespaces/default/pods/web/binding -f -", BINDING)
        cluster.advance(600)
        assert "condition met" in run("wait --for=condition=Ready pod/web --timeout=60s")
        assert "web 1/1 Running" in run("get pods -o wide --field-selector spec.nodeName=node-1")
        assert "labeled" in run("label pod web tier=front")
        assert "web" in run("get pods -l tier=front")
        # Containers of a simulated pod stop at once, unless its scenario says how long they take.
        assert "deleted" in run("delete pod web")
        assert "No resources found" in run("get pods")
