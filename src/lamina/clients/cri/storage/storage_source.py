"""
CRI-O's images as a source: looks at the files, and says when they were replaced.

Nothing is asked of CRI-O itself, so it is never in the way, needs no socket, and may be down. The files tell no pull that
is under way but by layers that are not complete, whose sizes nobody knows; when a layer was recorded, but not when its
download began. So no progress is told, and no rates. CRI-O's store of artifacts is left out on purpose: no container
starts from one.

CRI-O reuses any layer it knows by digest, at whichever place of an image: reuse is "set".
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage import store_images
from lamina.clients.cri.storage.store_documents import StoreDocuments
from lamina.clients.cri.storage.store_files import UnsettledFileError, UnusableFileError
from lamina.clients.cri.storage.store_records import ImageRecord, LayerRecord
from lamina.clients.cri.storage.stores import ContainersStore, StoreState, find_store
from lamina.model.holdings import Holdings, StoredImage
from lamina.model.layer_report import NodeRuntime

NAME: Final = "cri-o"
PAUSES: Final = (0.03, 0.06, 0.12, 0.25, 0.5)
"""Seconds between attempts to see the lists at rest; a pull replaces them a few times for each of its layers."""
POLL_SECONDS: Final = 3.0
"""How often it is looked whether the files were replaced; nothing is read for that."""
FULL_LOOK_SECONDS: Final = 300.0
IMAGE_LIMIT: Final = 2000

log = logging.getLogger(__name__)


class StorageSource:
    """The images at *root*, and in further stores that are only read: *additional*."""

    def __init__(self, root: Path, *, additional: Sequence[Path] = ()) -> None:
        self.place = root
        self._root, self._additional = root, tuple(additional)
        self._documents = StoreDocuments()
        self._seen: tuple[StoreState | None, ...] = ()
        self._looked = -FULL_LOOK_SECONDS
        self._busy = threading.Lock()

    async def look(self) -> Holdings:
        """Look at everything; raises `RuntimeSourceError`."""
        self._looked = time.monotonic()
        return await asyncio.to_thread(self._look)

    async def changed(self) -> None:
        """Return when a file was replaced since the last look began, or the look is old."""
        if self._documents.behind:
            return
        while time.monotonic() - self._looked < FULL_LOOK_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            if self._marks() != self._seen:
                return

    async def close(self) -> None:
        """Let go of the runtime: nothing is held between two looks."""

    def _look(self) -> Holdings:
        # A look that nobody waits for any longer still runs where the file system hangs.
        if not self._busy.acquire(blocking=False):
            raise self._trouble("an earlier look has not ended: see whether its file system answers")
        try:
            return self._persist()
        finally:
            self._busy.release()

    def _persist(self) -> Holdings:
        """Look until the lists were at rest, or it has been tried often enough."""
        for pause in (*PAUSES, None):
            try:
                holdings, at_rest = self._attempt()
                # On a node that never rests, the last is as right as any: what it tells was there when it began.
                if at_rest or pause is None:
                    return holdings
            except UnsettledFileError as trouble:
                if pause is None:
                    raise self._trouble(f"{trouble} each time it was read; is it a store of CRI-O?") from trouble
            except UnusableFileError as trouble:
                raise self._trouble(f"{trouble}; check what is mounted there") from trouble
            except OSError as error:
                raise self._trouble(_said(error)) from error
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self) -> tuple[Holdings, bool]:
        """Look once; whether no list was replaced meanwhile."""
        stores = self._stores()
        seen = tuple(store.marks() for store in stores)
        self._documents.begin(afresh=seen != self._seen)
        self._seen = seen
        listed = [(store, image) for store in stores for image in store.images()]
        layers: dict[str, LayerRecord] = {}
        for layer in (layer for store in stores for layer in store.layers()):
            # Of two with one id the first counts, as for containers/storage.
            layers.setdefault(layer.id, layer)
        found = self._described(self._distinct(listed), layers)
        # Of the folder and not of the root: a container may see no more of the host than the folders it needs.
        disk = os.statvfs(self._root / stores[0].images_folder)
        holdings = Holdings(
            runtime=NodeRuntime(NAME),
            reuse="set",
            images=tuple(found[digest] for digest in sorted(found)),
            disk=disk.f_frsize * disk.f_blocks,
            disk_free=disk.f_frsize * disk.f_bavail,
        )
        return holdings, tuple(store.marks() for store in stores) == seen

    def _stores(self) -> list[ContainersStore]:
        """All stores, the one CRI-O writes first."""
        found = [(path, find_store(path)) for path in (self._root, *self._additional)]
        missing = [str(path) for path, store in found if store is None]
        if missing:
            raise self._trouble(
                f"there is no image store in {', '.join(missing)}; name the folder that holds overlay-images"
            )
        return [store for _, store in found if store is not None]

    def _distinct(
        self, listed: Sequence[tuple[ContainersStore, ImageRecord]]
    ) -> list[tuple[ContainersStore, ImageRecord]]:
        """Each image once, as the first store has it; the newest, where there are more than can be told."""
        kept: dict[str, tuple[ContainersStore, ImageRecord]] = {}
        for store, image in listed:
            if image.usable:
                kept.setdefault(image.id, (store, image))
        if len(kept) > IMAGE_LIMIT:
            log.warning("images left out", extra={"images": len(kept), "limit": IMAGE_LIMIT})
        return list(kept.values())[-IMAGE_LIMIT:]

    def _described(
        self, listed: Sequence[tuple[ContainersStore, ImageRecord]], layers: dict[str, LayerRecord]
    ) -> dict[str, StoredImage]:
        self._documents.keep_only([image for _, image in listed])
        found: dict[str, StoredImage] = {}
        for store, image in listed:
            held = store_images.chain(image.layer, layers)
            if held is None:
                continue
            manifests = {digest: self._documents.manifest(store, image, digest) for digest in image.manifests}
            configured = self._documents.configuration(store, image)
            for stored in store_images.stored_images(image, held, manifests, configured):
                found.setdefault(stored.digest, stored)
        return found

    def _marks(self) -> tuple[StoreState | None, ...]:
        try:
            return tuple(store.marks() for store in self._stores())
        except (OSError, RuntimeSourceError):
            return (None,)

    def _trouble(self, problem: str) -> RuntimeSourceError:
        return RuntimeSourceError(NAME, f"{self._root}: {problem}")


def _said(error: OSError) -> str:
    which = f"{error.filename} " if error.filename else ""
    return f"{which}cannot be read ({(error.strerror or 'unknown error').lower()}); check the path and who may read it"
