"""
Log output of the services: one line per message on standard error, as text or JSON.

The verbosity is a number, ``-v N``. Each service defines what its numbers mean; from `DETAILS` on, everything is
logged.
"""

import json
import logging
import math
import sys
from datetime import UTC, datetime
from typing import IO, Final, Literal

LogFormat = Literal["text", "json"]

DETAILS: Final = 4
USUAL: Final = frozenset([*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"])
"""Attributes that every log record has."""
LIBRARIES: Final = ("aiohttp", "asyncio", "grpc")
"""Libraries whose warnings are logged in the same format."""
LEVELS: Final = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


class Verbosity:
    """Verbosity of the process; shared by all modules that log."""

    level: int = 0


def verbose(level: int) -> bool:
    """Return whether messages of this verbosity are logged."""
    return level <= Verbosity.level


class TextFormatter(logging.Formatter):
    """Formats ``12:01:02.345 I message key=value``, for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one line."""
        when = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
        said = " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record).items())
        text = f"{when} {record.levelname[0]} {record.getMessage()}"
        if record.exc_info:
            text += " " + self.formatException(record.exc_info)
        return _line(f"{text} {said}" if said else text)


class JsonFormatter(logging.Formatter):
    """Formats one JSON object per line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one line."""
        entry: dict[str, object] = {
            "ts": round(record.created, 3),
            "level": LEVELS.get(record.levelno, record.levelname.lower()),
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        # A field named like one of the fixed keys gets an underscore.
        entry |= {f"{key}_" if key in entry else key: _number(value) for key, value in _fields(record).items()}
        return json.dumps(entry, default=str)


def set_up(verbosity: int, form: LogFormat, stream: IO[str] | None = None) -> None:
    """Send all log output of Lamina and its libraries to standard error."""
    Verbosity.level = verbosity
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    for name in ("lamina", *LIBRARIES):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING if name in LIBRARIES else logging.INFO)
    if verbosity >= DETAILS:
        logging.getLogger("lamina").setLevel(logging.DEBUG)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the extra fields of a record; "fields" holds those whose names logging reserves."""
    said = {name: value for name, value in vars(record).items() if name not in USUAL}
    more = said.pop("fields", None)
    return {**said, **more} if isinstance(more, dict) else said


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(one in text for one in ' "=\n') else text


def _number(value: object) -> object:
    """Convert numbers that JSON cannot represent to strings."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _line(text: str) -> str:
    """Escape newlines and control characters, so that one message stays one line."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
