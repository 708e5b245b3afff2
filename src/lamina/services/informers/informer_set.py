"""
Reflectors of a service, and whether their caches are synced.

No decision is made before nodes and pods are listed completely, because half a cluster looks like an empty one. The
service waits up to `LAYERS_WITHIN` seconds for layer data, so that the first decisions after a start use it. After
that, scheduling goes on without layer data.
"""

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar

from lamina.clients.kube.reflector import Reflector
from lamina.clients.kube.transport import KubeClient
from lamina.services.informers.event_queue import EventSink
from lamina.services.informers.watched_resources import ALL_RESOURCES, IMAGE_LAYERS, NODE_LAYERS, WatchedResource

T = TypeVar("T")

LAYERS_WITHIN: Final = 10.0
"""Seconds to wait for layer data after all required resources are synced."""
BETWEEN_LOOKS: Final = 0.1
LAYER_KINDS: Final = frozenset({NODE_LAYERS.resource.kind, IMAGE_LAYERS.resource.kind})
NOT_THERE: Final = re.compile(r": 404\b")
"""Matches a reflector's problem when the API server does not serve the resource."""
NOT_GRANTED: Final = re.compile(r": 40[34]\b")
"""Matches it also without the permission, which is optional for all optional resources except layers."""

log = logging.getLogger(__name__)


class ResourceEventHandler(Generic[T]):
    """Converts the changes of one reflector to events."""

    def __init__(self, watched: WatchedResource[T], sink: EventSink) -> None:
        """Put events into *sink*."""
        self._watched = watched
        self._sink = sink

    def put(self, seen: T) -> None:
        """Report an object that appeared or changed."""
        self._sink.put(self._watched.seen(seen))

    def remove(self, key: str, last: T) -> None:
        """Report an object that was deleted."""
        event = self._watched.gone(last)
        if event is not None:
            self._sink.put(event)

    def synced(self) -> None:
        """Wake the reader: the initial list is complete."""
        self._sink.wake()


class InformerSet:
    """The reflectors of a service that decides."""

    def __init__(
        self, client: KubeClient, sink: EventSink, watched: Iterable[WatchedResource[Any]] = ALL_RESOURCES
    ) -> None:
        """Watch through *client*; put events into *sink*."""
        self._sink = sink
        self.watched: dict[str, WatchedResource[Any]] = {one.resource.kind: one for one in watched}
        self.reflectors: dict[str, Reflector[Any]] = {
            kind: Reflector(client, one.resource, one.decode, one.key, ResourceEventHandler(one, sink), ended=one.ended)
            for kind, one in self.watched.items()
        }
        self._waits_for_layers = True

    @property
    def unsynced(self) -> list[str]:
        """Return the resources that decisions wait for and that are not synced."""
        return [
            kind
            for kind, reflector in self.reflectors.items()
            if not reflector.synced and (self.watched[kind].required or self._waits_for_layers)
        ]

    @property
    def synced(self) -> bool:
        """Whether the caches are synced; their events may still wait in the queue."""
        return not self.unsynced

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind, reflector in self.reflectors.items():
                tasks.create_task(reflector.run(), name=f"watch {kind}")
            while any(not self.reflectors[kind].synced for kind, one in self.watched.items() if one.required):
                await asyncio.sleep(BETWEEN_LOOKS)
            wait = LAYERS_WITHIN
            while wait > 0 and not all(map(self._is_missing, self.unsynced)):
                await asyncio.sleep(BETWEEN_LOOKS)
                wait -= BETWEEN_LOOKS
            late = [kind for kind in self.unsynced if not self.watched[kind].required]
            if late:
                log.warning("caches not synced, deciding without %s", " and ".join(late))
            self._waits_for_layers = False
            self._sink.wake()

    def _is_missing(self, kind: str) -> bool:
        """Return whether there is nothing to wait for: a resource is not installed, or not granted."""
        sign = NOT_THERE if kind in LAYER_KINDS else NOT_GRANTED
        return sign.search(self.reflectors[kind].problem) is not None
