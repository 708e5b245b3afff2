"""Journal of the newest decision about each pod, bounded in number; the oldest are dropped first."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from lamina.model.decision import Decision
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable

MOST: Final = 10_000
MOST_VERDICTS: Final = 150_000
"""Most node verdicts in all decisions together; with full detail each takes about 400 bytes."""


class DecisionJournal:
    """The newest decision by pod."""

    def __init__(self, most: int = MOST) -> None:
        """Keep decisions of *most* pods."""
        self._most = most
        self._newest: OrderedDict[str, Decision] = OrderedDict()
        self._verdicts = 0

    def __len__(self) -> int:
        """Return the number of pods."""
        return len(self._newest)

    def __iter__(self) -> Iterator[Decision]:
        """Iterate over the decisions, newest last."""
        return iter(self._newest.values())

    def note(self, commands: list[Command]) -> None:
        """Keep the decisions of an attempt's commands."""
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
