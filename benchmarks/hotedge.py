"""
Compare layer-aware, image-aware and random placement in HotEdge's setting, by its latency fit and with full pulls.

After Fu, Mittal, Zhang and Ratnasamy (HotEdge 2020) and their published simulator: 200 nodes with 16 slots and 32 GB
for layers, 125 requests a second for 1,000 s, one image each, drawn by Zipf 0.75, running for up to 10 s, uniformly
drawn. Images are the official ones of the end of 2019 (theirs are not published).

*fit*: their latency. A layer takes 0.367 s and 25 ns a byte, one up to 100 kB takes 0.184 s, one after the other,
independent of other loads on the node. To get exactly this, a layer here has as many bytes as take that long at 40
MB/s, on a connection that shares nothing; unpacking is free. *honest*: the same images and nodes with one pull at a
time per node, three parallel downloads over a gigabit, unpacking at 100 MB/s, delayed reports, and kubelets' image
garbage collection. Such nodes can unpack images for 125 requests a second only if nearly all are found in place, so
this mode has 25 a second.

The three policies of the paper use bytes alone and ignore load: *layers* counts bytes of layers, *images* bytes of
whole images. Lamina's own profiles are beside them. REQUESTS in the environment shortens the run.
"""

import json
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from _real_data import SNAPSHOT, data_folder, distinct, missing, snapshot
from lamina.cli.compare.run_pool import cores
from lamina.cli.options.scheduler_profile import configuration
from lamina.model.image import Image, Layer
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.pulls.runtime_spec import CONTAINERD, DiskSpec, RuntimeSpec
from lamina.simulator.run import simulate, summary
from lamina.simulator.workloads import PodArrival, Scenario

NAME = "hotedge"
SUMMARY = "HotEdge's setting: layer-aware, image-aware and random placement, by its latency fit and with honest pulls"

REQUESTS = int(os.environ.get("REQUESTS", "125000"))
NODES, SLOTS = 200, 16
RATES = {"fit": 125.0, "honest": 25.0}
STORE = 32 * 10**9
SPEED = 40e6
SMALL = 100_000
ZIPF = 0.75

BYTES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      disabled:
      - name: "*"
      enabled:
      - name: LayerLocality
  pluginConfig:
  - name: LayerLocality
    args: {{mode: bytes, knowledge: {knowledge}, barrier: null, replicaShare: 1}}
"""
POLICIES = ("layers", "images", "random", "lamina-balanced", "lamina-images")


def chosen(policy: str) -> Configuration:
    """Return the configuration of one of the paper's policies, or of one of Lamina's profiles."""
    if policy in ("layers", "images"):
        return load(BYTES.format(knowledge=policy), f"policy {policy}", registry())
    return configuration(policy)


def priced(image: Image) -> Image:
    """Return the image with layer sizes that take as long at 40 MB/s as the fit says."""
    layers = tuple(
        Layer(layer.digest, round(SPEED * (0.184 if layer.size <= SMALL else 0.367 + 25e-9 * layer.size)))
        for layer in image.layers
    )
    return msgspec.structs.replace(image, layers=layers)


def scenario(mode: str, folder: Path) -> Scenario:
    """Draw the requests."""
    images = distinct([image for _, found in sorted(snapshot(folder).items()) for image in found])
    dice = random.Random("hotedge")
    ranked = dice.sample(images, len(images))
    weights = [rank**-ZIPF for rank in range(1, len(ranked) + 1)]
    rate = RATES[mode]
    names = [image.names[0] for image in dice.choices(ranked, weights, k=round(REQUESTS * rate / RATES["fit"]))]
    amounts = ((CPU, 1000),)
    at, arrivals = 0.0, []
    for number, name in enumerate(names):
        at += dice.expovariate(rate)
        containers = (Container(name, amounts),)
        requests, scoring = total_requests(containers)
        pod = Pod(
            uid=PodUid(f"r{number}"),
            name=f"r{number}",
            containers=containers,
            requests=requests,
            scoring_requests=scoring,
            scheduler_name="",
            created_at=at,
        )
        arrivals.append(PodArrival(at, pod, PodLifecycle(seconds=dice.uniform(0.0, 10.0))))
    if mode == "fit":
        runtime = RuntimeSpec(parallel_pulls=0, slots=1, connection_rate=SPEED, ratio=1e-6)
        # Their store holds compressed layers; bytes are inflated here with the time, hence the larger store.
        grown = sum(priced(image).size for image in images) / sum(image.size for image in images)
        disk = DiskSpec(
            capacity=round(STORE * grown), high=0.9, low=0.85, accounting="real", evict_below=0.0, every=10.0
        )
        images, bandwidth, delays = [priced(image) for image in images], 1e12, Delays(report=0.0, status=0.0, start=0.0)
    else:
        runtime, disk, bandwidth = CONTAINERD, DiskSpec(capacity=STORE), 125e6
        delays = Delays(report=1.0, report_gap=10.0, status=(10.0, 20.0, 30.0, 40.0), start=0.5)
    room = ((CPU, SLOTS * 1000), (MEMORY, 64 * 1024**3), (PODS, 1000))
    nodes = tuple(
        VirtualNodeSpec(name=f"n{number}", allocatable=room, bandwidth=bandwidth, runtime=runtime, disk=disk)
        for number in range(1, NODES + 1)
    )
    return Scenario(name=f"hotedge-{mode}", images=tuple(images), nodes=nodes, arrivals=tuple(arrivals), delays=delays)


def run(mode: str, policy: str, folder: Path) -> dict[str, float]:
    """Run one policy."""
    result = summary(simulate(scenario(mode, folder).under(policy), chosen(policy), seed=1))
    total = result["startup_seconds"]["total"]
    return {
        "mean": total["mean"],
        "p50": total["p50"],
        "p95": total["p95"],
        "p99": total["p99"],
        "bytes": result["bytes_pulled"],
        "hits": result["hits"],
        "peak_load": result["peak_load"],
        "started": result["pods"]["started"],
    }


def main() -> dict[str, object]:
    """Run both modes under every policy."""
    folder = data_folder(SNAPSHOT)
    if folder is None:
        print(f"skipped: {missing(SNAPSHOT)}")
        return {"skipped": missing(SNAPSHOT)}
    found: dict[str, dict[str, dict[str, float]]] = {"fit": {}, "honest": {}}
    with ProcessPoolExecutor(cores()) as pool:
        waiting = {(mode, policy): pool.submit(run, mode, policy, folder) for mode in found for policy in POLICIES}
        for (mode, policy), future in waiting.items():
            found[mode][policy] = future.result()
            print(f"{mode} {policy} done", file=sys.stderr, flush=True)
    for mode, rows in found.items():
        print(
            f"\n{mode}\n\n| policy | mean | p50 | p95 | p99 | hits | peak load | random / it |\n|---|---|---|---|---|---|---|---|"
        )
        for policy, row in rows.items():
            cells = [f"{row[figure]:.2f}" for figure in ("mean", "p50", "p95", "p99", "hits", "peak_load")]
            print(f"| {policy} | " + " | ".join(cells) + f" | {rows['random']['mean'] / row['mean']:.2f} |")
    gains = {
        f"{mode}_{above}_over_{below}": round(rows[above]["mean"] / rows[below]["mean"], 3)
        for mode, rows in found.items()
        for above, below in (("random", "images"), ("images", "layers"), ("random", "layers"))
    }
    return {"requests": REQUESTS, **gains, **found}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
