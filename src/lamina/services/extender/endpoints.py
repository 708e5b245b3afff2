"""Endpoints for probes and operators: /version, /livez, /readyz and /metrics."""

import json
from collections.abc import Callable
from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST

from lamina.services.extender.http.response import HttpResponse, text_response


class ExtenderEndpoints:
    """Handlers of the GET endpoints."""

    def __init__(self, unsynced: Callable[[], list[str]], exposition: Callable[[], bytes], agents: list[str]) -> None:
        """Serve these; *unsynced* returns the resources that are not synced."""
        self._unsynced = unsynced
        self._exposition = exposition
        self._agents = agents

    def gets(self) -> dict[str, Callable[[], HttpResponse]]:
        """Return the handlers by path."""
        return {
            "/version": self.version,
            "/livez": self.livez,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
        }

    def version(self) -> HttpResponse:
        """Return the version and the scheduling agents that are served."""
        said = {"version": version("lamina"), "agents": self._agents}
        return HttpResponse(pieces=(json.dumps(said).encode() + b"\n",))

    def livez(self) -> HttpResponse:
        """Return 200: a process that answers is alive."""
        return text_response(200, "ok")

    def readyz(self) -> HttpResponse:
        """Return 200 if the caches are synced, else 503 with the missing resources."""
        unsynced = self._unsynced()
        return text_response(503, f"not seen yet: {', '.join(unsynced)}") if unsynced else text_response(200, "ok")

    def metrics(self) -> HttpResponse:
        """Return the metrics in Prometheus' text format."""
        return HttpResponse(pieces=(self._exposition(),), content_type=CONTENT_TYPE_LATEST)
