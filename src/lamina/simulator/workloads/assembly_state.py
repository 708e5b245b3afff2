"""
What all parts of an assembly share: the files, the names that are taken, and the mistakes found so far.

What an entry gets wrong is told at that entry; what depends on entries that are wrong themselves is not told twice,
which is why the ledger remembers which fields could be read as a whole.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from lamina.model.errors import Mistake
from lamina.model.plain import shown
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioEntry

EntryNoun = Literal["node", "pod", "controller"]


class AssemblyState:
    """Entries, names and mistakes of all files."""

    def __init__(self, parts: Iterable[ScenarioDocument]) -> None:
        """Begin with no name taken."""
        self.parts = tuple(parts)
        self.mistakes: list[Mistake] = []
        self.named: dict[EntryNoun, dict[str, ScenarioEntry]] = {"node": {}, "pod": {}, "controller": {}}
        """Which entry took which name."""
        self.complete: dict[EntryNoun, bool] = {"node": True, "pod": True, "controller": True}
        """Whether all of a kind could be read, so that what is not among them is really missing."""

    def wrong(self, entry: ScenarioEntry, message: str, *steps: str | int) -> None:
        """Note a mistake in an entry, *steps* inside it."""
        self.mistakes.append(entry.mistake(message, *steps))

    def entries(self, field: str, kind: type[object], noun: EntryNoun | None = None) -> list[ScenarioEntry]:
        """List what all files have under a field; with mistakes in it, there may be more of its *noun*."""
        entries = [entry for part in self.parts for entry in part.entries(field, kind)]
        listed = sum(len(part.places(field)) for part in self.parts)
        if noun is not None and (len(entries) < listed or not all(part.lists(field) for part in self.parts)):
            self.complete[noun] = False
        return entries

    def bounded(
        self, entries: Iterable[ScenarioEntry], noun: EntryNoun, most: int, weigh: Callable[[Any], int], start: int = 0
    ) -> list[ScenarioEntry]:
        """Return the entries, or none of them when together they stand for too many."""
        total, kept = start, list(entries)
        for entry in kept:
            total += weigh(entry.value)
            if total > most:
                message = f"too many: with this one there are {total}, and at most {most} are simulated"
                self.wrong(entry, message, "count")
                self.complete[noun] = False
                return []
        return kept

    def names(self, entry: ScenarioEntry, noun: EntryNoun) -> list[str]:
        """Take the names an entry stands for: one, or one with a number for each of its copies."""
        name, count = entry.value.name, entry.value.count
        return self.take(entry, noun, [name] if count == 1 else [f"{name}{number}" for number in range(1, count + 1)])

    def take(self, entry: ScenarioEntry, noun: EntryNoun, names: Iterable[str], *steps: str | int) -> list[str]:
        """Take names for an entry, leaving out those that are taken and telling the first of them."""
        taken, names = self.named[noun], list(names)
        twice = [one for one in names if one in taken]
        if twice:
            before = taken[twice[0]].where
            message = f"there is a second {noun} {shown(twice[0])}, the first is in {before}"
            self.wrong(entry, message, *(steps or ("name",)))
        fresh = [one for one in names if one not in taken]
        taken.update(dict.fromkeys(fresh, entry))
        return fresh
