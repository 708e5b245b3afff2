"""
Log levels of the extender: the names for ``LOG_LEVEL`` and ``logLevel``, and the numbers of ``-v``.

    TRACE     -v 10    everything, also the score of every node
    DEBUG     -v 4     details for debugging
    INFO      -v 0     events an operator should know; the default
    WARNING            only problems
    ERROR, ALERT       only failures
"""

import logging
from typing import Final

import msgspec

from lamina.services.log_lines import DETAILS, LogFormat, set_up

MOST: Final = 10


class LogLevel(msgspec.Struct, frozen=True):
    """How much is logged."""

    verbosity: int = 0
    """The number of ``-v``."""
    least: int = logging.INFO
    """The lowest level of Python's logging that is written."""


LEVELS: Final = {
    "TRACE": LogLevel(MOST, logging.DEBUG),
    "DEBUG": LogLevel(DETAILS, logging.DEBUG),
    "INFO": LogLevel(),
    "WARNING": LogLevel(0, logging.WARNING),
    "ERROR": LogLevel(0, logging.ERROR),
    "ALERT": LogLevel(0, logging.ERROR),
}


def level_named(name: str) -> LogLevel | None:
    """Return the level with this name, in any case; None if there is none."""
    return LEVELS.get(name.strip().upper())


def level_numbered(verbosity: int) -> LogLevel:
    """Return the level for a number of ``-v``."""
    return LogLevel(verbosity, logging.DEBUG if verbosity >= DETAILS else logging.INFO)


def apply_log_level(level: LogLevel, form: LogFormat) -> None:
    """Log to standard error at this level from now on."""
    set_up(level.verbosity, form)
    logging.getLogger("lamina").setLevel(level.least)
