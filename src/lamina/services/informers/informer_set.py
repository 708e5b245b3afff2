"""
Watches everything there is to watch, and tells when enough has been seen to decide.

Nodes and pods must have been seen in full before anything is decided: half a cluster would look like an empty one.
Layers are waited for a little, so that the first decisions after a start know them, and then no longer: without them
scheduling goes on as it would without Lamina.
"""

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar

from lamina.clients.kube.reflector import Reflector
from lamina.clients.kube.transport import KubeClient
from lamina.services.informers.event_queue import EventSink
from lamina.services.informers.watched_resources import ALL_RESOURCES, WatchedResource

T = TypeVar("T")

LAYERS_WITHIN: Final = 10.0
"""Seconds after everything else was seen, after which nothing waits for layers any more."""
BETWEEN_LOOKS: Final = 0.1
NOT_THERE: Final = re.compile(r": 404\b")
"""How a reflector says that the server does not know its kind."""

log = logging.getLogger(__name__)


class ResourceEventHandler(Generic[T]):
    """Turns what one reflector says into events."""

    def __init__(self, watched: WatchedResource[T], inbox: EventSink) -> None:
        """Put events in *inbox*."""
        self._watched = watched
        self._inbox = inbox

    def put(self, seen: T) -> None:
        """An object appeared or changed."""
        self._inbox.put(self._watched.seen(seen))

    def remove(self, key: str, last: T) -> None:
        """An object is gone."""
        event = self._watched.gone(last)
        if event is not None:
            self._inbox.put(event)

    def synced(self) -> None:
        """All there are have been told."""
        self._inbox.ring()


class InformerSet:
    """The reflectors of a service that decides."""

    def __init__(
        self, client: KubeClient, inbox: EventSink, watched: Iterable[WatchedResource[Any]] = ALL_RESOURCES
    ) -> None:
        """Watch through *client*; what is seen lands in *inbox*."""
        self._inbox = inbox
        self.watched: dict[str, WatchedResource[Any]] = {one.resource.kind: one for one in watched}
        self.reflectors: dict[str, Reflector[Any]] = {
            kind: Reflector(
                client, one.resource, one.decode, one.key, ResourceEventHandler(one, inbox), ended=one.ended
            )
            for kind, one in self.watched.items()
        }
        self._waits_for_layers = True

    @property
    def lacking(self) -> list[str]:
        """Name the kinds that must be seen in full before anything is decided, and have not been."""
        return [
            kind
            for kind, reflector in self.reflectors.items()
            if not reflector.synced and (self.watched[kind].required or self._waits_for_layers)
        ]

    @property
    def synced(self) -> bool:
        """Whether enough has been seen to decide; what was seen may still wait in the inbox."""
        return not self.lacking

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind, reflector in self.reflectors.items():
                tasks.create_task(reflector.run(), name=f"watch {kind}")
            while any(not self.reflectors[kind].synced for kind, one in self.watched.items() if one.required):
                await asyncio.sleep(BETWEEN_LOOKS)
            # Where nobody installed the kinds, there is nothing to wait for.
            wait = LAYERS_WITHIN
            while wait > 0 and any(not NOT_THERE.search(self.reflectors[kind].problem) for kind in self.lacking):
                await asyncio.sleep(BETWEEN_LOOKS)
                wait -= BETWEEN_LOOKS
            late = [kind for kind in self.lacking if not self.watched[kind].required]
            if late:
                log.warning("deciding without %s, which could not be listed so far", " and ".join(late))
            self._waits_for_layers = False
            self._inbox.ring()
