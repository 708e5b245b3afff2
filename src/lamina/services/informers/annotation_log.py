"""
Logs node annotations that plugins ask for and cannot read, once for each node and annotation.

Such an annotation counts as not there, so a plugin silently has nothing to say about the node. The operator sees the reason
here. A value that changes every few seconds and is never readable still makes one line.
"""

import asyncio
import logging
from typing import Final

from lamina.model.plain import cut
from lamina.scheduling.state.node_annotations import NodeAnnotations

log = logging.getLogger(__name__)

EVERY: Final = 60.0
"""Seconds between two looks at all nodes."""
MOST: Final = 1000
"""Pairs of node and annotation that are remembered; while so many are unreadable, no further one is logged."""


class AnnotationLog:
    """Remembers which unreadable annotations were logged."""

    def __init__(self, annotations: NodeAnnotations) -> None:
        """Look at *annotations* whenever `look` is called."""
        self._annotations = annotations
        self._logged: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Look every minute until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY)

    def look(self) -> None:
        """Log the annotations that are unreadable now and were not logged before."""
        for node, key, text in self._annotations.unreadable():
            if (node, key) in self._logged:
                continue
            if len(self._logged) >= MOST:
                self._forget_readable()
                if len(self._logged) >= MOST:
                    return
            self._logged.add((node, key))
            fields = {"node": node, "annotation": key, "value": cut(text)}
            log.warning("node annotation cannot be read", extra={"fields": fields})

    def _forget_readable(self) -> None:
        """Keep only what is still unreadable: in a cluster that grows and shrinks, most nodes are gone some day."""
        self._logged &= {(node, key) for node, key, _ in self._annotations.unreadable()}
