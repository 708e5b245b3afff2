"""The pages beside the questions: who this is, whether it lives, whether it knows enough, and what it counted."""

import json
from collections.abc import Callable
from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST

from lamina.services.extender.http.response import HttpResponse, text_response


class ExtenderEndpoints:
    """What can be looked at."""

    def __init__(self, lacking: Callable[[], list[str]], exposition: Callable[[], bytes], agents: list[str]) -> None:
        """Tell of these; *lacking* names what was not seen yet."""
        self._lacking = lacking
        self._exposition = exposition
        self._agents = agents

    def gets(self) -> dict[str, Callable[[], HttpResponse]]:
        """List them by address."""
        return {
            "/version": self.version,
            "/livez": self.livez,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
        }

    def version(self) -> HttpResponse:
        """Say which version this is, and which agents it serves."""
        said = {"version": version("lamina"), "agents": self._agents}
        return HttpResponse(pieces=(json.dumps(said).encode() + b"\n",))

    def livez(self) -> HttpResponse:
        """Whoever can answer lives."""
        return text_response(200, "ok")

    def readyz(self) -> HttpResponse:
        """Say whether answers are made from all there is to know."""
        lacking = self._lacking()
        return text_response(503, f"not seen yet: {', '.join(lacking)}") if lacking else text_response(200, "ok")

    def metrics(self) -> HttpResponse:
        """Tell what was counted."""
        return HttpResponse(pieces=(self._exposition(),), content_type=CONTENT_TYPE_LATEST)
