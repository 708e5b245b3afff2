"""
Extender that accepts everything, and thereby learns which nodes are feasible and where preemption would help.

kube-scheduler calls ``filter`` with exactly the nodes that passed its own plugins, once for each attempt with at least
one such node. It calls ``preempt`` with every candidate and its victims, before it chooses one of them.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from lamina.serving.http_server import HttpServer
from lamina.serving.request import Body
from lamina.serving.response import HttpResponse
from lamina.serving.routes import Routes
from lamina.serving.server_limits import NoServerMetrics, ServerLimits
from tests.parity.case_files import PreemptionCandidate

LOOPBACK: Final = "127.0.0.1"
LIMITS: Final = ServerLimits(
    header=32 * 1024,
    small_body=8 * 1024**2,
    large_body=8 * 1024**2,
    connections=100,
    idle_seconds=600.0,
    read_seconds=30.0,
    write_seconds=60.0,
    stream_unsent=1024**2,
)


class RecordingExtender:
    """Serves the two verbs on loopback."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Call *wake* after every call; nothing listens before `start`."""
        self._wake = wake
        posts = {"/filter": self._filter, "/preempt": self._preempt}
        self._server = HttpServer(Routes(posts, {}), LIMITS, NoServerMetrics())
        self.feasible: dict[str, list[str]] = {}
        """Pod name → nodes of its first call of ``filter``."""
        self.candidates: dict[str, dict[str, PreemptionCandidate]] = {}
        """Pod name → node → candidate of its first call of ``preempt``; its victims are uids."""

    @property
    def url(self) -> str:
        """Address of the extender."""
        return f"http://{LOOPBACK}:{self._server.port}"

    async def start(self) -> None:
        """Listen on a free port."""
        await self._server.start(LOOPBACK, 0)

    async def stop(self) -> None:
        """Stop."""
        await self._server.stop(0.5)

    def clear(self) -> None:
        """Forget all calls."""
        self.feasible.clear()
        self.candidates.clear()

    def _filter(self, body: Body) -> HttpResponse:
        arguments = _decoded(body)
        names: list[str] = arguments.get("nodenames") or []
        self.feasible.setdefault(arguments["pod"]["metadata"]["name"], names)
        self._wake()
        return _answer({"nodenames": names})

    def _preempt(self, body: Body) -> HttpResponse:
        arguments = _decoded(body)
        victims: dict[str, Any] = arguments.get("nodenametometavictims") or {}
        found = {node: _candidate(_lowered(one)) for node, one in victims.items()}
        self.candidates.setdefault(arguments["pod"]["metadata"]["name"], found)
        return _answer({"nodeNameToMetaVictims": victims})


def _candidate(victims: dict[str, Any]) -> PreemptionCandidate:
    names = [str(_lowered(pod)["uid"]) for pod in victims.get("pods") or ()]
    return PreemptionCandidate(sorted(names), int(victims.get("numpdbviolations") or 0))


def _decoded(body: Body) -> dict[str, Any]:
    return _lowered(msgspec.json.decode(bytes(body)))


def _lowered(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in lower case: the protocol's types have keys of several styles."""
    return {name.lower(): value for name, value in found.items()}


def _answer(found: dict[str, Any]) -> HttpResponse:
    return HttpResponse(pieces=(msgspec.json.encode(found),))
