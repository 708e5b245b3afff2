"""
Cost of a large cluster's reports in a real API server: bytes, time to list, and CPU time of heartbeats.

A real etcd and kube-apiserver (`testbed`) get 400 ImageLayers, and NodeLayers for 500, then 2,000, then 5,000 nodes
with 100 images each, written as node agents write them: the object, then its status as a merge patch. Bytes are those
of the JSON that the server lists, with managed fields, because it stores and sends that. etcd's file is measured after
compaction and defragmentation.

An idle cluster only has heartbeats. Their rate is counted on the node agents' own schedule (`ReportSchedule`) in
virtual time: in the long run, and in the busiest second after all node agents were started at once. Then a part of the
schedule is really written, and the CPU time of API server and etcd is measured.

LAMINA_QUICK=1 uses 50 nodes.
"""

import contextlib
import heapq
import json
import os
import random
import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from _contest import in_parallel
from _large_cluster import MB, LargeCluster, node_name, uid
from lamina.model.image import Platform
from lamina.model.layer_report import HeldImage, LayerReport, NodeRuntime
from lamina.services.node_agent.report_backoff import ReportBackoff
from lamina.services.node_agent.report_schedule import ReportSchedule
from lamina.wire.custom_resources.node_layers_status import ImageTotals, encode_node_layers, encode_node_layers_status
from testbed import Testbed, etcd_gateway

NAME: Final = "node-layers-objects"
SUMMARY: Final = "Bytes, listing time and heartbeat cost of 5,000 NodeLayers of 100 images in a real API server"

CRDS: Final = Path(__file__).resolve().parent.parent / "deploy" / "crds"
ROOT: Final = "/apis/lamina.dev/v1alpha1"
SIZES: Final = (500, 2_000, 5_000)
QUICK: Final = (50,)
IMAGES: Final = 400
HEARTBEAT: Final = 600.0
"""Default heartbeat of `lamina node-agent`, in seconds."""
SEED: Final = 3
LISTS: Final = 3
HOURS: Final = 3
PLAYED: Final = 30.0
"""Seconds of heartbeats that are really written."""
WRITERS: Final = 16


class Rung(msgspec.Struct, frozen=True):
    """The results for one number of nodes."""

    nodes: int
    bytes: int
    """Bytes of all NodeLayers as the server lists them."""
    managed: int
    """Bytes of managed fields among these."""
    etcd: int
    """Bytes of etcd's file after compaction, with everything in it."""
    list_seconds: float
    """Seconds to list all, read from etcd."""
    cached_list_seconds: float
    """Seconds to list all from the server's watch cache, as a watch starts."""


class Reports:
    """The objects that node agents write."""

    def __init__(self, nodes: int) -> None:
        self.cluster = LargeCluster(nodes, 0, IMAGES, time.time())

    def status(self, number: int, sequence: int) -> dict[str, Any]:
        """Return a node's report as the patch of a status."""
        images = self.cluster.held_by(number)
        report = LayerReport(
            node=node_name(number),
            node_uid=uid(f"node {number}"),
            sequence=sequence,
            observed_at=time.time(),
            images=tuple(map(as_told, images)),
            reuse="set",
            renews_within=1.25 * HEARTBEAT,
            download_rate=80.0 * MB,
            unpack_rate=150.0 * MB,
            disk=200_000 * MB,
            disk_free=90_000 * MB,
            runtime=NodeRuntime("containerd", "v2.4.2"),
            platform=Platform("linux", "amd64"),
        )
        totals = ImageTotals(8 * len(images), sum(image.size for image in images))
        decoded: dict[str, Any] = json.loads(encode_node_layers_status(report, totals))
        return decoded


def as_told(image: HeldImage) -> HeldImage:
    """Return an image with both names that containerd has for it: by tag and by digest."""
    repository = image.names[0].partition(":")[0]
    return msgspec.structs.replace(image, names=(*image.names, f"{repository}@{image.digest}"))


def write(bed: Testbed, reports: Reports, numbers: range) -> None:
    """Write the reports of some nodes as their node agents would."""
    in_parallel(
        bed,
        [
            ("POST", f"{ROOT}/nodelayers", json.loads(encode_node_layers(node_name(one), uid(f"node {one}"))), "")
            for one in numbers
        ],
    )
    in_parallel(
        bed, [("PATCH", f"{ROOT}/nodelayers/{node_name(one)}/status", reports.status(one, 1), "") for one in numbers]
    )


def measure(bed: Testbed, nodes: int) -> Rung:
    """Measure the stored objects."""
    seconds: dict[str, list[float]] = {"": [], "?resourceVersion=0": []}
    with contextlib.closing(bed.site.requests()) as requests:
        for query, times in seconds.items():
            for _ in range(LISTS):
                begin = time.perf_counter()
                # Read to the end but not decoded: decoding is the client's cost.
                assert requests.answers(f"{ROOT}/nodelayers{query}")
                times.append(time.perf_counter() - begin)
    listed = bed.api("GET", f"{ROOT}/nodelayers")["items"]
    assert len(listed) == nodes
    managed = sum(weight(one["metadata"]["managedFields"]) for one in listed)
    return Rung(
        nodes=nodes,
        bytes=sum(map(weight, listed)),
        managed=managed,
        etcd=etcd_gateway.shrink(bed.site.etcd_url),
        list_seconds=statistics.median(seconds[""]),
        cached_list_seconds=statistics.median(seconds["?resourceVersion=0"]),
    )


def weight(document: object) -> int:
    """Return the bytes of a document as an API server writes it."""
    return len(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())


# ------------------------------------------------------------------------------------------------------- heartbeats


def beats(nodes: int, hours: float) -> list[float]:
    """Return when the node agents of idle nodes write, if all were started in the same second."""
    rng = random.Random(SEED)
    queue: list[tuple[float, int]] = []
    tables = []
    for number in range(nodes):
        table = ReportSchedule(HEARTBEAT, rng, ReportBackoff(rng, longest=300.0))
        table.written(rng.random())
        tables.append(table)
        heapq.heappush(queue, (table.due, number))
    found = []
    while queue[0][0] < hours * 3600.0:
        now, number = heapq.heappop(queue)
        found.append(now)
        tables[number].written(now)
        heapq.heappush(queue, (tables[number].due, number))
    return found


def play(bed: Testbed, reports: Reports, schedule: list[float]) -> dict[str, float]:
    """Write heartbeats on schedule for a while; return the cost."""
    parts = {name: bed.parts[name] for name in ("kube-apiserver", "etcd")}
    idle = spent(parts, 5.0)
    before = {name: part.cpu_seconds() for name, part in parts.items()}
    latencies: list[float] = []
    noted = threading.Lock()
    begin = time.monotonic()
    with contextlib.closing(bed.site.requests()) as requests, ThreadPoolExecutor(WRITERS) as pool:

        def send(number: int) -> None:
            body = reports.status(number, 2)
            started = time.perf_counter()
            requests.send("PATCH", f"{ROOT}/nodelayers/{node_name(number)}/status", body)
            with noted:
                latencies.append(time.perf_counter() - started)

        for number, due in enumerate(schedule):
            time.sleep(max(due - (time.monotonic() - begin), 0.0))
            pool.submit(send, number)
        time.sleep(max(PLAYED - (time.monotonic() - begin), 0.0))
    took = time.monotonic() - begin
    cost = {name: (part.cpu_seconds() - before[name]) / took for name, part in parts.items()}
    assert len(latencies) == len(schedule)
    return {
        "played_writes_per_second": round(len(schedule) / took, 1),
        "patch_ms_median": round(1000 * statistics.median(latencies), 1),
        "patch_ms_worst": round(1000 * max(latencies), 1),
        "apiserver_cores": round(cost["kube-apiserver"] - idle["kube-apiserver"], 3),
        "apiserver_cpu_ms_per_write": round(
            1000 * (cost["kube-apiserver"] - idle["kube-apiserver"]) * took / len(schedule), 1
        ),
        "etcd_cores": round(cost["etcd"] - idle["etcd"], 3),
    }


def spent(parts: dict[str, Any], seconds: float) -> dict[str, float]:
    """Return the share of a core that each part uses when idle."""
    before = {name: part.cpu_seconds() for name, part in parts.items()}
    time.sleep(seconds)
    return {name: (part.cpu_seconds() - before[name]) / seconds for name, part in parts.items()}


def main() -> dict[str, Any]:
    """Climb the ladder."""
    sizes = QUICK if os.environ.get("LAMINA_QUICK") else SIZES
    nodes = sizes[-1]
    reports = Reports(nodes)
    with Testbed.start() as bed:
        bed.kubectl("apply", "-f", str(CRDS))
        bed.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        empty = etcd_gateway.shrink(bed.site.etcd_url)
        known = [json.loads(image.posted) for image in reports.cluster.images]
        in_parallel(bed, [("POST", f"{ROOT}/imagelayers", one, "") for one in known])
        layers = sum(map(weight, bed.api("GET", f"{ROOT}/imagelayers")["items"]))
        with_images = etcd_gateway.shrink(bed.site.etcd_url)
        print(f"{IMAGES} ImageLayers: {layers / MB:.2f} MB, in etcd {(with_images - empty) / MB:.2f} MB")
        print(f"{'nodes':>6} {'MB':>7} {'bytes each':>11} {'managed':>8} {'etcd MB':>8} {'list':>7} {'cached':>7}")
        rungs = []
        for before, size in zip((0, *sizes), sizes, strict=False):
            write(bed, reports, range(before, size))
            rung = measure(bed, size)
            rungs.append(rung)
            print(
                f"{size:>6,} {rung.bytes / MB:>7.1f} {rung.bytes / size:>11,.0f} {rung.managed / size:>8,.0f}"
                f" {(rung.etcd - with_images) / MB:>8.1f} {rung.list_seconds:>6.2f}s {rung.cached_list_seconds:>6.2f}s",
                flush=True,
            )
        imagined = beats(nodes, HOURS)
        by_second = Counter(int(moment) for moment in imagined)
        steady = [moment for moment in imagined if moment >= (HOURS - 1) * 3600.0]
        start = steady[0]
        stretch = [moment - start for moment in steady if moment < start + PLAYED]
        told = play(bed, reports, stretch)
    top = rungs[-1]
    print(
        f"heartbeats: {len(steady) / 3600:.2f} a second, {max(by_second.values())} in the busiest second of {HOURS} hours"
    )
    print(f"played: {told}")
    return {
        "ladder": [msgspec.structs.asdict(rung) for rung in rungs],
        "nodes": nodes,
        "node_layers_bytes": top.bytes,
        "bytes_each": round(top.bytes / nodes),
        "managed_fields_bytes_each": round(top.managed / nodes),
        "image_layers_bytes": layers,
        "etcd_bytes": top.etcd - empty,
        "list_seconds": round(top.list_seconds, 2),
        "cached_list_seconds": round(top.cached_list_seconds, 2),
        "heartbeats_per_second_computed": round(nodes / HEARTBEAT, 2),
        "heartbeats_per_second": round(len(steady) / 3600, 2),
        "heartbeats_in_busiest_second": max(by_second.values()),
        **told,
    }
