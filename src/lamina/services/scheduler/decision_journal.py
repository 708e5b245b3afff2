"""The last decisions, for whoever asks why: bounded in number, the oldest go first; the newest of a pod is kept."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from lamina.model.decision import Decision
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable

MOST: Final = 10_000
MOST_VERDICTS: Final = 150_000
"""Of nodes, in all decisions together; in full detail each takes about 400 bytes."""


class DecisionJournal:
    """Pod → the newest decision about it."""

    def __init__(self, most: int = MOST) -> None:
        """Remember *most* pods."""
        self._most = most
        self._newest: OrderedDict[str, Decision] = OrderedDict()
        self._verdicts = 0

    def __len__(self) -> int:
        """Count the pods that are remembered."""
        return len(self._newest)

    def __iter__(self) -> Iterator[Decision]:
        """Go through what is remembered, the newest last."""
        return iter(self._newest.values())

    def note(self, commands: list[Command]) -> None:
        """Remember what an attempt came to."""
        for command in commands:
            if isinstance(command, Bind | ReportUnschedulable) and command.decision is not None:
                self._keep(command.decision)
        while len(self._newest) > self._most or (self._verdicts > MOST_VERDICTS and len(self._newest) > 1):
            self._verdicts -= len(self._newest.popitem(last=False)[1].verdicts)

    def _keep(self, decision: Decision) -> None:
        before = self._newest.pop(decision.pod, None)
        self._newest[decision.pod] = decision
        self._verdicts += len(decision.verdicts) - (0 if before is None else len(before.verdicts))

    def about(self, pod: str) -> Decision | None:
        """Return the newest decision about ``namespace/name``."""
        return self._newest.get(pod)
