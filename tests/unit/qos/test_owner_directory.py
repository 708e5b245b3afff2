"""The controller of a pod is found by following its owners."""

import msgspec
import pytest

from lamina.model.pod import Owner
from lamina.qos.owner_directory import OwnerDirectory, OwnerFacts
from lamina.testing.builders import a_pod

DEPLOYMENT = OwnerFacts("default", "Deployment", "web", replicas=3)
REPLICA_SET = OwnerFacts("default", "ReplicaSet", "web-5d4f", replicas=1, owner=Owner("Deployment", "web"))
CRON_JOB = OwnerFacts("default", "CronJob", "nightly")
JOB = OwnerFacts("default", "Job", "nightly-1", replicas=4, completions=20, owner=Owner("CronJob", "nightly"))


def controller(known, owner, **pod):
    directory = OwnerDirectory()
    for facts in known:
        directory.put(facts)
    return directory.controller_of(a_pod("p1", owner=owner, **pod))


@pytest.mark.parametrize(
    ("known", "owner", "kind", "name", "replicas"),
    [
        pytest.param([], None, "Pod", "p1", 1, id="bare pod"),
        pytest.param(
            [DEPLOYMENT, REPLICA_SET], Owner("ReplicaSet", "web-5d4f"), "Deployment", "web", 3, id="Deployment"
        ),
        pytest.param(
            [REPLICA_SET], Owner("ReplicaSet", "web-5d4f"), "Deployment", "web", None, id="Deployment not known"
        ),
        pytest.param([], Owner("ReplicaSet", "web-5d4f"), "ReplicaSet", "web-5d4f", None, id="nothing known"),
        pytest.param([CRON_JOB, JOB], Owner("Job", "nightly-1"), "CronJob", "nightly", 4, id="CronJob"),
        pytest.param([JOB], Owner("Job", "nightly-1"), "CronJob", "nightly", 4, id="CronJob not known"),
        pytest.param(
            [REPLICA_SET, msgspec.structs.replace(DEPLOYMENT, owner=Owner("App", "shop"))],
            Owner("ReplicaSet", "web-5d4f"),
            "App",
            "shop",
            3,
            id="owner of a Deployment not known",
        ),
        pytest.param([], Owner("StatefulSet", "db"), "StatefulSet", "db", None, id="StatefulSet not known"),
    ],
)
def test_the_topmost_owner_is_the_controller(known, owner, kind, name, replicas):
    found = controller(known, owner)

    assert (found.key.kind, found.key.name, found.replicas) == (kind, name, replicas)


def test_a_job_is_recognised_below_a_cron_job():
    found = controller([CRON_JOB, JOB], Owner("Job", "nightly-1"))

    assert found.of_job
    assert found.completions == 20


def test_the_template_hash_names_the_deployment_of_an_unknown_replica_set():
    found = controller([DEPLOYMENT], Owner("ReplicaSet", "web-5d4f"), labels={"pod-template-hash": "5d4f"})

    assert (found.key.kind, found.key.name, found.replicas) == ("Deployment", "web", 3)


def test_owners_that_own_each_other_end_somewhere():
    one = OwnerFacts("default", "A", "a", owner=Owner("B", "b"))
    two = OwnerFacts("default", "B", "b", owner=Owner("A", "a"))

    assert controller([one, two], Owner("A", "a")).key.kind in {"A", "B"}


def test_owners_of_other_namespaces_do_not_count():
    assert controller([DEPLOYMENT, REPLICA_SET], Owner("ReplicaSet", "web-5d4f"), namespace="team").replicas is None


def test_a_removed_owner_is_forgotten():
    directory = OwnerDirectory()
    directory.put(DEPLOYMENT)
    directory.remove(DEPLOYMENT.key)
    directory.remove(DEPLOYMENT.key)

    assert len(directory) == 0
