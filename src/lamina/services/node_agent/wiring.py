"""
Assembly of the two halves of a node agent.

    serve_reader       from the runtime to the pipe; confined, and without a token
    serve_publisher    from the pipe to the API server

On SIGTERM or SIGINT both stop at once: nothing needs to be completed, because the next report repeats everything.
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
"""Seconds that a graceful stop may take."""

log = logging.getLogger(__name__)


def refuse_token(path: Path = TOKEN) -> None:
    """Raise InputError if the reader could also read a service account's token."""
    if os.access(path, os.R_OK):
        message = (
            f"there is a token at {path}, and the reader of the runtime must not have one; "
            "set automountServiceAccountToken: false, and mount the token in the publisher's container alone"
        )
        raise InputError.one("--role reader", message)


def confined() -> None:
    """Confine this process, or log that it is not confined."""
    from lamina.services.node_agent.confinement import confine

    if not confine():
        log.warning("reader not confined: no seccomp filter for this architecture")


async def serve_reader(
    open_source: "OpenSource", open_pipe: Callable[[], int | None], *, once: bool = False, watch: bool = False
) -> None:
    """Read until stopped; with *once*, until the publisher disconnects; with *watch*, log image changes."""
    from lamina.services.node_agent.inventory_changes import InventoryChangeLog
    from lamina.services.node_agent.pipe_sender import PipeSender
    from lamina.services.node_agent.runtime_reader import RuntimeReader

    sender = PipeSender(open_pipe)
    reader = RuntimeReader(open_source, InventoryChangeLog(sender) if watch else sender, random.Random())
    await until_stopped(reader.run(), sender.run(once=once))


async def serve_publisher(
    access: "ApiAccess", channel: "ReaderChannel", *, node: str = "", node_uid: str = "", heartbeat: float
) -> None:
    """Publish until stopped."""
    from lamina.clients.kube.transport import KubeClient
    from lamina.services.node_agent.image_layers_writer import ImageLayersWriter
    from lamina.services.node_agent.node_identity import NodeIdentityReader
    from lamina.services.node_agent.node_layers_client import NodeLayersClient
    from lamina.services.node_agent.node_layers_reporter import NodeLayersReporter
    from lamina.services.node_agent.pipe_receiver import PipeReceiver

    rng = random.Random()
    identity = NodeIdentityReader(access, node, node_uid)
    # Fail at once if the node's identity is unknown.
    await identity.now()
    client = KubeClient(access, connections=2, user_agent="lamina-agent")
    reporter = NodeLayersReporter(NodeLayersClient(client), identity, heartbeat, rng)
    writer = ImageLayersWriter(client, rng)
    receiver = PipeReceiver(channel, reporter, writer, rng)
    try:
        await until_stopped(receiver.run(), reporter.run(), writer.run())
    finally:
        await channel.close()
        await client.close()


async def until_stopped(*parts: Coroutine[Any, Any, None]) -> None:
    """Run all parts until a signal arrives or the first part ends. Raises the errors of a part."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop() -> None:
        log.info("stopping")
        # Exit even if the runtime or a name lookup blocks, so that the node's shutdown is not delayed.
        loop.call_later(LAST, os._exit, 0)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    tasks = [loop.create_task(part) for part in (*parts, _wait_stopped(stopped))]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def _wait_stopped(stopped: asyncio.Event) -> None:
    await stopped.wait()


def run(service: Awaitable[None]) -> None:
    """Run a service until it ends."""
    from lamina.services.node_agent.malloc_limits import limit_malloc

    limit_malloc()

    async def main() -> None:
        await service

    asyncio.run(main())
