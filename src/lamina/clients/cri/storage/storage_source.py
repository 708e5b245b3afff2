"""
Runtime source for CRI-O, from the files of its store.

It sends no requests to CRI-O: it needs no socket, adds no load, and works while CRI-O is down. In the files, an active
pull shows only as incomplete layers of unknown size, and a layer's record has no download start. So neither progress
nor rates are reported. CRI-O's artifact store is not read, because no container starts from an artifact.

CRI-O reuses any layer by digest, at any position of an image: reuse is "set".
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
"""Seconds between attempts to read unchanged lists; a pull replaces them a few times for each layer."""
POLL_SECONDS: Final = 3.0
"""Interval of checks whether files were replaced; a check reads no file."""
FULL_LOOK_SECONDS: Final = 300.0
IMAGE_LIMIT: Final = 2000

log = logging.getLogger(__name__)


class StorageSource:
    """The images at *root*, and in the read-only stores *additional*."""

    def __init__(self, root: Path, *, additional: Sequence[Path] = ()) -> None:
        self.place = root
        self._root, self._additional = root, tuple(additional)
        self._documents = StoreDocuments()
        self._seen: tuple[StoreState | None, ...] = ()
        self._looked = -FULL_LOOK_SECONDS
        self._busy = threading.Lock()

    async def look(self) -> Holdings:
        """Return the holdings. Raises `RuntimeSourceError`."""
        self._looked = time.monotonic()
        return await asyncio.to_thread(self._look)

    async def changed(self) -> None:
        """Return when a file was replaced since the last look began, or that look is old."""
        if self._documents.behind:
            return
        while time.monotonic() - self._looked < FULL_LOOK_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            if self._marks() != self._seen:
                return

    async def close(self) -> None:
        """Do nothing: no file is open between two looks."""

    def _look(self) -> Holdings:
        # A cancelled look still runs in its thread if the file system hangs.
        if not self._busy.acquire(blocking=False):
            raise self._failure("an earlier look is still running; check whether its file system responds")
        try:
            return self._look_until_settled()
        finally:
            self._busy.release()

    def _look_until_settled(self) -> Holdings:
        """Look until no list changed during the look, at most `len(PAUSES) + 1` times."""
        for pause in (*PAUSES, None):
            try:
                holdings, at_rest = self._attempt()
                # On a busy node the last attempt is used: its content existed when the attempt began.
                if at_rest or pause is None:
                    return holdings
            except UnsettledFileError as trouble:
                if pause is None:
                    raise self._failure(f"{trouble} on every attempt; is it a store of CRI-O?") from trouble
            except UnusableFileError as trouble:
                raise self._failure(f"{trouble}; check what is mounted there") from trouble
            except OSError as error:
                raise self._failure(_message(error)) from error
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self) -> tuple[Holdings, bool]:
        """Look once; return the holdings and whether no list was replaced meanwhile."""
        stores = self._stores()
        seen = tuple(store.marks() for store in stores)
        self._documents.begin(afresh=seen != self._seen)
        self._seen = seen
        listed = [(store, image) for store in stores for image in store.images()]
        layers: dict[str, LayerRecord] = {}
        for layer in (layer for store in stores for layer in store.layers()):
            # If two layers have the same id, the first wins, as in containers/storage.
            layers.setdefault(layer.id, layer)
        found = self._described(self._distinct(listed), layers)
        # The images folder instead of the root: a container may have only the needed folders mounted.
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
        """Return all stores, CRI-O's own first."""
        found = [(path, find_store(path)) for path in (self._root, *self._additional)]
        missing = [str(path) for path, store in found if store is None]
        if missing:
            raise self._failure(
                f"there is no image store in {', '.join(missing)}; name the folder that holds overlay-images"
            )
        return [store for _, store in found if store is not None]

    def _distinct(
        self, listed: Sequence[tuple[ContainersStore, ImageRecord]]
    ) -> list[tuple[ContainersStore, ImageRecord]]:
        """Return each image once, from the first store that has it; the newest `IMAGE_LIMIT` if there are more."""
        kept: dict[str, tuple[ContainersStore, ImageRecord]] = {}
        for store, image in listed:
            if image.usable:
                kept.setdefault(image.id, (store, image))
        if len(kept) > IMAGE_LIMIT:
            log.warning("image limit exceeded, oldest skipped", extra={"images": len(kept), "limit": IMAGE_LIMIT})
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

    def _failure(self, problem: str) -> RuntimeSourceError:
        return RuntimeSourceError(NAME, f"{self._root}: {problem}")


def _message(error: OSError) -> str:
    which = f"{error.filename} " if error.filename else ""
    return f"{which}cannot be read ({(error.strerror or 'unknown error').lower()}); check the path and its permissions"
