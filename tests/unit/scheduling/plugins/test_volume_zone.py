"""VolumeZone: pods stay in the zones and regions of their bound volumes."""

import pytest

from lamina.testing import a_node, a_pod
from lamina.testing.volume_builders import a_claim, a_class, a_volume, with_claims
from tests.unit.scheduling.plugins.volume_bench import VolumeBench, chosen, reasons

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
PLUGINS = ("PrioritySort", "VolumeZone", "DefaultBinder")
POD = with_claims(a_pod("p"), "data")


@pytest.mark.parametrize(
    ("volume", "node", "passes"),
    [
        pytest.param({}, {ZONE: "east"}, True, id="a volume without zones"),
        pytest.param({ZONE: "east"}, {ZONE: "east"}, True, id="the same zone"),
        pytest.param({ZONE: "east"}, {ZONE: "west"}, False, id="another zone"),
        pytest.param({ZONE: "east__west"}, {ZONE: "west"}, True, id="one of its zones"),
        pytest.param({ZONE: "east__"}, {ZONE: "west"}, True, id="an empty zone: the label is ignored"),
        pytest.param({ZONE: "east"}, {}, True, id="a node without zones"),
        pytest.param({ZONE: "east"}, {REGION: "eu"}, False, id="a node with a region only"),
        pytest.param({ZONE: "east", REGION: "eu"}, {ZONE: "east", REGION: "us"}, False, id="another region"),
        pytest.param({OLD_ZONE: "east"}, {ZONE: "east"}, True, id="the old label, and a node with the new one"),
        pytest.param({OLD_ZONE: "east"}, {OLD_ZONE: "east", ZONE: "west"}, True, id="the node's old label wins"),
        pytest.param({ZONE: "east"}, {OLD_ZONE: "east"}, False, id="the new label, and a node with the old one"),
    ],
)
def test_a_node_must_be_in_the_zones_of_a_bound_volume(volume, node, passes):
    bench = VolumeBench(a_node("a", labels=node), a_claim(volume="v1"), a_volume(labels=volume), plugins=PLUGINS)
    commands = bench.add(POD)

    assert passes == bool(chosen(commands))
    assert passes or reasons(commands)["p"].startswith(
        "0/1 nodes are available: 1 node(s) had no available volume zone."
    )


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param([a_claim(volume="v1")], 'persistentvolume "v1" not found', id="no volume"),
        pytest.param(
            [a_claim(of_class="")], "PersistentVolumeClaim had no pv name and storageClass name", id="neither"
        ),
        pytest.param([a_claim()], 'storageclass.storage.k8s.io "slow" not found', id="no class"),
        pytest.param([a_claim(), a_class(waits=False)], "PersistentVolume had no name", id="not bound yet"),
    ],
)
def test_a_pod_whose_volumes_are_unknown_is_refused_in_upstreams_words(objects, want):
    bench = VolumeBench(a_node("a"), *objects, plugins=PLUGINS)

    assert bench.refusals(POD).startswith(f"0/1 nodes are available: {want}.")


def test_a_claim_that_waits_for_its_first_consumer_passes():
    assert {"p": "a"} == chosen(VolumeBench(a_node("a"), a_claim(), a_class(), plugins=PLUGINS).add(POD))


def test_a_pod_without_a_name_for_its_claim_is_refused():
    bench = VolumeBench(a_node("a"), plugins=PLUGINS)

    assert "PersistentVolumeClaim had no name" in bench.refusals(with_claims(a_pod("p"), ""))
