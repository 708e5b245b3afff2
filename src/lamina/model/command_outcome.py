"""What came of one decision, in few words: enough to tell whether two runs decided the same."""

from typing import Literal

import msgspec

from lamina.model.plain import plural

CommandOutcomeKind = Literal["bind", "work", "evict", "nominate", "pending", "plugin-error", "wake"]


class CommandOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command of the loop, without what its host needs to perform it."""

    kind: CommandOutcomeKind
    pod: str = ""
    """``namespace/name``."""
    uid: str = ""
    node: str = ""
    attempt: int = 0
    total: int | None = None
    """The points of the node that was chosen."""
    tied: int = 0
    """How many nodes had as many."""
    feasible: int = 0
    nodes: int = 0
    plugin: str = ""
    message: str = ""
    at: float = 0.0
    """For ``wake``: when."""

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
