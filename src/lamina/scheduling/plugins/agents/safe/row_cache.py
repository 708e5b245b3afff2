"""
What was worked out for nodes from their figures, kept for the next time.

From one pod to the next of its kind, one node's figures change: those of the node the last one went to. Working the others out
again would take milliseconds and give the same.
"""

from collections.abc import Callable, Hashable
from typing import Final

from lamina.scheduling.state.columns import Bools, Floats

# For so many kinds of questions answers are kept: 8 MB at 5,000 nodes with two figures each.
MOST: Final = 64


class RowCache:
    """Answers of a function of each node's figures, and of nothing else, for the questions asked lately."""

    def __init__(self, work_out: Callable[..., Floats]) -> None:
        """Keep answers of *work_out*, which takes an array for each figure."""
        self._work_out = work_out
        self._answers: dict[Hashable, tuple[tuple[Floats, ...], Floats]] = {}

    def of(self, question: Hashable, *figures: Floats) -> Floats:
        """
        Return the answer for all nodes, to be read only.

        *question* tells apart what has other figures altogether. The figures are kept, and not to be changed any more.
        """
        known = self._answers.pop(question, None)
        if known is None or len(known[1]) != len(figures[0]):
            answer = self._work_out(*figures)
        else:
            before, answer = known
            changed: Bools = figures[0] != before[0]
            for now, then in zip(figures[1:], before[1:], strict=True):
                changed |= now != then
            rows = changed.nonzero()[0]
            if len(rows):
                answer = answer.copy()
                answer[rows] = self._work_out(*(one[rows] for one in figures))
        if len(self._answers) >= MOST:
            del self._answers[next(iter(self._answers))]
        self._answers[question] = (figures, answer)
        return answer
