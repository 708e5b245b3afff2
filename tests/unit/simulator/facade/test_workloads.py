"""Workloads that clients create through the API: pods, status, scale, update, deletion."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from lamina.simulator.cluster import Delays
from lamina.simulator.facade.replica_sets import REVISION
from lamina.simulator.facade.workload_objects import controller_name, template_version, workload_status
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import PodBound, PodFinished, PodRemoved
from tests.unit.simulator.facade.api_client import DEPLOYMENTS, PODS, STRATEGIC, a_deployment
from tests.unit.simulator.facade.facade_story import Action, FacadeStory
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, log

APPS = "/apis/apps/v1/namespaces/default"
REPLICA_SETS = f"{APPS}/replicasets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
AT_ONCE = Delays(start=0.0)


def a_template(name: str, seconds: int | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod template; with *seconds* its pods end after them."""
    annotations = (
        {} if seconds is None else {"simSpec": json.dumps([{"seconds": seconds, "resourceUsage": {"cpu": "1"}}])}
    )
    container = {"name": "main", "image": "registry.example/web:1", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [container], **spec},
    }


def a_workload(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": a_template(name), **spec},
    }


def scenario(*ticks: float, nodes: int = 1) -> Scenario:
    """Some nodes, and pods that need nothing at these times."""
    specs = [a_node_spec(f"n{number + 1}", holds=["web", "api"]) for number in range(nodes)]
    pods = [arriving(at, f"tick{at:g}", cpu=0, duration=0.0) for at in ticks]
    return a_scenario(specs, pods, delays=AT_ONCE, until=600.0)


def told(actions: Mapping[float, Action], nodes: int = 1) -> FacadeStory:
    story = FacadeStory(actions)
    story.run(scenario(*actions, nodes=nodes))
    return story


def happened(story: FacadeStory) -> list[tuple[float, str, str]]:
    """Return bindings and ends of pods that are no ticks, without the part of a name that the uid makes."""
    found = log(story.records, PodBound, PodRemoved, PodFinished)
    return [(at, what, name[0] + name[-2:]) for at, what, name in found if not name.startswith("tick")]


def test_a_deployment_is_scaled_updated_and_deleted():
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/api:1"}]}}}}
    seen = []

    def look(client: Any) -> None:
        status = client.get(f"{DEPLOYMENTS}/web")["status"]
        seen.append((status["replicas"], status["readyReplicas"], status["observedGeneration"]))

    story = told(
        {
            0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=3)),
            40.0: look,
            50.0: lambda client: client.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 1}}),
            90.0: look,
            100.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", image, STRATEGIC),
            190.0: look,
            200.0: lambda client: client.delete(f"{DEPLOYMENTS}/web"),
        }
    )

    assert [
        (0.0, "pod-bound", "w-1"),
        (0.0, "pod-bound", "w-2"),
        (0.0, "pod-bound", "w-3"),
        (50.0, "pod-removed", "w-3"),
        (50.0, "pod-removed", "w-2"),
        # the new pod runs before the old one is removed
        (100.0, "pod-bound", "w-4"),
        (100.0, "pod-removed", "w-1"),
        (200.0, "pod-removed", "w-4"),
    ] == happened(story)
    assert [(3, 3, 1), (1, 1, 2), (1, 1, 3)] == seen
    assert [] == story.client.names(f"{PODS}?labelSelector=app%3Dweb")


def test_pods_have_their_workload_as_owner_and_its_labels():
    story = told({0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=1))})
    (pod,) = story.client.get(f"{PODS}?labelSelector=app%3Dweb")["items"]
    (owner,) = story.client.get(REPLICA_SETS)["items"]
    deployment = story.client.get(f"{DEPLOYMENTS}/web")

    assert [("ReplicaSet", owner["metadata"]["name"], owner["metadata"]["uid"], True)] == controllers_of(pod)
    assert [("Deployment", "web", deployment["metadata"]["uid"], True)] == controllers_of(owner)
    assert owner["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def controllers_of(found: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    return [(one["kind"], one["name"], one["uid"], one["controller"]) for one in found["metadata"]["ownerReferences"]]


def replica_sets(client: Any) -> list[tuple[str, str, int, int]]:
    """Return revision, image, wanted and ready pods of each ReplicaSet, by revision."""
    items = client.get(REPLICA_SETS)["items"]
    return sorted(
        (
            one["metadata"]["annotations"][REVISION],
            one["spec"]["template"]["spec"]["containers"][0]["image"].rpartition("/")[2],
            one["spec"]["replicas"],
            one["status"].get("readyReplicas", 0),
        )
        for one in items
    )


def with_image(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": f"registry.example/{name}:1"}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def test_each_version_of_a_deployment_is_a_replica_set_with_a_revision():
    """The second rollback brings back the first version, whose ReplicaSet gets a new revision."""
    seen = []

    def look(client: Any) -> None:
        revision = client.get(f"{DEPLOYMENTS}/web")["metadata"]["annotations"][REVISION]
        seen.append((revision, replica_sets(client)))

    story = told(
        {
            0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=2)),
            40.0: look,
            50.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", with_image("api"), STRATEGIC),
            140.0: look,
            150.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", with_image("web"), STRATEGIC),
            240.0: look,
            250.0: lambda client: client.delete(f"{DEPLOYMENTS}/web"),
        }
    )

    assert [
        ("1", [("1", "web:1", 2, 2)]),
        ("2", [("1", "web:1", 0, 0), ("2", "api:1", 2, 2)]),
        ("3", [("2", "api:1", 0, 0), ("3", "web:1", 2, 2)]),
    ] == seen
    assert [] == story.client.names(REPLICA_SETS)


def test_a_restart_by_annotation_replaces_all_pods():
    """As ``kubectl rollout restart`` does; every other change of the template is a rollout, too."""
    restart = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}
    story = told(
        {
            0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=1)),
            50.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", restart),
            60.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"a": "b"}}}),
        }
    )

    assert [(0.0, "pod-bound", "w-1"), (50.0, "pod-bound", "w-2"), (50.0, "pod-removed", "w-1")] == happened(story)
    assert ["1", "2"] == [one[0] for one in replica_sets(story.client)]


def test_only_as_many_old_versions_stay_as_the_history_limit_says():
    body = a_deployment("web", replicas=1)
    body["spec"]["revisionHistoryLimit"] = 1
    changes = {
        50.0 * number: lambda client, number=number: client.patch(
            f"{DEPLOYMENTS}/web", {"spec": {"template": {"metadata": {"annotations": {"n": str(number)}}}}}
        )
        for number in (1, 2, 3)
    }
    story = told({0.0: lambda client: client.made(DEPLOYMENTS, body), **changes, 300.0: conditions})

    assert ["3", "4"] == [one[0] for one in replica_sets(story.client)]


def test_replica_sets_have_the_annotations_of_their_deployment():
    """``kubectl rollout history`` shows the cause of a change from there."""
    body = a_deployment("web", replicas=1)
    body["metadata"]["annotations"] = {"kubernetes.io/change-cause": "first"}
    story = told({0.0: lambda client: client.made(DEPLOYMENTS, body)})

    (found,) = story.client.get(REPLICA_SETS)["items"]
    assert {"kubernetes.io/change-cause": "first", REVISION: "1"} == found["metadata"]["annotations"]


def test_a_replica_set_of_a_client_keeps_its_name():
    """Then the pods belong to the Deployment itself."""
    stored: dict[str, Any] = {}

    def create(client: Any) -> None:
        name = f"web-{template_version(client.get(f'{DEPLOYMENTS}/web'))}"
        client.delete(f"{DEPLOYMENTS}/web")
        stored.update(client.made(REPLICA_SETS, a_workload(name, replicas=0)))
        client.made(DEPLOYMENTS, a_deployment("web", replicas=1))

    story = told({0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=0)), 1.0: create})

    (pod,) = story.client.get(f"{PODS}?labelSelector=app%3Dweb")["items"]
    assert [stored["metadata"]["uid"]] == [one["metadata"]["uid"] for one in story.client.get(REPLICA_SETS)["items"]]
    assert ["Deployment"] == [one[0] for one in controllers_of(pod)]


def test_a_rollout_without_room_shows_how_far_it_is():
    """Four pods of one core fill the node, and no old pod may stop before a new one is ready."""
    body = a_deployment("web", replicas=4)
    body["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    story = told(
        {
            0.0: lambda client: client.made(DEPLOYMENTS, body),
            50.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", with_image("api"), STRATEGIC),
            60.0: conditions,
        }
    )

    status = story.client.get(f"{DEPLOYMENTS}/web")["status"]
    assert (5, 1, 4, "ReplicaSetUpdated") == (
        status["replicas"],
        status["updatedReplicas"],
        status["readyReplicas"],
        status["conditions"][1]["reason"],
    )
    assert [("1", "web:1", 4, 4), ("2", "api:1", 1, 0)] == replica_sets(story.client)


def test_a_deployment_is_available_when_its_pods_are_ready():
    """Three pods of one core; the node has room for four cores, then five are wanted."""
    story = told(
        {
            0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web", replicas=3)),
            10.0: lambda client: found.append(conditions(client)),
            20.0: lambda client: client.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 5}}),
            30.0: lambda client: found.append(conditions(client)),
        }
    )
    assert story.settled
    assert [{"Available": "True", "Progressing": "True"}, {"Available": "False", "Progressing": "True"}] == found


found: list[dict[str, str]] = []


def conditions(client: Any) -> dict[str, str]:
    return {one["type"]: one["status"] for one in client.get(f"{DEPLOYMENTS}/web")["status"]["conditions"]}


def test_a_stateful_set_starts_one_pod_after_the_other():
    story = told(
        {0.0: lambda client: client.made(f"{APPS}/statefulsets", a_workload("db", replicas=2, serviceName="db"))}
    )

    assert [(0.0, "pod-bound", "d-0"), (0.0, "pod-bound", "d-1")] == happened(story)
    assert ["db-0", "db-1"] == story.client.names(f"{PODS}?labelSelector=app%3Ddb")
    assert (2, 2) == tuple(
        story.client.get(f"{APPS}/statefulsets/db")["status"][name] for name in ("replicas", "readyReplicas")
    )


def test_a_daemon_set_has_a_pod_on_every_node():
    story = told({0.0: lambda client: client.made(f"{APPS}/daemonsets", a_workload("log"))}, nodes=3)
    pods = story.client.get(f"{PODS}?labelSelector=app%3Dlog")["items"]

    assert ["n1", "n2", "n3"] == sorted(pod["spec"]["nodeName"] for pod in pods)
    assert 3 == story.client.get(f"{APPS}/daemonsets/log")["status"]["numberReady"]


def test_a_job_ends_with_its_last_completion():
    job = {"metadata": {"name": "sum"}, "spec": {"completions": 3, "parallelism": 2}}
    job["spec"]["template"] = a_template("sum", seconds=10, restartPolicy="Never")
    story = told({0.0: lambda client: client.made(JOBS, job)})

    assert [
        (0.0, "pod-bound", "s-1"),
        (0.0, "pod-bound", "s-2"),
        (10.0, "pod-finished", "s-1"),
        (10.0, "pod-finished", "s-2"),
        (10.0, "pod-bound", "s-3"),
        (20.0, "pod-finished", "s-3"),
    ] == happened(story)
    status = story.client.get(f"{JOBS}/sum")["status"]
    assert (3, 0, "2026-01-01T00:00:20Z", "Complete") == (
        status["succeeded"],
        status["active"],
        status["completionTime"],
        status["conditions"][0]["type"],
    )


def test_the_parallelism_of_a_job_can_change_and_its_template_stays():
    job = {"metadata": {"name": "sum"}, "spec": {"completions": 3, "parallelism": 1}}
    job["spec"]["template"] = a_template("sum", seconds=10, restartPolicy="Never")
    answers = []
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"parallelism": 2}}
    story = told(
        {
            0.0: lambda client: client.made(JOBS, job),
            5.0: lambda client: answers.append(client.patch(f"{JOBS}/sum", change)[0]),
        }
    )

    assert [200] == answers
    assert [(0.0, "s-1"), (5.0, "s-2"), (10.0, "s-3")] == [
        (at, name) for at, what, name in happened(story) if what == "pod-bound"
    ]


def test_a_workload_that_cannot_be_simulated_is_refused_and_not_stored():
    answers = []
    body = a_workload("web", replicas=10_000_000)
    story = told({0.0: lambda client: answers.append(client.post(DEPLOYMENTS, body))})

    assert (400, "BadRequest") == (answers[0][0], answers[0][1]["reason"])
    assert "cannot be simulated" in answers[0][1]["message"]
    assert [] == story.client.names(DEPLOYMENTS)


def test_a_replica_set_that_a_client_controls_is_only_kept():
    """The simulator's Deployment manages the pods itself."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-1", "controller": True}
    body = a_workload("web-1", replicas=3)
    body["metadata"]["ownerReferences"] = [owner]
    story = told({0.0: lambda client: client.made(f"{APPS}/replicasets", body)})

    assert [] == happened(story)
    assert ["web-1"] == story.client.names(f"{APPS}/replicasets")


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param("Deployment", "web-0123a", id="deployment"), pytest.param("StatefulSet", "web", id="stateful set")],
)
def test_a_controller_is_named_after_its_object(kind, name):
    assert name == controller_name({"kind": kind, "metadata": {"name": "web", "uid": "0123abcd"}})


def test_a_failed_job_says_so():
    job = {"kind": "Job", "metadata": {}, "spec": {"backoffLimit": 1, "completions": 1}}
    pods = [{"status": {"phase": "Failed"}}] * 2
    status = workload_status(job, pods, "2026-01-01T00:00:00Z")

    assert ("Failed", "BackoffLimitExceeded") == (status["conditions"][0]["type"], status["conditions"][0]["reason"])
