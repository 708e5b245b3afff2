"""Deployments, Jobs and CronJobs: how many pods they want, and who owns them."""

import msgspec
import pytest

from lamina.model.pod import Owner
from lamina.model.pod_controllers import CronJob, Deployment, Job
from lamina.wire.errors import WireError
from lamina.wire.kube.cluster_object import decode_cluster_object

META = {"namespace": "shop", "name": "web"}
BY_CRON = {
    "ownerReferences": [
        {"kind": "CronJob", "name": "nightly", "uid": "u", "apiVersion": "batch/v1", "controller": True}
    ]
}


@pytest.mark.parametrize(
    ("kind", "written", "expected"),
    [
        pytest.param(
            "Deployment",
            {"metadata": META, "spec": {"replicas": 3}},
            Deployment(namespace="shop", name="web", replicas=3),
            id="deployment",
        ),
        pytest.param(
            "Job",
            {"metadata": {**META, **BY_CRON}, "spec": {"parallelism": 4, "completions": 80}},
            Job(
                namespace="shop",
                name="web",
                replicas=4,
                completions=80,
                owner=Owner("CronJob", "nightly", "u", "batch/v1"),
            ),
            id="job of a cron job",
        ),
        pytest.param(
            "CronJob",
            {"metadata": META, "spec": {"schedule": "@daily"}},
            CronJob(namespace="shop", name="web"),
            id="cron",
        ),
        pytest.param("Job", {"metadata": META}, Job(namespace="shop", name="web"), id="no spec"),
    ],
)
def test_a_controller_is_read(kind, written, expected):
    assert decode_cluster_object(kind, msgspec.json.encode(written)) == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        pytest.param(b'{"kind": "Pod"}', "this is a Pod; ask for jobs", id="another kind"),
        pytest.param(b'{"spec": {"parallelism": "many"}}', "parallelism", id="a text instead of a number"),
        pytest.param(b"{", "check that a Kubernetes API server sent it", id="no JSON"),
    ],
)
def test_anything_else_is_refused(written, message):
    with pytest.raises(WireError, match=message):
        decode_cluster_object("Job", written)
