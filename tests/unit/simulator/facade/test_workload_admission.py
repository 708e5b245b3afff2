"""Admission of workloads; expected objects and messages are those of a real server of 1.36 for the same requests."""

import pytest

from lamina.simulator.facade.admission import admit_create
from lamina.simulator.facade.api_errors import StatusError
from tests.unit.simulator.facade.admission_objects import TYPES, admit, context, refusal, workload

TEMPLATE_SPEC = {
    "containers": [
        {
            "name": "c",
            "image": "x",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": TEMPLATE_SPEC}
SELECTOR = {"matchLabels": {"a": "b"}}
MISMATCH = 'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'


def job(restart="Never", **spec):
    pod_spec = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": restart}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u1"},
        "spec": {"template": {"spec": {key: value for key, value in pod_spec.items() if value}}, **spec},
    }


def generated(name="j", uid="u1"):
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        pytest.param(
            "Deployment",
            {
                "replicas": 1,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            {},
            id="deployment",
        ),
        pytest.param("ReplicaSet", {"replicas": 1}, {"replicas": 0}, id="replica set"),
        pytest.param(
            "StatefulSet",
            {
                "replicas": 1,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            },
            {"replicas": 0, "availableReplicas": 0},
            id="stateful set",
        ),
        pytest.param(
            "DaemonSet",
            {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "revisionHistoryLimit": 10,
            },
            {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
            id="daemon set",
        ),
    ],
)
def test_a_workload_gets_the_defaults_of_the_real_server(kind, spec, status):
    found = admit(workload(kind))

    assert found["spec"] == {"selector": SELECTOR, "template": TEMPLATE, **spec}
    assert found["status"] == status
    assert found["metadata"]["generation"] == 1


def test_a_deployment_that_recreates_has_no_rolling_update():
    assert admit(workload("Deployment", strategy={"type": "Recreate"}))["spec"]["strategy"] == {"type": "Recreate"}


def test_half_a_rolling_update_gets_the_other_half():
    found = admit(workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 1}}, replicas=0))["spec"]

    assert found["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}}
    assert found["replicas"] == 0


def test_a_template_gets_no_requests_from_its_limits():
    container = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1000m"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}

    found = admit(workload("Deployment", template=template))["spec"]["template"]["spec"]

    assert found["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert "tolerations" not in found


def test_a_claim_template_of_a_stateful_set_gets_defaults():
    claims = [{"metadata": {"name": "v"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}]

    assert admit(workload("StatefulSet", volumeClaimTemplates=claims))["spec"]["volumeClaimTemplates"] == [
        {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "metadata": {"name": "v"},
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"},
        }
    ]


def test_a_replication_controller_selects_the_labels_of_its_template():
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    found = admit({**workload("ReplicationController"), "apiVersion": "v1", "spec": {"template": template}})

    assert found["spec"] == {"replicas": 1, "selector": {"a": "b"}, "template": TEMPLATE}
    assert found["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("api_version", "defaulted"),
    [
        pytest.param("extensions/v1beta1", True, id="extensions"),
        pytest.param("apps/v1beta1", True, id="apps/v1beta1"),
        pytest.param("apps/v1beta2", False, id="apps/v1beta2"),
        pytest.param("apps/v1", False, id="apps/v1"),
    ],
)
def test_old_versions_of_workloads_select_the_labels_of_their_template(api_version, defaulted):
    found = workload("Deployment", selector=None)
    type_ = TYPES.find("apps", "v1", "deployments")

    if defaulted:
        admitted = admit_create(type_, found, context(), api_version=api_version)
        assert admitted["spec"]["selector"] == SELECTOR
        assert admitted["metadata"]["labels"] == {"a": "b"}
    else:
        with pytest.raises(StatusError, match=r"spec\.selector: Required value"):
            admit_create(type_, found, context(), api_version=api_version)


@pytest.mark.parametrize(
    ("found", "problems"),
    [
        pytest.param(workload("Deployment", selector=None), f"[spec.selector: Required value, {MISMATCH}]", id="none"),
        pytest.param(workload("Deployment", selector={"matchLabels": {"a": "c"}}), MISMATCH, id="another value"),
        pytest.param(
            workload("ReplicaSet", selector={"matchExpressions": [{"key": "z", "operator": "Exists"}]}),
            MISMATCH,
            id="expression",
        ),
        pytest.param(workload("DaemonSet", selector=None), MISMATCH, id="daemon set"),
        pytest.param(
            workload("Deployment", selector={}),
            "spec.selector: Invalid value: {}: empty selector is invalid for workloads",
            id="empty",
        ),
        pytest.param(
            workload("Deployment", replicas=-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            id="negative replicas",
        ),
        pytest.param(
            workload("Deployment", template=None),
            "[spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, "
            "spec.template.spec.containers: Required value]",
            id="no template",
        ),
        pytest.param(
            workload("StatefulSet", restart="Never"),
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            id="restart policy",
        ),
    ],
)
def test_a_workload_that_the_server_refuses_is_refused_in_its_words(found, problems):
    error = refusal(found)

    assert error.code == 422
    assert error.message == f'{found["kind"]}.apps "w" is invalid: {problems}'


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        pytest.param("In", ["b", "c"], True, id="in"),
        pytest.param("In", ["c"], False, id="not among the values"),
        pytest.param("NotIn", ["c"], True, id="not in"),
        pytest.param("Exists", [], True, id="exists"),
        pytest.param("DoesNotExist", [], False, id="does not exist"),
        pytest.param("Like", [], False, id="unknown operator"),
    ],
)
def test_a_selector_may_have_expressions(operator, values, matches):
    found = workload(
        "Deployment", selector={"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}
    )

    if matches:
        assert admit(found)
    else:
        assert MISMATCH in refusal(found).message


def test_a_job_gets_a_selector_and_labels_that_connect_it_with_its_pods():
    found = admit(job())

    assert found["spec"] == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
        "template": {"metadata": {"labels": generated()}, "spec": {**TEMPLATE_SPEC, "restartPolicy": "Never"}},
    }
    assert found["metadata"]["labels"] == generated()


def test_a_job_keeps_its_own_labels():
    found = job()
    found["metadata"]["labels"] = {"q": "r"}

    assert admit(found)["metadata"]["labels"] == {"q": "r"}


@pytest.mark.parametrize(
    ("given", "completions", "parallelism"),
    [
        pytest.param({}, 1, 1, id="nothing"),
        pytest.param({"parallelism": 3}, None, 3, id="a work queue"),
        pytest.param({"completions": 5}, 5, 1, id="a number of completions"),
    ],
)
def test_a_job_without_completions_is_a_work_queue_if_it_is_parallel(given, completions, parallelism):
    found = admit(job(**given))["spec"]

    assert (found.get("completions"), found["parallelism"]) == (completions, parallelism)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(
            job(restart=None),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            id="restart policy",
        ),
        pytest.param(job(completions=-1, parallelism=-2), "spec.completions: Invalid value: -1", id="negative"),
        pytest.param(job(selector=SELECTOR), "`selector` not auto-generated", id="own selector"),
        pytest.param(
            {**job(), "metadata": {"name": "j" * 64, "uid": "u"}},
            f'spec.template.labels: Invalid value: "{"j" * 64}": must be no more than 63 bytes',
            id="name that fits no label",
        ),
    ],
)
def test_a_job_that_the_server_refuses_is_refused_in_its_words(found, words):
    assert words in refusal(found).message


def test_a_job_may_have_its_own_selector_if_it_says_so():
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }

    found = admit(job(manualSelector=True, selector=SELECTOR, template=template))

    assert found["spec"]["selector"] == SELECTOR
    assert found["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_a_cron_job_gets_defaults():
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job()["spec"]}}

    found = admit({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec})["spec"]

    assert found["jobTemplate"]["spec"]["template"]["spec"] == {**TEMPLATE_SPEC, "restartPolicy": "Never"}
    assert {name: found[name] for name in found if name not in ("schedule", "jobTemplate")} == {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
