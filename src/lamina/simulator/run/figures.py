"""
A run in one page of figures, as plain data: what `summary.json` holds and what comparisons are made from.

Percentiles are by nearest rank: the value that at least so many percent of the pods do not exceed. No figure is made
up between two pods, so the same run gives the same digits everywhere.
"""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from lamina.simulator.run.result import PodOutcome, Result


def summary(result: Result) -> dict[str, Any]:
    """Boil a result down; all keys are always there, figures without pods are None."""
    started = [pod for pod in result.pods if pod.started is not None]
    return {
        "scenario": result.scenario,
        "profile": result.profile,
        "seed": result.seed,
        "virtual_seconds": result.seconds,
        "decisions": len(result.decisions),
        "pods": {
            "total": len(result.pods),
            "started": len(started),
            "finished": _count(result.pods, "finished"),
            "removed": _count(result.pods, "removed"),
            "rejected": _count(result.pods, "rejected"),
            "pending": [{"pod": pod.pod, "message": pod.message} for pod in result.pods if pod.phase == "pending"],
        },
        "bytes_wanted": sum(pod.bytes_wanted for pod in started),
        "bytes_pulled": sum(node.bytes_pulled for node in result.nodes),
        "bytes_hit": sum(pod.bytes_wanted - pod.bytes_pulled for pod in started),
        "pulls": sum(node.pulls for node in result.nodes),
        "heating": result.heating,
        "balance": result.balance,
        "startup_seconds": {
            "waiting": _spread(pod.waiting for pod in started),
            "pulling": _spread(pod.pulling for pod in started),
            "total": _spread(_total(pod) for pod in started),
        },
        "nodes": [msgspec.structs.asdict(node) for node in result.nodes],
    }


def _count(pods: Iterable[PodOutcome], phase: str) -> int:
    return sum(pod.phase == phase for pod in pods)


def _total(pod: PodOutcome) -> float | None:
    return None if pod.started is None else pod.started - pod.arrived


def _spread(seconds: Iterable[float | None]) -> dict[str, float | None]:
    values = sorted(value for value in seconds if value is not None)
    if not values:
        return dict.fromkeys(("p50", "p95", "p99", "mean", "max"))
    ranked = {f"p{share}": values[math.ceil(share * len(values) / 100) - 1] for share in (50, 95, 99)}
    return {**ranked, "mean": math.fsum(values) / len(values), "max": values[-1]}
