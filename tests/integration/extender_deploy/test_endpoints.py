"""The pages on an address of their own: for everybody to read, and for nobody to ask, whatever the other address wants."""

import http.client
import json
import socket
import ssl
import subprocess
import sys
import time

import pytest
import trustme

from testbed import ports
from tests.integration.scheduler.live import until

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

QUESTION = json.dumps({"Pod": {"metadata": {"name": "p", "uid": "1"}}, "NodeNames": ["n1", "n2"]}).encode()
ASKED = "/scheduler/priorities/congestion"
WITHIN = 30.0


def command(*words):
    return [sys.executable, "-m", "lamina.cli.main", "extender", "--agents", "congestion", "--state", "body", *words]


class Running:
    """An extender that wants certificates of those who ask, with its pages beside."""

    def __init__(self, folder):
        self.port, self.pages = ports.free(), ports.free()
        self.authority = trustme.CA()
        self.client = self.authority.issue_cert("kube-scheduler", common_name="kube-scheduler")
        server = self.authority.issue_cert("127.0.0.1")
        self.authority.cert_pem.write_to_path(folder / "ca.crt")
        server.private_key_pem.write_to_path(folder / "tls.key")
        server.cert_chain_pems[0].write_to_path(folder / "tls.crt")
        files = [
            "--tls-cert",
            folder / "tls.crt",
            "--tls-key",
            folder / "tls.key",
            "--tls-client-ca",
            folder / "ca.crt",
        ]
        self.words = ["--listen", f"127.0.0.1:{self.port}", "--client-name", "kube-scheduler", *map(str, files)]
        self.words += ["--pages", f"127.0.0.1:{self.pages}"]

    def at_pages(self, method, path, body=None):
        return said(http.client.HTTPConnection("127.0.0.1", self.pages, timeout=WITHIN), method, path, body)

    def by_certificate(self, method, path, body=None, *, shown=True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.authority.configure_trust(context)
        if shown:
            self.client.configure_cert(context)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=WITHIN)
        return said(connection, method, path, body)


def said(connection, method, path, body):
    """Status and text of an answer."""
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One for all tests here: none of them changes it."""
    one = Running(tmp_path_factory.mktemp("extender"))
    with subprocess.Popen(command(*one.words), stderr=subprocess.PIPE, text=True) as process:
        try:
            end = time.monotonic() + WITHIN
            while not answers(one):
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < end, "nobody answers"
                time.sleep(0.05)
            yield one
        finally:
            process.terminate()
    assert 0 == process.returncode


def answers(one):
    try:
        return one.at_pages("GET", "/readyz")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("/livez", "ok\n", id="livez"),
        pytest.param("/readyz", "ok\n", id="readyz"),
        pytest.param("/version", '"agents": ["congestion"]', id="version"),
        pytest.param("/metrics", "lamina_extender_ready 1.0", id="metrics"),
    ],
)
def test_everybody_reads_the_pages(running, path, told):
    status, text = running.at_pages("GET", path)

    assert (200, True) == (status, told in text)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("POST", ASKED, 404, id="a priority"),
        pytest.param("POST", "/scheduler/predicates/congestion", 404, id="a predicate"),
        pytest.param("POST", "/scheduler/preemption/congestion", 404, id="a preemption"),
        pytest.param("POST", "/scheduler/bind", 404, id="a binding"),
        pytest.param("POST", "/metrics", 405, id="a page, with a body"),
        pytest.param("GET", ASKED, 404, id="a priority, by GET"),
        pytest.param("GET", "/", 404, id="no page"),
    ],
)
def test_nobody_asks_there(running, method, path, status):
    assert status == running.at_pages(method, path, QUESTION if method == "POST" else None)[0]


def test_who_asks_elsewhere_needs_a_certificate_all_the_same(running):
    assert 200 == running.by_certificate("POST", ASKED, QUESTION)[0]
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        running.by_certificate("POST", ASKED, QUESTION, shown=False)


def test_whoever_reads_is_not_counted_among_those_who_ask(running):
    """So that nobody can fill the counters, or an alarm, from there; the one who reads this is no connection either."""

    def counted(start):
        return [line for line in running.at_pages("GET", "/metrics")[1].splitlines() if line.startswith(start)]

    until(lambda: counted("lamina_extender_connections") == ["lamina_extender_connections 0.0"], WITHIN, "all are gone")
    before = counted("lamina_extender_refused")
    for method, path in (("POST", ASKED), ("GET", "/nowhere"), ("POST", "/metrics")):
        running.at_pages(method, path, QUESTION if method == "POST" else None)

    assert before == counted("lamina_extender_refused")


def test_an_address_that_is_taken_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = command("--listen", f"127.0.0.1:{ports.free()}", "--pages", f"127.0.0.1:{port}")
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=WITHIN)

    assert 2 == ended.returncode
    assert f"127.0.0.1:{port}: cannot listen: " in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
