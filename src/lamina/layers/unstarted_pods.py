"""
Pods that have a node and do not run yet, and the images they need: found by pod, by node and by name.

There may be tens of thousands of them, and something becomes known all the time. So it is remembered what the names meant
when the pods that have them were last looked at: only those have to be looked at again whose names mean something else.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.layers.catalog import folded
from lamina.model.digest import Digest
from lamina.model.image import Platform
from lamina.model.pod import PodUid

Meaning = frozenset[tuple[Platform, Digest]]
"""What a name means on each platform where that is known."""

NOBODY: Final[dict[PodUid, int]] = {}


class UnstartedPodsSnapshot(msgspec.Struct, frozen=True):
    """Everything an `UnstartedPods` knows."""

    pods: tuple[tuple[PodUid, str, tuple[str, ...], int], ...]
    """Pod, node, the names of its images, and which one it was to come."""
    meant: dict[str, Meaning]
    came: int


class UnstartedPods:
    """Pods in the order they came."""

    def __init__(self) -> None:
        """Start with no pod."""
        self._pods: dict[PodUid, tuple[str, tuple[str, ...]]] = {}
        self._on: dict[str, dict[PodUid, int]] = {}
        """Node → pods on it; the number says who came first."""
        self._naming: dict[str, dict[PodUid, int]] = {}
        """Name, spelled as everywhere → pods that need it."""
        self._meant: dict[str, Meaning] = {}
        """What a name meant when all pods that need it were last looked at; nothing: they have to be looked at."""
        self._came = 0

    def __len__(self) -> int:
        """Count the pods."""
        return len(self._pods)

    def __getitem__(self, pod: PodUid) -> tuple[str, tuple[str, ...]]:
        """Return a pod's node and the names of its images."""
        return self._pods[pod]

    def put(self, pod: PodUid, node: str, names: tuple[str, ...]) -> None:
        """A pod came; one that was there before comes anew."""
        self.pop(pod)
        self._pods[pod] = (node, names)
        self._came += 1
        self._on.setdefault(node, {})[pod] = self._came
        for name in map(folded, names):
            self._naming.setdefault(name, {})[pod] = self._came

    def pop(self, pod: PodUid) -> bool:
        """A pod is no longer among them; say whether it was."""
        if pod not in self._pods:
            return False
        node, names = self._pods.pop(pod)
        _leave(self._on, node, pod)
        for name in set(map(folded, names)):
            if _leave(self._naming, name, pod):
                self._meant.pop(name, None)
        return True

    def saw(self, names: Iterable[str], meaning: Callable[[str], Meaning]) -> None:
        """A pod was looked at; what its names meant to the others may have been something else."""
        for name in map(folded, names):
            if name in self._meant and self._meant[name] != meaning(name):
                del self._meant[name]

    def moved(self, meaning: Callable[[str], Meaning]) -> list[str]:
        """Return the names that mean something else than when their pods were looked at, which now has to be done."""
        found = []
        for name in self._naming:
            means = meaning(name)
            if self._meant.get(name) != means:
                self._meant[name] = means
                found.append(name)
        return found

    def concerned(self, names: Iterable[str] = (), nodes: Iterable[str] = ()) -> list[PodUid]:
        """Return the pods that need an image of these names or are on one of these nodes, in the order they came."""
        found: dict[PodUid, int] = {}
        for name in names:
            found |= self._naming.get(name, NOBODY)
        for node in nodes:
            found |= self._on.get(node, NOBODY)
        return sorted(found, key=found.__getitem__)

    def snapshot(self) -> UnstartedPodsSnapshot:
        """Return everything there is to know about it, as data."""
        pods = tuple((uid, node, names, self._on[node][uid]) for uid, (node, names) in self._pods.items())
        return UnstartedPodsSnapshot(pods, dict(self._meant), self._came)

    def restore(self, snapshot: UnstartedPodsSnapshot) -> None:
        """Become what the snapshot was taken of; no pod may have come before."""
        for pod, node, names, came in snapshot.pods:
            self._came = came - 1
            self.put(pod, node, names)
        self._came = snapshot.came
        self._meant = dict(snapshot.meant)


def _leave(pods: dict[str, dict[PodUid, int]], key: str, pod: PodUid) -> bool:
    """Take a pod out; nothing is kept where nobody is left."""
    del pods[key][pod]
    if pods[key]:
        return False
    del pods[key]
    return True
