"""
Encoder of the values that all Kubernetes objects share: resource lists and timestamps.

The results are exact where Kubernetes is: a resource list decodes to the same amounts. Timestamps have whole seconds,
as in the API server.
"""

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from lamina.model import quantity
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, Amounts

# Distinct values that are kept. A cluster has few sets of amounts, and most timestamps of one moment are equal.
ENTRIES: Final = 8192

_ZONE: Final = "+00:00"


def encode_timestamp(moment: float) -> str:
    """
    Return seconds since 1970 as RFC 3339 in UTC; a fraction is cut off.

    Raises ValueError outside the years 1 to 9999.
    """
    return _timestamp(math.floor(moment))


@lru_cache(ENTRIES)
def _timestamp(second: int) -> str:
    try:
        return datetime.fromtimestamp(second, UTC).isoformat().removesuffix(_ZONE) + "Z"
    except (OverflowError, OSError, ValueError) as error:
        raise ValueError(f"{second} seconds since 1970 cannot be written as a date: {error}") from error


@lru_cache(ENTRIES)
def encode_amounts(amounts: Amounts) -> dict[str, str]:
    """Return a Kubernetes resource list; callers share it and must not change it."""
    return {name: encode_amount(name, amount) for name, amount in amounts}


def encode_amount(resource: str, amount: int) -> str:
    """Return one quantity: thousandths of a cpu, bytes with a binary suffix, or a plain number."""
    if resource == CPU:
        return quantity.format_milli(amount)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES):
        return quantity.format_bytes(amount)
    return str(amount)
