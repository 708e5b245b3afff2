"""The pages beside the questions: who this is, whether it lives, whether it knows enough, and what it counted."""

import json
from collections.abc import Callable
from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST

from lamina.services.extender.http.reply import Reply, say


class Pages:
    """What can be looked at."""

    def __init__(self, lacking: Callable[[], list[str]], exposition: Callable[[], bytes], agents: list[str]) -> None:
        """Tell of these; *lacking* names what was not seen yet."""
        self._lacking = lacking
        self._exposition = exposition
        self._agents = agents

    def gets(self) -> dict[str, Callable[[], Reply]]:
        """List them by address."""
        return {
            "/version": self.version,
            "/livez": self.livez,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
        }

    def version(self) -> Reply:
        """Say which version this is, and which agents it serves."""
        said = {"version": version("lamina"), "agents": self._agents}
        return Reply(pieces=(json.dumps(said).encode() + b"\n",))

    def livez(self) -> Reply:
        """Whoever can answer lives."""
        return say(200, "ok")

    def readyz(self) -> Reply:
        """Say whether answers are made from all there is to know."""
        lacking = self._lacking()
        return say(503, f"not seen yet: {', '.join(lacking)}") if lacking else say(200, "ok")

    def metrics(self) -> Reply:
        """Tell what was counted."""
        return Reply(pieces=(self._exposition(),), content_type=CONTENT_TYPE_LATEST)
