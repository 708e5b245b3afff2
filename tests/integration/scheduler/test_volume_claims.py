"""
A scheduler process, the real volume controller, and a provisioner that refuses a node.

The story `volume-claims` does it with StatefulSets, capacities, limits and a time-out.
"""

import pytest

from tests.integration.scheduler.disk_provisioner import (
    DiskProvisioner,
    Refused,
    add_csi_node,
    add_driver,
    claim,
    places,
)
from tests.integration.scheduler.live import Lamina, install, until
from tests.integration.scheduler.truth import pod

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kube-controller-manager")]

PODS = "/api/v1/namespaces/default/pods"
DRIVER, CLASS = "disks.example", "disks"
WITHIN = 60.0


def a_pod(name, liked, *claims):
    """Return a pod that would rather be on the node *liked*."""
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [liked]}]}
    preferred = [{"weight": 100, "preference": here}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, affinity=affinity, volumes=volumes)


def bound(bed, name):
    def node():
        return bed.api("GET", f"{PODS}/{name}")["spec"].get("nodeName", "")

    until(lambda: node() != "", WITHIN, f"{name} is bound")
    return node()


def test_a_refused_pod_goes_elsewhere_and_stays_with_its_volumes(bed_factory):
    bed = bed_factory(parts=("kube-controller-manager",))
    install(bed)
    bed.add_nodes({"name": name} for name in ("n1", "n2", "n3"))
    add_driver(bed, DRIVER, CLASS, reports_room=True)
    for name in ("n1", "n2", "n3"):
        add_csi_node(bed, name, {DRIVER: 2})
    with DiskProvisioner(bed, DRIVER, CLASS, {"n1": 1024, "n2": 1024, "n3": 64}) as provisioner, Lamina(bed) as lamina:
        provisioner.breaks("n1")
        for name in ("a", "b"):
            bed.api("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim(name, CLASS, 128))
        bed.api("POST", PODS, a_pod("p", "n1", "a", "b"))

        # n1 is preferred, refuses and then has no room; n3 has too little.
        assert "n2" == bound(bed, "p")
        assert {"a": "n2", "b": "n2"} == places(bed)
        assert "n1" in {one.node for one in provisioner.refused}
        assert {Refused("default/a", "n1"), Refused("default/b", "n1")} >= {*provisioner.refused}
        assert [] == provisioner.misplaced

        bed.api("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        provisioner.repair("n1", 1024)
        bed.api("POST", PODS, a_pod("p", "n1", "a", "b"))
        assert "n2" == bound(bed, "p")
        assert [] == lamina.complaints()
