"""
A contender as a process of its own: says when it begins and ends to lead, and twenty times a second whether it may act.

Each line is the time on a clock that all processes share, and a word: began, ended, acts, waits.
"""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from lamina.clients.kube.access import load_access
from lamina.clients.kube.leader_election import LeaderElector, LeaseTimings, since_boot
from lamina.clients.kube.transport import KubeClient


def say(word: str) -> None:
    print(f"{since_boot():.3f} {word}", flush=True)  # noqa: T201


async def main(kubeconfig: str, namespace: str, name: str, identity: str, *terms: str) -> None:
    client = KubeClient(load_access(Path(kubeconfig)))
    leadership = LeaderElector(client, namespace, name, identity, terms=LeaseTimings(*map(float, terms)))
    contending = asyncio.create_task(leadership.run(lambda leads: say("began" if leads else "ended")))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, contending.cancel)
    while not contending.done():
        say("acts" if leadership.may_act() else "waits")
        await asyncio.wait([contending], timeout=0.05)
    with contextlib.suppress(asyncio.CancelledError):
        await contending
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
