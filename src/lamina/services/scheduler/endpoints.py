"""
HTTP endpoints of the scheduler.

    /livez      the process runs and its parts work
    /readyz     the caches are synced
    /metrics    Prometheus
    /debug/cache, /debug/dump, /debug/decisions/NAMESPACE/POD, /debug/observed
    /debug/events    a recording of recent events, for `lamina replay`

Debug endpoints contain names of pods and nodes, so they are served to loopback only; `kubectl port-forward` uses
loopback.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from lamina.model.errors import LaminaError
from lamina.services.scheduler.comparer import compare
from lamina.services.scheduler.dump import dump
from lamina.services.scheduler.scheduler_parts import SchedulerParts
from lamina.trace.recording import SUFFIX

LARGEST_REQUEST: Final = 8 * 1024
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SchedulerEndpoints:
    """Serve /healthz, /readyz, /metrics and the debug endpoints."""

    def __init__(self, parts: SchedulerParts) -> None:
        """Serve the state of these parts."""
        self._parts = parts
        self._comparing = asyncio.Lock()
        self._recording = asyncio.Lock()

    def app(self) -> web.Application:
        """Return the application with all endpoints."""
        app = web.Application(middlewares=[_plainly], client_max_size=LARGEST_REQUEST)
        app.add_routes(
            [
                web.get("/livez", self.livez),
                web.get("/healthz", self.livez),
                web.get("/readyz", self.readyz),
                web.get("/metrics", self.metrics),
                web.get("/debug/cache", self.cache),
                web.get("/debug/dump", self.dump),
                web.get("/debug/decisions/{namespace}/{pod}", self.decision),
                web.get("/debug/observed", self.observed),
                web.get("/debug/events", self.events),
            ]
        )
        return app

    async def livez(self, _: web.Request) -> web.Response:
        """Return 200: the event loop runs. A part that fails ends the process, so there is nothing else to check."""
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """Return 200 if the caches are synced, else 503 with the missing resources."""
        unsynced = self._parts.informers.unsynced
        if unsynced:
            return web.Response(text=f"not everything was seen yet: {', '.join(unsynced)}\n", status=503)
        return web.Response(text="ok\n")

    async def metrics(self, _: web.Request) -> web.Response:
        """Return the metrics in Prometheus' text format."""
        return web.Response(body=self._parts.metrics.exposition(), headers={"Content-Type": METRICS_TYPE})

    async def cache(self, _: web.Request) -> web.Response:
        """Compare the cache with the API server."""
        # One at a time: each comparison holds a second copy of all pods.
        async with self._comparing:
            parts = self._parts
            held = (lambda: ()) if parts.image_gate is None else parts.image_gate.held
            observing = parts.shadow is not None
            return _json(await compare(parts.client, parts.loop, observing=observing, held=held))

    async def dump(self, _: web.Request) -> web.Response:
        """Return the scheduler's state."""
        return _json(dump(self._parts.loop))

    async def decision(self, request: web.Request) -> web.Response:
        """Return the newest decision about a pod."""
        pod = f"{request.match_info['namespace']}/{request.match_info['pod']}"
        decision = self._parts.journal.about(pod)
        if decision is None:
            return web.Response(text=f"no decision about {pod} is kept here\n", status=404)
        return _json(decision)

    async def observed(self, _: web.Request) -> web.Response:
        """Return the totals and the newest comparisons of observe mode."""
        shadow = self._parts.shadow
        if shadow is None:
            return web.Response(text="this scheduler binds pods; start one with --observe to compare\n", status=404)
        return _json({"tallies": shadow.totals, "last": list(shadow.last.values())})

    async def events(self, _: web.Request) -> web.Response:
        """Return a recording of the events in the ring."""
        # One at a time: each recording holds the encoded state of the whole cluster.
        async with self._recording:
            segment = self._parts.ring.recording()
            body = await asyncio.to_thread(b"".join, self._parts.recordings.encode(segment))
        name = f"events{SUFFIX}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return web.Response(body=body, content_type="application/zstd", headers=headers)


@web.middleware
async def _plainly(request: web.Request, handler: AiohttpHandler) -> web.StreamResponse:
    """Restrict debug endpoints to loopback, and return errors as one line."""
    # Check the Host header too: a web page could point its own name to 127.0.0.1 (DNS rebinding).
    if request.path.startswith("/debug/") and not (_near(request.remote) and _near(_name(request.host))):
        return web.Response(text="debug endpoints are served to loopback only; use kubectl port-forward\n", status=403)
    try:
        return await handler(request)
    except LaminaError as error:
        return web.Response(text=f"{error}\n", status=502)


def _name(host: str) -> str:
    """Remove the port, and replace localhost with its address."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    return "127.0.0.1" if name == "localhost" else name.strip("[]")


def _near(remote: str | None) -> bool:
    try:
        return ipaddress.ip_address(remote or "").is_loopback
    except ValueError:
        return False


def _json(found: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(found) + b"\n", content_type="application/json")
