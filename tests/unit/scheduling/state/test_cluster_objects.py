"""Cluster objects: kept by class, namespace and name, and restored from a snapshot."""

import msgspec
import pytest

from lamina.model.cluster_objects import ObjectKey, key_of
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.events import ObjectGone, ObjectSeen
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.cluster_state import ClusterSnapshot, ClusterState

WEB = PodDisruptionBudget(namespace="shop", name="web", disruptions_allowed=1)
KEY = ObjectKey("PodDisruptionBudget", "shop", "web")


def test_an_object_is_found_by_class_namespace_and_name():
    objects = ClusterObjects()
    objects.put(WEB)

    assert (WEB, None) == (
        objects.get(PodDisruptionBudget, "shop", "web"),
        objects.get(PodDisruptionBudget, "other", "web"),
    )


@pytest.mark.parametrize(
    ("changed", "editions"),
    [
        pytest.param(WEB, 1, id="the same object again changes nothing"),
        pytest.param(msgspec.structs.replace(WEB, disruptions_allowed=0), 2, id="another state is a change"),
    ],
)
def test_the_edition_of_a_kind_counts_its_changes(changed, editions):
    objects = ClusterObjects()
    objects.put(WEB)
    objects.put(changed)

    assert editions == objects.edition(PodDisruptionBudget)


def test_a_removed_object_leaves_nothing_but_its_edition():
    objects = ClusterObjects()
    objects.put(WEB)

    assert (WEB, None) == (objects.remove(key_of(WEB)), objects.remove(KEY))
    assert ((), 2) == (objects.snapshot(), objects.edition(PodDisruptionBudget))


def test_the_cluster_state_follows_objects():
    state = ClusterState()
    state.apply(ObjectSeen(WEB))
    assert [WEB] == list(state.context.objects.all_of(PodDisruptionBudget))

    state.apply(ObjectGone(KEY))
    assert [] == list(state.context.objects.all_of(PodDisruptionBudget))


def test_a_snapshot_holds_the_objects_and_survives_encoding():
    state, restored = ClusterState(), ClusterState()
    state.apply(ObjectSeen(WEB))

    data = msgspec.msgpack.encode(state.snapshot())
    restored.restore(msgspec.msgpack.decode(data, type=ClusterSnapshot))

    assert WEB == restored.objects.get(PodDisruptionBudget, "shop", "web")
    assert state.snapshot() == restored.snapshot()


def test_a_key_is_printed_as_kind_and_name():
    assert ("PodDisruptionBudget shop/web", "PersistentVolume disk") == (
        str(KEY),
        str(ObjectKey("PersistentVolume", "", "disk")),
    )


def test_objects_of_a_namespace_are_listed_without_those_of_others():
    objects = ClusterObjects()
    other = msgspec.structs.replace(WEB, namespace="other")
    objects.put(WEB)
    objects.put(other)
    assert [WEB] == list(objects.in_namespace(PodDisruptionBudget, "shop"))

    objects.remove(KEY)
    assert ([], [other]) == (
        list(objects.in_namespace(PodDisruptionBudget, "shop")),
        list(objects.in_namespace(PodDisruptionBudget, "other")),
    )
