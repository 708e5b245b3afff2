"""
Messages: a time and events, encoded as one JSON object.

A message that breaks a rule of the protocol raises ProtocolError, whose text names the message and the field. Rules
that need the state of a run, such as whether a job exists, are checked by the reader of the events.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from lamina.model.errors import LaminaError
from lamina.model.plain import shown
from lamina.wire.batsim.scheduler_events import (
    AnswerEvent,
    CallMeLater,
    ChangeJobState,
    ExecuteJob,
    KillJob,
    NotifyEvent,
    QueryEvent,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    SetJobMetadata,
    SetResourceState,
)
from lamina.wire.batsim.simulator_events import (
    BatsimEvent,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    RequestedCall,
    ResourceStateChanged,
    SimulationBegins,
    SimulationEnds,
)

SchedulerEvent = (
    AnswerEvent
    | CallMeLater
    | ChangeJobState
    | ExecuteJob
    | KillJob
    | NotifyEvent
    | QueryEvent
    | RegisterJob
    | RegisterProfile
    | RejectJob
    | SetJobMetadata
    | SetResourceState
)
"""What a decision process may send."""

SimulatorEvent = (
    AnswerEvent
    | JobCompleted
    | JobKilled
    | JobSubmitted
    | NotifyEvent
    | QueryEvent
    | RequestedCall
    | ResourceStateChanged
    | SimulationBegins
    | SimulationEnds
)
"""What a simulator may send."""

LARGEST_REPLY: Final = 8 * 1024**2
"""Most bytes of a message of a decision process: about 80,000 executed jobs."""
LARGEST_REQUEST: Final = 256 * 1024**2
"""Most bytes of a message of a simulator: the first has the profiles of all workloads."""

LONGEST_PROBLEM: Final = 400
"""Most characters of what is wrong with a message."""

_CONTROL: Final = re.compile(r"\s+|[^\x20-\x7e]")


class ProtocolError(LaminaError):
    """A message that breaks a rule of Batsim's protocol."""

    exit_code = 1

    def __init__(self, problem: str) -> None:
        # Parts of a message are not trusted: one short line, without control characters.
        cut = problem if len(problem) <= LONGEST_PROBLEM else f"{problem[:LONGEST_PROBLEM]}..."
        self.problem = _CONTROL.sub(" ", cut)
        super().__init__(self.problem)


class SchedulerMessage(msgspec.Struct, frozen=True):
    """A message of the decision process."""

    now: float
    events: tuple[SchedulerEvent, ...]


class SimulatorMessage(msgspec.Struct, frozen=True):
    """A message of the simulator."""

    now: float
    events: tuple[SimulatorEvent, ...]


Message = TypeVar("Message", SchedulerMessage, SimulatorMessage)

_REPLIES: Final = msgspec.json.Decoder(SchedulerMessage)
_REQUESTS: Final = msgspec.json.Decoder(SimulatorMessage)
_ENCODER: Final = msgspec.json.Encoder()


def encode_message(now: float, events: Sequence[BatsimEvent]) -> bytes:
    """Return a message as JSON."""
    return _ENCODER.encode({"now": now, "events": events})


def decode_reply(data: bytes, earliest: float) -> SchedulerMessage:
    """Return a message of the decision process. Raises ProtocolError; *earliest* is the time of the request."""
    message = _decoded(data, _REPLIES, LARGEST_REPLY)
    _check_times(message, earliest)
    before = f"the request's {earliest:.17g}"
    for index, event in enumerate(message.events):
        if event.timestamp < earliest:
            raise ProtocolError(f"events[{index}].timestamp: {event.timestamp:.17g} is before {before}")
    return message


def decode_request(data: bytes, earliest: float) -> SimulatorMessage:
    """Return a message of the simulator. Raises ProtocolError; *earliest* is the time of the last reply."""
    message = _decoded(data, _REQUESTS, LARGEST_REQUEST)
    _check_times(message, earliest)
    return message


def _decoded(data: bytes, decoder: msgspec.json.Decoder[Message], largest: int) -> Message:
    if len(data) > largest:
        raise ProtocolError(f"is {len(data)} bytes long; at most {largest} are read")
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        path = where.rstrip("`").strip(".")
        raise ProtocolError(f"{path}: {what}" if path else what) from error
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            f"is not JSON: {error}; it begins with {shown(data[:40].decode('utf-8', 'replace'))}"
        ) from error


def _check_times(message: SchedulerMessage | SimulatorMessage, earliest: float) -> None:
    now = message.now
    if not math.isfinite(now):
        raise ProtocolError(f"now: {now} is not a time")
    if now < earliest:
        raise ProtocolError(f"now: {now:.17g} goes back in time; it was {earliest:.17g} before")
    last = -math.inf
    for index, event in enumerate(message.events):
        path = f"events[{index}].timestamp"
        if event.timestamp < last:
            raise ProtocolError(f"{path}: {event.timestamp:.17g} is before the previous event's {last:.17g}")
        if not event.timestamp <= now:
            raise ProtocolError(f"{path}: {event.timestamp:.17g} is after now, which is {now:.17g}")
        last = event.timestamp
