"""A loop with the volume plugins, and what it made of pods with claims."""

from lamina.model import events
from lamina.model.cluster_objects import ClusterObject
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.volumes import BindVolumes, VolumeReservation
from lamina.scheduling.contract.commands import Bind, Command, DoWork, ReportUnschedulable
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.testing import a_loop

PLUGINS = (
    "PrioritySort",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "DefaultBinder",
)


class VolumeBench:
    """Shows a cluster to a loop, and returns its decisions."""

    def __init__(self, *objects: ClusterObject | Node, plugins=PLUGINS, args=None) -> None:
        self.loop = a_loop(plugins, args=args, settings=LoopSettings(detail="full"))
        self.see(*objects)

    def see(self, *objects: ClusterObject | Node) -> list[Command]:
        return self.loop.feed(
            *(events.NodeSeen(one) if isinstance(one, Node) else events.ObjectSeen(one) for one in objects)
        )

    def add(self, *pods: Pod) -> list[Command]:
        return self.loop.feed(*map(events.PodSeen, pods))

    def refusals(self, pod: Pod) -> str:
        """Return why a pod is refused; the pod is deleted afterwards."""
        said = next((one.decision.message for one in self.add(pod) if isinstance(one, ReportUnschedulable)), "")
        self.loop.feed(events.PodGone(pod.uid))
        return said


def work(commands: list[Command]) -> DoWork:
    (found,) = (one for one in commands if isinstance(one, DoWork))
    return found


def reservations(found: DoWork) -> tuple[VolumeReservation, ...]:
    """Return the volumes that the work reserves."""
    assert isinstance(found.task, BindVolumes)
    return found.task.reservations


def chosen(commands: list[Command]) -> dict[str, str]:
    """Return the chosen nodes by pod, whether bound or still in preparation."""
    return {one.pod.name: one.node for one in commands if isinstance(one, Bind | DoWork)}


def reasons(commands: list[Command]) -> dict[str, str]:
    return {one.pod.name: one.decision.message for one in commands if isinstance(one, ReportUnschedulable)}
