"""
A reader whose runtime is a file: the real process with the real pipe and the real confinement, and images out of thin air.

    python -m tests.integration.node_agent.scripted_reader PIPE SCRIPT

The file says how many images there are, and what the trouble is if there is one. It is looked at again ten times a second.
"""

import asyncio
import json
import sys
from pathlib import Path

from lamina.clients.cri.runtime_source import RuntimeSource, RuntimeSourceError
from lamina.model.holdings import Holdings
from lamina.model.layer_report import ActivePull
from lamina.services.node_agent import logs, wiring
from lamina.services.node_agent.pipe_sender import open_fifo
from tests.unit.services.node_agent.scripted import an_image, holding


class FileSource:
    """What a file says."""

    def __init__(self, path: Path) -> None:
        self.path = self.place = path
        self.seen = ""

    async def look(self) -> Holdings:
        self.seen = self.path.read_text(encoding="utf-8")
        said = json.loads(self.seen)
        if said.get("trouble"):
            raise RuntimeSourceError("containerd", said["trouble"])
        images = [an_image(one, filling=said.get("filling", 0)) for one in range(said.get("images", 0))]
        pulling = (ActivePull(name="registry.example/big:1", done=said["done"], total=100),) if "done" in said else ()
        return holding(*images, pulling=pulling)

    async def changed(self) -> None:
        while self.path.read_text(encoding="utf-8") == self.seen:
            await asyncio.sleep(0.1)

    async def close(self) -> None:
        pass


def main() -> None:
    pipe, script = Path(sys.argv[1]), Path(sys.argv[2])

    async def open_source() -> RuntimeSource:
        return FileSource(script)

    logs.set_up(3, "text")
    wiring.confined()
    wiring.run(wiring.serve_reader(open_source, lambda: open_fifo(pipe)))


if __name__ == "__main__":
    main()
