"""Who may call over TLS, and certificates that are replaced while the server runs."""

import asyncio
import shutil
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from lamina.model.errors import InputError
from lamina.services.extender.http import tls
from lamina.services.extender.http.limits import Limits
from lamina.services.extender.http.listening import Listener
from lamina.services.extender.http.refusals import BAD_HANDSHAKE, BAD_NAME, TOO_MANY, TOO_SLOW
from lamina.services.extender.http.tls import Tls
from tests.unit.services.extender.http.visiting import PAGE, PIECE, Notebook, chunks, get, post, routes, serving, until

LOOKS = 0.02
"""Seconds between two looks at the files."""
OURS = trustme.CA(key_type=trustme.KeyType.ECDSA)
THEIRS = trustme.CA(key_type=trustme.KeyType.ECDSA)
SCHEDULER = OURS.issue_cert("scheduler.kube-system", common_name="system:kube-scheduler")


class Files:
    """What a server is given, and may be given again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert, self.key, self.ca = folder / "tls.crt", folder / "tls.key", folder / "ca.crt"
        self.serve_as(OURS)
        self.trust(OURS)

    def serve_as(self, authority: trustme.CA, key: bytes | None = None) -> trustme.LeafCert:
        cert = authority.issue_cert("127.0.0.1")
        replace(self.key, key or cert.private_key_pem.bytes())
        replace(self.cert, b"".join(blob.bytes() for blob in cert.cert_chain_pems))
        return cert

    def trust(self, *authorities: trustme.CA) -> None:
        replace(self.ca, b"".join(authority.cert_pem.bytes() for authority in authorities))

    def tls(self, *names: str) -> Tls:
        return Tls(str(self.cert), str(self.key), str(self.ca), names, look_seconds=LOOKS)


def replace(path: Path, content: bytes) -> None:
    beside = path.with_name("new")
    beside.write_bytes(content)
    beside.rename(path)


def context(cert: trustme.LeafCert | None = SCHEDULER, server: trustme.CA = OURS) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.configure_trust(made)
    if cert is not None:
        cert.configure_cert(made)
    return made


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path)


async def turned_away(server, made: ssl.SSLContext) -> bool:
    """Whether a caller gets no answer; in TLS 1.3 it learns that only after its own side of the handshake."""
    try:
        async with server.call(made) as caller:
            await caller.ask(get())
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return True
    return False


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
            assert answer.body.decode().endswith(", who may not ask here\n")
            assert 1 == len(answer.body.splitlines())
            assert [] == server.notes.counts


async def test_a_refused_caller_is_told_its_own_names_and_no_others(files):
    async with serving(tls=files.tls("secret")) as server, server.call(context()) as caller:
        answer = await caller.ask(get())

        names = "system:kube-scheduler, scheduler.kube-system"
        assert f"the client certificate is for {names}, who may not ask here\n" == answer.body.decode()


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
    async with serving(Limits(read_seconds=0.2), tls=files.tls()) as server, server.call() as mute:
        assert b"" == await mute.rest()
        assert [BAD_HANDSHAKE] == server.notes.refusals


async def test_strangers_that_begin_handshakes_keep_nobody_out(files):
    async with serving(Limits(connections=3, read_seconds=600), tls=files.tls()) as server:
        strangers = [await server.connect() for _ in range(50)]
        async with server.call(context()) as caller:
            assert PAGE == (await caller.ask(get())).body
            assert b"" == await strangers[0].rest()
            assert {BAD_HANDSHAKE} == set(server.notes.refusals)


async def test_a_connection_too_many_is_told_so_over_tls_too(files):
    async with serving(Limits(connections=1), tls=files.tls()) as server, server.call(context()) as first:
        await first.ask(get())
        async with server.call(context()) as second:
            assert 503 == (await second.ask(get())).status

        assert [TOO_MANY] == server.notes.refusals
        assert 200 == (await first.ask(get())).status


async def test_slow_callers_are_cut_off_over_tls_too(files):
    limits = Limits(read_seconds=0.3, write_seconds=0.3)
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


# ------------------------------------------------------------------------------------------------------------- rotation


async def test_new_certificates_are_used_for_new_connections(files, caplog):
    async with serving(tls=files.tls()) as server, server.call(context()) as before:
        await before.ask(get())
        files.serve_as(THEIRS)
        await until(lambda: server.notes.reloads)

        assert await turned_away(server, context(server=OURS))
        async with server.call(context(server=THEIRS)) as after:
            assert PAGE == (await after.ask(get())).body
        assert {True} == set(server.notes.reloads[-1:])


async def test_an_authority_that_was_replaced_is_trusted_no_more(files):
    theirs = THEIRS.issue_cert("scheduler.kube-system")
    async with serving(tls=files.tls()) as server:
        assert await turned_away(server, context(theirs))
        files.trust(OURS, THEIRS)
        await until(lambda: server.notes.reloads == [True])
        assert not await turned_away(server, context(theirs))
        assert not await turned_away(server, context())

        files.trust(THEIRS)
        await until(lambda: server.notes.reloads == [True, True])
        assert not await turned_away(server, context(theirs))
        assert await turned_away(server, context())


async def test_a_session_of_an_old_authority_cannot_be_taken_up_again(files):
    made = context()
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(tls=files.tls()) as server:
        async with server.call(made) as caller:
            await caller.ask(get())
            session = caller.writer.get_extra_info("ssl_object").session
        assert not session.has_ticket
        files.trust(THEIRS)
        await until(lambda: server.notes.reloads)

        assert await turned_away(server, made)


async def test_connections_of_old_certificates_end_after_their_next_answer(files):
    async with serving(tls=files.tls()) as server, server.call(context()) as caller:
        assert "connection" not in (await caller.ask(get())).headers
        files.trust(OURS, THEIRS)
        await until(lambda: server.notes.reloads)
        answer = await caller.ask(get())

        assert (200, "close") == (answer.status, answer.headers["connection"])
        assert b"" == await caller.rest()


async def test_a_projected_volume_is_replaced_by_its_link(tmp_path):
    """How Kubernetes mounts secrets: the files are links through `..data`, which is renamed to point elsewhere."""
    for name, authority in (("..1", OURS), ("..2", THEIRS)):
        (tmp_path / name).mkdir()
        Files(tmp_path / name).serve_as(authority)
    (tmp_path / "..data").symlink_to("..1")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    given = Tls(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"), str(tmp_path / "ca.crt"), look_seconds=LOOKS)
    async with serving(tls=given) as server:
        assert not await turned_away(server, context(server=OURS))
        (tmp_path / "..data_tmp").symlink_to("..2")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        shutil.rmtree(tmp_path / "..1")
        await until(lambda: server.notes.reloads == [True])

        assert not await turned_away(server, context(server=THEIRS))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        pytest.param("tls.crt", b"nothing", "does not fit", id="no certificate"),
        pytest.param("tls.crt", b"", "does not fit", id="an empty certificate"),
        pytest.param("tls.key", b"nothing", "does not fit", id="no key"),
        pytest.param("tls.key", OURS.issue_cert("x").private_key_pem.bytes(), "key values mismatch", id="another key"),
        pytest.param("ca.crt", b"nothing", "has no certificates in PEM", id="no authority"),
        pytest.param("ca.crt", b"", "has no certificates in PEM", id="an empty authority"),
        pytest.param("ca.crt", b"\xff\xfe", "has no certificates in PEM", id="bytes"),
        pytest.param("ca.crt", b"x" * (tls.LARGEST + 1), "has more than 1048576 bytes", id="too large"),
        pytest.param("tls.crt", None, "cannot be read: No such file or directory", id="gone"),
    ],
)
async def test_files_that_cannot_be_used_leave_everything_as_it_was_and_that_is_said_once(
    files, caplog, name, content, problem
):
    path = files.folder / name
    good = path.read_bytes()
    async with serving(tls=files.tls()) as server:
        if content is None:
            path.unlink()
        else:
            replace(path, content)
        await until(lambda: server.notes.reloads)
        await asyncio.sleep(LOOKS * 5)

        assert not await turned_away(server, context())
        assert [False] == server.notes.reloads
        (record,) = [one for one in caplog.records if one.getMessage() == tls.KEPT]
        assert problem in record.problem
        assert str(path) in record.problem or str(files.cert) in record.problem

        replace(path, good)
        files.trust(OURS, THEIRS)
        await until(lambda: server.notes.reloads == [False, True])


async def test_files_that_are_as_they_were_are_not_loaded_again(files):
    async with serving(tls=files.tls()) as server:
        for path in (files.cert, files.key, files.ca):
            replace(path, path.read_bytes())
        await asyncio.sleep(LOOKS * 5)

        assert [] == server.notes.reloads


@pytest.mark.parametrize("name", ["tls.crt", "tls.key", "ca.crt"])
async def test_what_cannot_be_used_at_the_start_is_said_in_a_line(files, name):
    (files.folder / name).unlink()
    with pytest.raises(InputError) as caught:
        await Listener(routes(), Limits(), Notebook()).start("127.0.0.1", 0, files.tls())

    assert f"{files.folder / name}: cannot be read: No such file or directory" == str(caught.value)


async def test_an_encrypted_key_is_refused_without_asking_the_terminal(files):
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    replace(files.key, locked)
    with pytest.raises(InputError) as caught:
        await Listener(routes(), Limits(), Notebook()).start("127.0.0.1", 0, files.tls())

    assert "the key is encrypted, and nobody is there to ask for the password" in str(caught.value)
