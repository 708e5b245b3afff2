"""A loop and a second one that is made from snapshots of the first, fed the same events and compared at every command."""

import random
from collections.abc import Callable
from typing import Any

import msgspec

from lamina.model.events import Event
from lamina.scheduling.contract.commands import Command
from lamina.scheduling.loop.loop import Loop, Pick
from lamina.scheduling.loop.loop_snapshot import assemble, pieces

MakeLoop = Callable[[Pick], Loop]


class Twins:
    """Feeds both loops; until the first cut there is only one."""

    def __init__(self, make: MakeLoop, dice: random.Random | None = None) -> None:
        """Make the first loop; ties are broken by *dice*, and for the second loop as they were for the first."""
        self._make = make
        self._dice = dice or random.Random(0)
        self._picked: list[int] = []
        self.loop = make(self._pick)
        self.second: Loop | None = None
        self.cuts = 0

    def _pick(self, count: int) -> int:
        self._picked.append(self._dice.randrange(count))
        return self._picked[-1]

    def _pick_again(self, count: int) -> int:
        assert self._picked, "the second loop found a tie that the first did not"
        return self._picked.pop(0)

    def cut(self) -> Loop:
        """Replace the second loop by one that is made from a snapshot of the first, by way of bytes; return it."""
        data = list(pieces(self.loop.snapshot()))
        self.second = self._make(self._pick_again)
        self.second.restore(assemble(data))
        self.cuts += 1
        return self.second

    def feed(self, *happened: Event) -> list[Command]:
        """Feed both and see that they answer the same."""
        self._picked.clear()
        commands = self.loop.feed(*happened)
        if self.second is not None:
            assert commands == self.second.feed(*happened)
            assert not self._picked, "the first loop found a tie that the second did not"
            assert self.loop.unfinished == self.second.unfinished
        return commands

    def take(self, *happened: Event) -> None:
        """Let both take events in without deciding."""
        self.loop.take(*happened)
        if self.second is not None:
            self.second.take(*happened)

    def finish(self) -> None:
        """See that both would be written down in the same way."""
        if self.second is not None:
            first, second = comparable(self.loop), comparable(self.second)
            for part, saved in first.items():
                assert saved == second[part], part


def comparable(loop: Loop) -> dict[str, Any]:
    """Return a snapshot as plain data, without the numbers of shapes, which mean something within one process only."""
    plain = msgspec.to_builtins(loop.snapshot())
    shapes: dict[object, int] = {}
    queue = plain["queue"]
    for underway in plain["underway"]:
        # A pod in a binding cycle is signed again before it is tried again, whatever shape it had.
        underway["queued"].update(shape=None, signed=False)
    waits = [wait["queued"] for wait in plain["waits"]]
    for one in (*queue["pods"], *waits, *(underway["queued"] for underway in plain["underway"])):
        for field in ("shape", "group"):
            if isinstance(one[field], int):
                one[field] = shapes.setdefault((one["profile"], one[field]), len(shapes))
    for group in queue["groups"]:
        if isinstance(group["label"], int):
            group["label"] = shapes.setdefault((group["profile"], group["label"]), len(shapes))
    queue["group_timers"] = [list(timer) for timer in queue["group_timers"]]
    for timer in queue["group_timers"]:
        if isinstance(timer[1], int):
            timer[1] = shapes.setdefault((timer[0], timer[1]), len(shapes))
    # Encoded, because not a number equals nothing.
    return {
        f"{part}.{field}": msgspec.msgpack.encode(value, order="deterministic")
        for part, whole in plain.items()
        for field, value in (whole.items() if isinstance(whole, dict) else [("", whole)])
    }
