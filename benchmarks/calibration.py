"""
Compare the pull model with pulls of real clusters; write docs/calibration.md and docs/calibration.svg.

9,164 "Pulled" events of kubelets on GKE and EKS, 4 to 64 nodes (converged-computing/container-chonks, 2024). Image
streaming is excluded: there a pull is a mount. Synthetic images are described by their layers and unpacked bytes
(zeros, which compress hundreds to one), real images above 50 MB by their compressed bytes alone.

Machines of the same study and disk are one kind. For each kind the parameters are fitted on the runs with 4, 16 or 64
nodes (or of unknown size): the time of one pull of each image on an idle node is compared with the observed median. All
other runs are held out. They are replayed node by node: every pull starts when it really did, in parallel with the
other pulls of its node, including small ones. The median and the 90th percentile of each held-out run are compared with
those of the replay, separately for synthetic and real images.

Needs the recorded events; without them it prints that and does nothing. The same data give the same page.
"""

import csv
import gzip
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from _calibration_page import MEDIAN_GOAL, P90_GOAL, write
from _real_data import PULLS, data_folder, missing
from lamina.model.digest import Digest
from lamina.model.image import Image, Layer
from lamina.simulator.engine import Environment, Link, Network
from lamina.simulator.pulls import ImagePullRequest, NodeImageStore, Puller
from lamina.simulator.pulls.layer_source import LayerSource, LayerSources
from lamina.simulator.pulls.runtime_spec import RuntimeSpec

NAME = "calibration"
SUMMARY = "the pull model against kubelets' pull times on GKE and EKS; writes docs/calibration.md and .svg"

SQUEEZED = 400
"""Compression ratio of zeros; only its order of magnitude matters."""
REAL_LAYERS = 9
RATIO = 2.5
"""Layers and unpack ratio of a real image of which only the size is known: the medians of official images."""
LARGE = 50_000_000
IN_PLACE = 1.5e9
"""Unpack rate in bytes per second, far above the disks', from which the image was already in place (33 pulls)."""
FEW = 8
"""Smallest number of pulls of a kind for which a 90th percentile is computed."""
FITTED = ("4", "16", "64", "")
RUNS = 0.1
"""What the quantiles of whole runs count beside the medians of single images, when unpacking is fitted."""
ALLOWED = {"median": MEDIAN_GOAL, "p90": P90_GOAL}


class Seen(msgspec.Struct, frozen=True):
    """One pull as a kubelet reported it."""

    node: str
    image: str
    asked: float
    seconds: float
    layers: int
    unpacked: float
    """Bytes; 0 for a real image."""
    size: float
    """Compressed bytes; 0 for a synthetic image."""

    @property
    def synthetic(self) -> bool:
        """Whether its layers consist of zeros."""
        return self.unpacked > 0

    @property
    def judged(self) -> bool:
        """Whether enough is known about it to compare it."""
        return self.synthetic or self.size > LARGE

    @property
    def registry(self) -> str:
        """The registry it came from, derived from the image name."""
        first = self.image.split("/")[0]
        return "ghcr" if first.startswith("ghcr") else "artifacts" if "docker.pkg" in first else "system"


Key = tuple[str, str, str]


def recorded(folder: Path) -> dict[Key, list[Seen]]:
    """Return the runs by study, name and size."""
    runs: dict[Key, list[Seen]] = defaultdict(list)
    with gzip.open(folder / PULLS[0], "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["run"] == "run4" or ("streaming" in row["run"] and row["run"] != "without-streaming"):
                continue
            size = float(row["image_bytes_compressed"] or 0)
            synthetic = row["synthetic"] == "1"
            if not synthetic and not size:
                continue
            if synthetic and float(row["nominal_uncompressed_bytes"]) > IN_PLACE * float(row["pull_seconds"]):
                continue
            done = datetime.fromisoformat(row["time"].replace("Z", "+00:00")).timestamp()
            seconds = float(row["pull_seconds"])
            runs[row["study"], row["run"], row["cluster_nodes"]].append(
                Seen(
                    row["node"],
                    row["image"],
                    done - float(row["pull_seconds_incl_wait"]),
                    seconds,
                    int(float(row["nominal_layers"])) if synthetic else REAL_LAYERS,
                    float(row["nominal_uncompressed_bytes"]) if synthetic else 0.0,
                    0.0 if synthetic else size,
                )
            )
    return dict(runs)


def kind(key: Key) -> str:
    """Return the kind of machine of a run."""
    study, run, _ = key
    if study == "pulling-aws":
        return "EKS"
    return ("GKE, second study" if study == "pulling" else "GKE, first study") + (
        ", local SSD" if run == "run3" else ""
    )


# -- the model -------------------------------------------------------------------------------------------------------


class Machine(msgspec.Struct, frozen=True):
    """The fitted parameters."""

    resolve: float = 0.5
    """Seconds before the first byte."""
    overhead: float = 0.03
    """Seconds for each layer."""
    unpack: float = 180e6
    """Unpacked bytes per second of a thread."""
    disk: float = 120e6
    """Bytes per second that reach the disk."""
    cache: float = 3e9
    """Bytes that memory buffers before writers wait for the disk."""
    system: float = 60e6
    artifacts: float = 25e6
    ghcr: float = 12e6
    """Bytes per second of a pull from this registry."""

    def runtime(self) -> RuntimeSpec:
        """Return the parameters as settings of the simulator."""
        return RuntimeSpec(
            parallel_pulls=0,
            resolve=self.resolve,
            unpack_rate=self.unpack,
            disk_rate=self.disk,
            write_cache=round(self.cache),
            layer_overhead=self.overhead,
            ratio=RATIO,
        )


class Registries(LayerSource):
    """One node's connections to registries of different speed; each pull has its own connection."""

    __slots__ = ("_links", "_network", "_rates")

    def connect(self, network: Network, machine: Machine) -> None:
        """Create a link for each registry with its rate."""
        self._network = network
        self._rates = {name: getattr(machine, name) for name in ("system", "artifacts", "ghcr")}
        self._links: dict[str, Link] = {}

    def path(self, layer: Layer) -> tuple[Link, ...]:
        """Return the connection of the layer's image."""
        registry, image, _ = layer.digest.split("|")
        if registry == "synthetic":
            return (self.link,)
        if image not in self._links:
            self._links[image] = self._network.link(self._rates[registry])
        return (self.link, self._links[image])


class Node(msgspec.Struct, frozen=True):
    """A node as layer sources see it."""

    name: str
    runtime: RuntimeSpec
    bandwidth: float = 2e9
    uplink: str = ""


class Silent:
    """A pull observer that ignores everything."""

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        """Ignore the event."""

    def layer_pulled(self, layer: Layer) -> None:
        """Ignore the event."""

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        """Ignore the event."""

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        """Ignore the event."""

    def images_removed(self, images: tuple[Image, ...], freed: int, why: str) -> None:
        """Ignore the event."""

    def disk_pressure(self, on: bool) -> None:
        """Ignore the event."""


def image_of(seen: Seen) -> Image:
    """Return an image with the recorded number of equal layers and the recorded size."""
    count = max(1, seen.layers)
    where = "synthetic" if seen.synthetic else seen.registry
    size = round((seen.unpacked / SQUEEZED if seen.synthetic else seen.size) / count)
    unpacked = round(seen.unpacked / count) if seen.synthetic else None
    layers = tuple(
        Layer(Digest(f"{where}|{seen.image}|{number}"), max(1, size), None, unpacked) for number in range(count)
    )
    return Image(Digest(f"image|{seen.image}"), layers, (seen.image,))


def replay(pulls: Iterable[Seen], machine: Machine) -> list[tuple[Seen, float]]:
    """Replay the pulls of a node at their real times; return the duration of each in seconds."""
    environment = Environment()
    network = Network(environment)
    spec = machine.runtime()
    source = _source(network, Node("node", spec), machine)
    store = NodeImageStore(spec, None)
    puller = Puller(environment, network, store, spec, source, Silent())
    ordered = sorted(pulls, key=lambda seen: seen.asked)
    begin = ordered[0].asked
    asked: list[tuple[Seen, ImagePullRequest]] = []

    def ask(seen: Seen) -> None:
        asked.append((seen, puller.request(image_of(seen), lambda: None)))

    ends: dict[str, tuple[int, float]] = {}
    for seen in ordered:
        # Pods that pull the same image at the same time share one download. If a node pulled an image again later, it
        # had removed it in between; the replay uses another image for that.
        turn, end = ends.get(seen.image, (0, -math.inf))
        if seen.asked > end:
            turn, end = turn + 1, seen.asked + seen.seconds
        ends[seen.image] = turn, end
        environment.at(seen.asked - begin, ask, msgspec.structs.replace(seen, image=f"{seen.image}#{turn}"))
    environment.run()
    return [(seen, pull.done_at - pull.requested_at) for seen, pull in asked if pull.done_at is not None]


def replay_all(run: Iterable[Seen], machine: Machine) -> list[tuple[Seen, float]]:
    """Replay a run, node by node."""
    nodes: dict[str, list[Seen]] = defaultdict(list)
    for seen in run:
        nodes[seen.node].append(seen)
    return [pair for pulls in nodes.values() for pair in replay(pulls, machine)]


def _source(network: Network, node: Node, machine: Machine) -> Registries:
    plain = LayerSources(network).for_node(node)
    source = Registries(LayerSources(network), node, plain.link, plain.upload, ())
    source.connect(network, machine)
    return source


# -- fitting ---------------------------------------------------------------------------------------------------------


def fit(runs: list[list[Seen]]) -> Machine:
    """
    Find the parameters with the smallest error, measured as ratios.

    First unpacking, by synthetic images: one pull of each on an idle node against the median of its pulls, and with a
    small weight the median and 90th percentile of each run. Then the registries' rates, by real images: median and 90th
    percentile of each run against those of its replay, because most were pulled in parallel while a node started.
    """
    groups: dict[str, list[Seen]] = defaultdict(list)
    for seen in (one for run in runs for one in run if one.synthetic):
        groups[seen.image].append(seen)
    wanted = [(group[0], statistics.median(one.seconds for one in group)) for group in groups.values()]
    real = [[one for one in run if not one.synthetic] for run in runs]
    real = [run for run in real if sum(one.judged for one in run) >= FEW]

    zeros = [[one for one in run if one.synthetic] for run in runs]
    zeros = [run for run in zeros if len(run) >= FEW]

    def unpacking(machine: Machine) -> float:
        alone = {seen.image: replay([seen], machine)[0][1] for seen, _ in wanted}
        single = _mean(abs(math.log(alone[seen.image] / seconds)) for seen, seconds in wanted)
        return single + RUNS * _off([(seen.seconds, alone[seen.image]) for seen in run] for run in zeros)

    def registries(machine: Machine) -> float:
        pairs = ([pair for pair in replay_all(run, machine) if pair[0].judged] for run in real)
        return _off([(seen.seconds, ours) for seen, ours in run] for run in pairs)

    machine = Machine()
    if wanted:
        machine = descend(machine, ("resolve", "overhead", "unpack", "disk", "cache"), unpacking)
    if real:
        met = {one.registry for run in real for one in run if one.judged}
        machine = descend(machine, tuple(sorted(met)), registries)
    return machine


def descend(machine: Machine, fields: tuple[str, ...], loss: Callable[[Machine], float]) -> Machine:
    """Change one field at a time, in ever smaller steps, as long as the loss falls."""
    best, step = loss(machine), 0.4
    while step > 0.03:
        better = False
        for field in fields:
            for factor in (1 + step, 1 / (1 + step)):
                tried = msgspec.structs.replace(machine, **{field: getattr(machine, field) * factor})
                found = loss(tried)
                if found < best - 1e-6:
                    best, machine, better = found, tried, True
        step = step if better else step / 2
    return machine


def _off(runs: Iterable[list[tuple[float, float]]]) -> float:
    """Return the mean error of the runs, relative to the allowed one; not squared, to limit outliers."""
    errors = [
        abs(math.log(measure([ours for _, ours in run]) / measure([real for real, _ in run]))) / ALLOWED[name]
        for run in runs
        for name, measure in _MEASURES.items()
    ]
    return math.fsum(errors) / len(errors)


def _mean(errors: Iterable[float]) -> float:
    # Errors of half or double have an outlier's cause; cap them so that they do not dominate the fit.
    bounded = [min(error, 0.7) for error in errors]
    return math.fsum(bounded) / len(bounded)


# -- judging ---------------------------------------------------------------------------------------------------------


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that at least this share does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def judge(key: Key, run: list[Seen], machine: Machine) -> list[dict[str, Any]]:
    """Compare a run with its replay, separately for synthetic and real images."""
    replayed = [pair for pair in replay_all(run, machine) if pair[0].judged]
    rows = []
    for synthetic in (True, False):
        pairs = [(seen.seconds, ours) for seen, ours in replayed if seen.synthetic == synthetic]
        if len(pairs) < FEW:
            continue
        real, ours = [one for one, _ in pairs], [other for _, other in pairs]
        row: dict[str, Any] = {
            "kind": kind(key),
            "run": f"{key[0]} {key[1]}, {key[2] or '?'} nodes",
            "images": "synthetic" if synthetic else "real",
            "held_out": key[2] not in FITTED,
            "pulls": len(pairs),
        }
        for name, measure in _MEASURES.items():
            row[f"{name}_real"], row[name] = round(measure(real), 2), round(measure(ours), 2)
            row[f"{name}_error"] = round(measure(ours) / measure(real) - 1, 3)
        row["pull_error_median"] = round(statistics.median(abs(other / one - 1) for one, other in pairs), 3)
        row["points"] = sorted((round(one, 2), round(other, 2)) for one, other in pairs)
        rows.append(row)
    return rows


_MEASURES: dict[str, Callable[[list[float]], float]] = {
    "median": statistics.median,
    "p90": lambda values: quantile(values, 0.9),
}


def main() -> dict[str, object]:
    """Fit, compare, and write the page."""
    folder = data_folder(PULLS)
    if folder is None:
        print(f"skipped: {missing(PULLS)}")
        return {"skipped": missing(PULLS)}
    runs = recorded(folder)
    machines: dict[str, Machine] = {}
    for name in sorted({kind(key) for key in runs}):
        machines[name] = fit([run for key, run in runs.items() if kind(key) == name and key[2] in FITTED])
        print(f"{name}: {machines[name]}", flush=True)
    rows = [row for key, run in sorted(runs.items()) for row in judge(key, run, machines[kind(key)])]
    held_out = [row for row in rows if row["held_out"]]
    for row in rows:
        print(
            f"{'held out' if row['held_out'] else 'fitted  '} {row['run']:40} {row['images']:9} {row['pulls']:4} pulls: "
            f"median {row['median_real']:7.2f} s, replayed {row['median']:7.2f} ({row['median_error']:+.0%}); "
            f"p90 {row['p90_real']:7.2f}, {row['p90']:7.2f} ({row['p90_error']:+.0%})",
            flush=True,
        )
    found = {
        "median_error_max": max(abs(row["median_error"]) for row in held_out),
        "p90_error_max": max(abs(row["p90_error"]) for row in held_out),
        "held_out": len(held_out),
    }
    write(rows, {name: msgspec.to_builtins(machine) for name, machine in machines.items()}, found)
    return found


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
