"""
Parity cases and the answers of kube-scheduler to them, and the files that hold both.

A file has one line of JSON for its `RecordingHeader`, then one line for each `RecordedCase`; all lines are compressed
with zstd. Nodes are named by their position in the case, so that lines stay short.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import zstandard

from tests.parity.case_objects import KubeJson, node_name

DATA: Final = Path(__file__).resolve().parents[1] / "data" / "parity"
LEVEL: Final = 19
"""Level of compression: slow to write, quick to read."""


class ParityCase(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cluster, and one pod to place on it."""

    family: str
    number: int
    nodes: list[KubeJson]
    placed: list[KubeJson]
    pod: KubeJson
    objects: dict[str, list[KubeJson]] = {}
    """Resource → storage objects of this case alone; their names occur in no other case of the family."""

    def names(self) -> list[str]:
        """Return the names of the nodes, in order."""
        return [node_name(one) for one in self.nodes]


class PreemptionCandidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node on which preemption would help."""

    victims: list[str]
    """Names of the pods that would be evicted."""
    violations: int = 0
    """Number of victims whose disruption budget would be violated."""


class RecordedAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What kube-scheduler answered."""

    feasible: list[int] = []
    """Nodes that passed all filters, sorted."""
    scores: dict[str, list[int]] = {}
    """Plugin → normalised and weighted score of each feasible node; without plugins that gave 0 to every node."""
    chosen: int = -1
    message: str = ""
    """Message of the condition PodScheduled, if no node was feasible."""
    nominated: int = -1
    victims: list[str] = []
    """Names of the evicted pods, sorted."""
    candidates: dict[str, PreemptionCandidate] = {}
    """Node name → what preemption there would cost; all candidates, before kube-scheduler chose one."""

    def totals(self) -> list[int]:
        """Return the total of each feasible node; all 0 if none was scored."""
        return [sum(scores[place] for scores in self.scores.values()) for place in range(len(self.feasible))]


class RecordedCase(msgspec.Struct, frozen=True):
    """A case with its answer."""

    case: ParityCase
    answer: RecordedAnswer


class RecordingHeader(msgspec.Struct, frozen=True):
    """Where the answers of a file come from."""

    scheduler: str
    seed: int
    fixtures: dict[str, list[KubeJson]]
    """Resource → objects that exist in all cases: namespaces, Services, ReplicaSets, PodDisruptionBudgets."""


def write_recording(path: Path, header: RecordingHeader, cases: Iterable[RecordedCase]) -> None:
    """Write a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [msgspec.json.encode(one) for one in (header, *cases)]
    path.write_bytes(zstandard.ZstdCompressor(level=LEVEL).compress(b"\n".join(lines)))


def read_recording(path: Path) -> tuple[RecordingHeader, Iterator[RecordedCase]]:
    """Return the header of a file, and its cases."""
    first, *lines = zstandard.ZstdDecompressor().decompress(path.read_bytes()).split(b"\n")
    decoder = msgspec.json.Decoder(RecordedCase)
    return msgspec.json.decode(first, type=RecordingHeader), map(decoder.decode, lines)


def recordings(folder: Path = DATA) -> list[Path]:
    """Return all files of a folder, by name."""
    return sorted(folder.glob("*.jsonl.zst"))
