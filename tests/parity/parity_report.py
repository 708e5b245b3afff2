"""Summary of many comparisons: the figures that `make parity` prints, and the table in docs/parity.md."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.parity.case_files import read_recording, recordings
from tests.parity.comparison import CaseComparison, compare
from tests.parity.replay import lamina_answer


class PluginFigures(msgspec.Struct):
    """Figures of one plugin."""

    cases: int = 0
    """Cases in which the plugin refuses a node or scores nodes differently."""
    equal: int = 0
    not_compared: int = 0


class ParityReport(msgspec.Struct, kw_only=True):
    """Figures of all cases."""

    cases: int = 0
    not_compared: Counter[str] = msgspec.field(default_factory=Counter)
    """Plugin → cases that are not compared because Lamina does not implement it."""
    equal: int = 0
    feasible_equal: int = 0
    unsound: int = 0
    """Cases in which Lamina finds a node feasible that kube-scheduler refuses."""
    score_triples: int = 0
    score_triples_equal: int = 0
    totals: Counter[bool] = msgspec.field(default_factory=Counter)
    chosen: Counter[bool] = msgspec.field(default_factory=Counter)
    messages: Counter[bool] = msgspec.field(default_factory=Counter)
    nominations: Counter[bool] = msgspec.field(default_factory=Counter)
    victims: Counter[bool] = msgspec.field(default_factory=Counter)
    by_plugin: dict[str, PluginFigures] = msgspec.field(default_factory=dict)
    known: Counter[str] = msgspec.field(default_factory=Counter)
    """Reason → cases with this known difference."""
    unknown: int = 0
    """Cases with a difference that is not a known one."""
    different: list[CaseComparison] = msgspec.field(default_factory=list)
    """Cases with a difference."""

    def add(self, one: CaseComparison) -> None:
        """Count one comparison."""
        self.cases += 1
        for plugin in one.active:
            figures = self.by_plugin.setdefault(plugin, PluginFigures())
            figures.cases += 1
            if one.not_compared or plugin in one.left_out:
                figures.not_compared += 1
            elif plugin not in one.unequal:
                figures.equal += 1
        if one.not_compared:
            self.not_compared[one.not_compared] += 1
            return
        if one.set_apart:
            self.known[one.set_apart] += 1
        self.equal += one.equal
        self.feasible_equal += one.feasible_equal
        self.unsound += bool(one.unsound)
        self.score_triples += one.triples
        self.score_triples_equal += one.triples_equal
        for counter, value in (
            (self.totals, one.totals_equal),
            (self.chosen, one.chosen_equal),
            (self.messages, one.message_equal),
            (self.nominations, one.nomination_equal),
            (self.victims, one.victims_equal),
        ):
            if value is not None:
                counter[value] += 1
        self.known.update(one.known.values())
        self.unknown += one.unknown
        if one.differences:
            self.different.append(one)

    def figures(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "cases": self.cases,
            "compared": self.cases - self.not_compared.total(),
            "not_compared": dict(sorted(self.not_compared.items())),
            "equal": self.equal,
            "feasible_equal": self.feasible_equal,
            "unsound": self.unsound,
            "score_triples": self.score_triples,
            "score_triples_equal": self.score_triples_equal,
            "totals": self.totals.total(),
            "totals_equal": self.totals[True],
            "chosen": self.chosen.total(),
            "chosen_in_best": self.chosen[True],
            "messages": self.messages.total(),
            "messages_equal": self.messages[True],
            "nominations": self.nominations.total(),
            "nominations_equal": self.nominations[True],
            "victims_equal": self.victims[True],
            "known_differences": dict(sorted(self.known.items())),
            "unknown_differences": self.unknown,
            "by_plugin": {name: msgspec.to_builtins(one) for name, one in sorted(self.by_plugin.items())},
        }


def compare_files(paths: Iterable[Path], step: int = 1) -> Iterator[CaseComparison]:
    """Yield the comparisons of every *step*-th case of each file."""
    for path in paths:
        header, cases = read_recording(path)
        for number, recorded in enumerate(cases):
            if number % step == 0:
                yield compare(recorded, lamina_answer(recorded.case, header.fixtures))


def report(folder: Path | None = None, step: int = 1) -> ParityReport:
    """Compare every *step*-th recorded case, and return the figures."""
    found = ParityReport()
    for one in compare_files(recordings() if folder is None else recordings(folder), step):
        found.add(one)
    return found
