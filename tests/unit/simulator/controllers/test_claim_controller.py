"""Claims of a simulated cluster are bound, and volumes are made for them after the delay of the scenario."""

import pytest
from msgspec.structs import replace

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.selectors import IN, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.volumes import ClaimRef, CSINode, DriverLimit, PersistentVolume, PersistentVolumeClaim, StorageClass
from lamina.simulator.cluster import Delays, VirtualCluster
from lamina.simulator.controllers.claim_controller import ClaimController
from lamina.simulator.engine import Environment
from lamina.testing.volume_builders import GIB, a_claim, a_class, a_volume
from tests.unit.simulator.test_run import a_node_spec


class ClaimStory:
    """A cluster with node n1 in zone a; making a volume takes 5 s."""

    def __init__(self, *objects: ClusterObject) -> None:
        self.environment = Environment()
        self.cluster = VirtualCluster(self.environment, [], Delays(), self)
        self.cluster.join(replace(a_node_spec("n1"), labels={"zone": "a"}))
        ClaimController(self.environment, self.cluster, 5.0)
        for one in objects:
            self.cluster.objects.put(one)
        self.environment.run(0.0)

    def note(self, _: object) -> None:
        """Receive a record for the trace, which nothing here reads."""

    publish = note

    def claim(self, name: str = "data") -> PersistentVolumeClaim:
        found = self.cluster.objects.get(PersistentVolumeClaim, "default", name)
        assert found is not None
        return found

    def volume(self, name: str) -> PersistentVolume | None:
        return self.cluster.objects.get(PersistentVolume, "", name)

    def until(self, time: float) -> None:
        self.environment.run(time)


def test_a_claim_waits_for_its_first_consumer_and_then_for_its_volume():
    story = ClaimStory(a_class(), replace(a_claim(), phase=""))
    assert ("Pending", False) == (story.claim().phase, story.claim().bound)

    story.cluster.objects.put(replace(story.claim(), selected_node="n1"))
    story.until(4.9)
    assert not story.claim().bound

    story.until(5.0)
    assert ("Bound", "pvc-data", True) == (story.claim().phase, story.claim().volume_name, story.claim().bound)
    made = story.volume("pvc-data")
    assert made is not None
    assert (GIB, "disks.example", ClaimRef("default", "data", "data")) == (made.size, made.driver, made.claim)


@pytest.mark.parametrize(
    ("of_class", "bound"),
    [
        pytest.param(a_class(waits=False), True, id="a class that does not wait"),
        pytest.param(a_class(), False, id="a class that waits"),
        pytest.param(a_class(waits=False, provisioner="kubernetes.io/no-provisioner"), False, id="no provisioner"),
        pytest.param(a_class("other", waits=False), False, id="no class of this name"),
    ],
)
def test_only_classes_that_do_not_wait_get_volumes_at_once(of_class: StorageClass, bound: bool):
    story = ClaimStory(a_claim(), of_class)
    story.until(9.0)

    assert bound == story.claim().bound


def test_a_volume_that_is_reserved_for_a_claim_is_bound_at_once():
    story = ClaimStory(a_class(), a_claim(), replace(a_volume(), phase=""))
    free = story.volume("v1")
    assert free is not None
    assert "Available" == free.phase

    story.cluster.objects.put(replace(free, claim=ClaimRef("default", "data", "data")))
    story.until(0.0)

    assert ("v1", True) == (story.claim().volume_name, story.claim().bound)


def test_a_volume_reaches_the_nodes_that_its_driver_names():
    reported = CSINode(name="n1", drivers=(DriverLimit("disks.example", 8, ("zone", "rack")),))
    story = ClaimStory(a_class(), reported, a_claim(selected="n1"))
    story.until(5.0)

    made = story.volume("pvc-data")
    assert made is not None
    assert NodeSelector((NodeSelectorTerm((Requirement("zone", IN, ("a",)),)),)) == made.affinity


def test_a_claim_that_is_deleted_meanwhile_gets_no_volume():
    story = ClaimStory(a_class(), a_claim(selected="n1"))
    story.cluster.objects.remove(ObjectKey("PersistentVolumeClaim", "default", "data"))
    story.until(9.0)

    assert [] == list(story.cluster.objects.all_of(PersistentVolume))


def test_a_made_volume_goes_with_its_claim_and_another_one_is_released():
    story = ClaimStory(a_class(), a_claim("made", selected="n1"), a_claim("held"), a_volume())
    held = story.volume("v1")
    assert held is not None
    story.cluster.objects.put(replace(held, claim=ClaimRef("default", "held", "held")))
    story.until(5.0)
    assert (True, True) == (story.claim("made").bound, story.claim("held").bound)

    for name in ("made", "held"):
        story.cluster.objects.remove(ObjectKey("PersistentVolumeClaim", "default", name))
    story.until(6.0)

    assert [("v1", "Released")] == [(one.name, one.phase) for one in story.cluster.objects.all_of(PersistentVolume)]


def test_a_claim_without_a_uid_gets_one_and_keeps_it():
    story = ClaimStory(replace(a_claim(), uid=""))
    assert "claim-1" == story.claim().uid

    story.cluster.objects.put(replace(story.claim(), uid="", selected_node="n1"))

    assert "claim-1" == story.claim().uid
