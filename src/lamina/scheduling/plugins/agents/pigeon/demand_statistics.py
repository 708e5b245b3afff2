"""
Requests of one pod by resource, and mean and covariance of requests over recent pods.

Amounts are in the units of the columns: millicores, bytes or pieces.
"""

from typing import Final

import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, add
from lamina.scheduling.state.columns import LARGEST, Floats

GPU: Final = "gpu"
# In this order; an argument sets how many of them are considered.
RESOURCES: Final = (CPU, MEMORY, PODS, GPU, EPHEMERAL_STORAGE)
# Defaults for pods without a request: 10 millicores and 16 MiB.
UNASKED: Final = {CPU: 10, MEMORY: 16 * 1024 * 1024}
# From this number of pods on, each new pod has a weight of 1/100 and older ones fade.
MOST_COUNTED: Final = 100
# Maximum number of remembered pods, so that retries of a pod are not counted again.
REMEMBERED: Final = 16_384


def is_gpu(resource: str) -> bool:
    """Return whether a resource is a GPU of any vendor: `gpu`, `nvidia.com/gpu`, `amd.com/gpu`."""
    return resource == GPU or resource.endswith("/gpu")


def requested_amounts(pod: Pod, count: int, *, compatible: bool = False) -> Floats:
    """Return a pod's requests of the first *count* resources; *compatible* ignores init containers and overhead."""
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
    Mean and covariance of pod requests.

    The covariance is updated directly. Computed from the mean of squares, it would be the difference of two nearly
    equal numbers. For equal pods it is exactly 0.
    """

    __slots__ = ("_seen", "count", "covariance", "mean")

    def __init__(self, resources: int) -> None:
        """Start without pods."""
        self.count = 0
        """Number of counted pods, at most MOST_COUNTED."""
        self.mean: Floats = np.zeros(resources)
        self.covariance: Floats = np.zeros((resources, resources))
        self._seen: dict[PodUid, None] = {}
        """Counted pods, least recently requested first."""

    def note(self, uid: PodUid, amounts: Floats) -> None:
        """Count a pod once; retries are ignored."""
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
