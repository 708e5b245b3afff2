"""Laws of handlers that wait and of streams: responses come in order, complete, and each once."""

import asyncio
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.serving.request import HttpRequest
from lamina.serving.request_dispatch import HandlerResult
from lamina.serving.response import HttpResponse, StreamingResponse
from lamina.serving.response_stream import ResponseStream
from tests.unit.serving.desk_talk import leave, talk
from tests.unit.serving.visiting import chunks, get, post

KINDS = ("now", "later", "stream", "late-stream")
MOST_TURNS = 20


class Application:
    """Answers each request with its target, in the way and after the turns that the path names."""

    def __init__(self) -> None:
        self.opened = self.closed = 0

    def __call__(self, request: HttpRequest) -> HandlerResult:
        _, kind, turns, _ = request.path.split("/")
        match kind:
            case "now":
                return HttpResponse(pieces=(request.path.encode(),))
            case "later":
                return self._later(request.path, int(turns))
            case "stream":
                return self._stream(request.path, int(turns))
        return self._late_stream(request.path, int(turns))

    async def _later(self, path: str, turns: int) -> HttpResponse:
        for _ in range(turns):
            await asyncio.sleep(0)
        return HttpResponse(pieces=(path.encode(),))

    async def _late_stream(self, path: str, turns: int) -> StreamingResponse:
        await asyncio.sleep(0)
        return self._stream(path, turns)

    def _stream(self, path: str, turns: int) -> StreamingResponse:
        def opened(stream: ResponseStream) -> None:
            self.opened += 1
            step(stream, 0)

        def step(stream: ResponseStream, turn: int) -> None:
            # One letter in each turn, then the rest.
            if turn < turns:
                stream.write(path[turn : turn + 1].encode())
                asyncio.get_running_loop().call_soon(step, stream, turn + 1)
            else:
                stream.write(path[turns:].encode())
                stream.finish()

        def closed() -> None:
            self.closed += 1

        return StreamingResponse(opened=opened, closed=closed)


def bodies(answered: bytes) -> list[str]:
    """Read the responses as a client would."""
    found = []
    while answered:
        head, _, rest = answered.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if length is not None:
            found.append(rest[: int(length[1])].decode())
            answered = rest[int(length[1]) :]
            continue
        body = b""
        while True:
            size, _, rest = rest.partition(b"\r\n")
            count = int(size, 16)
            body += rest[:count]
            assert b"\r\n" == rest[count : count + 2]
            rest = rest[count + 2 :]
            if not count:
                break
        found.append(body.decode())
        answered = rest
    return found


ASKED = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, MOST_TURNS), st.integers(0, 2)), min_size=1, max_size=6
)


@given(ASKED, st.lists(st.integers(0, 10**6), max_size=20))
@settings(max_examples=150)
def test_responses_come_in_order_however_long_each_takes_and_in_whatever_pieces_the_requests_come(asked, places):
    paths = [f"/{kind}/{turns}/{number}" for number, (kind, turns, _) in enumerate(asked)]
    requests = [
        (get(path), post(path, b"body"), chunks(b"bo", b"dy", path=path))[how]
        for path, (_, _, how) in zip(paths, asked, strict=True)
    ]
    data = b"".join(requests)
    marks = sorted({place % (len(data) + 1) for place in places})
    pieces = [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]
    application = Application()
    answered, notes = talk(pieces, handler=application)

    assert paths == bodies(answered)
    streams = sum(kind.endswith("stream") for kind, _, _ in asked)
    assert (streams, streams) == (application.opened, application.closed)
    assert ([], [], len(asked)) == (notes.refusals, notes.gone, len(notes.answers))


@given(ASKED, st.integers(0, 60))
@settings(max_examples=150)
def test_every_stream_is_closed_once_whenever_the_client_leaves(asked, turns):
    paths = [f"/{kind}/{count}/{number}" for number, (kind, count, _) in enumerate(asked)]
    application = Application()
    notes = leave(b"".join(map(get, paths)), turns, application)

    assert application.opened == application.closed
    assert ([], 0) == (notes.refusals, notes.counts[-1])
    assert len(notes.answers) <= len(asked)
