"""
What a report needs to know about one run: series over time, pods with the parts of their time, and the layers of nodes.

`RunRecorder` fills it from the records of a trace. It is plain data of bounded size, so that it can come from another
process. Figures are complete; pods and layers are those of the first nodes of the run (`NODES`, `PODS`, `LAYERS`).
"""

from collections.abc import Sequence
from typing import Final

import msgspec

POINTS: Final = 200
"""Times at which a series is sampled, and quantiles of start times."""
NODES: Final = 30
"""Most nodes whose pods and layers are recorded: the first ones of the run."""
PODS: Final = 1_500
"""Most pods with their times and reasons, over all runs of a report."""
UNPLACED: Final = 50
"""Most pods without a node among them."""
LAYERS: Final = 48
"""Most layers of the map: those that most bytes of the recorded nodes are in."""
CHANGES: Final = 4_000
"""Most changes of the map; the map ends after them."""


class PodTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One pod: its node, the parts of its time, and why it is there. Times are seconds of the run."""

    pod: str
    node: str = ""
    """Empty for a pod without a node."""
    phase: str = ""
    """Its phase at the end of the run."""
    arrived: float
    queue: float
    """Seconds until it was bound, or until the end of the run."""
    wait: float = 0.0
    """Seconds that its pulls were queued."""
    pull: float = 0.0
    """Seconds of downloading."""
    unpack: float = 0.0
    """Seconds from the last byte to the unpacked images."""
    start: float = 0.0
    """Seconds until its containers ran."""
    run: float = 0.0
    """Seconds from then until its end, or until the end of the run."""
    unknown: float = 0.0
    """Seconds since its binding, for a pod that never started."""
    bytes_wanted: int = 0
    bytes_pulled: int = 0
    why: tuple[str, ...] = ()
    """Lines that explain its placement, or why it is not placed."""

    @property
    def started_after(self) -> float:
        """Seconds from its arrival until its containers ran, if they did."""
        return self.queue + self.wait + self.pull + self.unpack + self.start

    @property
    def end(self) -> float:
        """When it ended, or the end of the run."""
        return self.arrived + self.started_after + self.run + self.unknown


class LayerColumn(msgspec.Struct, frozen=True):
    """A layer of the map."""

    name: str
    bytes: int


class HeldChange(msgspec.Struct, frozen=True, array_like=True):
    """A node received a layer, or removed it."""

    at: float
    node: int
    """Position in the nodes of the record."""
    layer: int
    """Position in the layers of the record."""
    held: bool


class RunSeries(msgspec.Struct, frozen=True, kw_only=True):
    """Figures over time, sampled at the same times."""

    at: tuple[float, ...]
    bytes_pulled: tuple[int, ...]
    """Downloaded by all nodes until then."""
    peak_load: tuple[float | None, ...]
    """Requested cpu of the fullest node / mean of all nodes; None while no cpu is requested."""
    imbalance: tuple[float | None, ...]
    """Coefficient of variation of the nodes' requested cpu; None while no cpu is requested."""
    first_arrival: float
    last_arrival: float
    """Between the two, load is comparable: afterwards, the cluster drains."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as a report shows it."""

    profile: str
    seed: int
    scenario: str
    seconds: float
    """Time of the last event."""
    series: RunSeries
    start_quantiles: tuple[float, ...] = ()
    """Start times of its pods at equally spaced ranks, ascending; all of them if there are few."""
    started: int = 0
    all_nodes: int = 0
    """Number of nodes of the run."""
    all_pods: int = 0
    nodes: tuple[str, ...] = ()
    """Names of the recorded nodes."""
    pods: tuple[PodTimes, ...] = ()
    """Pods of the recorded nodes and pods without a node, by arrival; empty without detail."""
    layers: tuple[LayerColumn, ...] = ()
    changes: tuple[HeldChange, ...] = ()
    """In order of time; those at the time at which a node joins are what it held from the start."""
    all_layers: int = 0
    """Number of layers that the recorded nodes ever held."""
    changes_until: float | None = None
    """Time at which the recorded changes end too early; None if they are complete."""


def quantiles(ascending: Sequence[float]) -> Sequence[float]:
    """Return the values at `POINTS` equally spaced nearest ranks, or all of them if there are fewer."""
    count = len(ascending)
    if count <= POINTS:
        return ascending
    return [ascending[-(-index * count // POINTS) - 1] for index in range(1, POINTS + 1)]
