"""Volumes are requested once, never against another writer, and awaited until they are bound or it is too late."""

import asyncio
import json

import msgspec
import pytest

from lamina.model.events import Event, WorkDone, WorkFailed
from lamina.model.volumes import BindVolumes, ClaimRef, PersistentVolume, PersistentVolumeClaim, VolumeReservation
from lamina.scheduling.contract.commands import DoWork
from lamina.services.scheduler.volume_worker import ATTEMPTS, NOT_LEADING, TOO_LATE, VolumeWorker
from lamina.testing import a_pod
from lamina.testing.volume_builders import a_claim, a_volume
from tests.unit.services.fakes import LOST, ScriptedClient, leaping, refused

CLAIM = ClaimRef("default", "data", "data")
RESERVE = BindVolumes("n1", (VolumeReservation("v1", CLAIM),))
SELECT = BindVolumes("n1", (), (CLAIM,))
BOUND = a_claim(volume="v1")
TAKEN = a_volume(claim=CLAIM)


def served_volume(version: str = "7", claim: dict[str, str] | None = None) -> bytes:
    return json.dumps({"metadata": {"name": "v1", "resourceVersion": version}, "spec": {"claimRef": claim}}).encode()


def served_claim(node: str | None = None, uid: str = "data", volume: str = "") -> bytes:
    annotations = {} if node is None else {"volume.kubernetes.io/selected-node": node}
    metadata = {"name": "data", "namespace": "default", "uid": uid, "resourceVersion": "7", "annotations": annotations}
    return json.dumps({"metadata": metadata, "spec": {"volumeName": volume}}).encode()


class Caches:
    """The claim and the volume as the watches show them, and from when on."""

    def __init__(self, *steps: tuple[float, PersistentVolumeClaim | None, PersistentVolume | None]) -> None:
        self.steps = steps
        self.began = asyncio.get_running_loop().time()

    def _now(self) -> tuple[float, PersistentVolumeClaim | None, PersistentVolume | None]:
        passed = asyncio.get_running_loop().time() - self.began
        return [step for step in self.steps if step[0] <= passed][-1]

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._now()[1]

    def volume(self, name: str) -> PersistentVolume | None:
        return self._now()[2]


def outcome(
    task: BindVolumes,
    client: ScriptedClient,
    *steps: tuple[float, PersistentVolumeClaim | None, PersistentVolume | None],
    may_act: bool = True,
    wanted_for: float = 1e9,
) -> tuple[list[Event], float]:
    """Return the answers to one piece of work, and after how many seconds the work ended."""

    async def story() -> tuple[list[Event], float]:
        loop = asyncio.get_running_loop()
        said: list[Event] = []
        began = loop.time()
        worker = VolumeWorker(
            client,
            said.append,
            Caches(*(steps or [(0.0, BOUND, TAKEN)])),
            wanted=lambda command: loop.time() - began < wanted_for,
            may_act=lambda: may_act,
        )
        worker.perform(DoWork(a_pod("p"), "n1", "VolumeBinding", 1, task), task)
        running = asyncio.create_task(worker.run())
        while not said and loop.time() - began < min(wanted_for + 5.0, 1000.0):
            await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return said, loop.time() - began

    return leaping(story())


DONE = [WorkDone("p", "VolumeBinding", 1)]


def failed(reason: str) -> list[Event]:
    return [WorkFailed("p", "VolumeBinding", 1, reason)]


def test_a_volume_is_reserved_for_the_claim_as_it_was_read():
    client = ScriptedClient(served_volume())
    said, _ = outcome(RESERVE, client)

    assert DONE == said
    assert ["GET v1", "PATCH v1"] == client.short
    assert {
        "metadata": {"resourceVersion": "7", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "data",
                "uid": "data",
            }
        },
    } == json.loads(client.asked[1].body)


def test_a_volume_that_an_operator_reserved_is_not_marked_as_bound_by_a_controller():
    client = ScriptedClient(served_volume(claim={"namespace": "default", "name": "data"}))
    outcome(RESERVE, client)

    assert {"resourceVersion": "7"} == json.loads(client.asked[1].body)["metadata"]


def test_a_node_is_selected_for_the_claim():
    client = ScriptedClient(served_claim())
    said, _ = outcome(SELECT, client, (0.0, a_claim(selected="n1"), None), (3.5, BOUND, None))

    assert DONE == said
    assert {"volume.kubernetes.io/selected-node": "n1"} == json.loads(client.asked[1].body)["metadata"]["annotations"]
    assert ["GET data", "PATCH data"] == client.short


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        pytest.param(RESERVE, served_volume(claim=msgspec.structs.asdict(CLAIM)), id="a volume"),
        pytest.param(SELECT, served_claim("n1"), id="a claim for the same node"),
        pytest.param(SELECT, served_claim(volume="v1"), id="a claim that has a volume"),
    ],
)
def test_what_is_written_already_is_not_written_again(task, answer):
    client = ScriptedClient(answer)

    assert DONE == outcome(task, client)[0]
    assert ["GET"] == [one.method for one in client.asked]


@pytest.mark.parametrize(
    ("task", "answer", "want"),
    [
        pytest.param(
            RESERVE,
            served_volume(claim={"namespace": "default", "name": "other", "uid": "other"}),
            'persistentvolume "v1" is not free any more',
            id="another claim has the volume",
        ),
        pytest.param(
            SELECT,
            served_claim("n2"),
            'persistentvolumeclaim "data" is being provisioned for node "n2"',
            id="another node is selected",
        ),
        pytest.param(SELECT, served_claim(uid="new"), 'persistentvolumeclaim "data" was replaced', id="a new claim"),
    ],
)
def test_what_another_writer_changed_is_never_overwritten(task, answer, want):
    client = ScriptedClient(answer)

    assert failed(want) == outcome(task, client)[0]
    assert ["GET"] == [one.method for one in client.asked]


def test_a_write_is_repeated_after_a_conflict_or_a_lost_response():
    client = ScriptedClient(LOST, served_volume(), refused(409), served_volume("8"))

    assert DONE == outcome(RESERVE, client)[0]
    assert "8" == json.loads(client.asked[-1].body)["metadata"]["resourceVersion"]


def test_writes_end_after_some_attempts():
    client = ScriptedClient(then=LOST)
    said, _ = outcome(RESERVE, client)

    assert isinstance(said[0], WorkFailed)
    assert ATTEMPTS == len(client.asked)


def test_a_refused_write_is_not_repeated():
    client = ScriptedClient(refused(403))

    assert outcome(RESERVE, client)[0][0].reason.startswith("binding volumes: ")
    assert 1 == len(client.asked)


def test_nothing_is_written_without_leadership():
    client = ScriptedClient(served_volume())

    assert failed(NOT_LEADING) == outcome(RESERVE, client, may_act=False)[0]
    assert ["GET"] == [one.method for one in client.asked]


@pytest.mark.parametrize(
    ("task", "steps", "want"),
    [
        pytest.param(
            RESERVE,
            [(0.0, a_claim(), TAKEN), (5.0, a_claim(), a_volume())],
            'ClaimRef got reset for pv "v1"',
            id="reset",
        ),
        pytest.param(RESERVE, [(0.0, None, TAKEN)], 'persistentvolumeclaim "data" not found', id="deleted"),
        pytest.param(
            SELECT,
            [(0.0, a_claim(selected="n1"), None), (5.0, a_claim(), None)],
            'provisioning failed for PVC "data"',
            id="the provisioner gives up",
        ),
    ],
)
def test_work_that_was_undone_fails(task, steps, want):
    client = ScriptedClient(served_volume() if task is RESERVE else served_claim())

    assert failed(f"binding volumes: {want}") == outcome(task, client, *steps)[0]


def test_a_claim_that_is_never_bound_fails_after_the_timeout():
    said, took = outcome(
        msgspec.structs.replace(SELECT, timeout=30.0),
        ScriptedClient(served_claim()),
        (0.0, a_claim(selected="n1"), None),
    )

    assert failed(TOO_LATE) == said
    assert 30.0 <= took <= 32.0


def test_work_for_a_pod_that_is_gone_ends_without_an_answer():
    said, _ = outcome(SELECT, ScriptedClient(served_claim()), (0.0, a_claim(selected="n1"), None), wanted_for=10.0)

    assert [] == said
