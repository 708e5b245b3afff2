"""Who may call over TLS, and how much of it."""

import asyncio
import socket
import ssl
from datetime import UTC, datetime

import pytest

from lamina.serving.connection_table import SPARE
from lamina.serving.rejections import BAD_HANDSHAKE, BAD_NAME, TOO_MANY, TOO_SLOW
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.papers import OURS, SCHEDULER, THEIRS, context, turned_away
from tests.unit.serving.visiting import (
    EITHER_LOOP,
    PAGE,
    PATIENCE,
    PIECE,
    chunks,
    get,
    post,
    serving,
    until,
)

# ---------------------------------------------------------------------------------------------------------- who may call


async def test_a_caller_with_a_certificate_of_our_authority_is_served(files):
    async with serving(tls=files.tls()) as server, server.call(context()) as caller:
        assert PAGE == (await caller.ask(get())).body
        assert PIECE * 3 == (await caller.ask(post("/echo", PIECE * 3))).body
        assert PIECE * 6 == (await caller.ask(post("/echo", PIECE * 6))).body
        assert PIECE * 6 == (await caller.ask(chunks(*[PIECE] * 6))).body
        assert PIECE * 32 == (await caller.ask(post("/long", b"32"))).body
        answers = [await caller.ask(get()) for _ in range(50)]

        assert [PAGE] * 50 == [answer.body for answer in answers]
        assert [] == server.notes.gone + server.notes.refusals


async def test_requests_sent_ahead_over_tls_are_answered_in_order(files):
    async with serving(tls=files.tls()) as server, server.call(context()) as caller:
        sending = asyncio.create_task(caller.send(b"".join(post("/echo", b"x" * (n * 1000)) for n in range(1, 100))))
        assert [n * 1000 for n in range(1, 100)] == [len((await caller.answer()).body) for _ in range(1, 100)]
        await sending


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(context(None), id="no certificate"),
        pytest.param(context(THEIRS.issue_cert("scheduler.kube-system")), id="another authority's"),
        pytest.param(context(OURS.issue_cert("x", not_after=datetime(2001, 1, 1, tzinfo=UTC))), id="expired"),
    ],
)
async def test_a_caller_without_a_certificate_of_our_authority_is_not_let_in(files, made):
    async with serving(tls=files.tls()) as server:
        assert await turned_away(server, made)
        await until(lambda: server.notes.refusals)

        assert ([BAD_HANDSHAKE], [], []) == (server.notes.refusals, server.notes.answers, server.notes.counts)


@pytest.mark.parametrize(
    ("allowed", "cert", "served"),
    [
        pytest.param((), SCHEDULER, True, id="no list"),
        pytest.param(("system:kube-scheduler",), SCHEDULER, True, id="by common name"),
        pytest.param(("scheduler.kube-system",), SCHEDULER, True, id="by DNS name"),
        pytest.param(("someone", "scheduler.kube-system"), SCHEDULER, True, id="one of several"),
        pytest.param(("someone",), SCHEDULER, False, id="another name"),
        pytest.param(("SCHEDULER.kube-system",), SCHEDULER, False, id="names are compared as they are"),
        pytest.param(("scheduler",), SCHEDULER, False, id="a part of the name"),
        pytest.param(("10.0.0.1",), OURS.issue_cert("10.0.0.1"), False, id="an address is no name"),
        pytest.param(("a@b.c",), OURS.issue_cert("a@b.c"), False, id="a mail address is no name"),
        pytest.param(("x.example.com",), OURS.issue_cert("*.example.com"), False, id="a pattern is no name"),
    ],
)
async def test_a_caller_needs_one_of_the_names(files, allowed, cert, served):
    async with serving(tls=files.tls(*allowed)) as server, server.call(context(cert)) as caller:
        answer = await caller.ask(get())

        assert (200 if served else 403) == answer.status
        assert ([] if served else [BAD_NAME]) == server.notes.refusals
        if not served:
            assert answer.body.decode().startswith("the client certificate has no accepted name; it has: ")
            assert 1 == len(answer.body.splitlines())
            assert [] == server.notes.counts


async def test_a_refused_caller_is_told_its_own_names_and_no_others(files):
    async with serving(tls=files.tls("secret")) as server, server.call(context()) as caller:
        answer = await caller.ask(get())

        names = "system:kube-scheduler, scheduler.kube-system"
        assert f"the client certificate has no accepted name; it has: {names}\n" == answer.body.decode()


async def test_a_name_that_a_certificate_has_twice_is_told_once(files):
    twice = OURS.issue_cert("someone.example.com", common_name="someone.example.com")
    async with serving(tls=files.tls("secret")) as server, server.call(context(twice)) as caller:
        answer = await caller.ask(get())

        assert b"the client certificate has no accepted name; it has: someone.example.com\n" == answer.body


@pytest.mark.parametrize(
    ("version", "spoken"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_1, False, id="1.1"),
        pytest.param(ssl.TLSVersion.TLSv1_2, True, id="1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_3, True, id="1.3"),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_tls_1_2_and_newer_are_spoken(files, version, spoken):
    made = context()
    made.set_ciphers("ALL:@SECLEVEL=0")
    made.minimum_version = made.maximum_version = version
    async with serving(tls=files.tls()) as server:
        assert spoken != await turned_away(server, made)


async def test_a_caller_that_speaks_plain_http_is_not_let_in(files):
    async with serving(tls=files.tls()) as server, server.call() as caller:
        await caller.send(get())
        await caller.cut_off()
        await until(lambda: server.notes.refusals)

        assert [BAD_HANDSHAKE] == server.notes.refusals


# --------------------------------------------------------------------------------------------------------------- bounds


async def test_a_handshake_that_takes_too_long_is_given_up(files):
    async with serving(ServerLimits(read_seconds=0.2), tls=files.tls()) as server, server.call() as mute:
        assert b"" == await mute.rest()
        assert [BAD_HANDSHAKE] == server.notes.refusals


async def test_strangers_that_begin_handshakes_keep_nobody_out(files):
    async with serving(ServerLimits(connections=3, read_seconds=600), tls=files.tls()) as server:
        strangers = [await server.connect() for _ in range(50)]
        async with server.call(context()) as caller:
            assert PAGE == (await caller.ask(get())).body
            assert b"" == await strangers[0].rest()
            assert {BAD_HANDSHAKE} == set(server.notes.refusals)


@EITHER_LOOP
def test_no_more_handshakes_are_under_way_than_connections_are_allowed(files, loop):
    """Also when many begin in the same moment: each that is one too many ends another one."""

    async def story() -> list[str]:
        async with serving(ServerLimits(connections=3, read_seconds=600), tls=files.tls()) as server:
            # All of them are there before the first is accepted.
            strangers = [socket.create_connection(("127.0.0.1", server.listener.port)) for _ in range(50)]
            await until(lambda: len(server.notes.refusals) >= 50 - 3)
            for stranger in strangers[:-3]:
                stranger.settimeout(PATIENCE)
                assert b"" == await asyncio.to_thread(stranger.recv, 1)
            for stranger in strangers[-3:]:
                stranger.setblocking(False)
                with pytest.raises(BlockingIOError):
                    stranger.recv(1)
            refusals = list(server.notes.refusals)
            for stranger in strangers:
                stranger.close()
            return refusals

    with asyncio.Runner(loop_factory=loop) as runner:
        assert [BAD_HANDSHAKE] * 47 == runner.run(story())


async def test_callers_with_a_wrong_name_keep_nobody_out(files):
    wrong = context(OURS.issue_cert("somebody.else"))
    async with serving(ServerLimits(connections=2), tls=files.tls("system:kube-scheduler")) as server:
        # They stay, as nobody tells them to hurry.
        crowd = [await server.connect(wrong) for _ in range(2 + SPARE + 5)]
        async with server.call(context()) as caller:
            assert PAGE == (await caller.ask(get())).body

        assert {BAD_NAME} == set(server.notes.refusals)
        assert 403 == (await crowd[-1].answer()).status


async def test_a_connection_too_many_is_told_so_over_tls_too(files):
    async with serving(ServerLimits(connections=1), tls=files.tls()) as server, server.call(context()) as first:
        await first.ask(get())
        async with server.call(context()) as second:
            assert 503 == (await second.ask(get())).status

        assert [TOO_MANY] == server.notes.refusals
        assert 200 == (await first.ask(get())).status


async def test_slow_callers_are_cut_off_over_tls_too(files):
    limits = ServerLimits(read_seconds=0.3, write_seconds=0.3)
    async with serving(limits, files.tls()) as server:
        mute, deaf = await server.connect(context()), await server.connect(context(), limit=1024)
        await mute.send(post("/echo", b"body")[:-1])
        await deaf.send(post("/long", b"64"))

        assert 408 == (await mute.answer()).status
        await until(lambda: server.notes.refusals == [TOO_SLOW, TOO_SLOW])


async def test_stopping_ends_handshakes_too(files):
    async with serving(tls=files.tls()) as server, server.call() as stranger, server.call(context()) as caller:
        await caller.ask(get())
        await server.listener.stop(5)

        assert b"" == await caller.rest()
        await stranger.cut_off()
        assert 0 == server.notes.counts[-1]
