"""
Summary of a run as plain data: the content of `summary.json` and the input of comparisons.

Percentiles are by nearest rank: p95 is the smallest value that at least 95 % of the pods do not exceed. Without
interpolation, the same run gives the same digits on every machine.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lamina.simulator.cluster import Phase
from lamina.simulator.run.promised_pods import levels_summary
from lamina.simulator.run.result import PodOutcome, SimulationResult

PARTS: Final = ("queue", "decision", "pull_queue", "download", "unpack", "start")
"""Parts of the seconds from arrival to running, in order. They add up for every pod."""

NEVER_STARTED: Final[tuple[Phase, ...]] = (
    *("pending", "pulling", "starting"),
    *("stopping", "rejected", "failed", "removed"),
)
"""Possible phases, at the end of a run, of a pod that never started."""

SPANS: Final = (*PARTS, "waiting", "pulling", "total")


def summary(result: SimulationResult) -> dict[str, Any]:
    """
    Return the summary of a result. All keys are always present; values without pods are None.

    The exceptions are ``overload_seconds``, which is present only if usage was measured, ``preemptions``, which is
    present only if pods were preempted, ``qos``, which is present only if pods have an SLO, and ``stopped``, which is
    present only if the run ended too early.
    """
    started = [pod for pod in result.pods if pod.started is not None]
    phases = Counter(pod.phase for pod in result.pods)
    never = Counter(pod.phase for pod in result.pods if pod.started is None)
    wanted = sum(pod.bytes_wanted for pod in started)
    hit = sum(_hit(pod) for pod in started)
    preempted = {"preemptions": result.preemptions} if result.preemptions else {}
    measured = {} if result.overload_seconds is None else {"overload_seconds": result.overload_seconds}
    levels = result.service_levels
    promised = {} if levels is None else {"qos": levels_summary(levels)}
    return {
        "scenario": result.scenario,
        "profile": result.profile,
        "seed": result.seed,
        "latency": result.latency,
        "virtual_seconds": result.seconds,
        "decisions": result.attempts,
        "pods": {
            "total": len(result.pods),
            "started": len(started),
            "finished": phases["finished"],
            "failed": phases["failed"],
            "removed": phases["removed"],
            "rejected": phases["rejected"],
            "not_started": {"total": never.total(), **{phase: never[phase] for phase in NEVER_STARTED}},
            "pending": [{"pod": pod.pod, "message": pod.message} for pod in result.pods if pod.phase == "pending"],
        },
        "bytes_wanted": wanted,
        "bytes_pulled": sum(node.bytes_pulled for node in result.nodes),
        "bytes_hit": hit,
        "hits": hit / wanted if wanted else None,
        "pulls": sum(node.pulls for node in result.nodes),
        "pull_failures": result.pull_failures,
        "gc": msgspec.structs.asdict(result.cleared),
        "evictions": result.evictions,
        **preempted,
        "restarts": sum(pod.restarts for pod in result.pods),
        "failures": result.failures,
        "peak_load": result.peak_load,
        "imbalance": result.imbalance,
        # The former names of the two, for one release.
        "heating": result.peak_load,
        "balance": result.imbalance,
        "utilisation": msgspec.structs.asdict(result.utilisation),
        **measured,
        **promised,
        **({"stopped": result.stopped} if result.stopped else {}),
        "startup_seconds": {name: _spread(getattr(pod, name) for pod in started) for name in SPANS},
        "slowdown": _spread(pod.slowdown for pod in started),
        "nodes": [msgspec.structs.asdict(node) for node in result.nodes],
    }


def _hit(pod: PodOutcome) -> int:
    # Not negative: a runtime that discards blobs may download a layer twice for one pod.
    return max(0, pod.bytes_wanted - pod.bytes_pulled)


def _spread(seconds: Iterable[float | None]) -> dict[str, float | None]:
    values = sorted(value for value in seconds if value is not None)
    if not values:
        return dict.fromkeys(("p50", "p95", "p99", "mean", "max"))
    ranked = {f"p{share}": values[math.ceil(share * len(values) / 100) - 1] for share in (50, 95, 99)}
    return {**ranked, "mean": math.fsum(values) / len(values), "max": values[-1]}
