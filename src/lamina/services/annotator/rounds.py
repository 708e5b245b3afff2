"""
One round after the other: look, plan, write.

A round writes no more than can be written until the next one begins, the most urgent first; what is left over is planned
again with newer numbers. When nobody can be asked, nothing new is written, and what is old is taken off in time. Troubles
are said once for each kind, and none of them ends the service.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final, Protocol

from lamina.clients.kube.errors import ApiError, Unreachable
from lamina.model.errors import LaminaError
from lamina.model.node import Node
from lamina.services.annotator import logs
from lamina.services.annotator.planning import Change, Rules, plan
from lamina.services.annotator.values import Values, Wanted
from lamina.services.annotator.writing import Writer

SWING: Final = 0.1
"""By how much of itself a pause may be shorter or longer."""
LONGEST_ASKED: Final = 300.0
"""Seconds that a server's Retry-After is honoured for."""

log = logging.getLogger(__name__)


class Nodes(Protocol):
    """What is needed of `lamina.services.annotator.cluster.Cluster`."""

    @property
    def follows(self) -> bool:
        """Whether nothing can have escaped us."""
        ...

    def nodes(self) -> dict[str, Node]:
        """Nodes by name."""
        ...


class Rounds:
    """Keeps annotations up to date for as long as it runs."""

    def __init__(
        self,
        nodes: Nodes,
        values: Values,
        writer: Writer,
        rules: Rules,
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

    async def changes(self) -> tuple[list[Change], str]:
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
        problem, asked = "", 0.0
        nodes = self._nodes.nodes()
        wanted: dict[str, Wanted] = {}
        try:
            wanted = await self._values.values(nodes, self._wall())
        except LaminaError as error:
            problem = str(error)
        except Exception as error:
            log.exception("what should stand on nodes is not known")
            problem = type(error).__name__
        changes = plan(self._nodes.nodes(), wanted, self._wall(), self._rules)
        try:
            written = await self._writer.write(changes[:most])
        except (ApiError, Unreachable) as error:
            problem, written = str(error), 0
            asked = min((error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0, LONGEST_ASKED)
        self._tell(problem)
        if logs.verbose(logs.ROUNDS):
            fields = {"nodes": len(nodes), "known": len(wanted), "due": len(changes), "written": written}
            log.info("round", extra={"fields": fields})
        return asked

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
