"""deploy/extender: the API server takes it, its parts fit together, and it holds what the command prints."""

import json

import pytest
import yaml

from lamina.cli.extender import extender
from lamina.scheduling.plugins.in_tree import agents
from lamina.services.extender.configuration import AgentEntry, PartialExtenderSettings, read_configuration
from lamina.services.extender.environment_variables import EnvironmentSettings, read_environment
from lamina.services.extender.kube_scheduler_config import ExtenderTarget, SchedulerTlsFiles, kube_configuration
from lamina.services.extender.settings import ExtenderFlags, chosen_agents, merge_settings
from tests.integration.custom_resources.people import refused
from tests.integration.extender_deploy.processes import configuration, documents
from tests.integration.scheduler.live import DEPLOY

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

FOLDER = DEPLOY / "extender"
MANIFESTS = sorted(FOLDER.glob("*.yaml"))
VARIANTS = ("one-process.yaml", "two-processes.yaml", "separate.yaml")
WORKLOADS = [
    pytest.param(variant, one["metadata"]["name"], id=f"{variant} {one['metadata']['name']}")
    for variant in VARIANTS
    for one in documents(FOLDER / variant)
    if one["kind"] == "Deployment"
]
SERVICE = "lamina-extender.lamina-system.svc"


def known():
    return agents(entry_points=False)


def deployment(variant, name):
    found = [one for one in documents(FOLDER / variant) if one["kind"] == "Deployment"]
    return next(one for one in found if one["metadata"]["name"] == name)["spec"]


def containers_of(pod):
    """All of a pod, in the order in which they are started."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def containers(variant, word):
    """The containers of a variant whose names begin with *word*, and which Deployment they are of."""
    return [
        container
        for _, name in (param.values for param in WORKLOADS if param.values[0] == variant)
        for container in containers_of(deployment(variant, name)["template"]["spec"])
        if container["name"].startswith(word)
    ]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_server_takes_every_manifest(cluster, path):
    """And knows every field in it, and has nothing to warn about: validation is strict."""
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")

    taken = cluster.kubectl(*words, "--warnings-as-errors", "-f", str(path))

    assert len(documents(path)) == len(taken.splitlines())


@pytest.mark.parametrize(("variant", "name"), WORKLOADS)
def test_pods_meet_the_strictest_standard(cluster, variant, name):
    """Their namespace enforces it; a pod that may do a little more is refused."""
    template = deployment(variant, name)["template"]
    pod = {"metadata": {"name": "try", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    path = "/api/v1/namespaces/lamina-system/pods?dryRun=All"
    assert (0, "") == refused(lambda: cluster.api("POST", path, pod))

    for container in containers_of(pod["spec"]):
        given = container["securityContext"].pop("capabilities")
        assert 403 == refused(lambda: cluster.api("POST", path, pod))[0]
        container["securityContext"]["capabilities"] = given


@pytest.mark.parametrize(("variant", "name"), WORKLOADS)
def test_one_may_be_missing_and_what_is_mounted_is_there(variant, name):
    spec = deployment(variant, name)
    budgets = [one["spec"] for one in documents(FOLDER / variant) if one["kind"] == "PodDisruptionBudget"]
    pod = spec["template"]["spec"]
    mounted = {mount["name"] for one in containers_of(pod) for mount in one.get("volumeMounts", ())}

    assert [(2, 1)] == [
        (spec["replicas"], one["maxUnavailable"]) for one in budgets if one["selector"] == spec["selector"]
    ]
    assert {volume["name"] for volume in pod["volumes"]} == mounted


def printed(variant):
    safe, layers = known()["safe"], known()["layers"]
    certificates = SchedulerTlsFiles("/etc/lamina-tls/ca.crt", "/etc/lamina-tls/tls.crt", "/etc/lamina-tls/tls.key")
    served = {
        "one-process.yaml": [ExtenderTarget((safe, layers))],
        "two-processes.yaml": [ExtenderTarget((safe,), "127.0.0.1:5401"), ExtenderTarget((layers,), "127.0.0.1:5402")],
        "separate.yaml": [ExtenderTarget((safe, layers), f"{SERVICE}:5401", certificates, https=True)],
    }
    return kube_configuration(served[variant])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_schedulers_configuration_is_what_is_printed(variant):
    """But for a comment before it that says where it comes from."""
    text = configuration(variant)
    first, _, rest = text.partition("\n")

    assert printed(variant) == (rest if first.startswith("#") else text)


@pytest.mark.parametrize("variant", ["one-process.yaml", "separate.yaml"])
def test_the_extenders_configuration_is_understood(variant):
    file = read_configuration(configuration(variant, "extender.yaml"), "extender.yaml", known())
    settings = merge_settings(ExtenderFlags(), EnvironmentSettings(), file, known())

    assert (["safe", "layers"], False, ()) == (
        [agent.name for agent in settings.agents],
        settings.registries,
        settings.complaints,
    )
    assert ("my-scheduler",) == settings.scheduler_names


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_command_knows_every_word(variant):
    for container in containers(variant, "extender"):
        name, *words = container["args"]
        context = extender.make_context(name, list(words))

        assert "extender" == extender.name
        assert context.params["config"] or context.params["names"]


def settled(container, variant):
    """What an extender of a manifest makes of its words, its variables and its file."""
    name, *words = container["args"]
    said = extender.make_context(name, list(words)).params
    file = PartialExtenderSettings()
    if said["config"] is not None:
        file = read_configuration(configuration(variant, said["config"].name), said["config"].name, known())
    chosen = () if said["names"] is None else tuple(AgentEntry(name=one) for one in said["names"].split(","))
    flags = ExtenderFlags(agents=chosen or None, listen=said["listen"], pages=said["pages"])
    variables = {one["name"]: one["value"] for one in container.get("env", ())}
    return merge_settings(flags, read_environment(variables, chosen_agents(flags, file, known())), file, known())


@pytest.mark.parametrize("variant", VARIANTS)
def test_probes_look_at_the_pages_which_everybody_can_reach(variant):
    for container in containers(variant, "extender"):
        settings, named = settled(container, variant), {one["name"]: one["containerPort"] for one in container["ports"]}
        probes = {word: container[f"{word}Probe"]["httpGet"] for word in ("startup", "liveness", "readiness")}

        assert f"0.0.0.0:{settings.address.port + 10}" == str(settings.endpoints)
        beside = "restartPolicy" in container
        assert {"startup": "/readyz" if beside else "/livez", "liveness": "/livez", "readiness": "/readyz"} == {
            word: one["path"] for word, one in probes.items()
        }
        assert {settings.endpoints.port} == {named[one["port"]] for one in probes.values()}
        assert {"HTTP"} == {one.get("scheme", "HTTP") for one in probes.values()}


@pytest.mark.parametrize("variant", ["one-process.yaml", "two-processes.yaml"])
def test_in_one_pod_kube_scheduler_begins_after_the_extenders_have_seen_the_cluster(variant):
    """They are init containers that stay: the next one is started when such a one has passed its startup probe."""
    pod = deployment(variant, "my-scheduler")["template"]["spec"]

    assert ["kube-scheduler"] == [one["name"] for one in pod["containers"]]
    assert {("Always", "/readyz")} == {
        (one["restartPolicy"], one["startupProbe"]["httpGet"]["path"]) for one in pod["initContainers"]
    }
    # Five minutes for the first look at a large cluster.
    assert {300} == {
        one["startupProbe"]["periodSeconds"] * one["startupProbe"]["failureThreshold"] for one in pod["initContainers"]
    }


def test_the_readme_of_the_example_lets_the_extender_in_the_pod_say_more(cluster):
    """`kubectl set env` reaches it although it is an init container."""
    readme = (DEPLOY.parent / "examples" / "test-pod" / "README.md").read_text(encoding="utf-8")
    manifest = next(one for one in documents(FOLDER / "one-process.yaml") if one["kind"] == "Deployment")
    words = ("set", "env", "--local", "-f", "-", "-c", "extender", "LOG_LEVEL=DEBUG", "-o", "json")
    changed = json.loads(cluster.kubectl(*words, stdin=json.dumps(manifest)))["spec"]["template"]["spec"]

    assert "set env deployment/my-scheduler -c extender LOG_LEVEL=DEBUG\n" in readme
    assert [[{"name": "LOG_LEVEL", "value": "DEBUG"}], None] == [one.get("env") for one in containers_of(changed)]


def test_each_process_listens_where_the_scheduler_asks():
    """By HTTP_PORT."""
    asked = {
        (one["prioritizeVerb"].removeprefix("priorities/"), one["urlPrefix"])
        for one in yaml.safe_load(configuration("two-processes.yaml"))["extenders"]
    }
    listening = set()
    for container in containers("two-processes.yaml", "extender"):
        settings = settled(container, "two-processes.yaml")
        listening |= {
            (verb, f"http://{settings.address}/scheduler") for agent in settings.agents for verb in agent.priorities
        }
    assert asked <= listening


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_image_is_to_be_set(variant):
    """Nobody's registry is named: an extender's image is built, and a scheduler's is the one that is there."""
    assert {"registry.example/lamina:set-me"} == {one["image"] for one in containers(variant, "extender")}
    assert {"registry.example/kube-scheduler:set-me"} == {one["image"] for one in containers(variant, "kube-scheduler")}


def test_the_lease_is_the_one_that_the_scheduler_may_have():
    role = next(one for one in documents(FOLDER / "rbac.yaml") if one["kind"] == "Role")
    elections = [yaml.safe_load(configuration(variant))["leaderElection"] for variant in VARIANTS]

    assert [(role["metadata"]["namespace"], role["rules"][0]["resourceNames"])] * 3 == [
        (one["resourceNamespace"], [one["resourceName"]]) for one in elections
    ]


def test_only_the_scheduler_can_ask_an_extender_in_a_pod_of_its_own():
    """But everybody reaches its pages, as the kubelet has to."""
    objects = {(one["kind"], one["metadata"]["name"]): one for one in documents(FOLDER / "separate.yaml")}
    policy, service = objects["NetworkPolicy", "lamina-extender"]["spec"], objects["Service", "lamina-extender"]["spec"]
    labels = {
        name: objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        for name in ("lamina-extender", "my-scheduler")
    }
    file = read_configuration(configuration("separate.yaml", "extender.yaml"), "extender.yaml", known())

    assert service["selector"].items() <= labels["lamina-extender"].items()
    assert policy["podSelector"]["matchLabels"].items() <= labels["lamina-extender"].items()
    asking, looking = policy["ingress"]
    assert [True] == [
        peer["podSelector"]["matchLabels"].items() <= labels["my-scheduler"].items() for peer in asking["from"]
    ]
    assert [["extender"], ["pages"]] == [[one["port"] for one in rule["ports"]] for rule in (asking, looking)]
    assert "from" not in looking
    assert ["extender"] == [one["targetPort"] for one in service["ports"]]
    assert ("lamina-kube-scheduler",) == file.tls.client_names
