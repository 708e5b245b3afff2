"""VolumeBinding: which nodes can serve the claims of a pod, what is reserved, and what is done before binding."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.errors import LaminaError
from lamina.model.pod_volumes import EPHEMERAL, PodVolume
from lamina.model.selectors import LabelSelector
from lamina.model.volumes import BindVolumes, ClaimRef, CSIDriver, CSIStorageCapacity, VolumeReservation
from lamina.scheduling.config.loader import load
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import a_node, a_pod
from lamina.testing.volume_builders import GIB, a_claim, a_class, a_volume, one_of, with_claims
from tests.unit.scheduling.plugins.volume_bench import VolumeBench, chosen, reasons, reservations, work

A, B = (a_node(name, labels={"host": name, "zone": zone}) for name, zone in (("a", "east"), ("b", "west")))
POD = with_claims(a_pod("p"), "data")
PREFIX = "0/2 nodes are available: "
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
MANUAL = a_class(provisioner="kubernetes.io/no-provisioner")


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param([a_claim(deleting=True)], 'persistentvolumeclaim "data" is being deleted', id="deleted"),
        pytest.param(
            [a_claim(volume="v9", phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v9"',
            id="lost",
        ),
        pytest.param(
            [a_class(waits=False), a_claim()], "pod has unbound immediate PersistentVolumeClaims", id="immediate"
        ),
        pytest.param([a_claim()], "pod has unbound immediate PersistentVolumeClaims", id="a class that is missing"),
        pytest.param([a_claim(of_class="")], "pod has unbound immediate PersistentVolumeClaims", id="no class"),
        pytest.param(
            [a_class(), msgspec.structs.replace(a_claim(), volume_name="v1")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="bound, and not completed",
        ),
        pytest.param(
            [a_claim(volume="v1")],
            "2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            id="a volume that is missing",
        ),
        pytest.param([a_claim(volume="v1"), a_volume(on=["c"])], f"2 {OUT_OF_REACH}", id="a volume on another node"),
        pytest.param([MANUAL, a_claim()], f"2 {NO_MATCH}", id="no volume, and nothing that makes one"),
        pytest.param(
            [a_class(only=one_of("zone", "north")), a_claim()], f"2 {NO_MATCH}", id="volumes are made elsewhere"
        ),
        pytest.param([a_class(), a_claim(selected="c")], f"2 {NO_MATCH}", id="selected for a node that is gone"),
        pytest.param(
            [a_class(), a_claim(), CSIDriver(name="disks.example", storage_capacity=True)],
            "2 node(s) did not have enough free storage",
            id="no capacity is reported",
        ),
    ],
)
def test_a_pod_that_no_node_can_serve_is_refused_in_upstreams_words(objects, want):
    bench = VolumeBench(A, B, *objects, plugins=("PrioritySort", "VolumeBinding", "DefaultBinder"))

    assert bench.refusals(POD).startswith(PREFIX + want)


@pytest.mark.parametrize(
    ("volume", "claim"),
    [
        pytest.param(a_volume(size=GIB - 1), a_claim(), id="too small"),
        pytest.param(a_volume(of_class="fast"), a_claim(), id="of another class"),
        pytest.param(a_volume(), a_claim(modes=["ReadWriteMany"]), id="without the access mode"),
        pytest.param(a_volume(phase="Released"), a_claim(), id="not available"),
        pytest.param(a_volume(claim=ClaimRef("default", "other")), a_claim(), id="reserved for another claim"),
        pytest.param(a_volume(claim=ClaimRef("default", "data", "old")), a_claim(), id="for an older claim"),
        pytest.param(msgspec.structs.replace(a_volume(), deleting=True), a_claim(), id="being deleted"),
        pytest.param(msgspec.structs.replace(a_volume(), volume_mode="Block"), a_claim(), id="a block device"),
        pytest.param(msgspec.structs.replace(a_volume(), attributes_class="gold"), a_claim(), id="other attributes"),
        pytest.param(
            a_volume(labels={"tier": "b"}),
            msgspec.structs.replace(a_claim(), selector=LabelSelector((("tier", "a"),))),
            id="not selected",
        ),
    ],
)
def test_a_volume_that_does_not_suit_a_claim_is_not_chosen(volume, claim):
    assert {"p": PREFIX + f"2 {NO_MATCH}."} == {
        name: words.split(" preemption")[0]
        for name, words in reasons(VolumeBench(A, B, MANUAL, volume, claim).add(POD)).items()
    }


def test_the_smallest_volume_within_reach_is_reserved():
    """10 GiB on a; 2 GiB and 3 GiB on b: node a is first among equals and has only the large one."""
    volumes = [
        a_volume("v10", size=10 * GIB, on=["a"]),
        a_volume("v3", size=3 * GIB),
        a_volume("v2", size=2 * GIB, on=["b"]),
    ]
    done = work(VolumeBench(A, B, MANUAL, a_claim(), *volumes).add(POD))

    assert ("a", BindVolumes("a", (VolumeReservation("v3", ClaimRef("default", "data", "data")),))) == (
        done.node,
        done.task,
    )


def test_a_volume_that_is_reserved_by_name_is_preferred_to_a_smaller_one():
    reserved = a_volume("mine", size=9 * GIB, on=["b"], claim=ClaimRef("default", "data"))
    done = work(VolumeBench(A, B, MANUAL, a_claim(), a_volume(), reserved).add(POD))

    assert ("b", "mine") == (done.node, reservations(done)[0].volume)


def test_small_claims_choose_first_so_that_both_find_a_volume():
    pod = with_claims(a_pod("p"), "large", "small")
    bench = VolumeBench(
        A, MANUAL, a_claim("large", size=5 * GIB), a_claim("small"), a_volume("v5", size=5 * GIB), a_volume("v1")
    )
    found = reservations(work(bench.add(pod)))

    assert {"large": "v5", "small": "v1"} == {one.claim.name: one.volume for one in found}


def test_two_claims_of_a_pod_never_get_the_same_volume():
    pod = with_claims(a_pod("p"), "one", "two")
    bench = VolumeBench(A, B, MANUAL, a_claim("one"), a_claim("two"), a_volume(on=["a"]))

    assert reasons(bench.add(pod))["p"].startswith(PREFIX + f"2 {NO_MATCH}")


def test_a_claim_without_a_volume_has_one_made_where_its_class_allows_it():
    done = work(VolumeBench(A, B, a_class(only=one_of("zone", "west")), a_claim()).add(POD))

    assert ("b", BindVolumes("b", (), (ClaimRef("default", "data", "data"),))) == (done.node, done.task)


@pytest.mark.parametrize(
    ("capacity", "want"),
    [
        pytest.param({"capacity": GIB}, {"p": "b"}, id="just enough"),
        pytest.param({"capacity": GIB - 1}, {}, id="too little"),
        pytest.param({"capacity": 9 * GIB, "largest": GIB - 1}, {}, id="enough in all, and no volume that large"),
        pytest.param({"capacity": 0, "largest": GIB}, {"p": "b"}, id="the largest volume counts"),
        pytest.param({}, {}, id="nothing known"),
    ],
)
def test_volumes_are_made_where_the_driver_reports_enough_storage(capacity, want):
    topology = LabelSelector((("zone", "west"),))
    reported = CSIStorageCapacity(namespace="x", name="c", class_name="slow", topology=topology, **capacity)
    driver = CSIDriver(name="disks.example", storage_capacity=True)

    assert want == chosen(VolumeBench(A, B, a_class(), a_claim(), driver, reported).add(POD))


def test_a_pod_whose_claims_are_bound_needs_no_work():
    (command,) = (
        one for one in VolumeBench(A, B, a_claim(volume="v1"), a_volume(on=["b"])).add(POD) if isinstance(one, Bind)
    )

    assert "b" == command.node


def test_two_pods_in_flight_never_get_the_same_volume():
    bench = VolumeBench(A, B, MANUAL, a_claim("one"), a_claim("two"), a_volume("v1"), a_volume("v2"))
    commands = bench.add(with_claims(a_pod("p1"), "one"), with_claims(a_pod("p2"), "two"))

    taken = [one.task.reservations[0].volume for one in commands if chosen([one])]
    assert ["v1", "v2"] == taken


def test_a_volume_that_a_failed_pod_gives_back_wakes_the_pod_that_waits_for_it():
    bench = VolumeBench(A, MANUAL, a_claim("one"), a_claim("two"), a_volume("v1"))
    first = work(bench.add(with_claims(a_pod("p1"), "one")))
    assert "p2" in reasons(bench.add(with_claims(a_pod("p2"), "two")))

    bench.loop.feed(events.TimePassed(2.0))
    commands = bench.loop.feed(events.WorkFailed(first.pod.uid, first.plugin, first.attempt, "binding volumes: no"))

    assert {"p2": "a"} == chosen(commands)


def test_a_reservation_stays_while_another_pod_in_flight_has_the_same_claim():
    bench = VolumeBench(A, MANUAL, a_claim("one"), a_claim("two"), a_volume("v1"))
    first = work(bench.add(with_claims(a_pod("p1"), "one")))
    bench.add(with_claims(a_pod("also"), "one"))
    bench.loop.feed(events.WorkFailed(first.pod.uid, first.plugin, first.attempt, "binding volumes: no"))

    assert "p2" in reasons(bench.add(with_claims(a_pod("p2"), "two")))


def test_a_reservation_outlives_an_older_version_of_the_volume():
    """The watch reports a label; the volume is taken all the same."""
    bench = VolumeBench(A, MANUAL, a_claim("one"), a_claim("two"), a_volume("v1"))
    bench.add(with_claims(a_pod("p1"), "one"))
    bench.see(a_volume("v1", labels={"seen": "late"}))

    assert "p2" in reasons(bench.add(with_claims(a_pod("p2"), "two")))


def test_a_pod_is_bound_after_its_volumes():
    bench = VolumeBench(A, a_class(), a_claim())
    done = work(bench.add(POD))
    commands = bench.loop.feed(events.WorkDone(done.pod.uid, done.plugin, done.attempt))

    assert [("p", "a")] == [(one.pod.name, one.node) for one in commands if isinstance(one, Bind)]


def test_a_pod_that_is_deleted_while_its_volumes_are_bound_gives_them_back():
    bench = VolumeBench(A, MANUAL, a_claim("one"), a_claim("two"), a_volume("v1"))
    bench.add(with_claims(a_pod("p1"), "one"))
    bench.loop.feed(events.PodGone("p1"))

    assert {"p2": "a"} == chosen(bench.add(with_claims(a_pod("p2"), "two")))


def test_a_restored_loop_knows_the_volumes_of_pods_in_flight():
    bench = VolumeBench(A, MANUAL, a_claim("one"), a_claim("two"), a_volume("v1"))
    first = work(bench.add(with_claims(a_pod("p1"), "one")))
    twin = VolumeBench()
    twin.loop.restore(bench.loop.snapshot())

    assert "p2" in reasons(twin.add(with_claims(a_pod("p2"), "two")))
    commands = twin.loop.feed(events.WorkDone(first.pod.uid, first.plugin, first.attempt))
    assert ["p1"] == [one.pod.name for one in commands if isinstance(one, Bind)]


EPHEMERAL_POD = msgspec.structs.replace(a_pod("p"), volumes=(PodVolume(EPHEMERAL, "data"),))


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param(
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-data"',
            id="not yet made",
        ),
        pytest.param(
            [a_claim("p-data")],
            "PVC default/p-data was not created for pod default/p (pod is not owner)",
            id="of another owner",
        ),
    ],
)
def test_an_ephemeral_claim_must_belong_to_its_pod(objects, want):
    assert VolumeBench(A, B, a_class(), *objects).refusals(EPHEMERAL_POD).startswith(PREFIX + want)


def test_an_ephemeral_claim_of_the_pod_is_bound_like_any_other():
    assert {"p": "a"} == chosen(VolumeBench(A, B, a_class(), a_claim("p-data", owner="p")).add(EPHEMERAL_POD))


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        pytest.param(a_volume("v2"), True, id="a volume of the class"),
        pytest.param(a_volume("v2", of_class="fast"), False, id="a volume of another class"),
        pytest.param(a_claim("other"), False, id="another claim"),
        pytest.param(a_class("fast"), False, id="another class"),
        pytest.param(a_class(), True, id="the class makes volumes now"),
    ],
)
def test_a_change_wakes_only_pods_that_it_can_help(change, wakes):
    bench = VolumeBench(A, B, MANUAL, a_claim())
    bench.add(POD)
    bench.see(change)
    commands = bench.loop.feed(events.TimePassed(20.0))

    assert wakes == bool(chosen(commands) or reasons(commands))


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({"bindTimeoutSeconds": -1}, "bindTimeoutSeconds", id="a negative timeout"),
        pytest.param({"shape": []}, "unexpected field `shape`", id="a shape, without the feature"),
    ],
)
def test_arguments_that_upstream_rejects_are_rejected(args, want):
    text = msgspec.json.encode(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": args}]}],
        }
    ).decode()
    with pytest.raises(LaminaError, match=want):
        load(text, "c.yaml", registry(entry_points=False))
