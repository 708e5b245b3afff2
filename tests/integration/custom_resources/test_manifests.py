"""Everything under deploy/: the API server takes it, the scheduler's pods are as restricted as can be, profiles are ours."""

import pytest
import yaml

from lamina.cli.scheduler import scheduler
from lamina.scheduling.config.loader import load
from lamina.scheduling.config.named_profiles import NAMED
from lamina.scheduling.plugins.in_tree import registry
from tests.integration.custom_resources.people import DEPLOY, refused

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

MANIFESTS = sorted(path for path in DEPLOY.rglob("*.yaml") if not path.is_relative_to(DEPLOY / "chart"))


def documents(path):
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_the_server_takes_every_manifest(cluster, path):
    """And knows every field in it: validation is strict."""
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", str(path))

    assert len(documents(path)) == len(cluster.kubectl(*words).splitlines())


def test_everything_is_found_by_one_label():
    """So that it can be listed, and removed."""
    labels = [(one["kind"], one["metadata"].get("labels", {})) for path in MANIFESTS for one in documents(path)]

    assert [] == [kind for kind, found in labels if found.get("app.kubernetes.io/part-of") != "lamina"]


def the_deployment():
    return next(one for one in documents(DEPLOY / "scheduler" / "deployment.yaml") if one["kind"] == "Deployment")


def test_the_schedulers_pods_meet_the_strictest_standard(cluster):
    """Its namespace enforces it; a pod that may do a little more is refused."""
    template = the_deployment()["spec"]["template"]
    pod = {"metadata": {"name": "try", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    path = "/api/v1/namespaces/lamina-system/pods?dryRun=All"
    assert (0, "") == refused(lambda: cluster.api("POST", path, pod))

    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
    code, message = refused(lambda: cluster.api("POST", path, pod))
    assert (403, True) == (code, 'violates PodSecurity "restricted' in message)


def test_the_command_knows_every_word_of_the_deployment():
    name, *words = the_deployment()["spec"]["template"]["spec"]["containers"][0]["args"]
    context = scheduler.make_context(name, list(words))

    assert ("scheduler", "/etc/lamina/scheduler.yaml") == (scheduler.name, str(context.params["config"]))


def test_two_schedulers_run_and_one_may_be_missing():
    budget = next(one for one in documents(DEPLOY / "scheduler" / "deployment.yaml") if one["kind"] != "Deployment")
    deployment = the_deployment()["spec"]

    assert (2, 1) == (deployment["replicas"], budget["spec"]["maxUnavailable"])
    assert deployment["selector"] == budget["spec"]["selector"]


def test_the_configuration_is_the_balanced_profile_under_the_name_lamina():
    text = documents(DEPLOY / "scheduler" / "configuration.yaml")[0]["data"]["scheduler.yaml"]
    load(text, "scheduler.yaml", registry(entry_points=False))
    shipped, named = yaml.safe_load(text), yaml.safe_load(NAMED["lamina-balanced"][1])

    assert [{"schedulerName": "lamina", **named["profiles"][0]}] == shipped["profiles"]


def test_the_lease_is_the_one_that_the_scheduler_may_have():
    text = documents(DEPLOY / "scheduler" / "configuration.yaml")[0]["data"]["scheduler.yaml"]
    role = next(one for one in documents(DEPLOY / "rbac" / "scheduler.yaml") if one["kind"] == "Role")
    election = yaml.safe_load(text)["leaderElection"]

    assert election["resourceNamespace"] == role["metadata"]["namespace"]
    assert [election["resourceName"]] == role["rules"][1]["resourceNames"]
