"""What a node holds, as data: the output of ``lamina node-agent --once`` and ``--watch``."""

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from lamina.model.holdings import StoredImage
from lamina.services.node_agent.inventory_frames import InventoryFrameBuilder, is_measured
from lamina.wire.node_agent_frames import InventoryFrame

if TYPE_CHECKING:
    from lamina.services.node_agent.runtime_reader import OpenSource

SIZES_WITHIN: Final = 15.0
"""Seconds that ``--once`` waits for the sizes of unpacked layers, which runtimes may report late."""


class InventoryPrinter:
    """Prints the node's inventory whenever it differs from the last one."""

    def __init__(self, node: str, output: str) -> None:
        """Print for *node*, as a ``table`` or as ``json``."""
        self._node, self._output = node, output
        self._before: InventoryFrame | None = None
        self.lines = False
        """Whether each inventory is printed as one line."""

    def send(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        """Print an inventory if it has changed."""
        before, self._before = self._before, look
        if before is not None and msgspec.structs.replace(before, observed_at=look.observed_at) == look:
            return
        told = inventory(self._node, look, images)
        if self._output == "json":
            text = msgspec.json.encode(told)
            click.echo(text if self.lines else msgspec.json.format(text, indent=2))
            return
        from lamina.cli.node_agent.inventory_text import print_inventory

        print_inventory(told)

    def send_problem(self, problem: str) -> None:
        """Print nothing: the log has the problem, and the last inventory stays the best known."""


def inventory(node: str, look: InventoryFrame, images: tuple[StoredImage, ...]) -> dict[str, Any]:
    """Return the inventory as plain data; docs/node-agent.md documents the field names."""
    return {
        "node": node,
        "observed_at": datetime.fromtimestamp(look.observed_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "runtime": {"name": look.runtime, "version": look.version},
        "platform": None if look.platform is None else "/".join(filter(None, msgspec.structs.astuple(look.platform))),
        "reuse": look.reuse,
        "totals": {"images": len(images), "layers": look.layers, "bytes": look.size},
        "disk": {"bytes": look.disk, "free": look.disk_free},
        "rates": {"download": round(look.download_rate), "unpack": round(look.unpack_rate)},
        "pulling": [msgspec.structs.asdict(pull) for pull in look.pulling],
        "images": [_image(image) for image in sorted(images, key=lambda one: (-one.size, one.digest))],
    }


def _image(image: StoredImage) -> dict[str, Any]:
    known = [layer.unpacked for layer in image.layers if layer.unpacked is not None]
    return {
        "digest": image.digest,
        "names": list(image.names),
        "bytes": image.size,
        "unpacked_bytes": sum(known) if image.layers and len(known) == len(image.layers) else None,
        "lazy": image.lazy,
        "layers": [
            {"digest": one.digest, "bytes": one.size, "diff_id": one.diff_id, "unpacked_bytes": one.unpacked}
            for one in image.layers
        ],
    }


async def look_once(open_source: "OpenSource", printer: InventoryPrinter) -> None:
    """Read the runtime until all sizes are known or `SIZES_WITHIN` has passed, and print. Raises `RuntimeTrouble`."""
    source = await open_source()
    try:
        ends = asyncio.get_running_loop().time() + SIZES_WITHIN
        while True:
            observed_at = time.time()
            holdings = await source.look()
            left = ends - asyncio.get_running_loop().time()
            if left <= 0 or all(is_measured(image) for image in holdings.images):
                break
            try:
                async with asyncio.timeout(left):
                    await source.changed()
            except TimeoutError:
                break
        printer.send(InventoryFrameBuilder().of(holdings, observed_at), holdings.images)
    finally:
        await source.close()


async def watch_runtime(open_source: "OpenSource", printer: InventoryPrinter) -> None:
    """Print the inventory whenever it changes, until the process is stopped."""
    from lamina.services.node_agent.runtime_reader import RuntimeReader
    from lamina.services.node_agent.wiring import until_stopped

    printer.lines = True
    await until_stopped(RuntimeReader(open_source, printer, random.Random()).run())
