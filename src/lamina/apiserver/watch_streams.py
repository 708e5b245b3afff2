"""
Open watches and their connections.

    opened --lines of the watch, those of one round together--> connection
       |
       +--> finished: its time is over, or a fault ended it
       +--> cut off: its client does not read

A round writes the lines of all watches that have any. With few watches it is the next turn of the event loop. With many,
it is later: the cost of a round is one write for each watch, whatever the number of events.

Unsent bytes are limited twice: for each stream by the HTTP server, and for all streams together here. When all together
hold too much, the streams with the most unsent bytes are cut off; clients that read are not affected.
"""

import asyncio
from typing import Final

from lamina.apiserver.api_faults import FaultRule
from lamina.serving.response_stream import ResponseStream
from lamina.simulator.facade.api_messages import WatchResponse
from lamina.simulator.facade.watches import Watch

MOST_UNSENT: Final = 512 * 1024**2
"""Most unsent bytes of all streams together."""
MANY_WATCHES: Final = 40
WATCH_SECONDS: Final = 0.00025
"""With many watches open, a round comes this time later for each of them: ten times what a write costs."""
LONGEST_ROUND: Final = 0.05
"""Most seconds until a round: a quarter of the time after which the virtual clock of `lamina apiserver` moves on."""
AUDITS: Final = 8
"""All streams are checked whenever this part of the limit was written."""


class WatchStreams:
    """All open watches of one server."""

    def __init__(self, most_unsent: int = MOST_UNSENT) -> None:
        """Let all streams together hold *most_unsent* bytes."""
        self._present: dict[WatchStream, None] = {}
        self._most_unsent = most_unsent
        self._audit = most_unsent // AUDITS
        self._written = 0
        self._waiting: list[WatchStream] = []

    def __len__(self) -> int:
        """Return the number of open watches."""
        return len(self._present)

    def add(self, stream: "WatchStream") -> None:
        """Add an open watch."""
        self._present[stream] = None

    def discard(self, stream: "WatchStream") -> None:
        """Remove a watch that has ended."""
        self._present.pop(stream, None)

    def end(self, rule: FaultRule | None) -> int:
        """End all watches, or those on the path of *rule*; return their number."""
        found = [one for one in self._present if rule is None or rule.matches_path(one.path)]
        for one in found:
            one.finish(rule)
        return len(found)

    def request_round(self, stream: "WatchStream") -> None:
        """Write the lines of *stream* with the next round."""
        if not self._waiting:
            # The loop stands still while the simulation runs; it writes when it runs again.
            loop = stream.loop
            if len(self._present) < MANY_WATCHES:
                loop.call_soon(self._round)
            else:
                loop.call_later(min(len(self._present) * WATCH_SECONDS, LONGEST_ROUND), self._round)
        self._waiting.append(stream)

    def _round(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.flush()

    def count(self, written: int) -> None:
        """Count written bytes; cut off the slowest streams if all together hold too much."""
        self._written += written
        if self._written < self._audit:
            return
        self._written = 0
        unsent = sorted(((one.unsent, number, one) for number, one in enumerate(self._present)), reverse=True)
        total = sum(size for size, _, _ in unsent)
        for size, _, one in unsent:
            if total <= self._most_unsent:
                return
            one.cut_off()
            total -= size


class WatchStream:
    """One open watch and its connection."""

    def __init__(self, answer: WatchResponse, path: str, streams: WatchStreams) -> None:
        """Belong to *streams* while open."""
        self._answer = answer
        self.path = path
        self._streams = streams
        self._lines: list[bytes] = []
        self._stream: ResponseStream | None = None
        self._watch: Watch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.loop = asyncio.get_running_loop()

    @property
    def unsent(self) -> int:
        """Bytes that the client has not read."""
        return 0 if self._stream is None else self._stream.unsent

    def opened(self, stream: ResponseStream) -> None:
        """Begin the watch: the head of the response was written."""
        self._stream = stream
        self._streams.add(self)
        self._timer = self.loop.call_later(self._answer.seconds, self.finish)
        self._watch = self._answer.open(self._send)
        self.flush()

    def closed(self) -> None:
        """End the watch: the client left, or the stream is finished."""
        self._streams.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()

    def finish(self, rule: FaultRule | None = None) -> None:
        """End the stream cleanly, after the error event of *rule*; the client begins a new watch where this one ended."""
        if self._watch is not None:
            if rule is not None and rule.status:
                self._watch.fail(rule.error())
            self._watch.close()
        if self._stream is not None:
            self.flush()
            self._stream.finish()

    def cut_off(self) -> None:
        """Close the connection of a client that does not read."""
        if self._watch is not None:
            self._watch.close()
        self._lines.clear()
        if self._stream is not None:
            self._stream.cut_off()

    def _send(self, line: bytes) -> None:
        if not self._lines:
            self._streams.request_round(self)
        self._lines.append(line)

    def flush(self) -> None:
        """Write all lines to the connection."""
        if self._lines and self._stream is not None:
            lines, self._lines = self._lines, []
            data = b"".join(lines)
            if not self._stream.write(data) and self._watch is not None:
                self._watch.close()
            self._streams.count(len(data))
