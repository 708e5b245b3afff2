"""The work of VolumeBinding in virtual time: requests, waits, outcomes."""

from typing import Any

import pytest
from msgspec.structs import replace

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.events import WorkDone, WorkFailed
from lamina.model.volumes import BindVolumes, ClaimRef, PersistentVolumeClaim, VolumeReservation
from lamina.scheduling.contract.commands import DoWork
from lamina.simulator.cluster import Delays, VirtualCluster
from lamina.simulator.controllers.claim_controller import ClaimController
from lamina.simulator.engine import Environment
from lamina.simulator.run.volume_work import TOO_LATE, VolumeWork
from lamina.testing import a_pod
from lamina.testing.volume_builders import a_claim, a_class, a_volume
from tests.unit.simulator.test_run import a_node_spec

DATA = ClaimRef("default", "data", "data")


class WorkStory:
    """A cluster whose volumes take 5 s, and the answers to work."""

    def __init__(self, *objects: ClusterObject) -> None:
        self.environment = Environment()
        self.answers: list[tuple[float, object]] = []
        self.cluster = VirtualCluster(self.environment, [], Delays(), self)
        for name in ("n1", "n2"):
            self.cluster.join(a_node_spec(name))
        ClaimController(self.environment, self.cluster, 5.0)
        self.work = VolumeWork(self.environment, self.cluster, self)
        for one in objects:
            self.cluster.objects.put(one)
        self.environment.run(0.0)

    def note(self, _: object) -> None:
        """Receive a record for the trace, which nothing here reads."""

    def publish(self, event: object) -> None:
        if isinstance(event, WorkDone | WorkFailed):
            self.answers.append((self.environment.now, event))

    def begin(self, *, attempt: int = 1, node: str = "n1", **task: Any) -> None:
        self.work.begin(DoWork(a_pod("p"), node, "VolumeBinding", attempt, None), BindVolumes(node, **task))
        self.environment.run(self.environment.now)


def done(attempt: int = 1) -> WorkDone:
    return WorkDone(a_pod("p").uid, "VolumeBinding", attempt)


def failed(reason: str, attempt: int = 1) -> WorkFailed:
    return WorkFailed(a_pod("p").uid, "VolumeBinding", attempt, reason)


def test_a_pod_waits_until_the_volume_of_its_claim_is_made():
    story = WorkStory(a_class(), a_claim())
    story.begin(provisions=(DATA,))
    story.environment.run(60.0)

    assert [(5.0, done())] == story.answers


def test_a_volume_that_exists_is_bound_at_once():
    story = WorkStory(a_class(), a_claim(), a_volume())
    story.begin(reservations=(VolumeReservation("v1", DATA),))

    assert [(0.0, done())] == story.answers


@pytest.mark.parametrize(
    ("objects", "task", "reason"),
    [
        pytest.param((), {"provisions": (DATA,)}, 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(
            (replace(a_claim(), uid="new"),),
            {"provisions": (DATA,)},
            'persistentvolumeclaim "data" was replaced',
            id="another claim of this name",
        ),
        pytest.param(
            (a_claim(selected="n2"),),
            {"provisions": (DATA,)},
            'persistentvolumeclaim "data" is being provisioned for node "n2"',
            id="another node",
        ),
        pytest.param(
            (a_claim(),),
            {"reservations": (VolumeReservation("v1", DATA),)},
            'persistentvolume "v1" not found',
            id="no volume",
        ),
        pytest.param(
            (a_claim(), a_volume(claim=ClaimRef("default", "other", "o"))),
            {"reservations": (VolumeReservation("v1", DATA),)},
            'persistentvolume "v1" is not free any more',
            id="a volume of another claim",
        ),
    ],
)
def test_work_that_cannot_begin_fails_at_once(objects, task, reason):
    story = WorkStory(*objects)
    story.begin(**task)

    assert [(0.0, failed(reason))] == story.answers


def test_a_claim_that_is_deleted_meanwhile_ends_the_wait():
    story = WorkStory(a_class(), a_claim())
    story.begin(provisions=(DATA,))
    story.environment.at(2.0, story.cluster.objects.remove, ObjectKey("PersistentVolumeClaim", "default", "data"))
    story.environment.run(60.0)

    assert [(2.0, failed('binding volumes: persistentvolumeclaim "data" not found'))] == story.answers


def test_a_provisioner_that_gives_up_ends_the_wait():
    story = WorkStory(a_class(), a_claim())
    story.begin(provisions=(DATA,))
    claim = story.cluster.objects.get(PersistentVolumeClaim, "default", "data")
    assert claim is not None
    story.environment.at(2.0, story.cluster.objects.put, replace(claim, selected_node=None))
    story.environment.run(60.0)

    assert [(2.0, failed('binding volumes: provisioning failed for PVC "data"'))] == story.answers


def test_the_wait_has_an_end_and_a_later_attempt_replaces_an_earlier_one():
    story = WorkStory(a_class("other"), a_claim())
    story.begin(provisions=(DATA,), timeout=10.0)
    story.environment.run(4.0)
    story.begin(provisions=(DATA,), timeout=20.0, attempt=2)
    story.environment.run(60.0)

    assert [(24.0, failed(TOO_LATE, 2))] == story.answers
