"""kube-scheduler, unmodified, in front of a simulated cluster: a measured run, its repetition, and a live server."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lamina.testing import apiserver
from testbed import building
from tests.integration.facade_server.raw_client import PODS, ask, pod

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("kube-scheduler", alone=True)]

ROOT = Path(__file__).resolve().parents[3]
FOUNDING = ROOT / "examples" / "founding" / "scenario.yaml"


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lamina.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=250, check=False)


def test_a_run_is_proven_and_repeated_byte_for_byte(tmp_path):
    scheduler, log = building.ensure("kube-scheduler"), tmp_path / "log"
    first = lamina(
        *("simulate", FOUNDING, "--scheduler", scheduler, "--decisions", log),
        *("--out", tmp_path / "a", "-o", "json"),
    )
    again = lamina("simulate", FOUNDING, "--replay", log, "--out", tmp_path / "b", "-o", "json")

    assert (0, "", 0, "") == (first.returncode, first.stderr, again.returncode, again.stderr)
    assert first.stdout == again.stdout
    for name in ("trace.jsonl.zst", "summary.json", "jobs.csv", "schedule.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    figures = json.loads(first.stdout)
    assert (True, 0, 3) == (figures["settle"]["proven"], figures["settle"]["limits_hit"], figures["pods"]["started"])


def test_it_is_compared_with_a_profile():
    words = ("--profiles", "kube-default", "--schedulers", building.ensure("kube-scheduler"), "--runs", 2, "-o", "json")
    ended = lamina("compare", FOUNDING, *words)

    assert (0, "") == (ended.returncode, ended.stderr)
    found = json.loads(ended.stdout)
    assert ["kube-default", str(building.ensure("kube-scheduler"))] == [one["profile"] for one in found["populations"]]
    assert [1, 2] == found["seeds"]


def test_a_live_server_is_a_cluster_for_it(tmp_path):
    with apiserver(nodes=2, clock="virtual") as cluster, (tmp_path / "log").open("wb") as log:
        words = [str(building.ensure("kube-scheduler")), f"--kubeconfig={cluster.kubeconfig}"]
        process = subprocess.Popen([*words, "--leader-elect=false", "--secure-port=0"], stdout=log, stderr=log)
        try:
            assert 201 == ask(cluster.url, "POST", PODS, pod("a"))[0]
            deadline = time.monotonic() + 120
            while ask(cluster.url, "GET", f"{PODS}/a")[1]["status"]["phase"] != "Running":
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()


def test_a_pod_gets_a_volume_that_is_made_for_it(tmp_path):
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    mounted = pod("a")
    mounted["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "c", "resources": {"requests": {"storage": "1Gi"}}}
    with apiserver(nodes=2, clock="virtual") as cluster, (tmp_path / "log").open("wb") as log:
        known = {"metadata": {"name": "c"}, "provisioner": "x.csi", "volumeBindingMode": "WaitForFirstConsumer"}
        assert 201 == ask(cluster.url, "POST", classes, known)[0]
        assert 201 == ask(cluster.url, "POST", claims, {"metadata": {"name": "data"}, "spec": claim})[0]
        words = [str(building.ensure("kube-scheduler")), f"--kubeconfig={cluster.kubeconfig}"]
        process = subprocess.Popen([*words, "--leader-elect=false", "--secure-port=0"], stdout=log, stderr=log)
        try:
            assert 201 == ask(cluster.url, "POST", PODS, mounted)[0]
            deadline = time.monotonic() + 120
            while not ask(cluster.url, "GET", f"{PODS}/a")[1]["spec"].get("nodeName"):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            found = ask(cluster.url, "GET", f"{claims}/data")[1]
            assert ("Bound", f"pvc-{found['metadata']['uid']}") == (
                found["status"]["phase"],
                found["spec"]["volumeName"],
            )
        finally:
            process.kill()
            process.wait()
