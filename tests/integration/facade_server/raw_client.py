"""A client that sends whatever a test wants, byte by byte, and one that behaves; both without a Kubernetes library."""

import json
import socket
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60.0
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "app:1"}]},
}
PODS = "/api/v1/namespaces/default/pods"


def ask(
    url: str, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Send a request; return the status and the decoded body. Bytes are sent as they are."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url + path, method=method, data=data, headers=sent)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    """Return a pod object."""
    return {**POD, "metadata": {"name": name, **metadata}}


def connect(url: str) -> socket.socket:
    """Open a connection."""
    place = urlsplit(url)
    assert place.hostname
    assert place.port
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def send_raw(url: str, data: bytes) -> tuple[int, bytes]:
    """Send bytes on a new connection; return the status and the body of the answer."""
    with connect(url) as line:
        line.sendall(data)
        return read_answer(line)


def read_answer(line: socket.socket) -> tuple[int, bytes]:
    """Read one answer with a length from a connection."""
    data = b""
    while b"\r\n\r\n" not in data and (more := line.recv(65536)):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(one.split(b":")[1]) for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")]
    while len(body) < lengths[0] and (more := line.recv(65536)):
        body += more
    return int(head.split()[1]), body


def open_watch(url: str, path: str = "/api/v1/pods") -> socket.socket:
    """Open a watch, and return its connection before anything was read."""
    line = connect(url)
    line.sendall(f"GET {path}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return line


def read_until(line: socket.socket, wanted: bytes) -> bytes:
    """Read until *wanted* arrives or the connection ends; return everything."""
    data = b""
    while wanted not in data:
        try:
            more = line.recv(1024 * 1024)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more
    return data
