"""
A pod in a virtual cluster, and what became of it when.

    pending --bind--> pulling --images there--> starting --start delay--> running --duration--> finished
       |  |              |                         |                         |
       |  +-bind, no room--> rejected              |                         |
       +-----------------+---------remove----------+-------------------------+--> removed

Changed by the cluster and by kubelets only; whoever observes a run reads it.
"""

from collections import deque
from typing import Final, Literal

from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.simulator.engine import Timer
from lamina.simulator.pulls import Pull

Phase = Literal["pending", "pulling", "starting", "running", "finished", "rejected", "removed"]

ENDED: Final = ("finished", "rejected", "removed")


class VirtualPod:
    """One pod: what it is, how long it wants to run, and its history."""

    def __init__(self, pod: Pod, images: tuple[Image, ...], arrived: float, duration: float | None) -> None:
        """Take in a pod that needs *images*, in this order, and runs for *duration* (None: until it is removed)."""
        self.pod = pod
        self.images = images
        self.duration = duration
        self.phase: Phase = "pending"
        self.node = ""
        """The node it is or was bound to."""
        self.arrived = arrived
        self.bound: float | None = None
        self.started: float | None = None
        self.ended: float | None = None
        """When it finished, was rejected or was removed."""
        self.pulls: list[Pull] = []
        """Requests for images that were made because of it."""
        self.to_pull: deque[Image] = deque(images)
        """Images the kubelet has not looked at yet."""
        self.timer: Timer | None = None
        """Its start or its end, whichever comes next."""

    @property
    def pull_began(self) -> float | None:
        """When the first pull for it began; None when everything it needed was there."""
        return self.pulls[0].began_at if self.pulls else None

    @property
    def wanted_bytes(self) -> int:
        """Compressed bytes of its images, each distinct layer counted once."""
        return sum({layer.digest: layer.size for image in self.images for layer in image.layers}.values())

    @property
    def pulled_bytes(self) -> int:
        """Bytes that were downloaded because of it, also after it was removed."""
        return sum(pull.downloaded for pull in self.pulls)
