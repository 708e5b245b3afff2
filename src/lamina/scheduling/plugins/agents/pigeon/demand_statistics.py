"""
What pods ask for: of one pod, the amounts that count; of all that came lately, mean and covariance.

Amounts are in the units of the columns (thousandths of a cpu, bytes, pieces), for pods and nodes alike.
"""

from typing import Final

import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, add
from lamina.scheduling.state.columns import LARGEST, Floats

GPU: Final = "gpu"
# In this order; how many of them count is an argument.
RESOURCES: Final = (CPU, MEMORY, PODS, GPU, EPHEMERAL_STORAGE)
# What a pod counts for that does not say: 10 thousandths of a cpu, 16 MiB.
UNASKED: Final = {CPU: 10, MEMORY: 16 * 1024 * 1024}
# From here on older pods are forgotten bit by bit: each new one counts for a hundredth.
MOST_COUNTED: Final = 100
# Pods that are remembered, so that trying them again does not count. One is forgotten after so many others have come since.
REMEMBERED: Final = 16_384


def is_gpu(resource: str) -> bool:
    """Say whether a resource is a GPU, whoever made it: `gpu`, `nvidia.com/gpu`, `amd.com/gpu`."""
    return resource == GPU or resource.endswith("/gpu")


def asked(pod: Pod, count: int, *, compatible: bool = False) -> Floats:
    """Return what a pod adds to a node of the first *count* resources; *compatible*: of its main containers alone."""
    requests = add(*(container.requests for container in pod.containers)) if compatible else pod.requests
    amounts = dict.fromkeys(RESOURCES, 0)
    for name, amount in requests:
        kind = GPU if is_gpu(name) else name
        if kind in amounts:
            amounts[kind] += min(amount, LARGEST)
    amounts[PODS] = 1
    return np.array([float(amounts[name] or UNASKED.get(name, 0)) for name in RESOURCES[:count]])


class DemandStatistics:
    """
    Mean and covariance of what pods have asked for.

    The covariance is kept rather than the mean of squares, from which it would come out as the difference of two numbers
    that are nearly equal: of pods that are all alike it is 0, and stays 0.
    """

    __slots__ = ("_seen", "count", "covariance", "mean")

    def __init__(self, resources: int) -> None:
        """Start with no pod."""
        self.count = 0
        """Pods counted, up to the most that are."""
        self.mean: Floats = np.zeros(resources)
        self.covariance: Floats = np.zeros((resources, resources))
        self._seen: dict[PodUid, None] = {}
        """Who was counted, longest not asked about first."""

    def note(self, uid: PodUid, amounts: Floats) -> None:
        """Count a pod, unless it has been counted: one that is tried again asks for nothing more."""
        if uid in self._seen:
            self._seen[uid] = self._seen.pop(uid)
            return
        if len(self._seen) >= REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._seen[uid] = None
        self.count = min(self.count + 1, MOST_COUNTED)
        weight = 1.0 / self.count
        off = amounts - self.mean
        self.mean = self.mean + weight * off
        self.covariance = (1.0 - weight) * (self.covariance + weight * np.outer(off, off))
