"""Summary of one command of the loop: enough to check whether two runs decided the same."""

from typing import Literal

import msgspec

from lamina.model.plain import plural

CommandOutcomeKind = Literal["bind", "ask", "work", "evict", "nominate", "pending", "plugin-error", "wake"]


class CommandOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command of the loop, without the data that the host needs to execute it."""

    kind: CommandOutcomeKind
    pod: str = ""
    """``namespace/name``."""
    uid: str = ""
    node: str = ""
    attempt: int = 0
    total: int | None = None
    """Total points of the chosen node."""
    tied: int = 0
    """Number of nodes with that total."""
    feasible: int = 0
    nodes: int = 0
    plugin: str = ""
    message: str = ""
    at: float = 0.0
    """For ``wake``: the time at which to wake."""

    def __str__(self) -> str:
        parts = [f"{self.kind} {self.pod}" if self.pod else self.kind]
        if self.node:
            parts.append(f"to {self.node}")
        if self.total is not None:
            parts.append(
                f"with {plural(self.total, 'point')}, {self.tied} tied, {self.feasible} of {plural(self.nodes, 'node')} feasible"
            )
        if self.plugin:
            parts.append(f"by {self.plugin}")
        if self.kind == "wake":
            parts.append(f"at {self.at:.6f}")
        text = " ".join(parts)
        return f"{text}: {self.message}" if self.message else text
