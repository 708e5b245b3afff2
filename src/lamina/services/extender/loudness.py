"""
How much the extender says: the names that ``LOG_LEVEL`` and ``logLevel`` know, and the numbers of ``-v``.

    TRACE     -v 10    everything, also every level of every node
    DEBUG     -v 4     for who looks for a mistake
    INFO      -v 0     what somebody should know; the default
    WARNING            only what is not as it should be
    ERROR, ALERT       only what failed
"""

import logging
from typing import Final

import msgspec

from lamina.services.log_lines import DETAILS, Format, set_up

MOST: Final = 10


class Loudness(msgspec.Struct, frozen=True):
    """How much is said."""

    verbosity: int = 0
    """As ``-v`` has it."""
    least: int = logging.INFO
    """The lowest of logging's levels that is told."""


LEVELS: Final = {
    "TRACE": Loudness(MOST, logging.DEBUG),
    "DEBUG": Loudness(DETAILS, logging.DEBUG),
    "INFO": Loudness(),
    "WARNING": Loudness(0, logging.WARNING),
    "ERROR": Loudness(0, logging.ERROR),
    "ALERT": Loudness(0, logging.ERROR),
}


def named(name: str) -> Loudness | None:
    """Find what a name stands for, in whichever case it is written; None if there is no such name."""
    return LEVELS.get(name.strip().upper())


def numbered(verbosity: int) -> Loudness:
    """Say what a number of ``-v`` stands for."""
    return Loudness(verbosity, logging.DEBUG if verbosity >= DETAILS else logging.INFO)


def speak(loudness: Loudness, form: Format) -> None:
    """Let as much be said to standard error from now on."""
    set_up(loudness.verbosity, form)
    logging.getLogger("lamina").setLevel(loudness.least)
