"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod_volumes import PodVolume
from lamina.model.volumes import CSINode, DriverLimit, VolumeAttachment
from lamina.testing import a_node, a_pod
from lamina.testing.volume_builders import a_claim, a_class, a_volume, with_claims
from tests.unit.scheduling.plugins.volume_bench import VolumeBench, chosen, reasons

PLUGINS = ("PrioritySort", "NodeVolumeLimits", "DefaultBinder")
FULL = "0/1 nodes are available: 1 node(s) exceed max volume count."


def limit(count: int | None, driver: str = "disks.example") -> CSINode:
    return CSINode(name="a", drivers=(DriverLimit(driver, count),))


CLAIMS = [*(a_claim(f"c{n}", volume=f"v{n}") for n in (1, 2, 3)), *(a_volume(f"v{n}") for n in (1, 2, 3))]


def bench(*objects, there=("c1", "c2")) -> VolumeBench:
    made = VolumeBench(a_node("a"), *CLAIMS, *objects, plugins=PLUGINS)
    made.add(with_claims(a_pod("there", on="a"), *there))
    return made


@pytest.mark.parametrize(
    ("objects", "claims", "fits"),
    [
        pytest.param([], ["c3"], True, id="no limits are reported"),
        pytest.param([limit(None)], ["c3"], True, id="the driver has no limit"),
        pytest.param([limit(3)], ["c3"], True, id="just enough: 2 attached, 1 new"),
        pytest.param([limit(2)], ["c3"], False, id="one too many"),
        pytest.param([limit(0)], ["c3"], False, id="none at all"),
        pytest.param([limit(2)], ["c1"], True, id="a volume that is attached already"),
        pytest.param([limit(2, "other.example")], ["c3"], True, id="the limit of another driver"),
        pytest.param([limit(2), a_claim("c3", volume="w"), a_volume("w", driver="")], ["c3"], True, id="not of CSI"),
        pytest.param([limit(2), a_class(), a_claim("new")], ["new"], False, id="a volume that is still to be made"),
        pytest.param([limit(2), a_claim("new")], ["new"], True, id="of a class that is missing"),
        pytest.param(
            [
                limit(3),
                VolumeAttachment(name="x", driver="disks.example", node="a", volume="v3"),
                a_claim("c4", volume="v4"),
                a_volume("v4"),
            ],
            ["c4"],
            False,
            id="an attachment that no pod uses counts",
        ),
        pytest.param(
            [limit(3), VolumeAttachment(name="x", driver="disks.example", node="a", volume="v1")],
            ["c3"],
            True,
            id="an attachment of a volume in use counts once",
        ),
    ],
)
def test_the_volumes_of_a_pod_must_fit_within_the_limits_of_their_drivers(objects, claims, fits):
    commands = bench(*objects).add(with_claims(a_pod("p"), *claims))

    assert fits == bool(chosen(commands))
    assert fits or reasons(commands)["p"].startswith(FULL)


def test_a_volume_that_two_pods_share_counts_once():
    made = bench(limit(3), there=("c1", "c2"))
    made.add(with_claims(a_pod("also", on="a"), "c1", "c2"))

    assert {"p": "a"} == chosen(made.add(with_claims(a_pod("p"), "c3")))


def test_a_disk_that_precedes_csi_counts_for_the_driver_that_took_it_over():
    made = VolumeBench(a_node("a"), limit(1, "ebs.csi.aws.com"), plugins=PLUGINS)
    pods = [
        msgspec.structs.replace(a_pod(name), volumes=(PodVolume("awsElasticBlockStore", disk),))
        for name, disk in (("p1", "d1"), ("p2", "d1"), ("p3", "d2"))
    ]
    commands = made.add(*pods)

    assert {"p1": "a", "p2": "a"} == chosen(commands)
    assert reasons(commands)["p3"].startswith(FULL)


def test_a_pod_waits_until_a_pod_with_volumes_is_gone():
    made = bench(limit(2))
    made.add(with_claims(a_pod("p"), "c3"))
    made.loop.feed(events.TimePassed(9.0))

    assert {"p": "a"} == chosen(made.loop.feed(events.PodGone("there")))


def test_a_higher_limit_wakes_a_pod():
    made = bench(limit(2))
    made.add(with_claims(a_pod("p"), "c3"))
    made.loop.feed(events.TimePassed(9.0))

    assert {"p": "a"} == chosen(made.see(limit(3)))


def test_a_missing_claim_is_named():
    assert 'looking up PVC default/x: persistentvolumeclaim "x" not found' in bench().refusals(
        with_claims(a_pod("p"), "x")
    )
