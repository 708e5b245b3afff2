"""
Event logs of the QoS-driven scheduling experiments on a real cluster, as facts that `service_levels` measures.

`qos/*-events.csv.gz` in the data folder has the columns seconds, event, pod, controller, host, value. A pod is created
(waiting), bound (allocation), started (starting) and removed (termination). The last pod of a controller is removed
because the experiment ends; every other removal is an eviction.
"""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

from lamina.simulator.run.service_levels import AvailabilityPromise, PodSpan

LOGS = (
    *("qos/validation1-workload1-priority-events.csv.gz", "qos/validation1-workload1-qos-events.csv.gz"),
    *("qos/validation2-workload3-priority-events.csv.gz", "qos/validation2-workload3-qos-events.csv.gz"),
)
WORKLOADS = ("qos/validation1-workload.csv", "qos/validation2-workload.csv")
END = 3635.0
"""When the experiments end, in seconds since the first event."""
SLOS = {"prod": 1.0, "batch": 0.9, "free": 0.5}


def recorded(path: Path) -> tuple[list[AvailabilityPromise], list[PodSpan]]:
    """Return the promises and the pods of one log."""
    times: dict[str, dict[str, float]] = {}
    owners: dict[str, str] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            times.setdefault(row["pod"], {})[row["event"]] = float(row["seconds"])
            owners[row["pod"]] = row["controller"]
    last = {owners[pod]: pod for pod in sorted(times, key=lambda pod: times[pod]["waiting"])}
    promises = [AvailabilityPromise(owner, SLOS[owner.split("-")[0]], owner.split("-")[0]) for owner in last]
    return promises, list(_spans(times, owners, set(last.values())))


def _spans(times: dict[str, dict[str, float]], owners: dict[str, str], last: set[str]) -> Iterator[PodSpan]:
    for pod, at in times.items():
        yield PodSpan(
            controller=owners[pod],
            created=at["waiting"],
            started=at.get("starting"),
            # A pod that the end of the experiment removed exists until the end.
            ended=None if pod in last else at["termination"],
            disruption="" if pod in last else "preempted",
        )
