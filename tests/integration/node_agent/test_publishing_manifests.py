"""The DaemonSets of deploy/agent: no container has both the runtime and a token, and the server takes them as they are."""

import pytest
import yaml

from lamina.cli.node_agent.command import node_agent
from tests.integration.custom_resources.people import DEPLOY, refused
from tests.integration.node_agent.halves import install

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

FILES = sorted((DEPLOY / "node-agent").glob("*.yaml"))
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def daemon_set(request):
    return yaml.safe_load(request.param.read_text(encoding="utf-8"))


@pytest.fixture
def pod(daemon_set):
    return daemon_set["spec"]["template"]["spec"]


@pytest.fixture
def containers(pod):
    return {one["name"]: one for one in pod["containers"]}


def mounted(pod, container):
    """The volumes of a container, by what they are."""
    volumes = {one["name"]: one for one in pod["volumes"]}
    return {kind for mount in container["volumeMounts"] for kind in volumes[mount["name"]] if kind != "name"}


def test_there_are_two():
    assert ["daemonset-crio.yaml", "daemonset.yaml"] == [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_server_takes_it_and_a_pod_of_it(control_plane, path):
    bed = install(control_plane)
    words = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert 1 == len(bed.kubectl(*words).splitlines())

    template = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["template"]
    made = {"metadata": {"name": "try", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    assert (0, "") == refused(lambda: bed.api("POST", "/api/v1/namespaces/lamina-agents/pods?dryRun=All", made))


def test_who_sees_the_runtime_has_no_token(pod, containers):
    assert pod["automountServiceAccountToken"] is False
    assert {"emptyDir", "hostPath"} == mounted(pod, containers["reader"])


def test_who_has_the_token_sees_nothing_of_the_host_and_is_not_root(pod, containers):
    publisher = containers["publisher"]

    assert {"emptyDir", "projected"} == mounted(pod, publisher)
    assert (True, 65532) == (publisher["securityContext"]["runAsNonRoot"], publisher["securityContext"]["runAsUser"])
    assert [TOKEN] == [one["mountPath"] for one in publisher["volumeMounts"] if one["name"] == "token"]


def test_nobody_has_more_rights_than_needed(pod, containers):
    for container in containers.values():
        context = container["securityContext"]
        assert (False, True, ["ALL"]) == (
            context["allowPrivilegeEscalation"],
            context["readOnlyRootFilesystem"],
            context["capabilities"]["drop"],
        )
        assert {"64Mi", "32Mi"} == {
            container["resources"]["limits"]["memory"],
            container["resources"]["requests"]["memory"],
        }
        assert "ports" not in container
    assert "RuntimeDefault" == pod["securityContext"]["seccompProfile"]["type"]
    assert set() == {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def test_what_is_mounted_of_the_host_cannot_be_written_to(pod, containers):
    hosts = {one["name"] for one in pod["volumes"] if "hostPath" in one}

    assert {True} == {one["readOnly"] for one in containers["reader"]["volumeMounts"] if one["name"] in hosts}


def test_the_group_of_the_pipe_is_the_publishers(pod, containers):
    assert pod["securityContext"]["fsGroup"] == containers["publisher"]["securityContext"]["runAsGroup"]


def test_an_agent_runs_on_every_node_whatever_its_taints(pod):
    assert [{"operator": "Exists"}] == pod["tolerations"]
    assert "system-node-critical" == pod["priorityClassName"]


def test_the_command_knows_every_word_and_both_halves_mean_the_same_pipe(containers):
    found = {}
    for name, container in containers.items():
        command, *words = container["args"]
        found[name] = node_agent.make_context(command, list(words)).params
        assert name == found[name]["role"]

    assert found["reader"]["pipe"] == found["publisher"]["pipe"] == "/run/lamina/pipe"
