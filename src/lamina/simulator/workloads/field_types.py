"""What the fields of a scenario hold: texts and numbers that bring their own reader, so that a mistake is told at once."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from lamina.model.reference import parse_reference
from lamina.simulator.workloads import units


def _reads(reader: Callable[[Any], object]) -> msgspec.Meta:
    return msgspec.Meta(extra={"reads": reader})


def _second(value: str | float) -> None:
    if units.seconds(value) < 1.0:
        raise ValueError("must be at least a second")


def _positive(value: str | float) -> None:
    if not units.seconds(value):
        raise ValueError("must be more than 0")


Duration = Annotated[str | float, _reads(units.seconds)]
Period = Annotated[str | float, _reads(_positive)]
"""A duration that is not 0."""
Interval = Annotated[str | float, _reads(_second)]
"""A duration after which something comes again and again, so that a slip of the finger does not make millions of it."""
Durations = Annotated[tuple[Duration, ...], msgspec.Meta(min_length=1, max_length=1000)]
Delay = Annotated[str | float | Durations, _reads(units.lag)]
"""A duration, or a list of them to draw from."""
Size = Annotated[str | float, _reads(units.size)]
Bandwidth = Annotated[str | float, _reads(units.bandwidth)]
Rate = Annotated[str | float, _reads(units.rate)]
"""Bytes per second; 0 means that it is not limited."""
Quantity = Annotated[str | float, _reads(units.resource)]
Name = Annotated[str, _reads(units.object_name)]
Reference = Annotated[str, _reads(parse_reference)]
Portion = Annotated[int | float | str, _reads(units.portion)]
"""A number of pods, or a share of them."""
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
