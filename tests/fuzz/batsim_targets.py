"""Fuzzed messages of Batsim's protocol: replies of a decision process, and messages of a simulator."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from lamina.model.events import Event
from lamina.scheduling.contract.commands import Command
from lamina.simulator.decision_process.decision_process import DecisionProcess
from lamina.wire.batsim.messages import ProtocolError, decode_reply

_LOG: Final = Path(__file__).resolve().parents[1] / "data" / "batsim" / "by-hand.messages"
_LINES: Final = [json.loads(line) for line in _LOG.read_text().splitlines()[1:]]
_BEGINNING: Final = json.dumps(_LINES[0]["request"]).encode()

MESSAGES: Final = [json.dumps(line[part]).encode() for line in _LINES for part in ("request", "reply")]


class _Silent:
    """A scheduler that places nothing."""

    names, attempts, trying, asked_until = ("x",), 0, False, None

    def feed(self, *events: Event) -> Sequence[Command]:
        return []


def batsim_message(data: bytes) -> None:
    """Read *data* as a reply, and answer it as a message of a simulator that has begun."""
    process = DecisionProcess(lambda _: _Silent())
    process.answer(_BEGINNING)
    told = [_problem(lambda: decode_reply(data, 0.0)), _problem(lambda: process.answer(data))]
    assert all(text.isprintable() and len(text) < 1_000 for text in told)


def _problem(read: Callable[[], object]) -> str:
    try:
        read()
    except ProtocolError as error:
        return str(error)
    return ""
