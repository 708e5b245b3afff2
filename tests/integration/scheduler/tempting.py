"""A registry that wants credentials, and repeats them wherever somebody might write them down."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from testbed import made

TOKEN: Final = "canary-token-1f9c"
NAMES: Final = ("good", "token", "refused", "broken", "redirect", "garbled")


class TemptingRegistry:
    """Serves one image under several names, each of which behaves otherwise; a context manager."""

    def __init__(self, *passwords: str) -> None:
        self.passwords = passwords
        self.credentials: set[str] = set()
        """Every Authorization that was sent."""
        self._image = made.image([made.layer({"a": b"a"})])
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.answer(self)

            def do_HEAD(self) -> None:
                registry.answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "TemptingRegistry":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        """Do what the name of the repository says."""
        sent = asked.headers.get("Authorization", "")
        if sent:
            self.credentials.add(sent)
        if asked.path.startswith("/token"):
            return self._send(asked, 200, json.dumps({"token": TOKEN}).encode())
        kind = asked.path.removeprefix("/v2/").partition("/")[0]
        # Whatever goes wrong is told with the credentials in it, as careless servers do.
        tempting = f"you said {sent} and {self.passwords}".encode()
        if not sent:
            scheme = f'Bearer realm="http://{self.host}/token",service="s"' if kind == "token" else 'Basic realm="r"'
            return self._send(asked, 401, tempting, {"WWW-Authenticate": scheme})
        match kind:
            case "refused":
                return self._send(asked, 401, tempting, {"WWW-Authenticate": f'Basic realm="{self.passwords[0]}"'})
            case "broken":
                return self._send(asked, 500, tempting, {"X-Error": self.passwords[0]})
            case "redirect":
                return self._send(
                    asked, 307, tempting, {"Location": f"https://u:{self.passwords[0]}@127.0.0.1:1/?{sent}"}
                )
            case "garbled":
                return self._send(asked, 200, tempting, {"Content-Type": self.passwords[0]})
        return self._serve(asked)

    def _serve(self, asked: BaseHTTPRequestHandler) -> None:
        image = self._image
        if "/blobs/" in asked.path:
            return self._send(asked, 200, image.config)
        headers = {"Content-Type": image.media_type, "Docker-Content-Digest": image.digest}
        return self._send(asked, 200, image.manifest, headers)

    def _send(
        self, asked: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        asked.send_response(status)
        for name, value in (headers or {}).items():
            asked.send_header(name, value)
        asked.send_header("Content-Length", str(len(body)))
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(body)


def forms(secret: str, user: str = "user") -> list[str]:
    """A secret as it may turn up: plain, in base64, and as a login in base64."""
    login = f"{user}:{secret}".encode()
    return [secret, base64.b64encode(secret.encode()).decode().rstrip("="), base64.b64encode(login).decode()]


def docker_config(host: str, password: str, user: str = "user") -> str:
    """What `docker login` writes."""
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": auth}}})
