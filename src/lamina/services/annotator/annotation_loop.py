"""
One round after the other: look, plan, write.

A round writes no more than can be written until the next one begins, the most urgent first; what is left over is planned
again with newer numbers. When nobody can be asked, nothing new is written, and what is old is taken off in time. Troubles
are said once for each kind, and none of them ends the service. A node that refuses is said once, and holds up nobody.
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
"""By how much of itself a pause may be shorter or longer."""
LONGEST_ASKED: Final = 300.0
"""Seconds that a server's Retry-After is honoured for."""

log = logging.getLogger(__name__)


class NodeLookup(Protocol):
    """What is needed of `lamina.services.annotator.watched_cluster.WatchedCluster`."""

    @property
    def follows(self) -> bool:
        """Whether nothing can have escaped us."""
        ...

    def nodes(self) -> dict[str, Node]:
        """Nodes by name."""
        ...


class AnnotationLoop:
    """Keeps annotations up to date for as long as it runs."""

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
        """Write what *values* wants on *nodes*; *wall* tells seconds since 1970."""
        self._nodes, self._values, self._writer, self._rules = nodes, values, writer, rules
        self._rng, self._wall = rng, wall
        self.problem = ""
        """Why the last round came to nothing, or less; empty when it did not."""
        self.remark = ""
        self._refused: dict[str, float] = {}
        """When nodes refused their last write, or a round ended at them."""
        self._named: set[str] = set()
        """Nodes of which it was said that they refuse."""

    async def changes(self) -> tuple[list[AnnotationWrite], str]:
        """Look, and plan; say what was lacking too. Raises a LaminaError when nobody could be asked."""
        nodes = self._nodes.nodes()
        wanted = await self._values.values(nodes, self._wall())
        return plan(nodes, wanted, self._wall(), self._rules), self._values.remark

    async def run(self, every: float, per_second: float) -> None:
        """Do one round after the other until cancelled."""
        loop = asyncio.get_running_loop()
        most = max(int(every * per_second), 1)
        while True:
            next_at = loop.time() + every * (1 + SWING * (2 * self._rng.random() - 1))
            asked = await self.round(most) if self._nodes.follows else 0.0
            await asyncio.sleep(max(next_at - loop.time(), asked))

    async def round(self, most: int) -> float:
        """Do one round; return how long the API server wants to be left alone."""
        problem = ""
        nodes = self._nodes.nodes()
        wanted: dict[str, DesiredValues] = {}
        try:
            wanted = await self._values.values(nodes, self._wall())
        except LaminaError as error:
            problem = str(error)
        except Exception as error:
            log.exception("what should stand on nodes is not known")
            problem = type(error).__name__
        there = self._nodes.nodes()
        # A node that was made anew meanwhile is not the one that was looked at.
        same = {name: one for name, one in wanted.items() if name in there and there[name].uid == nodes[name].uid}
        self._refused = {name: at for name, at in self._refused.items() if name in there}
        self._named &= there.keys()
        changes = plan(there, same, self._wall(), self._rules, self._refused)
        outcome = await self._writer.write(changes[:most])
        self._note(outcome)
        self._tell(problem if outcome.ended is None else str(outcome.ended))
        if logs.verbose(logs.ROUNDS):
            counts = {"due": len(changes), "written": len(outcome.written), "refused": len(outcome.refused)}
            log.info("round", extra={"fields": {"nodes": len(there), "known": len(same), **counts}})
        return min(outcome.retry_after, LONGEST_ASKED)

    def _note(self, outcome: WriteOutcome) -> None:
        """Remember who refused, and say it of those who did not before."""
        new = [name for name in outcome.refused if name not in self._named]
        if new:
            said = {"nodes": some(new), "problem": str(outcome.refused[new[0]])}
            log.warning("nodes refuse their annotations", extra={"fields": said})
        tried = [*outcome.refused, outcome.stuck] if outcome.stuck else list(outcome.refused)
        self._refused |= dict.fromkeys(tried, self._wall())
        self._named = (self._named | outcome.refused.keys()).difference(outcome.written)
        for name in outcome.written:
            self._refused.pop(name, None)

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("annotations are not kept up to date", extra={"fields": {"problem": problem}})
        elif self.problem and not problem:
            log.info("annotations are kept up to date again")
        self.problem = problem
        remark = self._values.remark if not problem else self.remark
        if remark != self.remark:
            log.info("what should stand on nodes", extra={"fields": {"remark": remark}})
        self.remark = remark
