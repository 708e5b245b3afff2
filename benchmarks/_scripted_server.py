"""
An API server that only streams lists of a large cluster, over TLS, in its own process.

It responds as kube-apiserver does: HTTP/1.1, one chunk and one or two TLS records for each event, the bookmark that
ends the list, and then an idle connection that stays open. It does not check tokens. All other requests return 404.
"""

import multiprocessing
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

import trustme

from _large_cluster import LargeCluster

LOOPBACK: Final = "127.0.0.1"
BUILT_WITHIN: Final = 300.0
LONGEST_SILENCE: Final = 3600.0
PODS: Final = "/api/v1/pods"


class Server(ThreadingHTTPServer):
    """Serves one cluster; objects are encoded before the first request, pods as templates."""

    daemon_threads = True

    def __init__(self, cluster: LargeCluster, context: ssl.SSLContext) -> None:
        """Listen on any free port of the loopback interface."""
        super().__init__((LOOPBACK, 0), Answers)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.cluster = cluster
        assert cluster.templates
        self.written = {path: list(cluster.events(path)) for path in cluster.paths if path != PODS}

    def events(self, path: str) -> Iterator[bytes]:
        """Yield a streamed list."""
        return iter(self.written[path]) if path in self.written else self.cluster.events(path)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore closed connections: every watch ends that way here."""


class Answers(BaseHTTPRequestHandler):
    """Request handler of one connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Stream a list, or return 404."""
        server = cast(Server, self.server)
        asked = urlsplit(self.path)
        if asked.path not in server.cluster.paths or "sendInitialEvents" not in parse_qs(asked.query):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in server.events(asked.path):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        # Until the client closes the connection.
        self.connection.settimeout(LONGEST_SILENCE)
        self.rfile.read(1)

    def log_message(self, format: str, *words: object) -> None:  # noqa: A002 - as the base class calls it
        """Log nothing."""


def serve(sizes: tuple[int, int, int], certificate: str, told: Connection) -> None:
    """Serve until killed; send the port to *told* once everything is ready."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = Server(LargeCluster(*sizes, time.time()), context)
    told.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def serving(nodes: int, pods: int, images: int, folder: Path) -> Iterator[Path]:
    """Serve a cluster during the block; yield a kubeconfig for it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert(LOOPBACK).private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=((nodes, pods, images), str(folder / "server.pem"), theirs))
    process.start()
    try:
        if not ours.poll(BUILT_WITHIN):
            raise TimeoutError(f"the scripted server has not written its cluster within {BUILT_WITHIN:.0f} s")
        path = folder / "kubeconfig"
        path.write_text(KUBECONFIG.format(port=ours.recv(), authority=folder / "ca.pem"), encoding="utf-8")
        yield path
    finally:
        process.kill()
        process.join()


KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
current-context: it
contexts: [{{name: it, context: {{cluster: it, user: me}}}}]
clusters: [{{name: it, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: "{authority}"}}}}]
users: [{{name: me, user: {{token: not-checked}}}}]
"""
