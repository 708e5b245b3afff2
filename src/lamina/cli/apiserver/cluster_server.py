"""Serve a cluster until SIGINT or SIGTERM: print what to paste next, write the ready file, clean up."""

import asyncio
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from lamina.apiserver.served_cluster import ServedCluster, ServedClusterSettings
from lamina.model.errors import InputError
from lamina.model.plain import plural
from lamina.trace.trace_writer import atomic_write

EventLoopFactory = Callable[[], asyncio.AbstractEventLoop]


def serve(
    make: Callable[[], ServedCluster],
    settings: ServedClusterSettings,
    ready_file: Path | None,
    new_loop: EventLoopFactory,
) -> None:
    """Serve the cluster that *make* returns until a signal; an orderly stop is a success. Raises InputError."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(make, settings, ready_file))


async def _serve(make: Callable[[], ServedCluster], settings: ServedClusterSettings, ready_file: Path | None) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    cluster = make()
    await cluster.start()
    try:
        if ready_file is not None:
            _write_ready(ready_file, cluster)
        _print(cluster, settings)
        serving, waiting = asyncio.create_task(cluster.run()), asyncio.create_task(stopped.wait())
        done, _ = await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in (serving, waiting):
            task.cancel()
        await asyncio.gather(serving, waiting, return_exceptions=True)
        if serving in done:
            # It only ends by itself if it failed.
            await serving
    finally:
        await cluster.stop()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    click.echo("stopped", err=True)


def _write_ready(path: Path, cluster: ServedCluster) -> None:
    found = {"url": cluster.url, "kubeconfig": str(cluster.kubeconfig.absolute()), "pid": os.getpid()}
    try:
        atomic_write(path, msgspec.json.encode(found) + b"\n")
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}; name a file that you can write"
        raise InputError.one("--ready-file", message) from None


def _print(cluster: ServedCluster, settings: ServedClusterSettings) -> None:
    """Print where the cluster is, and what to paste next."""
    scenario, file = settings.scenario, shlex.quote(str(cluster.kubeconfig.absolute()))
    pods = f", {plural(len(scenario.arrivals), 'pod')} to come" if scenario.arrivals else ""
    click.echo(f"{scenario.name}: {plural(len(scenario.nodes), 'node')}{pods}, clock: {settings.pace.mode}")
    click.echo(f"serving {cluster.url} for clients on this machine; stop with Ctrl-C")
    click.echo("next, in another terminal:")
    click.echo(f"  export KUBECONFIG={file}")
    click.echo("  kubectl get nodes")
    if settings.configuration is None:
        click.echo(f"  kube-scheduler --kubeconfig {file} --leader-elect=false")
