"""Laws of volumes: whatever happens, two claims never get one volume, and two pods never use a claim for one pod."""

import itertools
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.cluster_objects import key_of
from lamina.model.pod import Pod
from lamina.model.volumes import BindVolumes, ClaimRef, PersistentVolume, PersistentVolumeClaim
from lamina.scheduling.contract.commands import Bind, Command, DoWork
from lamina.scheduling.loop.loop import Loop
from lamina.testing import a_loop, a_node, a_pod
from lamina.testing.volume_builders import GIB, a_claim, a_class, a_volume, with_claims

PLUGINS = (
    "PrioritySort",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "DefaultBinder",
)
NODES = ("a", "b", "c")
CLAIMS = tuple(f"c{number}" for number in range(5))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "pod", "done", "fail", "delete", "time", "watch", "relabel", "restart", "node"]),
        st.integers(0, 99),
    ),
    min_size=8,
    max_size=40,
)
SIZES = st.lists(st.tuples(st.integers(2, 3), st.sampled_from([(), (), ("a",), ("a", "b")])), min_size=1, max_size=4)


class Storage:
    """A cluster with volumes: does the work that the loop asks for, late or never, and checks every write."""

    def __init__(self, volumes: list[tuple[int, tuple[str, ...]]], once: list[bool], *, provisions: bool) -> None:
        self.loop = self.new_loop()
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.pods: dict[str, Pod] = {}
        self.bound: dict[str, Pod] = {}
        self.work: list[DoWork] = []
        self.unseen: list[Any] = []
        self.numbers = itertools.count()
        provisioner = "disks.example" if provisions else "kubernetes.io/no-provisioner"
        for number, (size, on) in enumerate(volumes):
            self.put(a_volume(f"v{number}", size=size * GIB, on=on))
        for number, (name, alone) in enumerate(zip(CLAIMS, once, strict=True)):
            modes = ["ReadWriteOncePod"] if alone else ["ReadWriteOnce"]
            self.put(a_claim(name, size=(1 + number % 2) * GIB, modes=modes))
        self.volumes = {
            name: msgspec.structs.replace(one, access_modes=("ReadWriteOnce", "ReadWriteOncePod"))
            for name, one in self.volumes.items()
        }
        self.unseen = [*self.volumes.values(), *self.claims.values(), a_class(provisioner=provisioner)]
        self.do(*(events.NodeSeen(a_node(name, labels={"host": name})) for name in NODES))
        self.watch()

    @staticmethod
    def new_loop() -> Loop:
        return a_loop(PLUGINS)

    def put(self, found: PersistentVolume | PersistentVolumeClaim) -> None:
        """Write an object; the loop sees it later."""
        kept: dict[str, Any] = self.volumes if isinstance(found, PersistentVolume) else self.claims
        kept[found.name] = found
        self.unseen = [one for one in self.unseen if key_of(one) != key_of(found)]
        self.unseen.append(found)

    def watch(self) -> None:
        """Let the loop see all objects as they are."""
        seen, self.unseen = self.unseen, []
        self.do(*map(events.ObjectSeen, seen))

    def do(self, *happened: events.Event) -> None:
        for command in self.loop.feed(*happened):
            self.perform(command)

    def perform(self, command: Command) -> None:
        if isinstance(command, DoWork):
            self.check(command)
            self.work.append(command)
        elif isinstance(command, Bind):
            pod = msgspec.structs.replace(command.pod, node_name=command.node)
            for volume in pod.volumes:
                claim = self.claims[volume.source]
                assert claim.bound, f"{pod.name} is bound before {claim.name}"
                others = [one.name for one in self.bound.values() if volume in one.volumes and one.name != pod.name]
                assert not (others and "ReadWriteOncePod" in claim.access_modes), f"{claim.name}: {others}, {pod.name}"
            self.bound[pod.name] = pod
            self.do(events.PodSeen(pod))

    def check(self, command: DoWork) -> None:
        """Check that no volume in flight is requested for two claims."""
        assert isinstance(command.task, BindVolumes)
        wanted = {one.volume: one.claim for other in self.live_work() for one in other.task.reservations}
        for one in command.task.reservations:
            assert wanted.get(one.volume, one.claim) == one.claim, f"{one.volume} for two claims"
            volume = self.volumes[one.volume]
            assert volume.claim in (None, one.claim), f"{one.volume} belongs to {volume.claim}"
            assert volume.size >= (self.claims[one.claim.name].size or 0)

    def live_work(self) -> list[Any]:
        cycles = ((one, self.loop.bindings.get(one.pod.uid)) for one in self.work)
        # Work of an earlier attempt is dropped: the API server would refuse its write, because the volume has changed.
        return [one for one, cycle in cycles if cycle is not None and cycle.queued.attempts == one.attempt]

    def finish(self, command: DoWork) -> None:
        """Do the work as the volume controller would, and report it."""
        assert isinstance(command.task, BindVolumes)
        for one in command.task.reservations:
            self.bind(self.volumes[one.volume], one.claim)
        for wanted in command.task.provisions:
            if not self.claims[wanted.name].bound:
                made = a_volume(f"made-for-{wanted.name}", size=9 * GIB, on=[command.task.node])
                self.bind(made, wanted)
        self.do(events.WorkDone(command.pod.uid, command.plugin, command.attempt))

    def bind(self, volume: PersistentVolume, claim: ClaimRef) -> None:
        assert volume.claim in (None, claim), f"{volume.name} is given to two claims"
        self.put(msgspec.structs.replace(volume, claim=claim, phase="Bound"))
        kept = self.claims[claim.name]
        self.put(msgspec.structs.replace(kept, volume_name=volume.name, completed=True, phase="Bound"))

    def step(self, what: str, number: int) -> None:
        """Let one thing happen."""
        live = self.live_work()
        match what:
            case "pod":
                names = {CLAIMS[number % len(CLAIMS)], CLAIMS[(number if number < 70 else number // 7) % len(CLAIMS)]}
                pod = with_claims(a_pod(f"p{next(self.numbers)}"), *sorted(names))
                self.pods[pod.name] = pod
                self.do(events.PodSeen(pod))
            case "done" if live:
                self.finish(live[number % len(live)])
            case "fail" if live:
                one = live[number % len(live)]
                self.do(events.WorkFailed(one.pod.uid, one.plugin, one.attempt, "no"))
            case "delete" if self.pods:
                name = list(self.pods)[number % len(self.pods)]
                self.bound.pop(name, None)
                self.do(events.PodGone(self.pods.pop(name).uid))
            case "time":
                self.do(events.TimePassed(self.loop.now + number))
            case "watch":
                self.watch()
            case "relabel" if self.volumes:
                volume = list(self.volumes.values())[number % len(self.volumes)]
                self.put(msgspec.structs.replace(volume, labels={"seen": str(number)}))
            case "restart":
                twin = self.new_loop()
                twin.restore(self.loop.snapshot())
                self.loop = twin
            case "node":
                name = NODES[number % len(NODES)]
                self.do(events.NodeGone(name), events.NodeSeen(a_node(name, labels={"host": name})))


@given(SIZES, st.lists(st.booleans(), min_size=5, max_size=5), st.booleans(), STEPS)
def test_no_volume_is_given_to_two_claims_and_no_claim_for_one_pod_to_two(volumes, once, provisions, steps):
    storage = Storage(volumes, once, provisions=provisions)
    for what, number in steps:
        storage.step(what, number)
    for _ in range(3):
        storage.watch()
        storage.step("time", 60)
        for one in storage.live_work():
            storage.finish(one)
