"""
Puts the halves of an agent together, and runs them until somebody asks for an end.

    serve_reader       the runtime in, the pipe out; confined, and without a token
    serve_publisher    the pipe in, the API server out

On SIGTERM or SIGINT both end at once: nothing they have begun needs an end, because the next report says everything again.
"""

import asyncio
import logging
import os
import random
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lamina.model.errors import InputError

if TYPE_CHECKING:
    from lamina.clients.kube.access import ApiAccess
    from lamina.services.node_agent.pipe_receiver import ReaderChannel
    from lamina.services.node_agent.runtime_reader import OpenSource

TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
LAST: Final = 1.5
"""Seconds an orderly end may take."""

log = logging.getLogger(__name__)


def refuse_token(path: Path = TOKEN) -> None:
    """Refuse to read a runtime where a service account's token can be read as well. Raises InputError."""
    if os.access(path, os.R_OK):
        message = (
            f"there is a token at {path}, and who sees the runtime must not have one; "
            "set automountServiceAccountToken: false, and mount the token in the publisher's container alone"
        )
        raise InputError.one("--role reader", message)


def confined() -> None:
    """Confine this process, or say that it is not."""
    from lamina.services.node_agent.confinement import confine

    if not confine():
        log.warning("this process is not confined: the calls of this kind of processor are not known")


async def serve_reader(
    open_source: "OpenSource", open_pipe: Callable[[], int | None], *, once: bool = False, watch: bool = False
) -> None:
    """Read until asked to stop; with *once*, until the publisher is gone; with *watch*, say what comes and goes."""
    from lamina.services.node_agent.inventory_changes import InventoryChangeLog
    from lamina.services.node_agent.pipe_sender import PipeSender
    from lamina.services.node_agent.runtime_reader import RuntimeReader

    outlet = PipeSender(open_pipe)
    reader = RuntimeReader(open_source, InventoryChangeLog(outlet) if watch else outlet, random.Random())
    await until_stopped(reader.run(), outlet.run(once=once))


async def serve_publisher(
    access: "ApiAccess", door: "ReaderChannel", *, node: str = "", node_uid: str = "", heartbeat: float
) -> None:
    """Publish until asked to stop."""
    from lamina.clients.kube.transport import KubeClient
    from lamina.services.node_agent.image_layers_writer import ImageLayersWriter
    from lamina.services.node_agent.node_identity import NodeIdentityReader
    from lamina.services.node_agent.node_layers_client import NodeLayersClient
    from lamina.services.node_agent.node_layers_reporter import NodeLayersReporter
    from lamina.services.node_agent.pipe_receiver import PipeReceiver

    rng = random.Random()
    whoami = NodeIdentityReader(access, node, node_uid)
    # Whoever cannot say which node this is wants to hear of it at once.
    await whoami.now()
    client = KubeClient(access, connections=2, user_agent="lamina-agent")
    reporter = NodeLayersReporter(NodeLayersClient(client), whoami, heartbeat, rng)
    describer = ImageLayersWriter(client, rng)
    listener = PipeReceiver(door, reporter, describer, rng)
    try:
        await until_stopped(listener.run(), reporter.run(), describer.run())
    finally:
        await door.close()
        await client.close()


async def until_stopped(*parts: Coroutine[Any, Any, None]) -> None:
    """Run everything until a signal comes or the first part ends; what a part raises is raised."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop() -> None:
        log.info("stopping")
        # Not even a runtime that does not let go of us, or a name that is not found, may keep a node waiting.
        loop.call_later(LAST, os._exit, 0)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    tasks = [loop.create_task(part) for part in (*parts, _heed(stopped))]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def _heed(stopped: asyncio.Event) -> None:
    await stopped.wait()


def run(service: Awaitable[None]) -> None:
    """Run a service to its end."""
    from lamina.services.node_agent.malloc_limits import limit_malloc

    limit_malloc()

    async def main() -> None:
        await service

    asyncio.run(main())
