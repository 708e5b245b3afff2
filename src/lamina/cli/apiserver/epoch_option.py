"""``--epoch now|TIME``: the date of virtual second 0."""

import time
from datetime import UTC, datetime
from typing import Final

from lamina.apiserver.facade_parts import EPOCH
from lamina.model.errors import InputError
from lamina.model.plain import shown

NOW: Final = "now"
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


def read_epoch(text: str) -> float:
    """Return Unix seconds for ``now``, a date, or a date and time; empty: the default. Raises InputError."""
    if not text:
        return EPOCH
    if text == NOW:
        return float(int(time.time()))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        message = f"{shown(text)} is neither now nor a time; write for example 2026-01-01T00:00:00Z"
        raise InputError.one("--epoch", message) from None
    seconds = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    if not 0.0 <= seconds <= LATEST:
        raise InputError.one("--epoch", f"{shown(text)} is not between 1970 and 2200")
    return seconds
