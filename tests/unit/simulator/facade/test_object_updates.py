"""Updates: fields that may change, fields that may not, and the generation; messages are those of a real server."""

import copy

import pytest

from lamina.simulator.facade.admission import admit_update
from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.resource_types import ResourceTypes
from tests.unit.simulator.facade.admission_objects import TYPES, admit, cluster_object, pod, workload

ONLY_THESE = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
GATES = [{"name": "g"}, {"name": "h"}]


def required(*keys):
    rules = [{"key": key, "operator": "Exists"} for key in keys]
    terms = [{"matchExpressions": rules}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def update(old, new):
    type_ = TYPES.by_kind(old["apiVersion"], old["kind"])
    before = copy.deepcopy((old, new))
    updated = admit_update(type_, old, new)
    assert (old, new) == before, "an update changed its input"
    return updated


def changed(old, **spec):
    """Return a copy with other fields in its spec; None removes one."""
    merged = {**old["spec"], **spec}
    return {**old, "spec": {name: value for name, value in merged.items() if value is not None}}


def refusal(old, new):
    with pytest.raises(StatusError) as error:
        update(old, new)
    assert error.value.code == 422
    return error.value.message


def with_image(old, image):
    return changed(old, containers=[{**old["spec"]["containers"][0], "image": image}])


JOB_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(resources={"limits": {"cpu": 0.5}}), id="pod"),
        pytest.param(
            pod({"priorityClassName": "high", "hostNetwork": True}, ports=[{"containerPort": 1}]), id="rich pod"
        ),
        pytest.param(workload("Deployment"), id="deployment"),
        pytest.param(workload("ReplicaSet"), id="replica set"),
        pytest.param(workload("StatefulSet", serviceName="s"), id="stateful set"),
        pytest.param(workload("DaemonSet"), id="daemon set"),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "j", "uid": "u"},
                "spec": {"template": JOB_TEMPLATE},
            },
            id="job",
        ),
        pytest.param(cluster_object("Namespace"), id="namespace"),
        pytest.param(cluster_object("PriorityClass", "scheduling.k8s.io/v1", value=3), id="priority class"),
        pytest.param(cluster_object("Secret", stringData={"a": "b"}), id="secret"),
    ],
)
def test_an_update_with_what_the_client_sent_before_changes_nothing(found):
    stored = admit(found)

    again = update(stored, {**copy.deepcopy(found), "status": stored.get("status", {})})

    assert again["metadata"].get("generation") == stored["metadata"].get("generation")
    assert again.get("spec", {}) == stored.get("spec", {}) or found["kind"] == "Namespace"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda old: with_image(old, "y"), id="image"),
        pytest.param(
            lambda old: changed(old, tolerations=[*old["spec"]["tolerations"], {"key": "q", "operator": "Exists"}]),
            id="another toleration",
        ),
        pytest.param(lambda old: changed(old, activeDeadlineSeconds=50), id="earlier deadline"),
        pytest.param(lambda old: changed(old, schedulingGates=GATES[1:]), id="one gate less"),
        pytest.param(lambda old: changed(old, schedulingGates=None), id="no gates"),
        pytest.param(lambda old: changed(old, nodeSelector={"a": "b", "c": "d"}), id="narrower node selector"),
        pytest.param(lambda old: changed(old, affinity=required("k", "l")), id="narrower node affinity"),
    ],
)
def test_what_may_change_in_a_gated_pod_counts_its_generation_up(change):
    spec = {
        "schedulingGates": GATES,
        "activeDeadlineSeconds": 100,
        "nodeSelector": {"a": "b"},
        "affinity": required("k"),
    }
    old = admit(pod(spec))

    assert update(old, change(old))["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda old: changed(old, nodeName="n1"), ONLY_THESE, id="node"),
        pytest.param(lambda old: changed(old, schedulerName="x"), "changed: spec.schedulerName", id="scheduler"),
        pytest.param(lambda old: changed(old, priority=3), "changed: spec.priority", id="priority"),
        pytest.param(lambda old: changed(old, terminationGracePeriodSeconds=1), ONLY_THESE, id="grace period"),
        pytest.param(lambda old: changed(old, nodeSelector={"a": "b"}), ONLY_THESE, id="node selector, no gates"),
        pytest.param(lambda old: changed(old, affinity=required("k")), ONLY_THESE, id="affinity, no gates"),
        pytest.param(
            lambda old: changed(
                old, containers=[{**old["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}]
            ),
            "changed: spec.containers",
            id="resources",
        ),
        pytest.param(
            lambda old: changed(old, containers=[*old["spec"]["containers"], {"name": "z", "image": "z"}]),
            'Pod "p" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers',
            id="another container",
        ),
        pytest.param(
            lambda old: changed(old, tolerations=[{"key": "z", "operator": "Exists"}]),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            id="toleration removed",
        ),
        pytest.param(
            lambda old: changed(old, activeDeadlineSeconds=200),
            "spec.activeDeadlineSeconds: Invalid value: 200: must be less than or equal to previous value",
            id="later deadline",
        ),
        pytest.param(
            lambda old: changed(old, activeDeadlineSeconds=None),
            "Invalid value: null: must not update from a positive integer to nil value",
            id="no deadline",
        ),
        pytest.param(
            lambda old: changed(old, schedulingGates=[{"name": "x"}]),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x'",
            id="new gate",
        ),
    ],
)
def test_what_may_not_change_in_a_pod_is_refused(change, words):
    old = admit(pod({"activeDeadlineSeconds": 100, "tolerations": [{"key": "own", "operator": "Exists"}]}))

    assert words in refusal(old, change(old))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            {"nodeSelector": {"a": "c"}},
            'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed',
            id="other node selector",
        ),
        pytest.param({"affinity": required("l")}, "only additions are allowed (no mutations or deletions)", id="rule"),
        pytest.param({"affinity": None}, "no additions/deletions to non-empty NodeSelectorTerms", id="no terms"),
    ],
)
def test_the_nodes_of_a_gated_pod_may_only_become_fewer(change, words):
    old = admit(pod({"schedulingGates": GATES, "nodeSelector": {"a": "b"}, "affinity": required("k")}))

    assert words in refusal(old, changed(old, **change))


def test_a_negative_grace_period_may_become_one_second():
    old = admit(pod({"terminationGracePeriodSeconds": -1}))

    assert update(old, changed(old, terminationGracePeriodSeconds=1))["spec"]["terminationGracePeriodSeconds"] == 1


def test_labels_do_not_count_as_a_new_generation():
    old = admit(pod())

    assert update(old, {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}})["metadata"]["generation"] == 1


def test_labels_of_an_update_are_checked():
    old = admit(pod())

    assert "metadata.labels: Invalid value" in refusal(
        old, {**old, "metadata": {**old["metadata"], "labels": {"a b": "b"}}}
    )


def test_a_bad_quantity_in_an_update_is_a_bad_request():
    old = admit(workload("Deployment"))
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "x"}}

    with pytest.raises(StatusError, match="quantities must match") as error:
        update(old, new)

    assert error.value.code == 400


def test_annotations_of_a_deployment_count_as_a_new_generation():
    old = admit(workload("Deployment"))
    new = {**old, "metadata": {**old["metadata"], "annotations": {"a": "b"}}}

    assert update(old, new)["metadata"]["generation"] == 2
    assert update(old, changed(old, replicas=3))["metadata"]["generation"] == 2


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_the_selector_of_a_workload_never_changes(kind):
    old = admit(workload(kind))
    new = changed(
        old,
        selector={"matchLabels": {"a": "c"}},
        template={**old["spec"]["template"], "metadata": {"labels": {"a": "c"}}},
    )

    assert refusal(old, new) == (
        f'{kind}.apps "w" is invalid: spec.selector: Invalid value: {{"matchLabels":{{"a":"c"}}}}: field is immutable'
    )


def test_an_update_without_a_selector_keeps_the_stored_one():
    old = admit(workload("Deployment"))

    assert update(old, changed(old, selector=None))["spec"]["selector"] == {"matchLabels": {"a": "b"}}


def test_few_fields_of_a_stateful_set_may_change():
    old = admit(workload("StatefulSet", serviceName="s"))

    assert "updates to statefulset spec for fields other than 'replicas'" in refusal(old, changed(old, serviceName="t"))
    assert update(old, changed(old, replicas=5))["metadata"]["generation"] == 2


def job(**spec):
    return admit(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j", "uid": "u"},
            "spec": {"template": JOB_TEMPLATE, **spec},
        }
    )


def with_job_image(old):
    template = copy.deepcopy(old["spec"]["template"])
    template["spec"]["containers"][0]["image"] = "y"
    return changed(old, template=template)


def test_completions_and_template_of_a_job_never_change():
    old = job()

    assert "spec.completions: Invalid value: 3: field is immutable" in refusal(old, changed(old, completions=3))
    assert "spec.template: Invalid value: " in refusal(old, with_job_image(old))
    assert update(old, changed(old, parallelism=3))["metadata"]["generation"] == 2


def test_the_template_of_a_suspended_job_may_change():
    old = job(suspend=True)

    assert update(old, with_job_image(old))["metadata"]["generation"] == 2


def test_an_indexed_job_may_change_completions_and_parallelism_together():
    old = job(completionMode="Indexed", completions=2, parallelism=2)

    assert update(old, changed(old, completions=4, parallelism=4))["spec"]["completions"] == 4
    assert "field is immutable" in refusal(old, changed(old, completions=4))


def test_a_job_with_its_own_selector_keeps_it():
    template = {**JOB_TEMPLATE, "metadata": {"labels": {"a": "b"}}}
    old = job(manualSelector=True, selector={"matchLabels": {"a": "b"}}, template=template)

    assert update(old, changed(old, suspend=True))["spec"]["selector"] == {"matchLabels": {"a": "b"}}


@pytest.mark.parametrize(
    ("old", "change", "words"),
    [
        pytest.param(
            cluster_object("PriorityClass", "scheduling.k8s.io/v1", value=3),
            {"value": 4},
            "value: Forbidden: may not be changed in an update.",
            id="value of a priority class",
        ),
        pytest.param(
            cluster_object("PriorityClass", "scheduling.k8s.io/v1", value=3),
            {"preemptionPolicy": "Never"},
            'preemptionPolicy: Invalid value: "Never": field is immutable',
            id="policy of a priority class",
        ),
        pytest.param(
            cluster_object("ConfigMap", data={"a": "b"}, immutable=True),
            {"data": {}},
            "data: Forbidden: field is immutable when `immutable` is set",
            id="immutable data",
        ),
        pytest.param(
            cluster_object("ConfigMap", immutable=True),
            {"immutable": False},
            "immutable: Forbidden: field is immutable when `immutable` is set",
            id="immutable for ever",
        ),
        pytest.param(
            cluster_object("Node", spec={"providerID": "a"}),
            {"spec": {"providerID": "b"}},
            'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
            id="provider of a node",
        ),
    ],
)
def test_fields_of_other_objects_that_never_change(old, change, words):
    stored = admit(old)

    assert words in refusal(stored, {**stored, **change})


def test_the_label_of_a_namespace_comes_back():
    old = admit(cluster_object("Namespace", name="team"))

    found = update(old, {**old, "metadata": {"name": "team", "labels": {"a": "b"}}})

    assert found["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "team"}


@pytest.mark.parametrize(
    ("subresources", "generation"),
    [pytest.param({"status": {}}, 1, id="status subresource"), pytest.param({}, 2, id="status is an ordinary field")],
)
def test_the_status_of_a_custom_resource_counts_if_it_is_an_ordinary_field(subresources, generation):
    type_ = ResourceTypes().add_custom(
        {
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "storage": True, "subresources": subresources}],
            },
        }
    )
    old = {"metadata": {"name": "w", "generation": 1}, "spec": {"a": 1}}

    assert admit_update(type_, old, {**old, "status": {"b": 2}})["metadata"]["generation"] == generation
    assert admit_update(type_, old, {**old, "spec": {"a": 2}})["metadata"]["generation"] == 2
