"""
Debug endpoints of the scheduler, for operators.

    /debug/cache        differences between the cache and the API server
    /debug/dump         the scheduler's state
    /debug/decisions/NAMESPACE/POD
    /debug/observed     comparisons of observe mode
    /debug/events       a recording of recent events, for `lamina replay`
"""

import asyncio
from collections.abc import Mapping

import msgspec

from lamina.clients.kube.transport import KubeClient
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.image_gate import ImageGate
from lamina.services.scheduler.comparer import compare
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.dump import dump
from lamina.services.scheduler.event_ring import EventRing
from lamina.services.scheduler.recordings import RecordingWriter
from lamina.services.scheduler.shadow_executor import ShadowExecutor
from lamina.serving.endpoints import DebugHandler
from lamina.serving.response import HttpResponse, text_response
from lamina.trace.recording import SUFFIX


class DebuggedParts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The parts of a running scheduler that its debug endpoints show."""

    client: KubeClient
    loop: Loop
    journal: DecisionJournal
    ring: EventRing
    recordings: RecordingWriter
    shadow: ShadowExecutor | None = None
    image_gate: ImageGate | None = None


class SchedulerDebugEndpoints:
    """Handlers of the debug endpoints."""

    def __init__(self, parts: DebuggedParts) -> None:
        """Serve the state of these parts."""
        self._parts = parts
        self._comparing = asyncio.Lock()
        self._recording = asyncio.Lock()

    def handlers(self) -> Mapping[str, DebugHandler]:
        """Return the handlers by path."""
        return {
            "/debug/cache": self.cache,
            "/debug/dump": self.dump,
            "/debug/decisions/": self.decision,
            "/debug/observed": self.observed,
            "/debug/events": self.events,
        }

    async def cache(self, _: str) -> HttpResponse:
        """Compare the cache with the API server."""
        # One at a time: each comparison holds a second copy of all pods.
        async with self._comparing:
            parts = self._parts
            held = (lambda: ()) if parts.image_gate is None else parts.image_gate.held
            observing = parts.shadow is not None
            return _json(await compare(parts.client, parts.loop, observing=observing, held=held))

    def dump(self, _: str) -> HttpResponse:
        """Return the scheduler's state."""
        return _json(dump(self._parts.loop))

    def decision(self, pod: str) -> HttpResponse:
        """Return the newest decision about a pod, named as NAMESPACE/POD."""
        if pod.count("/") != 1 or pod.startswith("/") or pod.endswith("/"):
            return text_response(404, "not found; write /debug/decisions/NAMESPACE/POD")
        decision = self._parts.journal.about(pod)
        if decision is None:
            return text_response(404, f"no decision about {pod} is kept here")
        return _json(decision)

    def observed(self, _: str) -> HttpResponse:
        """Return the totals and the newest comparisons of observe mode."""
        shadow = self._parts.shadow
        if shadow is None:
            return text_response(404, "this scheduler binds pods; start one with --observe to compare")
        return _json({"tallies": shadow.totals, "last": list(shadow.last.values())})

    async def events(self, _: str) -> HttpResponse:
        """Return a recording of the events in the ring."""
        # One at a time: each recording holds the encoded state of the whole cluster.
        async with self._recording:
            segment = self._parts.ring.recording()
            body = await asyncio.to_thread(b"".join, self._parts.recordings.encode(segment))
        attachment = f'attachment; filename="events{SUFFIX}"'
        return HttpResponse(
            pieces=(body,), content_type="application/zstd", headers=(("Content-Disposition", attachment),)
        )


def _json(found: object) -> HttpResponse:
    return HttpResponse(pieces=(msgspec.json.encode(found) + b"\n",))
