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

from lamina.services.log_lines import DETAILS, LogFormat, set_up

MOST: Final = 10


class LogLevel(msgspec.Struct, frozen=True):
    """How much is said."""

    verbosity: int = 0
    """As ``-v`` has it."""
    least: int = logging.INFO
    """The lowest of logging's levels that is told."""


LEVELS: Final = {
    "TRACE": LogLevel(MOST, logging.DEBUG),
    "DEBUG": LogLevel(DETAILS, logging.DEBUG),
    "INFO": LogLevel(),
    "WARNING": LogLevel(0, logging.WARNING),
    "ERROR": LogLevel(0, logging.ERROR),
    "ALERT": LogLevel(0, logging.ERROR),
}


def level_named(name: str) -> LogLevel | None:
    """Find what a name stands for, in whichever case it is written; None if there is no such name."""
    return LEVELS.get(name.strip().upper())


def level_numbered(verbosity: int) -> LogLevel:
    """Say what a number of ``-v`` stands for."""
    return LogLevel(verbosity, logging.DEBUG if verbosity >= DETAILS else logging.INFO)


def apply_log_level(loudness: LogLevel, form: LogFormat) -> None:
    """Let as much be said to standard error from now on."""
    set_up(loudness.verbosity, form)
    logging.getLogger("lamina").setLevel(loudness.least)
