"""Laws: it does not matter in which pieces bytes come, and no bytes at all do any harm."""

import asyncio

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.serving.rejections import REASONS, RequestRejectedError
from lamina.serving.request_body import ChunkedBody
from lamina.serving.request_reader import SCRATCH
from lamina.serving.response import FEW, PORTION, HttpResponse, portions
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.desk_talk import talk
from tests.unit.serving.visiting import PAGE, chunks, get, post, serving

SMALL = ServerLimits(small_body=1_000, large_body=5_000, large_at_once=1)
"""So that bodies of a few bytes are large."""


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]


CUTS = st.lists(st.integers(0, 10**6), max_size=30)
BODIES = st.one_of(st.binary(max_size=200), st.integers(900, 5_000).map(lambda size: (bytes(range(256)) * 20)[:size]))
REQUESTS = st.one_of(
    st.just(get()),
    st.just(b"\r\n" + get("/page?a=b", method="HEAD")),
    st.just(get("/nowhere")),
    BODIES.map(lambda body: post("/echo", body)),
    BODIES.map(lambda body: post("/nowhere", body)),
    st.lists(BODIES.filter(bool), max_size=3)
    .filter(lambda pieces: sum(map(len, pieces)) <= 5_000)
    .map(lambda pieces: chunks(*pieces)),
)


@given(st.lists(REQUESTS, min_size=1, max_size=5), CUTS)
@settings(max_examples=150)
def test_it_does_not_matter_in_which_pieces_requests_come(requests, places):
    data = b"".join(requests)
    whole, notes = talk([data], SMALL)
    answered, pieced = talk(cut(data, places), SMALL)

    assert whole == answered
    assert notes.answers == pieced.answers
    assert len(requests) == len(notes.answers)
    assert [] == notes.refusals + notes.gone + pieced.refusals + pieced.gone


@given(st.lists(REQUESTS, min_size=1, max_size=3))
@settings(max_examples=30)
def test_one_byte_at_a_time_is_as_good_as_all_at_once(requests):
    data = b"".join(requests)

    assert talk([data], SMALL)[0] == talk([data[place : place + 1] for place in range(len(data))], SMALL)[0]


def test_requests_that_fill_the_buffer_to_its_last_byte_leave_room_for_more():
    request = post("/echo", b"x" * 12)
    assert 64 == len(request)

    answered, notes = talk([request] * (2 * SCRATCH // 64 + 1))
    assert (2 * SCRATCH // 64 + 1, []) == (len(notes.answers), notes.refusals)
    assert [200] * len(notes.answers) == statuses_of(answered)


WORDS = [
    b"GET /page HTTP/1.1\r\n",
    b"POST /echo HTTP/1.1\r\n",
    b"Host: x\r\n",
    b"Content-Length: 4\r\n",
    b"Content-Length: 99999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    b"\r\n",
    b"4\r\nbody\r\n",
    b"0\r\n\r\n",
    b"ffffffff\r\n",
    b"\n",
    b"\0",
    b"body",
]
NONSENSE = st.lists(st.one_of(st.sampled_from(WORDS), st.binary(max_size=50)), max_size=25)


@given(NONSENSE)
@settings(max_examples=400)
def test_no_bytes_break_it_and_every_connection_comes_to_an_end(pieces):
    answered, notes = talk(pieces, SMALL)

    assert set(notes.refusals) <= set(REASONS)
    assert 0 == notes.counts[-1]
    statuses = statuses_of(answered)
    assert len(notes.answers) + len(notes.refusals) == len(statuses)
    assert {200, 400, 404, 405, 408, 411, 413, 417, 501, 505} >= set(statuses)


def statuses_of(answered: bytes) -> list[int]:
    """Read the answers as a client would; fails if they are not HTTP."""
    found: list[int] = []
    while answered:
        head, end, rest = answered.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        version, status, _ = first.split(b" ", 2)
        assert (b"HTTP/1.1", b"\r\n\r\n") == (version, end)
        lengths = [int(line.partition(b": ")[2]) for line in lines if line.startswith(b"Content-Length: ")]
        assert (0 if status == b"100" else 1) == len(lengths)
        found += [int(status)] * len(lengths)
        answered = rest[sum(lengths) :]
    return found


@given(st.lists(st.binary(max_size=2_000), max_size=5))
@settings(max_examples=25)
def test_no_bytes_on_a_real_connection_hang_the_server(pieces):
    async def story() -> None:
        async with serving() as server:
            async with server.call() as caller:
                for piece in pieces:
                    await caller.send(piece)
                    await asyncio.sleep(0)
                caller.writer.write_eof()
                await caller.cut_off()
            assert PAGE == (await (await server.connect()).ask(get())).body

    asyncio.run(story())


# --------------------------------------------------------------------------------------------------------------- chunks


class Oracle:
    """The same body as httptools reads it."""

    def __init__(self) -> None:
        self.body = b""
        self.complete = False

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.complete = True


CHUNK_WORDS = st.sampled_from(
    [
        b"4\r\nbody\r\n",
        b"0\r\n\r\n",
        b"0\r\n",
        b"\r\n",
        b"4",
        b"a;b=c\r\n",
        b"0123456789\r\n",
        b"X: y\r\n",
        b"\n",
        b"004\r\n",
    ]
)


@given(st.lists(st.one_of(CHUNK_WORDS, CHUNK_WORDS, st.binary(max_size=3)), max_size=8), CUTS)
@settings(max_examples=500)
def test_a_chunked_body_that_is_read_is_read_by_others_in_the_same_way(words, places):
    """We may refuse what others read. What we read, they read too, and it ends in the same place."""
    data = b"".join(words)
    chunked = ChunkedBody(ServerLimits())
    rest = taken = b""
    try:
        for piece in cut(data, places):
            rest += piece
            count = chunked.feed(memoryview(rest))
            taken, rest = taken + rest[:count], rest[count:]
    except RequestRejectedError:
        return
    if not chunked.done:
        return
    oracle = Oracle()
    parser = httptools.HttpRequestParser(oracle)
    parser.feed_data(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + taken[:-1])
    early = oracle.complete
    parser.feed_data(taken[-1:])

    assert (False, True) == (early, oracle.complete)
    assert oracle.body == bytes(chunked.whole())


# -------------------------------------------------------------------------------------------------------------- answers

SIZES = st.lists(st.one_of(st.integers(0, 300), st.integers(FEW - 2, FEW + 2), st.integers(0, 3 * PORTION)), max_size=6)


@given(SIZES)
@settings(max_examples=60)
def test_an_answer_is_written_whole_and_in_portions(sizes):
    pieces = tuple(bytes([number]) * size for number, size in enumerate(sizes))
    size = sum(sizes)
    cuts = list(portions(HttpResponse(pieces=pieces), size))

    head, _, body = b"".join(cuts).partition(b"\r\n\r\n")
    assert head.endswith(b"Content-Length: %d" % size)
    assert body == b"".join(pieces)
    assert all(len(one) <= max(PORTION, 2 * FEW) for one in cuts)
    # No crumbs: of two that follow each other at least one is of some size.
    assert len(cuts) <= 2 * (size // FEW) + 3


def test_large_pieces_are_not_copied():
    piece = b"x" * 3 * PORTION

    views = [one for one in portions(HttpResponse(pieces=(piece,)), len(piece)) if isinstance(one, memoryview)]
    assert [PORTION] * 3 == [len(view) for view in views]
    assert all(view.obj is piece for view in views)


@pytest.mark.parametrize("status", [200, 418, 599])
def test_any_status_can_be_answered(status):
    assert b"".join(portions(HttpResponse(status=status), 0)).startswith(b"HTTP/1.1 %d " % status)
