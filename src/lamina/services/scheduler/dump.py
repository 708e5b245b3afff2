"""What the scheduler believes, as plain data: for SIGUSR2 and for who asks. Bounded, the longest lists cut."""

from typing import Any, Final

from lamina.scheduling.loop.state import LoopState

MOST: Final = 200


def dump(state: LoopState) -> dict[str, Any]:  # Any: a document for people, whose shape nobody relies on
    """Tell what is believed and what waits."""
    columns = state.columns
    nodes = [
        {"node": name, "pods": len(state.cache.on(name)), "layers": bool(_reported(state, row))}
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
        for queued, _ in zip(state.queue, range(MOST), strict=False)
    ]
    underway = [
        {"pod": one.queued.pod.key, "node": one.node, "stage": one.stage}
        for one, _ in zip(state.bindings, range(MOST), strict=False)
    ]
    return {
        "now": round(state.now, 3),
        "nodes": columns.count,
        "pods": len(state.cache),
        "assumed": sum(placed.assumed for placed in state.cache),
        "queue": state.queue.counts(),
        "reportsDisbelieved": dict(sorted(state.inventory.complaints.items())),
        "nodesSample": nodes,
        "waiting": waiting,
        "underway": underway,
    }


def _reported(state: LoopState, row: int) -> bool:
    reported = state.inventory.index.reported
    return row < len(reported) and bool(reported[row])
