"""
Loop of an annotator: measure, plan, write.

A round writes only as much as fits before the next round, most urgent first. The rest is planned again with newer
values. If the source cannot be reached, nothing new is written, and old annotations are removed when they expire. Each
kind of problem is logged once, and none ends the service. A node whose write is rejected is logged once and does not
delay other nodes.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final, Protocol

from lamina.model.errors import LaminaError
from lamina.model.node import Node
from lamina.services.annotator import logs
from lamina.services.annotator.annotation_plan import AnnotationWrite, WriteRules, plan
from lamina.services.annotator.annotation_writer import AnnotationWriter, WriteOutcome
from lamina.services.annotator.node_values import DesiredValues, NodeValues
from lamina.services.informers.usage.usage_source import some

SWING: Final = 0.1
"""Jitter of the interval between rounds, as a share of it."""
LONGEST_ASKED: Final = 300.0
"""Longest Retry-After that is honoured, in seconds."""

log = logging.getLogger(__name__)


class NodeLookup(Protocol):
    """The methods used of `lamina.services.annotator.watched_cluster.WatchedCluster`."""

    @property
    def follows(self) -> bool:
        """Whether the caches are synced and all watches are up."""
        ...

    def nodes(self) -> dict[str, Node]:
        """Return nodes by name."""
        ...


class AnnotationLoop:
    """Keeps annotations up to date while it runs."""

    def __init__(
        self,
        nodes: NodeLookup,
        values: NodeValues,
        writer: AnnotationWriter,
        rules: WriteRules,
        *,
        rng: random.Random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Write *values* to *nodes*; *wall* returns seconds since 1970."""
        self._nodes, self._values, self._writer, self._rules = nodes, values, writer, rules
        self._rng, self._wall = rng, wall
        self.problem = ""
        """Why the last round failed, completely or in part; empty if it did not."""
        self.remark = ""
        self._refused: dict[str, float] = {}
        """When each node's write was last rejected, or a round ended at it."""
        self._named: set[str] = set()
        """Nodes whose rejected write was logged."""

    async def changes(self) -> tuple[list[AnnotationWrite], str]:
        """Return the planned writes and what was missing. Raises a LaminaError if the source cannot be reached."""
        nodes = self._nodes.nodes()
        wanted = await self._values.values(nodes, self._wall())
        return plan(nodes, wanted, self._wall(), self._rules), self._values.remark

    async def run(self, every: float, per_second: float) -> None:
        """Run one round after the other until cancelled."""
        loop = asyncio.get_running_loop()
        most = max(int(every * per_second), 1)
        while True:
            next_at = loop.time() + every * (1 + SWING * (2 * self._rng.random() - 1))
            asked = await self.run_once(most) if self._nodes.follows else 0.0
            await asyncio.sleep(max(next_at - loop.time(), asked))

    async def run_once(self, most: int) -> float:
        """Run one round; return the seconds that the API server asked to wait."""
        problem = ""
        nodes = self._nodes.nodes()
        wanted: dict[str, DesiredValues] = {}
        try:
            wanted = await self._values.values(nodes, self._wall())
        except LaminaError as error:
            problem = str(error)
        except Exception as error:
            log.exception("value source raised an exception")
            problem = type(error).__name__
        there = self._nodes.nodes()
        # A node that was recreated meanwhile is not the one that was measured.
        same = {name: one for name, one in wanted.items() if name in there and there[name].uid == nodes[name].uid}
        self._refused = {name: at for name, at in self._refused.items() if name in there}
        self._named &= there.keys()
        changes = plan(there, same, self._wall(), self._rules, self._refused)
        outcome = await self._writer.write(changes[:most])
        self._note(outcome)
        self._tell(problem if outcome.ended is None else str(outcome.ended))
        if logs.verbose(logs.ROUNDS):
            counts = {"due": len(changes), "written": len(outcome.written), "refused": len(outcome.refused)}
            log.info("round done", extra={"fields": {"nodes": len(there), "known": len(same), **counts}})
        return min(outcome.retry_after, LONGEST_ASKED)

    def _note(self, outcome: WriteOutcome) -> None:
        """Remember nodes whose write was rejected; log the new ones."""
        new = [name for name in outcome.refused if name not in self._named]
        if new:
            said = {"nodes": some(new), "problem": str(outcome.refused[new[0]])}
            log.warning("annotation writes rejected", extra={"fields": said})
        tried = [*outcome.refused, outcome.stuck] if outcome.stuck else list(outcome.refused)
        self._refused |= dict.fromkeys(tried, self._wall())
        self._named = (self._named | outcome.refused.keys()).difference(outcome.written)
        for name in outcome.written:
            self._refused.pop(name, None)

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("annotation round failed, retrying", extra={"fields": {"problem": problem}})
        elif self.problem and not problem:
            log.info("annotation rounds recovered")
        self.problem = problem
        remark = self._values.remark if not problem else self.remark
        if remark != self.remark:
            log.info("annotation values changed", extra={"fields": {"remark": remark}})
        self.remark = remark
