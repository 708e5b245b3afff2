"""
What a node's container runtime holds, and the room it takes.

    blob   a compressed layer, there once its last byte has arrived
    chain  an unpacked layer on top of those below it, there once it is committed
    image  there once all its chains are

Images refer to blobs and chains, and so do pulls while they go on; what nobody refers to any more is gone at once.
Runtimes with prefix reuse let go of blobs at the end of the pull, the others keep them with the image. Room is promised
before the first byte is written, so that the disk is never over its capacity.

Changed by the puller and the collector; kubelets say which images their pods use.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from lamina.model.digest import Digest
from lamina.model.errors import WiringError
from lamina.model.image import Image, Layer
from lamina.simulator.pulls.runtime_image import ChainId, RuntimeImage, runtime_image_of
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec

SCAN: Final = 300.0
"""Seconds between two looks of a kubelet at which images are used."""


class KubeletImageRecord:
    """An image as the kubelet's image manager knows it."""

    __slots__ = ("first_seen", "last_used", "recipe", "since", "users")

    def __init__(self, recipe: RuntimeImage, first_seen: float) -> None:
        """Start unused."""
        self.recipe = recipe
        self.first_seen = first_seen
        """The scan that finds it first; may be still to come."""
        self.last_used = -math.inf
        """The last scan that found it in use."""
        self.users = 0
        self.since = 0.0
        """When it went into use."""


class BlobAdvertiser(Protocol):
    """Where a node says which blobs others may have from it."""

    def gained(self, digest: Digest) -> None:
        """The blob is there now."""
        ...

    def lost(self, digest: Digest) -> None:
        """The blob is gone."""
        ...


def _nothing() -> None:
    pass


class NodeImageStore:
    """Images, blobs and chains of one node, and the bytes they take."""

    __slots__ = (
        "_blob_refs",
        "_chain_refs",
        "_keeps",
        "_ratio",
        "_records",
        "alarm_at",
        "blobs",
        "board",
        "capacity",
        "chains",
        "disk",
        "edition",
        "held",
        "idle",
        "images",
        "on_alarm",
        "on_relief",
        "phase",
        "reserved",
    )

    def __init__(self, spec: RuntimeSpec, disk: DiskSpec | None = None, images: Iterable[Image] = ()) -> None:
        """Begin with these images, which were there long before."""
        self._keeps = spec.reuse == "set"
        # What is pulled lazily is unpacked as it is read, and the runtime keeps no second copy.
        self._ratio = spec.ratio if spec.lazy is None else None
        self._records: dict[Digest, KubeletImageRecord] = {}
        self._blob_refs: dict[Digest, int] = {}
        self._chain_refs: dict[ChainId, int] = {}
        self.images: dict[Digest, Image] = {}
        """In the order they arrived."""
        self.blobs: dict[Digest, int] = {}
        """Compressed size of every blob."""
        self.chains: dict[ChainId, int] = {}
        """Unpacked size of every chain."""
        self.disk = disk
        self.capacity: float = math.inf if disk is None else disk.capacity
        self.held = 0
        """Bytes of what is there."""
        self.reserved = 0
        """Bytes promised to what is being downloaded or unpacked."""
        self.idle = 0
        """How many images no pod uses."""
        self.edition = 0
        """Grows when an image comes, goes or falls out of use."""
        self.phase = 0.0
        """When, after time 0, the first scan of the kubelet is."""
        self.board: BlobAdvertiser | None = None
        self.alarm_at = math.inf
        """From so many used bytes on, `on_alarm` is called when more are promised or an image is not in use."""
        self.on_alarm: Callable[[], None] = _nothing
        self.on_relief: Callable[[], None] = _nothing
        """Called when bytes became free, or could be made so because an image fell out of use."""
        for image in images:
            self._begin_with(self.recipe(image))

    @property
    def used(self) -> int:
        """Bytes that are taken, what is promised included."""
        return self.held + self.reserved

    @property
    def free(self) -> float:
        """Bytes that can still be promised."""
        return self.capacity - self.held - self.reserved

    @property
    def layers(self) -> dict[Digest, int]:
        """Compressed size of every layer that is there, packed or unpacked."""
        if self._keeps:
            return self.blobs
        return {layer.digest: layer.size for image in self.images.values() for layer in image.layers}

    @property
    def size(self) -> int:
        """Compressed bytes of all layers."""
        return sum(self.layers.values())

    def holds(self, digest: Digest) -> bool:
        """Tell whether the image is there."""
        return digest in self.images

    def recipe(self, image: Image) -> RuntimeImage:
        """Say what this runtime makes of an image."""
        return runtime_image_of(image, self._ratio)

    def missing(self, image: Image) -> tuple[Layer, ...]:
        """
        List the layers that a pull would download, bottom first; one that an image repeats is listed once.

        Nothing is downloaded for the chains that are there, and above them no blob that is there.
        """
        recipe = self.recipe(image)
        first = self.prefix(recipe)
        wanted = {layer.digest: layer for layer in recipe.layers[first:]}
        return tuple(layer for digest, layer in wanted.items() if digest not in self.blobs)

    def prefix(self, recipe: RuntimeImage) -> int:
        """Count the layers, from the bottom, that are unpacked."""
        chains = self.chains
        for index, chain in enumerate(recipe.chains):
            if chain not in chains:
                return index
        return len(recipe.chains)

    # -- room --------------------------------------------------------------------------------------------------------

    def reserve(self, size: int) -> bool:
        """Promise room for *size* bytes; false when there is not so much."""
        used = self.held + self.reserved + size
        if used > self.capacity:
            return False
        self.reserved += size
        if used >= self.alarm_at:
            self.on_alarm()
        return True

    def unreserve(self, size: int) -> None:
        """Take a promise back."""
        self.reserved -= size
        self.on_relief()

    # -- what pulls do -----------------------------------------------------------------------------------------------

    def use(self, recipe: RuntimeImage) -> None:
        """Keep all there is, and all that comes, of an image that is being pulled."""
        blobs, chains = self._blob_refs, self._chain_refs
        for digest in recipe.blobs:
            blobs[digest] = blobs.get(digest, 0) + 1
        for chain in recipe.chains:
            chains[chain] = chains.get(chain, 0) + 1

    def references(self, digest: Digest) -> int:
        """Count the images and pulls that refer to a blob, whether it is there or still to come."""
        return self._blob_refs.get(digest, 0)

    def put_blob(self, layer: Layer) -> None:
        """Take a blob that has arrived, into room that was promised."""
        self.reserved -= layer.size
        self.held += layer.size
        self.blobs[layer.digest] = layer.size
        if self.board is not None:
            self.board.gained(layer.digest)

    def put_blobs(self, layers: Sequence[Layer]) -> int:
        """Take blobs that have arrived, into room that was promised; return their bytes."""
        blobs, size = self.blobs, 0
        for layer in layers:
            blobs[layer.digest] = layer.size
            size += layer.size
        self.reserved -= size
        self.held += size
        if self.board is not None:
            for layer in layers:
                self.board.gained(layer.digest)
        return size

    def put_chains(self, chains: Sequence[ChainId], sizes: Sequence[int]) -> None:
        """Take chains that were committed, into room that was promised."""
        size = sum(sizes)
        self.reserved -= size
        self.held += size
        self.chains.update(zip(chains, sizes, strict=True))

    def put_image(self, recipe: RuntimeImage, now: float) -> bool:
        """Take an image all of whose chains are there; false when it was there already."""
        if recipe.image.digest in self.images:
            return False
        assert self.prefix(recipe) == len(recipe.chains), "an image is there when all its layers are"
        self._enter(recipe, now)
        self._use_chains(recipe)
        if self._keeps:
            refs = self._blob_refs
            for digest in recipe.blobs:
                refs[digest] = refs.get(digest, 0) + 1
        return True

    def finish(self, recipe: RuntimeImage, now: float) -> bool:
        """Take an image, and let go of what its pull has kept beside it; false when it was there already."""
        if recipe.image.digest in self.images or not self._keeps:
            news = self.put_image(recipe, now)
            self.drop(recipe)
            return news
        # The same in one step, and the usual case: what the pull has kept is what the image keeps.
        self._enter(recipe, now)
        return True

    def drop(self, recipe: RuntimeImage) -> int:
        """Let go of what a pull has kept; return the bytes that became free."""
        freed = self._drop_blobs(recipe) + self._drop_chains(recipe)
        if freed:
            self.on_relief()
        return freed

    # -- what pods and the collector do ------------------------------------------------------------------------------

    def acquire(self, image: Image, now: float) -> None:
        """Let a pod use an image that is there; it is not removed until all who use it have released it."""
        record = self._records[image.digest]
        if not record.users:
            record.since = now
            self.idle -= 1
        record.users += 1

    def release(self, image: Image, now: float) -> None:
        """Let a pod have done with an image."""
        record = self._records[image.digest]
        record.users -= 1
        if not record.users:
            self.idle += 1
            self.edition += 1
            scan = self.phase + SCAN * ((now - self.phase) // SCAN)
            if scan >= record.since:
                record.last_used = scan
            self.on_relief()
        if self.held + self.reserved >= self.alarm_at:
            self.on_alarm()

    def removable(self, now: float) -> list[KubeletImageRecord]:
        """Scan all images, and list those not in use: the longest unused first, then those known for longest."""
        unused = []
        for record in self._records.values():
            record.first_seen = min(record.first_seen, now)
            if record.users:
                record.last_used = now
            else:
                unused.append(record)
        unused.sort(key=lambda record: (record.last_used, record.first_seen))
        return unused

    def remove(self, digest: Digest) -> int:
        """Remove an image that nobody uses; return the bytes that became free."""
        record = self._records.pop(digest)
        assert not record.users, "an image that is in use stays"
        del self.images[digest]
        self.idle -= 1
        self.edition += 1
        freed = self._drop_chains(record.recipe)
        if self._keeps:
            freed += self._drop_blobs(record.recipe)
        if freed:
            self.on_relief()
        return freed

    # ----------------------------------------------------------------------------------------------------------------

    def _begin_with(self, recipe: RuntimeImage) -> None:
        if recipe.image.digest in self.images:
            return
        if self._keeps:
            for layer in recipe.layers:
                if layer.digest not in self.blobs:
                    self.reserved += layer.size
                    self.put_blob(layer)
        for chain, size in zip(recipe.chains, recipe.unpacked, strict=True):
            if chain not in self.chains:
                self.reserved += size
                self.put_chains([chain], [size])
        if self.held > self.capacity:
            raise WiringError(
                f"the images a node begins with take {self.held} bytes and its disk has {self.capacity}; "
                "give it a larger disk or fewer images"
            )
        self.put_image(recipe, 0.0)
        # The first scan of a kubelet takes whatever it finds for old.
        self._records[recipe.image.digest].first_seen = -math.inf

    def _enter(self, recipe: RuntimeImage, now: float) -> None:
        digest = recipe.image.digest
        self.images[digest] = recipe.image
        self._records[digest] = KubeletImageRecord(recipe, self.phase + SCAN * math.ceil((now - self.phase) / SCAN))
        self.idle += 1
        self.edition += 1
        if self.held + self.reserved >= self.alarm_at:
            self.on_alarm()

    def _use_chains(self, recipe: RuntimeImage) -> None:
        refs = self._chain_refs
        for chain in recipe.chains:
            refs[chain] = refs.get(chain, 0) + 1

    def _drop_chains(self, recipe: RuntimeImage) -> int:
        refs, freed = self._chain_refs, 0
        for chain in recipe.chains:
            left = refs[chain] - 1
            if left:
                refs[chain] = left
            else:
                del refs[chain]
                freed += self.chains.pop(chain, 0)
        self.held -= freed
        return freed

    def _drop_blobs(self, recipe: RuntimeImage) -> int:
        refs, freed = self._blob_refs, 0
        for digest in recipe.blobs:
            left = refs[digest] - 1
            if left:
                refs[digest] = left
                continue
            del refs[digest]
            size = self.blobs.pop(digest, None)
            if size is not None:
                freed += size
                if self.board is not None:
                    self.board.lost(digest)
        self.held -= freed
        return freed
