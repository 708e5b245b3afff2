"""Certificates that are replaced while the server runs."""

import asyncio
import os
import shutil
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest
from cryptography.hazmat.primitives import serialization

from lamina.model.errors import InputError
from lamina.serving import tls
from lamina.serving.http_server import HttpServer
from lamina.serving.rejections import BAD_HANDSHAKE
from lamina.serving.server_limits import ServerLimits
from lamina.serving.tls import ServerTlsSettings
from tests.unit.serving.papers import LOOKS, OURS, THEIRS, Files, context, replace, turned_away
from tests.unit.serving.visiting import (
    EITHER_LOOP,
    PAGE,
    PATIENCE,
    Notebook,
    get,
    routes,
    serving,
    until,
)


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


class Slow:
    """A caller that says as much of its handshake as it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context().wrap_bio(self._in, self._out, server_hostname="127.0.0.1")

    async def greet(self) -> None:
        """Say hello and hear what the server answers."""
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.do_handshake()
        self.writer.write(self._out.read())
        self._in.write(await self.reader.read(64 * 1024))

    async def finish(self, request: bytes) -> bytes:
        """End the handshake and ask in one go; return what is answered."""
        self._tls.do_handshake()
        self._tls.write(request)
        self.writer.write(self._out.read())
        while True:
            async with asyncio.timeout(PATIENCE):
                self._in.write(await self.reader.read(64 * 1024))
            with suppress(ssl.SSLWantReadError):
                return self._tls.read(64 * 1024)


@EITHER_LOOP
def test_a_handshake_that_began_before_its_authority_was_replaced_lets_nobody_in(files, loop):
    async def story() -> tuple[bytes, Notebook]:
        async with serving(tls=files.tls()) as server, server.call() as caller:
            slow = Slow(caller.reader, caller.writer)
            await slow.greet()
            files.trust(THEIRS)
            await until(lambda: server.notes.reloads)
            return await slow.finish(get()), server.notes

    with asyncio.Runner(loop_factory=loop) as runner:
        told, notes = runner.run(story())
    assert told.startswith(b"HTTP/1.1 503 ")
    assert told.endswith(b"the server's certificates were replaced during the handshake; connect again\n")
    assert ([], [], [BAD_HANDSHAKE]) == (notes.answers, notes.counts, notes.refusals)


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
    given = ServerTlsSettings(
        str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"), str(tmp_path / "ca.crt"), look_seconds=LOOKS
    )
    async with serving(tls=given) as server:
        assert not await turned_away(server, context(server=OURS))
        (tmp_path / "..data_tmp").symlink_to("..2")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        shutil.rmtree(tmp_path / "..1")
        await until(lambda: server.notes.reloads == [True])

        assert not await turned_away(server, context(server=THEIRS))


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        pytest.param("tls.crt", b"nothing", "does not match", id="no certificate"),
        pytest.param("tls.crt", b"", "does not match", id="an empty certificate"),
        pytest.param("tls.key", b"nothing", "does not match", id="no key"),
        pytest.param("tls.key", OURS.issue_cert("x").private_key_pem.bytes(), "key values mismatch", id="another key"),
        pytest.param("ca.crt", b"nothing", "has no PEM certificates", id="no authority"),
        pytest.param("ca.crt", b"", "has no PEM certificates", id="an empty authority"),
        pytest.param("ca.crt", b"\xff\xfe", "has no PEM certificates", id="bytes"),
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


@EITHER_LOOP
def test_files_that_are_never_read_to_their_end_keep_nobody_from_ending(files, loop):
    async def story() -> int:
        async with serving(tls=files.tls()) as server:
            # Stands in for a mount that hangs: whoever reads waits for as long as this is open.
            os.mkfifo(files.folder / "pipe")
            (files.folder / "pipe").rename(files.cert)
            found: list[int] = []
            await until(lambda: opened(files.cert, found))
            assert not await turned_away(server, context())
            return found[0]

    def let_go() -> None:
        files.cert.unlink()
        os.close(pipe)

    with asyncio.Runner(loop_factory=loop) as runner:
        pipe = runner.run(story())
        release = Timer(PATIENCE, let_go)
        release.start()
    ended_first = release.is_alive()
    release.cancel()
    assert ended_first
    let_go()


def opened(pipe: Path, found: list[int]) -> bool:
    """Open a pipe for writing, which works once somebody reads it."""
    try:
        found.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@pytest.mark.realtime
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
        await HttpServer(routes(), ServerLimits(), Notebook()).start("127.0.0.1", 0, files.tls())

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
        await HttpServer(routes(), ServerLimits(), Notebook()).start("127.0.0.1", 0, files.tls())

    assert "the key is encrypted; use a key without a password" in str(caught.value)
