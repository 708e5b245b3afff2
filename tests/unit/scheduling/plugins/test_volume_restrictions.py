"""VolumeRestrictions: claims for one pod only, and disks that cannot be mounted twice."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.model.pod_volumes import PodVolume
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.status import Code
from lamina.scheduling.plugins.upstream.volume_restrictions.plugin import VolumeRestrictions
from lamina.scheduling.runtime.what_if import refusal_if
from lamina.scheduling.state.hypothesis import as_if
from lamina.scheduling.state.view import everything
from lamina.testing import a_node, a_pod
from lamina.testing.volume_builders import a_claim, with_claims
from tests.unit.scheduling.plugins.volume_bench import VolumeBench, chosen, reasons

PLUGINS = ("PrioritySort", "VolumeRestrictions", "DefaultBinder")
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def disk(kind: str, source: str = "d", **more: object) -> PodVolume:
    return PodVolume(kind, source, **more)


def with_disks(pod: Pod, *disks: PodVolume) -> Pod:
    return msgspec.structs.replace(pod, volumes=disks)


RO = {"read_only": True}
CEPH = {"pool": "rbd", "monitors": ("m1", "m2")}


@pytest.mark.parametrize(
    ("theirs", "mine", "conflict"),
    [
        pytest.param(disk("gcePersistentDisk"), disk("gcePersistentDisk"), True, id="a GCE disk"),
        pytest.param(disk("gcePersistentDisk", **RO), disk("gcePersistentDisk"), True, id="read and written"),
        pytest.param(disk("gcePersistentDisk", **RO), disk("gcePersistentDisk", **RO), False, id="only read"),
        pytest.param(disk("gcePersistentDisk"), disk("gcePersistentDisk", "e"), False, id="another GCE disk"),
        pytest.param(
            disk("awsElasticBlockStore", **RO), disk("awsElasticBlockStore", **RO), True, id="an EBS disk, only read"
        ),
        pytest.param(disk("iscsi"), disk("iscsi", **RO), True, id="an iSCSI disk"),
        pytest.param(disk("iscsi", **RO), disk("iscsi", **RO), False, id="an iSCSI disk, only read"),
        pytest.param(disk("rbd", **CEPH), disk("rbd", **{**CEPH, "monitors": ("m2",)}), True, id="an RBD image"),
        pytest.param(
            disk("rbd", **CEPH), disk("rbd", **{**CEPH, "monitors": ("m3",)}), False, id="of another Ceph cluster"
        ),
        pytest.param(disk("rbd", **CEPH), disk("rbd", **{**CEPH, "pool": "p"}), False, id="of another pool"),
        pytest.param(disk("rbd", **CEPH, **RO), disk("rbd", **CEPH, **RO), False, id="an RBD image, only read"),
        pytest.param(disk("cinder"), disk("cinder"), False, id="a disk of a kind that does not conflict"),
    ],
)
def test_two_pods_on_a_node_share_a_disk_only_if_it_allows_that(theirs, mine, conflict):
    bench = VolumeBench(a_node("a"), plugins=PLUGINS)
    bench.add(with_disks(a_pod("there", on="a"), theirs))
    commands = bench.add(with_disks(a_pod("p"), mine))

    assert conflict == reasons(commands).get("p", "").startswith(
        "0/1 nodes are available: 1 node(s) had no available disk"
    )
    assert conflict == (not chosen(commands))


def test_a_claim_for_one_pod_closes_all_nodes_to_a_second_pod():
    bench = VolumeBench(a_node("a"), a_node("b"), a_claim(modes=["ReadWriteOncePod"]), plugins=PLUGINS)
    commands = bench.add(with_claims(a_pod("p1"), "data"), with_claims(a_pod("p2"), "data"))

    assert {"p1": "a"} == chosen(commands)
    assert reasons(commands)["p2"].startswith(f"0/2 nodes are available: 2 {IN_USE}.")


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        pytest.param(a_claim(), with_claims(a_pod("q", on="a"), "data"), id="another access mode"),
        pytest.param(a_claim(modes=["ReadWriteOncePod"]), with_claims(a_pod("q", on="a"), "other"), id="another claim"),
        pytest.param(
            a_claim(modes=["ReadWriteOncePod"]),
            with_claims(a_pod("q", on="a", namespace="x"), "data"),
            id="a claim of the same name in another namespace",
        ),
    ],
)
def test_other_claims_do_not_close_nodes(claim, other):
    bench = VolumeBench(a_node("a"), claim, plugins=PLUGINS)
    bench.add(other)

    assert {"p": "a"} == chosen(bench.add(with_claims(a_pod("p"), "data")))


def test_a_pod_waits_until_the_other_pod_is_gone():
    bench = VolumeBench(a_node("a"), a_claim(modes=["ReadWriteOncePod"]), plugins=PLUGINS)
    bench.add(with_claims(a_pod("p1", on="a"), "data"))
    bench.add(with_claims(a_pod("p2"), "data"))
    bench.loop.feed(events.TimePassed(9.0))

    assert {"p2": "a"} == chosen(bench.loop.feed(events.PodGone("p1")))


def test_a_pod_with_a_claim_that_does_not_exist_is_refused_until_it_does():
    bench = VolumeBench(a_node("a"), plugins=PLUGINS)
    commands = bench.add(with_claims(a_pod("p"), "data"))
    bench.loop.feed(events.TimePassed(9.0))

    assert 'persistentvolumeclaim "data" not found' in reasons(commands)["p"]
    assert {"p": "a"} == chosen(bench.see(a_claim()))


def test_evicting_the_other_pod_would_help():
    bench = VolumeBench(a_node("a"), a_claim(modes=["ReadWriteOncePod"]), plugins=PLUGINS)
    other = with_claims(a_pod("p1", on="a"), "data")
    bench.add(other)
    columns, profile = bench.loop.cluster.columns, bench.loop.profiles["default-scheduler"]
    pod = with_claims(a_pod("p2"), "data")

    refusal = refusal_if(profile, as_if(columns), pod, 0)
    assert refusal is not None
    assert ((IN_USE,), False) == (refusal.reasons, refusal.final)
    assert refusal_if(profile, as_if(columns, gone=[(0, other)]), pod, 0) is None
    assert refusal_if(profile, as_if(columns, gone=[(0, other)], there=[(0, other)]), pod, 0) is not None


def test_a_pod_without_volumes_is_skipped():
    bench = VolumeBench(a_node("a"), plugins=PLUGINS)
    plugin = bench.loop.profiles["default-scheduler"].plugins["VolumeRestrictions"]
    assert isinstance(plugin, VolumeRestrictions)

    skipped = plugin.pre_filter(CycleState(), a_pod(), everything(bench.loop.cluster.columns))

    assert skipped is not None
    assert skipped.code is Code.SKIP
