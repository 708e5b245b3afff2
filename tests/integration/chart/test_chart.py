"""deploy/chart with the real helm: what it renders, what it rejects, and what a real API server says to it."""

import itertools
import json
import subprocess

import pytest
import yaml

import render_manifests
from lamina.scheduling.plugins.in_tree import agents
from lamina.services.extender.configuration import read_configuration
from lamina.services.extender.environment_variables import EnvironmentSettings
from lamina.services.extender.kube_scheduler_config import ExtenderTarget, SchedulerTlsFiles, kube_configuration
from lamina.services.extender.settings import ExtenderFlags, merge_settings
from testbed import building
from tests.integration.scheduler.live import DEPLOY

# helm takes minutes to build, so CI does not; it checks a digest of what these tests compare.
pytestmark = [pytest.mark.realtime, pytest.mark.soak, pytest.mark.slow, pytest.mark.testbed("helm", alone=True)]

SOME = {"image": {"repository": "registry.example/lamina", "tag": "set-me"}}
KUBE_SCHEDULER = {"kubeScheduler": {"image": "registry.example/kube-scheduler:set-me"}}
EVERYTHING = {
    **render_manifests.PLAIN,
    "namespaces": {"release": False},
    "networkPolicy": {"enabled": True, "from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    "monitoring": {"dashboard": {"enabled": True}},
    "commonLabels": {"team": "platform"},
    "imagePullSecrets": [{"name": "registry"}],
    "apiServer": {"host": "192.0.2.1", "port": 6443},
}


@pytest.fixture(scope="module")
def helm():
    return str(building.ensure("helm"))


def rendered(helm, **values):
    """Every object of the chart with these values."""
    texts = render_manifests.templates(helm, render_manifests.merged(SOME, values))
    return [one for text in texts.values() for one in yaml.safe_load_all(text) if one]


def one(objects, kind, name):
    """The object of this kind and name."""
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def test_the_manifests_are_what_helm_renders(helm):
    found = render_manifests.render(helm)

    assert {name: (DEPLOY / name).read_text(encoding="utf-8") for name in found} == found


CHOICES = [
    *(
        list(chosen)
        for size in (1, 2)
        for chosen in itertools.permutations(("safe", "pigeon", "congestion", "foo", "layers"), size)
    ),
    ["safe", "pigeon", "congestion", "foo", "layers"],
]


@pytest.mark.parametrize("mode", ["one-process", "process-per-agent", "separate"])
def test_the_schedulers_configuration_is_what_the_command_prints_for_any_choice(helm, mode):
    known = agents(entry_points=False)
    certificates = SchedulerTlsFiles("/etc/lamina-tls/ca.crt", "/etc/lamina-tls/tls.crt", "/etc/lamina-tls/tls.key")
    for names in CHOICES:
        extender = {"enabled": True, "agents": names, "mode": mode, **KUBE_SCHEDULER}
        text = one(rendered(helm, extender=extender), "ConfigMap", "my-scheduler")["data"]["scheduler.yaml"]
        chosen = tuple(known[name] for name in names)
        served = [ExtenderTarget(chosen)]
        if mode == "process-per-agent":
            served = [ExtenderTarget((agent,), f"127.0.0.1:{5401 + at}") for at, agent in enumerate(chosen)]
        if mode == "separate":
            served = [ExtenderTarget(chosen, "lamina-extender.lamina-system.svc:5401", certificates, https=True)]

        # The first line says where the text comes from; a block of YAML may end without a line end.
        assert kube_configuration(served).rstrip("\n") == text.partition("\n")[2].rstrip("\n"), names


@pytest.mark.parametrize("names", CHOICES[-3:], ids=",".join)
def test_the_extender_understands_its_configuration(helm, names):
    known = agents(entry_points=False)
    usage = {"prometheus": {"url": "http://prometheus.monitoring:9090"}} if "safe" in names else {}
    objects = rendered(helm, extender={"enabled": True, "agents": names, "usage": usage, **KUBE_SCHEDULER})
    text = one(objects, "ConfigMap", "my-scheduler")["data"]["extender.yaml"]
    file = read_configuration(text, "extender.yaml", known)

    assert names == [agent.name for agent in merge_settings(ExtenderFlags(), EnvironmentSettings(), file, known).agents]


@pytest.mark.parametrize(
    ("runtime", "socket", "folder"),
    [
        pytest.param("containerd", "/run/containerd/containerd.sock", "/run/containerd", id="containerd"),
        pytest.param("k3s", "/run/k3s/containerd/containerd.sock", "/run/k3s/containerd", id="k3s"),
        pytest.param("rke2", "/run/k3s/containerd/containerd.sock", "/run/k3s/containerd", id="RKE2"),
        pytest.param("k0s", "/run/k0s/containerd.sock", "/run/k0s", id="k0s"),
        pytest.param(
            "microk8s", "/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/common/run", id="MicroK8s"
        ),
    ],
)
def test_a_preset_mounts_the_folder_of_its_socket(helm, runtime, socket, folder):
    pod = one(rendered(helm, nodeAgent={"runtime": runtime}), "DaemonSet", "lamina-agent")["spec"]["template"]["spec"]
    reader = pod["containers"][0]

    assert f"--socket={socket}" in reader["args"]
    assert {"name": "runtime", "mountPath": folder, "readOnly": True} in reader["volumeMounts"]
    assert [folder] == [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]


def test_cri_o_has_files_and_no_socket(helm):
    objects = rendered(helm, nodeAgent={"runtime": "crio"})
    daemons = [each["metadata"]["name"] for each in objects if each["kind"] == "DaemonSet"]
    paths = [
        volume["hostPath"]["path"]
        for volume in one(objects, "DaemonSet", "lamina-agent-crio")["spec"]["template"]["spec"]["volumes"]
        if "hostPath" in volume
    ]

    assert ["lamina-agent-crio"] == daemons
    assert [f"/var/lib/containers/storage/overlay-{part}" for part in ("images", "layers")] == paths


def granted(objects):
    """(verb, resource) of every role."""
    return {
        (verb, resource)
        for each in objects
        if each["kind"] in ("Role", "ClusterRole")
        for rule in each["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


@pytest.mark.parametrize(
    ("values", "rights"),
    [
        pytest.param({}, set(), id="nothing optional"),
        pytest.param(
            {"scheduler": {"preemption": {"enabled": True}}},
            {("delete", "pods"), ("create", "pods/eviction")},
            id="preemption",
        ),
        pytest.param({"pullSecrets": {"enabled": True}}, {("get", "secrets")}, id="pull secrets"),
        pytest.param({"annotators": {"usage": {"enabled": True}}}, {("patch", "nodes"), ("get", "nodes")}, id="usage"),
        pytest.param(
            {"annotators": {"usage": {"enabled": True}, "metricsServer": True}},
            {("patch", "nodes"), ("get", "nodes"), ("list", "nodes")},
            id="usage by metrics-server",
        ),
    ],
)
def test_a_part_brings_its_rights_and_no_others(helm, values, rights):
    usual = granted(rendered(helm))
    dangerous = {("delete", "pods"), ("create", "pods/eviction"), ("get", "secrets"), ("patch", "nodes")}

    assert set() == usual & dangerous
    assert granted(rendered(helm, **values)) - usual == rights - usual


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        pytest.param({"image": {"repository": ""}}, "set image.repository", id="no image"),
        pytest.param({"scheduler": {"replicaz": 1}}, "replicaz", id="an unknown value"),
        pytest.param({"nodeAgent": {"runtime": "docker"}}, "runtime", id="an unknown runtime"),
        pytest.param(
            {"extender": {"enabled": True}}, "set extender.kubeScheduler.image", id="no image of kube-scheduler"
        ),
        pytest.param({"extender": {"agents": ["layer"]}}, "agents", id="an unknown agent"),
        pytest.param({"image": {"digest": "latest"}}, "digest", id="a digest that is none"),
    ],
)
def test_a_wrong_value_is_rejected_by_its_name(helm, values, complaint):
    with pytest.raises(SystemExit, match=complaint):
        rendered(helm, **values)


def test_helm_finds_nothing_to_criticise(helm, tmp_path):
    values = tmp_path / "values.json"
    values.write_text(json.dumps(EVERYTHING), encoding="utf-8")
    words = [helm, "lint", "--strict", str(DEPLOY / "chart"), f"--values={values}"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)

    assert 0 == run.returncode, run.stdout + run.stderr


@pytest.mark.testbed("etcd", "kube-apiserver", "kubectl", "helm")
def test_a_real_server_accepts_every_object_with_every_part_on(helm, control_plane):
    """Strictly: it knows every field, and has nothing to warn about."""
    objects = rendered(helm, **EVERYTHING)
    for name in ("lamina-system", "lamina-agents"):
        control_plane.kubectl(
            "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        )
    text = yaml.safe_dump_all(objects)
    words = (
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "--warnings-as-errors",
    )
    accepted = control_plane.kubectl(*words, "-f", "-", stdin=text)

    assert len(objects) == len(accepted.splitlines())
    assert all(each["metadata"]["labels"]["team"] == "platform" for each in objects)
