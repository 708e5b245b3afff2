"""
What goes wrong between the outside and the model.

    LaminaError
    └── WireError             somebody sent an object that cannot be read
        └── NothingSaidError  it can be read, and says nothing yet

One such object is no reason to stop: whoever reads a stream of them counts it, says so and goes on with the next.
"""

from lamina.model.errors import LaminaError


class WireError(LaminaError):
    """An object from outside does not say what an object of this *kind* must say."""

    def __init__(self, kind: str, problem: str, name: str = "") -> None:
        super().__init__(kind, problem, name)
        self.kind, self.problem, self.name = kind, problem, name

    def __str__(self) -> str:
        which = f"{self.kind} {self.name}" if self.name else self.kind
        told = f"cannot read {which}: {self.problem}"
        # What is quoted comes from strangers: it stays on one line, and sends nothing to a terminal.
        return " ".join("".join(letter if letter.isprintable() else " " for letter in told).split())


class NothingSaidError(WireError):
    """An object that is there and has not been filled in: no mistake, and the same as if it were not there."""
