"""Dump of the scheduler's state as plain data, for SIGUSR2 and /debug/dump. Long lists are cut to `MOST` entries."""

from typing import Any, Final

from lamina.scheduling.loop.loop import Loop

MOST: Final = 200


def dump(loop: Loop) -> dict[str, Any]:  # Any: a document for people, without a stable format
    """Return the cached state and the waiting pods."""
    columns = loop.cluster.columns
    nodes = [
        {"node": name, "pods": len(loop.cluster.cache.on(name)), "layers": bool(_reported(loop, row))}
        for name, row in list(columns.rows.items())[:MOST]
    ]
    waiting = [
        {
            "pod": queued.pod.key,
            "queue": queued.place,
            "attempts": queued.attempts,
            "refusedBy": sorted(queued.refused_by),
            "backoffUntil": round(queued.backoff_until, 3),
            "told": queued.told,
        }
        for queued, _ in zip(loop.queue, range(MOST), strict=False)
    ]
    underway = [
        {"pod": one.queued.pod.key, "node": one.node, "stage": one.stage}
        for one, _ in zip(loop.bindings, range(MOST), strict=False)
    ]
    asked = [
        {"pod": wait.queued.pod.key, "nodes": len(wait.nodes), "answered": wait.answer is not None}
        for wait in loop.waits
    ]
    return {
        "now": round(loop.now, 3),
        "nodes": columns.count,
        "pods": len(loop.cluster.cache),
        "assumed": sum(placed.assumed for placed in loop.cluster.cache),
        "queue": loop.queue.counts(),
        "reportsDisbelieved": dict(sorted(loop.cluster.inventory.complaints.items())),
        "nodesSample": nodes,
        "waiting": waiting,
        "underway": underway,
        "extenders": asked,
    }


def _reported(loop: Loop, row: int) -> bool:
    reported = loop.cluster.inventory.index.reported
    return row < len(reported) and bool(reported[row])
