"""Control planes of other versions start and bind pods as the default one does."""

import pytest

from testbed import parts
from tests.integration.testbed.waiting import eventually

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    "version",
    [
        # More control planes would take a quarter of an hour to build where nothing is built yet.
        pytest.param(
            version, marks=[pytest.mark.testbed("kube-scheduler", "kubectl", version=version), pytest.mark.soak]
        )
        for version in parts.SKEWED
    ],
)
def test_a_scheduler_of_another_version_binds_a_pod(bed_factory, version):
    bed = bed_factory(version=version, parts=["kube-scheduler"])
    bed.add_node("n1")
    containers = [{"name": "c", "image": "example.com/none:1"}]
    bed.api("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}})

    assert eventually(lambda: bed.api("GET", f"{PODS}/p")["spec"].get("nodeName")) == "n1"
    assert f"Server Version: v{version}" in bed.kubectl("version")
    assert f"Client Version: v{version}" in bed.kubectl("version")
