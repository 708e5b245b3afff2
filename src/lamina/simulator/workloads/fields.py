"""What the fields of a scenario hold: texts and numbers that bring their own reader, so that a mistake is told at once."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from lamina.model.reference import parse_reference
from lamina.simulator.workloads import units


def _reads(reader: Callable[[Any], object]) -> msgspec.Meta:
    return msgspec.Meta(extra={"reads": reader})


Duration = Annotated[str | float, _reads(units.seconds)]
Size = Annotated[str | float, _reads(units.size)]
Bandwidth = Annotated[str | float, _reads(units.bandwidth)]
Quantity = Annotated[str | float, _reads(units.resource)]
Name = Annotated[str, _reads(units.object_name)]
Reference = Annotated[str, _reads(parse_reference)]
