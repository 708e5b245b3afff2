"""
Pods that are bound to a node and do not run yet, with their images: indexed by pod, by node and by image name.

There may be tens of thousands of them, and images become known continuously. So the index remembers what each name
referred to when its pods were last checked: only pods whose names refer to another image have to be checked again.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.layers.catalog import folded
from lamina.model.digest import Digest
from lamina.model.image import Platform
from lamina.model.pod import PodUid

Meaning = frozenset[tuple[Platform, Digest]]
"""The image that a name refers to, on each platform where it is known."""

NO_PODS: Final[dict[PodUid, int]] = {}


class UnstartedPodsSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `UnstartedPods`."""

    pods: tuple[tuple[PodUid, str, tuple[str, ...], int], ...]
    """Pod, node, image names, and the pod's position in arrival order."""
    meant: dict[str, Meaning]
    came: int


class UnstartedPods:
    """Unstarted pods in arrival order."""

    def __init__(self) -> None:
        """Start with no pod."""
        self._pods: dict[PodUid, tuple[str, tuple[str, ...]]] = {}
        self._on: dict[str, dict[PodUid, int]] = {}
        """Node → pods on it, with their position in arrival order."""
        self._naming: dict[str, dict[PodUid, int]] = {}
        """Normalised image name → pods that need it."""
        self._meant: dict[str, Meaning] = {}
        """What each name referred to at the last check of its pods; without an entry, they must be checked."""
        self._came = 0

    def __len__(self) -> int:
        """Return the number of pods."""
        return len(self._pods)

    def __getitem__(self, pod: PodUid) -> tuple[str, tuple[str, ...]]:
        """Return a pod's node and its image names."""
        return self._pods[pod]

    def put(self, pod: PodUid, node: str, names: tuple[str, ...]) -> None:
        """Add a pod; a pod that was already there moves to the end of the order."""
        self.pop(pod)
        self._pods[pod] = (node, names)
        self._came += 1
        self._on.setdefault(node, {})[pod] = self._came
        for name in map(folded, names):
            self._naming.setdefault(name, {})[pod] = self._came

    def pop(self, pod: PodUid) -> bool:
        """Remove a pod; return whether it was there."""
        if pod not in self._pods:
            return False
        node, names = self._pods.pop(pod)
        _remove(self._on, node, pod)
        for name in set(map(folded, names)):
            if _remove(self._naming, name, pod):
                self._meant.pop(name, None)
        return True

    def checked(self, names: Iterable[str], meaning: Callable[[str], Meaning]) -> None:
        """
        Record that a pod was checked.

        Names that changed since the other pods were checked are marked for a new check.
        """
        for name in map(folded, names):
            if name in self._meant and self._meant[name] != meaning(name):
                del self._meant[name]

    def changed_names(self, meaning: Callable[[str], Meaning]) -> list[str]:
        """Return the names that changed since the last check of their pods, and mark them as checked."""
        found = []
        for name in self._naming:
            means = meaning(name)
            if self._meant.get(name) != means:
                self._meant[name] = means
                found.append(name)
        return found

    def affected(self, names: Iterable[str] = (), nodes: Iterable[str] = ()) -> list[PodUid]:
        """Return the pods that need one of these names or are on one of these nodes, in arrival order."""
        found: dict[PodUid, int] = {}
        for name in names:
            found |= self._naming.get(name, NO_PODS)
        for node in nodes:
            found |= self._on.get(node, NO_PODS)
        return sorted(found, key=found.__getitem__)

    def snapshot(self) -> UnstartedPodsSnapshot:
        """Return the state as data."""
        pods = tuple((uid, node, names, self._on[node][uid]) for uid, (node, names) in self._pods.items())
        return UnstartedPodsSnapshot(pods, dict(self._meant), self._came)

    def restore(self, snapshot: UnstartedPodsSnapshot) -> None:
        """Restore a snapshot into an empty object."""
        for pod, node, names, came in snapshot.pods:
            self._came = came - 1
            self.put(pod, node, names)
        self._came = snapshot.came
        self._meant = dict(snapshot.meant)


def _remove(pods: dict[str, dict[PodUid, int]], key: str, pod: PodUid) -> bool:
    """Remove a pod from an index entry, and the entry when it is empty; return whether it was removed."""
    del pods[key][pod]
    if pods[key]:
        return False
    del pods[key]
    return True
