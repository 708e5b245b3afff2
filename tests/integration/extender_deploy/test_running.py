"""A real kube-scheduler takes the configuration of every manifest, leads by its lease, and asks a real extender."""

import urllib.error
import urllib.request

import pytest
import trustme

from testbed import ports
from tests.integration.extender_deploy.processes import Extender, StockScheduler, configuration, documents, install
from tests.integration.scheduler.live import DEPLOY, until

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kube-scheduler")]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/lamina-system/leases/my-scheduler"
PODS = "/api/v1/namespaces/default/pods"
SERVICE = "lamina-extender.lamina-system.svc"


@pytest.fixture
def bed(bed_factory):
    """A control plane of its own: whoever schedules here must not meet other tests' pods."""
    bed = bed_factory()
    install(bed)
    bed.add_nodes([{"name": name, "cpu": "4", "memory": "8Gi"} for name in ("n1", "n2")])
    return bed


def at(text, **addresses):
    """The configuration with other ports, which nobody else has."""
    for old, new in addresses.items():
        text = text.replace(f"127.0.0.1:{old.removeprefix('p')}", f"127.0.0.1:{new}")
    return text


def leader(bed):
    return bed.api("GET", "/apis/coordination.k8s.io/v1/namespaces/lamina-system/leases")["items"]


def a_pod(bed, name):
    container = {"name": "main", "image": "example.com/web:1", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"schedulerName": "my-scheduler", "containers": [container]}
    bed.api("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def node_of(bed, name):
    return bed.api("GET", f"{PODS}/{name}")["spec"].get("nodeName", "")


def probed(variant, container, probe, port):
    """Look as the kubelet would for a probe of a manifest, with the pages at *port*; return the status, 0 for none."""
    found = [
        each[probe]["httpGet"]["path"]
        for document in documents(DEPLOY / "extender" / variant)
        if document["kind"] == "Deployment"
        for kind in ("initContainers", "containers")
        for each in document["spec"]["template"]["spec"].get(kind, ())
        if each["name"] == container
    ]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{found[0]}", timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 0


def certificates(folder):
    """Two pairs of one authority, under the names that the manifest has them; addressed on loopback."""
    authority = trustme.CA()
    server = authority.issue_cert(SERVICE, "127.0.0.1", common_name=SERVICE)
    client = authority.issue_cert("lamina-kube-scheduler", common_name="lamina-kube-scheduler")
    for name, pair in (("extender", server), ("scheduler", client)):
        place = folder / name
        place.mkdir()
        authority.cert_pem.write_to_path(place / "ca.crt")
        pair.private_key_pem.write_to_path(place / "tls.key")
        pair.cert_chain_pems[0].write_to_path(place / "tls.crt")


@pytest.mark.parametrize("variant", ["one-process.yaml", "two-processes.yaml", "separate.yaml"])
def test_kube_scheduler_takes_the_configuration_and_leads_by_the_lease_of_its_role(bed, tmp_path, variant):
    certificates(tmp_path)
    text = configuration(variant).replace("/etc/lamina-tls", str(tmp_path / "scheduler"))
    with StockScheduler(bed, text) as scheduler:
        until(lambda: bool(leader(bed)), 30, f"it leads\n{scheduler.said()[-2000:]}")

        assert ["my-scheduler"] == [one["metadata"]["name"] for one in leader(bed)]
        assert "forbidden" not in scheduler.said()


def test_two_processes_are_asked_each_at_its_port(bed):
    safe, layers, pages = ports.free(), ports.free(), (ports.free(), ports.free())
    text = at(configuration("two-processes.yaml"), p5401=safe, p5402=layers)
    words = ["--no-registries", "--log-format", "json", "-v", "2", "--scheduler-name", "my-scheduler"]

    def process(agent, port, beside):
        """One that listens as its container does."""
        said = ["--agents", agent, "--pages", f"127.0.0.1:{beside}", *words]
        return Extender(bed, said, agent, port=port, variables={"HTTP_PORT": f"{port}"})

    with (
        process("safe", safe, pages[0]) as first,
        process("layers", layers, pages[1]) as second,
        StockScheduler(bed, text) as scheduler,
    ):
        a_pod(bed, "p")
        until(lambda: bool(node_of(bed, "p")), 30, f"p is bound\n{scheduler.said()[-2000:]}")
        until(lambda: first.metric('lamina_extender_pods_bound_total{answered="true"}') == 1, 10, "safe saw it bound")
        until(
            lambda: second.metric('lamina_extender_pods_bound_total{answered="true"}') == 1, 10, "layers saw it bound"
        )

        assert [200, 200] == [
            probed("two-processes.yaml", name, "readinessProbe", there)
            for name, there in [("extender-safe", pages[0]), ("extender-layers", pages[1])]
        ]
        assert [1, 1, 1] == [
            asked.metric(f'lamina_extender_answers_total{{result="answered",verb="{verb}"}}')
            for asked, verb in [
                (first, "predicates/safe-overload"),
                (first, "priorities/safe-balance"),
                (second, "priorities/layers"),
            ]
        ]


def test_a_pod_waits_while_the_guard_is_away(bed):
    """The filter is not to be passed over; when somebody answers again, the pod is placed."""
    port = ports.free()
    text = at(configuration("one-process.yaml"), p5401=port)
    extender = Extender(bed, ["--agents", "safe,layers", "--no-registries", "--listen", f"127.0.0.1:{port}"], port=port)
    with StockScheduler(bed, text) as scheduler:
        a_pod(bed, "p")
        until(lambda: "connection refused" in scheduler.said(), 30, "it asks")
        assert "" == node_of(bed, "p")
        with extender:
            until(lambda: bool(node_of(bed, "p")), 60, f"p is bound\n{scheduler.said()[-2000:]}")


def test_scheduler_and_extender_know_each_other_by_certificates(bed, tmp_path):
    """From the manifest with pods of their own, probes and all; who has no certificate reads the pages."""
    certificates(tmp_path)
    port, pages = ports.free(), ports.free()
    text = configuration("separate.yaml").replace("/etc/lamina-tls", str(tmp_path / "scheduler"))
    ours = configuration("separate.yaml", "extender.yaml").replace("/etc/lamina-tls", str(tmp_path / "extender"))
    ours = ours.replace("0.0.0.0:5401", f"127.0.0.1:{port}").replace("0.0.0.0:5411", f"127.0.0.1:{pages}")
    path = tmp_path / "extender.yaml"
    path.write_text(ours, encoding="utf-8")
    assert 0 == probed("separate.yaml", "extender", "livenessProbe", pages)
    with (
        Extender(bed, ["--config", str(path), "--log-format", "json", "-v", "2"], port=pages) as extender,
        StockScheduler(bed, text.replace(f"{SERVICE}:5401", f"127.0.0.1:{port}")) as scheduler,
    ):
        a_pod(bed, "p")
        until(lambda: bool(node_of(bed, "p")), 30, f"p is bound\n{scheduler.said()[-2000:]}")

        assert [200, 200] == [
            probed("separate.yaml", "extender", probe, pages) for probe in ("livenessProbe", "readinessProbe")
        ]
        until(lambda: extender.metric('lamina_extender_pods_bound_total{answered="true"}') == 1, 10, "it saw p bound")
        said = [one["msg"] for one in extender.said()]
        assert "answered predicates/safe-overload refused=0" in said
        assert "answered priorities/layers" in said
