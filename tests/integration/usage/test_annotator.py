"""
Annotators against a real API server, with the account, the role and the policy of deploy/.

What stands on nodes is what was measured or asked for, writes are few, and nothing else of a node is touched.
"""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.kube.transport import KubeClient
from lamina.model.errors import LaminaError
from lamina.services.annotator.annotation_plan import FORGET, MOVED, REFRESH, AnnotationWrite
from lamina.services.annotator.annotation_writer import AnnotationWriter
from lamina.services.annotator.wiring import AnnotatorOptions, annotate
from lamina.services.informers.usage.usage_settings import PrometheusEntry, UsageSettings
from testbed import Testbed
from testbed.prometheus import Prometheus
from tests.integration.custom_resources.people import Bearer, wait_until
from tests.integration.scheduler.live import DEPLOY, kubeconfig
from tests.integration.usage.exporter import Exporter, Machine
from tests.integration.usage.history import history

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

NAMESPACE, ACCOUNT = "lamina-system", "lamina-annotator"
GIB = 1024**3


@pytest.fixture(scope="package")
def token(own_plane: Testbed) -> str:
    """A token of the annotator's account; its role and its policy are in force."""
    for part in ("namespaces.yaml", "rbac/optional/annotator.yaml", "annotator/policy.yaml"):
        own_plane.kubectl("apply", "-f", str(DEPLOY / part))
    found = own_plane.service_account_token(NAMESPACE, ACCOUNT)
    bearer = Bearer(own_plane, found)
    own_plane.add_node("probe")
    path = "/api/v1/nodes/probe?dryRun=All"
    labelled = {"metadata": {"labels": {"a": "b"}}}
    wait_until(lambda: "can only write annotations" in bearer.refusal("PATCH", path, labelled)[1])
    bearer.close()
    return found


@pytest.fixture
def account(token: str, bed: Testbed, tmp_path: Path) -> Path:
    """Who an annotator is."""
    return kubeconfig(bed, tmp_path / "kubeconfig", {"token": token})


def options(account: Path, what: Any, **changes: Any) -> AnnotatorOptions:
    plain: dict[str, Any] = {"once": True, "per_second": 50.0, "refresh": REFRESH, "forget": FORGET}
    return AnnotatorOptions(what=what, access=load_access(account), **{**plain, **changes})


async def run(account: Path, what: str, **changes: Any) -> tuple[list[AnnotationWrite], str]:
    """Annotate once; return what was planned, and what was remarked."""
    shown: list[tuple[list[AnnotationWrite], str]] = []
    await annotate(options(account, what, **changes), lambda plan, remark: shown.append((list(plan), remark)))
    return shown[0]


def by_name(bed: Testbed) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in bed.api("GET", "/api/v1/nodes")["items"]}


def annotations(bed: Testbed, name: str) -> dict[str, str]:
    found: dict[str, str] = by_name(bed)[name]["metadata"].get("annotations", {})
    return found


def untouched(nodes: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Nodes without what a write of annotations changes by itself."""
    bare = json.loads(json.dumps(nodes))
    for node in bare.values():
        for name in ("annotations", "resourceVersion", "managedFields"):
            node["metadata"].pop(name, None)
    return dict(bare)


def writes_since(bed: Testbed, version: str) -> list[str]:
    """Which nodes were written since, once for each write."""
    path = f"/api/v1/nodes?watch=1&resourceVersion={version}&timeoutSeconds=1"
    lines = bed.kubectl("get", "--raw", path).splitlines()
    return [json.loads(line)["object"]["metadata"]["name"] for line in lines]


def version(bed: Testbed) -> str:
    return str(bed.api("GET", "/api/v1/nodes")["metadata"]["resourceVersion"])


def measured(starting: Any, **cores: float) -> UsageSettings:
    """A Prometheus server that has measured so many cores, and 4 GB, of each node."""
    now = time.time()
    made = {f"{name}:9100": ((lambda _, used=used: used), lambda _: 4e9) for name, used in cores.items()}
    server = starting(Prometheus(blocks=history(made, now - 1200, now)))
    return UsageSettings(prometheus=PrometheusEntry(url=server.url))


async def test_usage_stands_on_nodes_is_written_once_and_can_be_taken_off(bed, account, starting):
    bed.add_nodes({"name": name, "cpu": "4", "memory": "16Gi"} for name in ("n1", "n2", "n3"))
    settings = measured(starting, n1=1.5, n2=3.0)
    before, began = by_name(bed), version(bed)

    changes, remark = await run(account, "usage", settings=settings)
    found = annotations(bed, "n1")
    assert ["n1", "n2"] == sorted(one.node for one in changes)
    assert "2 of 3 nodes are measured; no series for n3" == remark
    assert 2500 == pytest.approx(int(found["mean-free-cpu"]), abs=2)
    assert 1000 == pytest.approx(int(annotations(bed, "n2")["mean-free-cpu"]), abs=2)
    assert (str(16 * GIB - 4 * 10**9), "0") == (found["mean-free-memory"], found["std-free-memory"])
    assert {
        "mean-free-cpu",
        "std-free-cpu",
        "mean-free-memory",
        "std-free-memory",
        "lamina.dev/usage-observed-at",
    } == set(found)
    assert {} == annotations(bed, "n3")
    assert untouched(before) == untouched(by_name(bed))
    assert ["n1", "n2"] == sorted(writes_since(bed, began))

    # Nothing has moved: the second round writes nothing.
    settled = version(bed)
    assert [] == (await run(account, "usage", settings=settings))[0]
    assert [] == writes_since(bed, settled)

    removed, _ = await run(account, "usage", remove=True)
    assert ["n1", "n2"] == [one.node for one in removed]
    assert {} == annotations(bed, "n1")
    assert untouched(before) == untouched(by_name(bed))


async def test_allocation_counts_pods_that_are_bound_and_do_not_run(bed, account):
    bed.add_node("n1", cpu="4", memory="8Gi", pods=10)
    bed.add_node("sick", cpu="4")
    condition = {"type": "Ready", "status": "Unknown"}
    bed.api("PATCH", "/api/v1/nodes/sick/status", {"status": {"conditions": [condition]}})
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "sick"), ("d", None)):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
        spec = {"containers": [container], **({"nodeName": node} if node else {})}
        bed.api("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})
    assert "Pending" == bed.api("GET", "/api/v1/namespaces/default/pods/a")["status"]["phase"]

    await run(account, "allocation")
    found = annotations(bed, "n1")
    stamp = found.pop("lamina.dev/allocation-observed-at")
    assert {
        "requested-cpu": "1000",
        "free-cpu": "3000",
        "requested-memory": str(2 * GIB),
        "free-memory": str(6 * GIB),
        "requested-pods": "2",
        "free-pods": "8",
    } == found
    assert stamp.endswith("Z")
    assert {} == annotations(bed, "sick")

    bed.api("DELETE", "/api/v1/namespaces/default/pods/b?gracePeriodSeconds=0")
    await run(account, "allocation")
    assert ("500", "1") == tuple(annotations(bed, "n1")[key] for key in ("requested-cpu", "requested-pods"))


async def test_congestion_is_what_pressure_network_and_disk_say(bed, account, starting):
    bed.add_nodes([{"name": "busy"}, {"name": "calm"}, {"name": "mute"}])
    exporter = starting(Exporter())
    exporter.machines = {
        # Waiting for processors in 35 % of the time: (0.35 - 0.10) / 0.50 = 0.5.
        "busy": Machine(
            counters={
                "node_pressure_cpu_waiting_seconds_total": 0.35,
                'node_network_transmit_bytes_total{device="eth0"}': 1e8,
                'node_network_receive_bytes_total{device="veth1"}': 9e9,
            },
            gauges={
                'node_network_speed_bytes{device="eth0"}': 1.25e9,
                'node_network_speed_bytes{device="veth1"}': 1.25e9,
            },
        ),
        "calm": Machine(counters={'node_disk_io_time_seconds_total{device="sda"}': 0.5}),
        "mute": Machine(),
    }
    server = starting(Prometheus([exporter.target(name, node=name) for name in exporter.machines]))
    settings = UsageSettings(prometheus=PrometheusEntry(url=server.url, rate=4.0))

    async def planned() -> int:
        changes, _ = await run(account, "congestion", settings=settings, dry_run=True)
        return next((int(one.annotations["congestion-factor"] or 0) for one in changes if one.node == "busy"), 0)

    # A rate is right once the whole of its four seconds has been scraped.
    end = time.monotonic() + 30
    while await planned() < 46:
        assert time.monotonic() < end
        await asyncio.sleep(0.5)
    _, remark = await run(account, "congestion", settings=settings)
    assert 50 == pytest.approx(int(annotations(bed, "busy")["congestion-factor"]), abs=4)
    assert "0" == annotations(bed, "calm")["congestion-factor"]
    assert {} == annotations(bed, "mute")
    assert "2 of 3 nodes are measured; no series for mute" == remark


async def test_writes_come_no_faster_than_allowed_and_end_when_everything_stands(bed, account, starting):
    names = [f"n{number}" for number in range(8)]
    bed.add_nodes({"name": name, "cpu": "4"} for name in names)
    settings = measured(starting, **dict.fromkeys(names, 1.0))
    began = version(bed)
    service = asyncio.create_task(
        annotate(options(account, "usage", once=False, settings=settings, every=1.0, per_second=4.0), lambda *_: None)
    )
    start = time.monotonic()
    counts: list[tuple[float, int]] = []
    while len(writes := await asyncio.to_thread(writes_since, bed, began)) < len(names):
        counts.append((time.monotonic() - start, len(writes)))
        assert time.monotonic() - start < 30
    await asyncio.sleep(2)
    service.cancel()
    await asyncio.gather(service, return_exceptions=True)

    # The first write may come at once, and after it four in every second.
    assert [] == [(seconds, written) for seconds, written in counts if written > 1 + 4 * seconds]
    assert sorted(names) == sorted(writes_since(bed, began)), "several rounds later every node was written once"


async def test_a_policy_keeps_an_annotator_to_its_own_annotations(bed, token):
    bed.add_node("n1")
    bearer = Bearer(bed, token)
    path = "/api/v1/nodes/n1"
    tried = {
        "a label": {"metadata": {"labels": {"zone": "x"}}},
        "a taint": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        "cordoning": {"spec": {"unschedulable": True}},
        "somebody else's annotation": {"metadata": {"annotations": {"other": "x"}}},
        "a finalizer": {"metadata": {"finalizers": ["x/y"]}},
    }

    assert dict.fromkeys(tried, 403) == {name: bearer.refusal("PATCH", path, body)[0] for name, body in tried.items()}

    def writing(value: str | None) -> dict[str, Any]:
        return {"metadata": {"annotations": {"congestion-factor": value}}}

    assert [0, 403] == [bearer.refusal("PATCH", path, writing("7" * length))[0] for length in (64, 65)]
    # What somebody else has filled up does not keep it from writing the others, or from taking that off.
    bed.api("PATCH", path, writing("7" * 65))
    other = {"metadata": {"annotations": {"free-cpu": "1"}}}
    assert [0, 0] == [bearer.refusal("PATCH", path, body)[0] for body in (other, writing(None))]
    assert 403 == bearer.refusal("PATCH", f"{path}/status", {"status": {"phase": "x"}})[0]
    assert 403 == bearer.refusal("DELETE", path)[0]
    bearer.close()


async def test_without_the_right_to_patch_one_line_says_so(bed, starting, tmp_path, token):
    bed.add_node("n1")
    readers = bed.kubeconfig("only-a-reader")
    binding = {
        "metadata": {"name": "only-a-reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kube-scheduler"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "only-a-reader"}],
    }
    bed.api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    with pytest.raises(LaminaError, match="403 Forbidden") as refused:
        await run(readers, "allocation")

    assert 1 == len(str(refused.value).splitlines())
    assert 1 == refused.value.exit_code


async def test_nodes_that_are_gone_made_anew_or_full_hold_up_nobody(bed, account):
    """
    What a real server says of a uid that is another now, and of annotations that are too long.
    """
    bed.add_nodes([{"name": name} for name in ("another", "druid-full", "fine")])
    bed.api("PATCH", "/api/v1/nodes/druid-full", {"metadata": {"annotations": {"filler": "x" * 262_100}}})
    uids = {name: one["metadata"]["uid"] for name, one in by_name(bed).items()}
    meant = {
        "gone": "",
        "another": "11111111-2222-3333-4444-555555555555",
        **{n: uids[n] for n in ("druid-full", "fine")},
    }
    client = KubeClient(load_access(account))
    writer = AnnotationWriter(client, 50.0, random.Random(1))
    number = {"mean-free-cpu": "1000", "lamina.dev/usage-observed-at": "2026-03-01T12:00:00Z"}
    outcome = await writer.write([AnnotationWrite(name, uid, dict(number), MOVED) for name, uid in meant.items()])
    await client.close()

    assert (["fine"], ["druid-full"], None) == (outcome.written, list(outcome.refused), outcome.ended)
    assert {MOVED: 1, "gone": 2, "refused": 1} == writer.counts
    assert "Too long" in str(outcome.refused["druid-full"])


def lamina(account: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "lamina.cli.main", "annotate", *words, "--kubeconfig", str(account)]


def test_the_command_prints_a_table_writes_nothing_and_ends_when_asked_to(bed, account, starting):
    bed.add_node("n1", cpu="4")
    settings = measured(starting, n1=1.0)
    assert settings.prometheus is not None
    words = lamina(account, "usage", "--prometheus", settings.prometheus.url)
    began = version(bed)
    printed = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, check=True, timeout=60)

    assert "mean-free-cpu=3000" in printed.stdout
    assert "1 node would be written" in printed.stdout
    assert [] == writes_since(bed, began)

    service = subprocess.Popen([*words, "--every", "1", "--log-format", "json"], stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: "mean-free-cpu" in annotations(bed, "n1"))
        service.send_signal(signal.SIGTERM)
        _, said = service.communicate(timeout=10)
    finally:
        service.kill()
    assert 0 == service.returncode
    assert ["annotating nodes"] == [msgspec.json.decode(line)["msg"] for line in said.splitlines()]
