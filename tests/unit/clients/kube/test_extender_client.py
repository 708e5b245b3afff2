"""Calls of an extender: one request, bounded in time and size, over verified connections, and one line for a failure."""

import ssl
from pathlib import Path

import pytest
import trustme

from lamina.clients.kube.extender_client import ExtenderClient, ExtenderClientSettings, ExtenderError
from lamina.model.errors import InputError
from tests.unit.clients.kube.loopback import Answer, Asked, Handler, Loopback
from tests.unit.clients.kube.visiting import never, saying


async def called(handler: Handler, *, context: ssl.SSLContext | None = None, limit: int = 100, **target) -> bytes:
    async with Loopback(handler, context) as server:
        client = ExtenderClient(ExtenderClientSettings(url=f"{server.url}/prefix/", **{"timeout": 5.0, **target}))
        try:
            return await client.call("verb", b"{}", limit)
        finally:
            await client.close()


def serving(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def test_the_verb_is_appended_to_the_url_with_one_slash():
    server = Loopback(saying(b"reply"))
    async with server:
        client = ExtenderClient(ExtenderClientSettings(url=f"{server.url}/prefix/", timeout=5.0))
        assert b"reply" == await client.call("verb", b'{"a":1}', 100)
        await client.close()

    (asked,) = server.asked
    assert ("POST", "/prefix/verb", b'{"a":1}') == (asked.method, asked.path, asked.body)
    assert "application/json" == asked.headers["content-type"]


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param(
            saying(b"", "500 Oops"), "failed verb with extender at URL .*/prefix/verb, code 500", id="an error"
        ),
        pytest.param(saying(b"", "201 Created"), "code 201", id="another success"),
        pytest.param(saying(b"", "302 Found", Location="http://127.0.0.1:1/"), "code 302", id="a redirect"),
        pytest.param(saying(b"x" * 101), "returned 101 bytes, more than the limit of 100", id="too long"),
        pytest.param(saying(b"x", Content_Encoding="gzip"), "unexpected compression: gzip", id="compressed"),
        pytest.param(never, "no response within 0.05 seconds", id="no reply in time"),
    ],
)
async def test_a_failure_is_one_line(handler, words):
    with pytest.raises(ExtenderError, match=words) as caught:
        await called(handler, timeout=0.05 if handler is never else 5.0)

    assert "\n" not in str(caught.value)


async def test_an_extender_that_does_not_run_is_a_failure():
    client = ExtenderClient(ExtenderClientSettings(url="http://127.0.0.1:1", timeout=5.0))

    with pytest.raises(ExtenderError, match="connection failed"):
        await client.call("verb", b"{}", 100)


@pytest.mark.parametrize(("repeatable", "calls"), [(True, 2), (False, 1)], ids=["repeated", "not repeated"])
async def test_only_a_request_that_may_be_repeated_is_sent_again_after_a_closed_connection(repeatable, calls):
    async def reset(asked: Asked, answer: Answer) -> None:
        answer.reset()

    server = Loopback(reset)
    async with server:
        client = ExtenderClient(ExtenderClientSettings(url=server.url, timeout=5.0))
        with pytest.raises(ExtenderError):
            await client.call("verb", b"{}", 100, repeatable=repeatable)
        await client.close()

    assert calls == len(server.asked)


async def test_a_server_is_verified_with_the_configured_authority_and_name():
    authority = trustme.CA()
    pem = authority.cert_pem.bytes()
    context = serving(authority, "extender.example")

    assert b"ok" == await called(saying(b"ok"), context=context, authority=pem, server_name="extender.example")
    with pytest.raises(ExtenderError, match="TLS certificate rejected"):
        await called(saying(b"ok"), context=context, authority=pem)
    with pytest.raises(ExtenderError, match="TLS certificate rejected"):
        await called(saying(b"ok"), context=context, server_name="extender.example")


async def test_without_verification_any_server_is_accepted():
    assert b"ok" == await called(saying(b"ok"), context=serving(trustme.CA(), "other"), insecure=True)


def test_an_unusable_certificate_is_reported_with_its_place():
    with pytest.raises(InputError, match=r"extenders\[0\].tlsConfig: .*no readable certificates"):
        ExtenderClient(
            ExtenderClientSettings(url="https://a", timeout=1.0, authority=b"no PEM", place="extenders[0].tlsConfig")
        )


def test_a_missing_file_is_reported():
    with pytest.raises(InputError, match="cannot be read"):
        ExtenderClient(ExtenderClientSettings(url="https://a", timeout=1.0, authority=Path("/nowhere/ca.pem")))
