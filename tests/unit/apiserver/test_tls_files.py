"""Certificates of a façade with TLS."""

import ssl

import pytest

from lamina.apiserver.tls_files import make_tls_files

pytestmark = pytest.mark.needs("cryptography")


def test_a_client_that_trusts_the_authority_accepts_the_server(tmp_path):
    """Both ends of one handshake in memory."""
    files = make_tls_files(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.cert, files.key)
    client = ssl.create_default_context(cafile=str(files.ca))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue

    assert ends[0].version() == "TLSv1.3"
    assert ("DNS", "localhost") in ends[0].getpeercert()["subjectAltName"]


def test_the_key_is_readable_by_its_owner_only_and_the_authority_keeps_none(tmp_path):
    files = make_tls_files(tmp_path)

    assert 0o600 == files.key.stat().st_mode & 0o777
    assert {"ca.crt", "tls.crt", "tls.key"} == {path.name for path in tmp_path.iterdir()}
    assert b"PRIVATE" not in files.ca.read_bytes() + files.cert.read_bytes()
