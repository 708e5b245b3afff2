"""
Message log: all messages of a run with a decision process, from which the run can be repeated without it.

One JSON object a line, after a header:

    {"format":"lamina-batsim-messages","version":1,"scenario":"…","scheduler":"pybatsim easyBackfill","seed":0,"settings":{…}}
    {"request":{"now":0.0,"events":[…]},"reply":{"now":0.0,"events":[]}}
    {"stopped":"…"}                            only if the run ended too early

A repeated run sends the same requests, byte for byte; the first that differs is reported.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from lamina.model.errors import InputError
from lamina.simulator.batsim.batsim_decider import Exchange
from lamina.simulator.batsim.batsim_settings import BatsimSettings
from lamina.simulator.decider import RunStoppedError
from lamina.wire.batsim.messages import LARGEST_REPLY
from lamina.wire.batsim.simulator_events import ABSENT

MESSAGE_FORMAT: Final = "lamina-batsim-messages"
MESSAGE_VERSION: Final = 1


class MessageLogHeader(msgspec.Struct, frozen=True):
    """First line of a log."""

    format: str = MESSAGE_FORMAT
    version: int = MESSAGE_VERSION
    scenario: str = ""
    scheduler: str = ""
    seed: int = 0
    settings: BatsimSettings = BatsimSettings()


class LoggedExchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message and its answer, or the reason why the run ended."""

    request: msgspec.Raw = ABSENT
    reply: msgspec.Raw = ABSENT
    text: str = ""
    """A reply that is not JSON, as Latin-1, which can represent any bytes."""
    stopped: str = ""


class MessageSink(Protocol):
    """Receives the bytes of a log."""

    def write(self, data: bytes, /) -> object:
        """Write *data*."""
        ...


class MessageLogWriter:
    """Writes a log line by line."""

    def __init__(self, sink: MessageSink, header: MessageLogHeader) -> None:
        """Write to *sink*, which the caller closes."""
        self._sink = sink
        self._write(header)

    def logged(self, exchange: Exchange) -> Exchange:
        """Return an *exchange* whose messages are written."""

        def exchange_and_write(request: bytes) -> bytes:
            try:
                reply = exchange(request)
            except RunStoppedError as stop:
                self._write(LoggedExchange(stopped=str(stop)))
                raise
            self.write(request, reply)
            return reply

        return exchange_and_write

    def write(self, request: bytes, reply: bytes) -> None:
        """Write a message and its answer."""
        if len(reply) <= LARGEST_REPLY:
            self._write(_logged(request, reply))

    def _write(self, line: msgspec.Struct) -> None:
        self._sink.write(msgspec.json.encode(line) + b"\n")


def _logged(request: bytes, reply: bytes) -> LoggedExchange:
    asked = _one_line(request)
    try:
        return LoggedExchange(asked, _one_line(reply))
    except (ValueError, RecursionError):
        return LoggedExchange(asked, text=reply.decode("latin-1"))


def _one_line(message: bytes) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.format(message, indent=-1))


def read_message_log(data: bytes, source: str) -> tuple[MessageLogHeader, list[LoggedExchange]]:
    """Return header and exchanges of a log. Raises InputError."""
    first, *rest = data.splitlines() or [b""]
    try:
        header = msgspec.json.decode(first, type=MessageLogHeader)
    except (ValueError, RecursionError) as error:
        raise InputError.one(
            source, f"is no log of messages: {error}; name a file that --decisions wrote", line=1
        ) from None
    if (header.format, header.version) != (MESSAGE_FORMAT, MESSAGE_VERSION):
        what = f"{header.format} {header.version}"
        raise InputError.one(
            source, f"has the format {what}; this version reads {MESSAGE_FORMAT} {MESSAGE_VERSION}", line=1
        )
    decoder = msgspec.json.Decoder(LoggedExchange)
    found = []
    for number, line in enumerate(rest, 2):
        try:
            found.append(decoder.decode(line))
        except (ValueError, RecursionError) as error:
            raise InputError.one(source, f"cannot be read: {error}; the file may be cut short", line=number) from None
    return header, found


class RepeatedExchange:
    """Answers requests from a log."""

    def __init__(self, logged: Sequence[LoggedExchange], source: str) -> None:
        """Repeat *logged*; *source* names the log in errors."""
        self._logged = list(logged)
        self._source = source
        self._next = 0

    def __call__(self, request: bytes) -> bytes:
        """Return the answer to the next request. Raises InputError if the request differs from the log."""
        if self._next >= len(self._logged):
            raise InputError.one(self._source, "has no more messages; use the scenario and options of the recorded run")
        found = self._logged[self._next]
        line = self._next + 2
        self._next += 1
        if found.stopped:
            raise RunStoppedError(found.stopped)
        if not found.request or not (found.reply or found.text):
            raise InputError.one(self._source, "has a line without a request or a reply", line=line)
        expected = bytes(found.request)
        if request != expected:
            raise InputError.one(self._source, _difference(expected, request), line=line)
        return bytes(found.reply) if found.reply else found.text.encode("latin-1")

    @property
    def unused(self) -> int:
        """Number of messages that were not repeated."""
        return sum(1 for one in self._logged[self._next :] if not one.stopped)


def _difference(expected: bytes, request: bytes) -> str:
    at = next((index for index, (one, other) in enumerate(zip(expected, request, strict=False)) if one != other), 0)
    here = slice(max(0, at - 30), at + 30)
    was, now = (text[here].decode("utf-8", "replace") for text in (expected, request))
    return f"the run differs: it sends …{now}… where the log has …{was}…; use the scenario and options of the log"
