"""Lamina inside a served cluster sees what clients create: claims, volumes, disruption budgets and Services."""

import pytest

from lamina.testing import apiserver
from tests.integration.facade_server.raw_client import PODS, ask, pod

pytestmark = pytest.mark.realtime

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def test_a_pod_with_a_claim_is_placed_and_a_budget_follows_the_pods():
    mounted = pod("a", labels={"app": "web"})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    mounted["spec"] = {**mounted["spec"], "volumes": volumes}
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "c", "resources": {"requests": {"storage": "1Gi"}}}
    known = {"metadata": {"name": "c"}, "provisioner": "x.csi", "volumeBindingMode": "WaitForFirstConsumer"}
    budget = {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    with apiserver(nodes=2, profile="kube-default") as cluster:
        assert 201 == ask(cluster.url, "POST", CLASSES, known)[0]
        assert 201 == ask(cluster.url, "POST", BUDGETS, {"metadata": {"name": "web"}, "spec": budget})[0]
        assert 201 == ask(cluster.url, "POST", PODS, mounted)[0]
        cluster.advance(1.0)
        assert "nodeName" not in ask(cluster.url, "GET", f"{PODS}/a")[1]["spec"]

        assert 201 == ask(cluster.url, "POST", CLAIMS, {"metadata": {"name": "data"}, "spec": claim})[0]
        cluster.advance(60.0)
        placed = ask(cluster.url, "GET", f"{PODS}/a")[1]
        bound = ask(cluster.url, "GET", f"{CLAIMS}/data")[1]
        allowed = ask(cluster.url, "GET", f"{BUDGETS}/web")[1]["status"]["disruptionsAllowed"]
        assert 200 == ask(cluster.url, "DELETE", f"{CLAIMS}/data")[0]
        left = ask(cluster.url, "GET", VOLUMES)[1]["items"]

    assert placed["spec"]["nodeName"] == bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    assert ("Running", "Bound", 1, []) == (placed["status"]["phase"], bound["status"]["phase"], allowed, left)
