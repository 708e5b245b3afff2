"""
Assembly of an annotator: builds its parts and runs them, once or until a signal.

On SIGTERM or SIGINT it stops at once: a write is complete or not made, and the next round repeats everything. If a one-
time task was not complete by then, the command fails.
"""

import asyncio
import logging
import random
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from lamina.clients.kube.access import ApiAccess
from lamina.clients.kube.transport import KubeClient
from lamina.model.errors import LaminaError
from lamina.model.plain import plural
from lamina.services.annotator import allocation_values, congestion_values, usage_values
from lamina.services.annotator.allocation_values import AllocationValues
from lamina.services.annotator.annotation_loop import AnnotationLoop
from lamina.services.annotator.annotation_plan import AnnotationWrite, WriteRules, removals
from lamina.services.annotator.annotation_writer import AnnotationWriter, WritesRejectedError
from lamina.services.annotator.congestion_values import CongestionValues
from lamina.services.annotator.node_values import NodeValues
from lamina.services.annotator.usage_values import UsageValues
from lamina.services.annotator.watched_cluster import WatchedCluster
from lamina.services.informers.usage.usage_settings import UsageSettings, open_client, open_source

AnnotationKind = Literal["usage", "allocation", "congestion"]

USER_AGENT: Final = "lamina-annotator"
NAMES: Final[dict[AnnotationKind, tuple[tuple[str, ...], str]]] = {
    "usage": (usage_values.KEYS, usage_values.STAMP),
    "allocation": (allocation_values.KEYS, allocation_values.STAMP),
    "congestion": ((congestion_values.KEY,), congestion_values.STAMP),
}
"""All annotations of each kind, and the annotation with the time."""

log = logging.getLogger(__name__)


class AnnotatorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Checked options of the command line."""

    what: AnnotationKind
    access: ApiAccess
    settings: UsageSettings = UsageSettings()
    once: bool = False
    dry_run: bool = False
    remove: bool = False
    every: float = 60.0
    per_second: float = 5.0
    refresh: float
    forget: float


class StoppedError(LaminaError):
    """Raised when a signal arrives before a one-time task is complete."""

    exit_code: ClassVar[int] = 1


ShowPlan = Callable[[Sequence[AnnotationWrite], str], None]
"""Receives the planned writes, and what was missing."""


async def annotate(options: AnnotatorOptions, show: ShowPlan) -> None:
    """
    Run the annotator; pass the plan of a single round or of a removal to *show*.

    Raises a LaminaError if this failed, for all or some nodes.
    """
    client = KubeClient(options.access, connections=4, user_agent=USER_AGENT)
    rng = random.Random()
    writer = AnnotationWriter(client, options.per_second, rng)
    keys, stamp = NAMES[options.what]
    rules = WriteRules(keys=keys, stamp=stamp, refresh=options.refresh, forget=options.forget)
    cluster = WatchedCluster(client, pods=options.what == "allocation" and not options.remove)
    values: NodeValues | None = None
    try:
        if options.remove:
            work = _remove(options, cluster, writer, rules, show)
        else:
            values = _values(options, client, cluster)
            rounds = AnnotationLoop(cluster, values, writer, rules, rng=rng)
            work = _keep(options, cluster, writer, rounds, show)
        finished = await _until_stopped(work, cluster)
        if not finished and (options.once or options.dry_run or options.remove):
            raise StoppedError("stopped before all nodes were written; run it again")
    finally:
        if values is not None:
            await values.close()
        await client.close()


async def _remove(
    options: AnnotatorOptions, cluster: WatchedCluster, writer: AnnotationWriter, rules: WriteRules, show: ShowPlan
) -> None:
    await cluster.seen()
    await _finish(options, writer, removals(cluster.nodes(), rules), "", show)


async def _keep(
    options: AnnotatorOptions, cluster: WatchedCluster, writer: AnnotationWriter, rounds: AnnotationLoop, show: ShowPlan
) -> None:
    await cluster.seen()
    if options.once or options.dry_run:
        changes, remark = await rounds.changes()
        await _finish(options, writer, changes, remark, show)
        return
    log.info("annotating nodes", extra={"fields": {"with": options.what, "nodes": len(cluster.nodes())}})
    await rounds.run(options.every, options.per_second)


def _values(options: AnnotatorOptions, client: KubeClient, cluster: WatchedCluster) -> NodeValues:
    match options.what:
        case "usage":
            return UsageValues(open_source(options.settings, lambda: client, USER_AGENT))
        case "allocation":
            return AllocationValues(cluster.pods, cluster.ready)
        case "congestion":
            return CongestionValues(open_client(options.settings, USER_AGENT), options.settings.queries)


async def _finish(
    options: AnnotatorOptions, writer: AnnotationWriter, changes: list[AnnotationWrite], remark: str, show: ShowPlan
) -> None:
    show(changes, remark)
    if not options.dry_run:
        outcome = await writer.write(changes)
        log.info("annotations written", extra={"fields": {"nodes": len(outcome.written), "of": len(changes)}})
        if outcome.refused:
            name, error = next(iter(outcome.refused.items()))
            refused = f"{len(outcome.refused)} of {plural(len(changes), 'annotation write was', 'annotation writes were')} rejected"
            raise WritesRejectedError(f"{outcome.ended or refused}; {name}: {error}")
        if outcome.ended is not None:
            raise outcome.ended


async def _until_stopped(work: Coroutine[Any, Any, None], cluster: WatchedCluster) -> bool:
    """Run *work* and the watches until a signal arrives; return whether the work is complete. Raises its errors."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work), loop.create_task(cluster.run())]
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tasks[0].cancel)
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return tasks[0] in done and not tasks[0].cancelled()
