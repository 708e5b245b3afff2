"""Addresses and credentials: what is taken, what is refused in one line, and what is never said."""

import ssl

import pytest
import trustme

from lamina.clients.prometheus.server import PrometheusLogin, PrometheusServer, checked_url
from lamina.model.errors import InputError


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        pytest.param("http://p:9090", "http://p:9090", id="plain"),
        pytest.param("https://p/", "https://p", id="slash at the end"),
        pytest.param("https://p/prometheus/", "https://p/prometheus", id="a path before the API"),
        pytest.param("http://[::1]:9090", "http://[::1]:9090", id="IPv6"),
    ],
)
def test_an_address_is_taken_without_the_slash_at_its_end(written, taken):
    assert taken == checked_url(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        pytest.param("", "is not a usable URL", id="nothing"),
        pytest.param("p:9090", "is not a usable URL", id="no scheme"),
        pytest.param("ftp://p", "is not a usable URL", id="another scheme"),
        pytest.param("http://", "is not a usable URL", id="no host"),
        pytest.param("http://p:99999", "host or port is not valid", id="no such port"),
        pytest.param("http://p:0", "is not a usable URL", id="port zero"),
        pytest.param("http://[::1", "host or port is not valid", id="half an IPv6 address"),
        pytest.param("http://me:secret@p", "name the user and a file", id="password inside"),
        pytest.param("http://p?x=1", "contains a query", id="query"),
        pytest.param("http://p/api/v1", "remove that", id="the API's own path"),
        pytest.param("http://p\r\nX: y", "is not a usable URL", id="a line break"),
        pytest.param("http://" + "p" * 3000, "is not a usable URL", id="endless"),
    ],
)
def test_what_is_no_address_is_refused_in_words(written, words):
    with pytest.raises(ValueError, match=words) as refused:
        checked_url(written)

    assert "secret" not in str(refused.value)


def test_a_token_is_read_again_and_survives_a_moment_without_its_file(tmp_path):
    file = tmp_path / "token"
    file.write_text("first\n")
    login = PrometheusLogin(PrometheusServer(url="https://p", token_file=file))
    assert {"Authorization": "Bearer first"} == login.current()[0]

    file.write_text("second")
    assert {"Authorization": "Bearer second"} == login.current()[0]
    file.unlink()
    assert {"Authorization": "Bearer second"} == login.current()[0]
    assert (1, "PrometheusLogin('https://p')") == (login.troubles, repr(login))


def test_a_user_and_a_password_are_basic_authentication(tmp_path):
    (tmp_path / "password").write_text("pass word")
    login = PrometheusLogin(PrometheusServer(url="http://p", user="me", password_file=tmp_path / "password"))

    # base64 of "me:pass word"
    assert {"Authorization": "Basic bWU6cGFzcyB3b3Jk"} == login.current()[0]


def test_the_authorities_make_one_context_until_their_file_changes(tmp_path):
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    login = PrometheusLogin(PrometheusServer(url="https://p", ca_file=file))
    first = login.current()[1]
    assert isinstance(first, ssl.SSLContext)
    assert first is login.current()[1]

    trustme.CA().cert_pem.write_to_path(str(file))
    assert first is not login.current()[1]


def test_what_people_write_between_certificates_may_be_in_any_language(tmp_path):
    certificate = trustme.CA().cert_pem.bytes()
    for name, comment in (("utf-8", "# Főtanúsítvány\n".encode()), ("latin-1", "# Autorité\n".encode("latin-1"))):
        (tmp_path / name).write_bytes(comment + certificate)
        _, tls = PrometheusLogin(PrometheusServer(url="https://p", ca_file=tmp_path / name)).current()

        assert isinstance(tls, ssl.SSLContext)
        assert 1 == len(tls.get_ca_certs())


@pytest.mark.parametrize(
    ("server", "files", "line"),
    [
        pytest.param({"token_file": "t"}, {}, "cannot be read: no such file", id="no such file"),
        pytest.param({"token_file": "t"}, {"t": " \n"}, "expected one line with a token", id="an empty one"),
        pytest.param({"token_file": "t"}, {"t": "a\nb"}, "expected one line", id="two lines"),
        pytest.param({"token_file": "t"}, {"t": "x" * 70_000}, "too large; at most 64 KiB", id="endless"),
        pytest.param({"token_file": "."}, {}, "is a directory", id="a folder"),
        pytest.param({"user": "me"}, {}, "needed together", id="user alone"),
        pytest.param({"password_file": "t"}, {"t": "x"}, "needed together", id="password alone"),
        pytest.param({"user": "me", "password_file": "t", "token_file": "t"}, {"t": "x"}, "choose one", id="both"),
        pytest.param({"ca_file": "t"}, {"t": "x"}, "expected PEM", id="no certificates"),
        pytest.param({"ca_file": "t", "url": "http://p"}, {"t": "x"}, "no use without TLS", id="CA for http"),
        pytest.param({"url": "p"}, {}, "Prometheus address: is not a usable URL", id="no address"),
    ],
)
def test_a_mistake_is_one_line_that_shows_no_secret(tmp_path, server, files, line):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = {key: tmp_path / value if key.endswith("_file") else value for key, value in server.items()}

    with pytest.raises(InputError, match=line) as refused:
        PrometheusLogin(PrometheusServer(**{"url": "https://p", **given}))
    assert 1 == len(str(refused.value).splitlines())
