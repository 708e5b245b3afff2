"""Manifests of a cluster: what becomes of each kind, and objects that cannot be read."""

import json

import pytest

from lamina.model.cluster_objects import key_of
from lamina.model.errors import InputError
from lamina.model.resources import amounts
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle
from tests.unit.simulator.workloads.imports.harness import around, bring, put, refused

POD = """
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: shop, labels: {app: web}}
spec:
  nodeName: gone
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 5
  activeDeadlineSeconds: 60
  containers: [{name: c, image: "web:1", resources: {requests: {cpu: 250m}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status:
  allocatable: {cpu: "4", memory: 8Gi}
  images: [{names: ["docker.io/library/db:1"], sizeBytes: 5}, {names: ["other:1"], sizeBytes: 5}]
"""


def a_controller(kind="Deployment", name="shop", image="web:1", annotations=None, **spec):
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {"kind": kind, "metadata": {"name": name}, "spec": {"template": template, **spec}}


def a_pod(name, owner_kind="", owner="", phase="Running", image="web:1", **labels):
    owners = [{"kind": owner_kind, "name": owner, "controller": True}] if owner else None
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c", "image": image}]},
        "status": {"phase": phase},
    }


def of(folder, *objects, **entry):
    put(folder, "all.json", json.dumps({"kind": "List", "items": objects}))
    return bring(folder, manifests="all.json", **entry)


def test_a_pod_is_taken_as_it_is_and_placed_anew(tmp_path):
    put(tmp_path, "m.yaml", POD)

    (arrival,) = bring(tmp_path, manifests="m.yaml", at=10.0).arrivals

    pod = arrival.pod
    assert (10.0, "one", "shop", "", ("web:1",)) == (arrival.at, pod.name, pod.namespace, pod.node_name, pod.images)
    assert (("cpu", 250),) == pod.requests
    assert PodLifecycle(restart="OnFailure", grace=5.0, deadline=60.0) == arrival.life


def test_a_node_has_what_it_says_and_the_images_the_scenario_knows(tmp_path):
    put(tmp_path, "m.yaml", f"{NODE}spec: {{unschedulable: true, taints: [{{key: k, effect: NoExecute}}]}}\n")

    (node,) = bring(tmp_path, manifests="m.yaml").nodes

    assert ("n1", {"zone": "a"}) == (node.name, node.labels)
    assert amounts({"cpu": 4, "memory": "8Gi", "pods": 110}) == node.allocatable
    assert [("db:1",)] == [image.names for image in node.holds]
    assert ["k", "node.kubernetes.io/unschedulable"] == [taint.key for taint in node.taints]


@pytest.mark.parametrize(
    ("controller", "kind", "replicas", "parallelism"),
    [
        pytest.param(a_controller("Deployment", replicas=3), "Deployment", 3, 1, id="Deployment"),
        pytest.param(a_controller("Deployment"), "Deployment", 1, 1, id="one by default"),
        pytest.param(a_controller("Deployment", replicas=0), "Deployment", 0, 1, id="none"),
        pytest.param(a_controller("StatefulSet", replicas=2), "StatefulSet", 2, 1, id="StatefulSet"),
        pytest.param(a_controller("DaemonSet"), "DaemonSet", 1, 1, id="DaemonSet"),
        pytest.param(a_controller("ReplicaSet", replicas=2), "Deployment", 2, 1, id="ReplicaSet of its own"),
        pytest.param(a_controller("Job", completions=6, parallelism=2), "Job", 6, 2, id="Job"),
        pytest.param(a_controller("Job", parallelism=4), "Job", 4, 4, id="Job without a number of completions"),
    ],
)
def test_controllers_become_controllers(tmp_path, controller, kind, replicas, parallelism):
    (found,) = of(tmp_path, controller).controllers

    assert (kind, "shop", replicas, parallelism) == (found.kind, found.name, found.replicas, found.parallelism)
    assert ("web:1",) == found.template.images


@pytest.mark.parametrize(
    ("strategy", "surge", "unavailable"),
    [
        pytest.param({}, 0.25, 0.25, id="upstream's defaults"),
        pytest.param({"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}, 2, 0, id="numbers"),
        pytest.param({"rollingUpdate": {"maxSurge": "50%"}}, 0.5, 0.25, id="shares"),
    ],
)
def test_how_a_deployment_rolls_out(tmp_path, strategy, surge, unavailable):
    (found,) = of(tmp_path, a_controller(strategy=strategy)).controllers

    assert (surge, unavailable) == (found.surge, found.unavailable)


def test_pods_of_controllers_that_are_there_are_not_counted_twice(tmp_path):
    replica_set = a_controller("ReplicaSet", "shop-5f", replicas=2)
    replica_set["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "shop", "controller": True}]
    objects = [
        a_controller("Deployment", "shop", replicas=2),
        replica_set,
        a_pod("shop-5f-x", "ReplicaSet", "shop-5f"),
        a_pod("shop-7c-x", "ReplicaSet", "shop-7c", **{"pod-template-hash": "7c"}),
        a_pod("lonely", "ReplicaSet", "elsewhere"),
        a_pod("over", phase="Succeeded"),
    ]

    imported = of(tmp_path, *objects)

    assert (["lonely"], ["shop"]) == (
        [one.pod.name for one in imported.arrivals],
        [one.name for one in imported.controllers],
    )


def test_other_kinds_are_counted_and_told(tmp_path):
    objects = [{"kind": "CronJob"}, {"kind": "Secret"}, {"kind": "Secret"}, a_pod("over", phase="Failed")]

    assert [
        f"{tmp_path}/all.json: 1 × CronJob left out",
        f"{tmp_path}/all.json: 2 × Secret left out",
        f"{tmp_path}/all.json: 1 × Pod that has ended left out",
    ] == list(of(tmp_path, *objects).notes)


def test_budgets_claims_and_services_are_kept_once(tmp_path):
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 1},
    }
    service = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}

    kept = [str(key_of(one.found)) for one in of(tmp_path, budget, service, claim).objects]

    assert ["PodDisruptionBudget shop/web", "Service default/web", "PersistentVolumeClaim default/data"] == kept
    with pytest.raises(InputError, match="there is a second Service default/web"):
        of(tmp_path, service, service)
    with pytest.raises(InputError, match="either minAvailable or maxUnavailable"):
        of(tmp_path, {**budget, "spec": {}})


def test_a_node_of_another_platform_is_left_out(tmp_path):
    node = {"kind": "Node", "metadata": {"name": "w", "labels": {"kubernetes.io/os": "windows"}}}

    imported = of(tmp_path, node)

    assert ((), [f"{tmp_path}/all.json: 1 × Node for windows/amd64 left out"]) == (imported.nodes, list(imported.notes))


def test_a_folder_is_read_in_the_order_of_its_names_in_all_forms(tmp_path):
    (tmp_path / "deep").mkdir()
    put(tmp_path, "b.yml", f"{POD}---\n{NODE}")
    put(tmp_path, "a.json", json.dumps({"kind": "PodList", "items": [{**a_pod("zero"), "kind": ""}]}))
    put(tmp_path, "deep/c.yaml", f"kind: List\nitems:\n- {json.dumps(a_pod('two'))}\n")
    put(tmp_path, "notes.txt", "nothing")

    imported = bring(tmp_path, manifests=".")

    assert ["zero", "one", "two"] == [one.pod.name for one in imported.arrivals]
    assert ["n1"] == [node.name for node in imported.nodes]


def test_pods_of_one_name_in_two_namespaces_get_names_of_their_own(tmp_path):
    put(tmp_path, "m.yaml", f"{POD}---\n{POD.replace('shop', 'bank')}")

    assert ["one", "bank-one"] == [one.pod.name for one in bring(tmp_path, manifests="m.yaml").arrivals]


def test_stages_say_how_long_a_pod_runs_and_what_it_uses(tmp_path):
    stages = "- seconds: 5\n  resourceUsage: {cpu: 1, memory: 2Gi}\n- seconds: 10\n"
    pod = a_pod("one")
    pod["metadata"]["annotations"] = {"simSpec": stages}

    (arrival,) = of(tmp_path, pod).arrivals

    expected = (LifecycleStage(5.0, (("cpu", 1000), ("memory", 2 * 1024**3))), LifecycleStage(10.0))
    assert (15.0, expected, "Never") == (arrival.life.seconds, arrival.life.stages, arrival.life.restart)


def test_a_job_that_never_ends_is_noted_and_one_with_stages_is_not(tmp_path):
    endless, ending = a_controller("Job", "a"), a_controller("Job", "b", annotations={"simSpec": "[{seconds: 3}]"})

    assert ["1 Jobs say not how long they run and never end (a); add the annotation simSpec"] == list(
        of(tmp_path, endless, ending).notes
    )


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        pytest.param("[{seconds: -1}]", "-1 is negative; write 0 or more", id="negative"),
        pytest.param("[{seconds: .nan}]", "expected text or a number", id="NaN"),
        pytest.param("[{second: 1}]", "unknown field 'second'; did you mean 'seconds'?", id="misspelled"),
        pytest.param("[]", "must have 1 to 10000 phases, found 0", id="none"),
        pytest.param("[{seconds: 1", "not valid YAML", id="no YAML"),
    ],
)
def test_what_is_wrong_with_stages(tmp_path, stages, told):
    pod = a_pod("one")
    pod["metadata"]["annotations"] = {"simSpec": stages}
    put(tmp_path, "m.json", json.dumps(pod))

    (mistake,) = refused(tmp_path, manifests="m.json")

    assert mistake.startswith("m.json:1: metadata.annotations.simSpec: "), mistake
    assert told in mistake


def test_an_image_nobody_knows_is_refused_unless_popularity_may_decide(tmp_path):
    put(tmp_path, "m.json", json.dumps(a_pod("one", image="wbe:1")))

    hint = "did you mean 'web:1'? or say unknownImages: popularity"
    assert [f"m.json:1: there is no image 'wbe:1'; {hint}"] == refused(tmp_path, manifests="m.json")
    (arrival,) = bring(tmp_path, manifests="m.json", unknown_images="popularity").arrivals
    assert arrival.pod.images[0] in {"web:1", "api:1", "db:1"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(
            '{"kind": "List", "items": [', "m.yaml:1: cannot be read as JSON: it ends in the middle", id="cut JSON"
        ),
        pytest.param("kind: Pod\nmetadata: [", "m.yaml:2: not valid YAML", id="cut YAML"),
        pytest.param("- 1\n", "m.yaml:1: is no Kubernetes object", id="a list of numbers"),
        pytest.param("metadata: {name: x}\n", "m.yaml:1: says not what it is; add kind", id="no kind"),
        pytest.param("kind: Pod\nspec: {}\n", "m.yaml:1: a pod has no name", id="no name"),
        pytest.param("kind: Pod\nmetadata: 5\n", "m.yaml:1: cannot read Pod", id="strange metadata"),
        pytest.param(NODE.replace("8Gi", "lots"), "m.yaml:2: cannot read Node n1", id="strange memory"),
        pytest.param(
            "kind: Node\nmetadata: {name: n}\n", "m.yaml:1: status.allocatable: a node says not", id="an empty node"
        ),
        pytest.param(f"{NODE}---{NODE}", "m.yaml:9: there is a second node 'n1'", id="a node twice"),
        pytest.param(
            "kind: Job\nmetadata: {name: j}\n", "m.yaml:1: spec.template: its pods have no container", id="no pod"
        ),
        pytest.param(
            "kind: Deployment\nspec: {replicas: -1}\n", "m.yaml:1: cannot read Deployment", id="less than none"
        ),
        pytest.param(b"\xff\xfe", "m.yaml:1: is not text in UTF-8", id="another encoding"),
        pytest.param("", "m.yaml:1: nothing in it", id="empty"),
    ],
)
def test_what_is_wrong_with_a_manifest(tmp_path, content, told):
    put(tmp_path, "m.yaml", content)

    (mistake,) = refused(tmp_path, manifests="m.yaml")

    assert mistake.startswith(told), mistake


def test_a_pod_that_fits_on_no_node_is_refused(tmp_path):
    put(tmp_path, "m.yaml", f"{NODE}---\n{POD.replace('250m', '9')}")

    assert ["m.yaml:10: the pod asks for 9 cpu, but the largest node, n1, has 4"] == refused(
        tmp_path, manifests="m.yaml"
    )


def test_a_folder_without_manifests_is_refused(tmp_path):
    put(tmp_path, "notes.txt", "nothing")

    (told,) = refused(tmp_path, around(), manifests=".")

    assert "has no manifest: they end in .yaml" in told
