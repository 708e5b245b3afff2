"""
What a service says while it runs: one line per message on standard error, for people or as JSON.

How much is said is a number, ``-v N``; what each number means is the service's own affair, except that from `DETAILS` on
everything is said.
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
"""What every record has."""
LIBRARIES: Final = ("aiohttp", "asyncio", "grpc")
"""Whose complaints are told in the same form."""
LEVELS: Final = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


class Verbosity:
    """How much is said; shared by everybody who says something."""

    level: int = 0


def verbose(level: int) -> bool:
    """Whether messages of this verbosity are wanted."""
    return level <= Verbosity.level


class TextFormatter(logging.Formatter):
    """``12:01:02.345 I message key=value`` for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        when = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
        said = " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record).items())
        text = f"{when} {record.levelname[0]} {record.getMessage()}"
        if record.exc_info:
            text += " " + self.formatException(record.exc_info)
        return _line(f"{text} {said}" if said else text)


class JsonFormatter(logging.Formatter):
    """One JSON object per line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        entry: dict[str, object] = {
            "ts": round(record.created, 3),
            "level": LEVELS.get(record.levelno, record.levelname.lower()),
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        # A field that has the name of one of ours is told under another.
        entry |= {f"{key}_" if key in entry else key: _number(value) for key, value in _fields(record).items()}
        return json.dumps(entry, default=str)


def set_up(verbosity: int, form: LogFormat, stream: IO[str] | None = None) -> None:
    """Let everything be said to standard error from now on."""
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
    """Everything that was said beside the message; "fields" is for names that logging keeps for itself."""
    said = {name: value for name, value in vars(record).items() if name not in USUAL}
    more = said.pop("fields", None)
    return {**said, **more} if isinstance(more, dict) else said


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(one in text for one in ' "=\n') else text


def _number(value: object) -> object:
    """Say numbers that JSON does not have in words."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _line(text: str) -> str:
    """Let nothing through that would begin another line or mean something to a terminal."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
