"""
Image store of a node's container runtime, and the disk space it uses.

    blob   a compressed layer; held once its last byte has arrived
    chain  an unpacked layer on top of the layers below it; held once it is committed
    image  held once all its chains are held

Images and running pulls reference blobs and chains. The store removes a blob or chain as soon as it has no references.
Runtimes with prefix reuse drop the blobs at the end of the pull; the others keep them with the image. Space is reserved
before the first byte is written, so the disk never exceeds its capacity.

The puller and the image garbage collection change the store. The kubelet reports which images its pods use.
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
"""Seconds between two scans in which the kubelet records the images in use."""


class KubeletImageRecord:
    """An image as the kubelet's image manager records it."""

    __slots__ = ("first_seen", "last_used", "runtime_image", "since", "users")

    def __init__(self, runtime_image: RuntimeImage, first_seen: float) -> None:
        """Create the record of an unused image."""
        self.runtime_image = runtime_image
        self.first_seen = first_seen
        """Time of the first scan that finds the image; may be in the future."""
        self.last_used = -math.inf
        """Time of the last scan that found it in use."""
        self.users = 0
        self.since = 0.0
        """Time at which a pod began to use it, after no pod did."""


class BlobAdvertiser(Protocol):
    """Receives which blobs a node can serve to its peers."""

    def gained(self, digest: Digest) -> None:
        """Called when the store holds a new blob."""
        ...

    def lost(self, digest: Digest) -> None:
        """Called when the store has removed a blob."""
        ...


def _nothing() -> None:
    pass


class NodeImageStore:
    """The images, blobs and chains of one node, and the bytes they use."""

    __slots__ = (
        "_blob_refs",
        "_chain_refs",
        "_keeps",
        "_ratio",
        "_records",
        "advertiser",
        "alarm_at",
        "blobs",
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
        """Start with *images*, which the kubelet treats as old."""
        self._keeps = spec.reuse == "set"
        # A lazily pulled layer is unpacked when it is read; the runtime keeps no second copy.
        self._ratio = spec.ratio if spec.lazy is None else None
        self._records: dict[Digest, KubeletImageRecord] = {}
        self._blob_refs: dict[Digest, int] = {}
        self._chain_refs: dict[ChainId, int] = {}
        self.images: dict[Digest, Image] = {}
        """All images, in the order of their arrival."""
        self.blobs: dict[Digest, int] = {}
        """Compressed size of every blob."""
        self.chains: dict[ChainId, int] = {}
        """Unpacked size of every chain."""
        self.disk = disk
        self.capacity: float = math.inf if disk is None else disk.capacity
        self.held = 0
        """Bytes of the blobs and chains that the node holds."""
        self.reserved = 0
        """Bytes reserved for running downloads and unpacking."""
        self.idle = 0
        """Number of images that no pod uses."""
        self.edition = 0
        """Incremented when an image arrives, is removed or becomes unused."""
        self.phase = 0.0
        """Time of the kubelet's first scan."""
        self.advertiser: BlobAdvertiser | None = None
        self.alarm_at = math.inf
        """Used bytes from which `on_alarm` is called when space is reserved or an image becomes unused."""
        self.on_alarm: Callable[[], None] = _nothing
        self.on_relief: Callable[[], None] = _nothing
        """Called when bytes became free, or an image became unused and can be removed."""
        for image in images:
            self._begin_with(self.runtime_image(image))

    @property
    def used(self) -> int:
        """Bytes in use, including reserved bytes."""
        return self.held + self.reserved

    @property
    def free(self) -> float:
        """Bytes that can still be reserved."""
        return self.capacity - self.held - self.reserved

    @property
    def layers(self) -> dict[Digest, int]:
        """Compressed size of every layer that the node holds, packed or unpacked."""
        if self._keeps:
            return self.blobs
        return {layer.digest: layer.size for image in self.images.values() for layer in image.layers}

    @property
    def size(self) -> int:
        """Compressed bytes of all layers."""
        return sum(self.layers.values())

    def holds(self, digest: Digest) -> bool:
        """Return whether the node holds the image."""
        return digest in self.images

    def runtime_image(self, image: Image) -> RuntimeImage:
        """Return the blobs and chains of an image on this runtime."""
        return runtime_image_of(image, self._ratio)

    def missing(self, image: Image) -> tuple[Layer, ...]:
        """
        Return the layers that a pull would download, bottom first and without duplicates.

        These are the layers above the unpacked ones whose blob the node does not hold.
        """
        runtime_image = self.runtime_image(image)
        first = self.prefix(runtime_image)
        wanted = {layer.digest: layer for layer in runtime_image.layers[first:]}
        return tuple(layer for digest, layer in wanted.items() if digest not in self.blobs)

    def prefix(self, runtime_image: RuntimeImage) -> int:
        """Return how many layers, counted from the bottom, are unpacked."""
        chains = self.chains
        for index, chain in enumerate(runtime_image.chains):
            if chain not in chains:
                return index
        return len(runtime_image.chains)

    # -- room --------------------------------------------------------------------------------------------------------

    def reserve(self, size: int) -> bool:
        """Reserve *size* bytes; return False if they are not free."""
        used = self.held + self.reserved + size
        if used > self.capacity:
            return False
        self.reserved += size
        if used >= self.alarm_at:
            self.on_alarm()
        return True

    def unreserve(self, size: int) -> None:
        """Release *size* reserved bytes."""
        self.reserved -= size
        self.on_relief()

    # -- pulls -------------------------------------------------------------------------------------------------------

    def use(self, runtime_image: RuntimeImage) -> None:
        """Add a reference to all blobs and chains of an image that is being pulled, held or not."""
        blobs, chains = self._blob_refs, self._chain_refs
        for digest in runtime_image.blobs:
            blobs[digest] = blobs.get(digest, 0) + 1
        for chain in runtime_image.chains:
            chains[chain] = chains.get(chain, 0) + 1

    def references(self, digest: Digest) -> int:
        """Return how many images and pulls reference a blob, held or not."""
        return self._blob_refs.get(digest, 0)

    def put_blob(self, layer: Layer) -> None:
        """Add a blob that has arrived, into reserved space."""
        self.reserved -= layer.size
        self.held += layer.size
        self.blobs[layer.digest] = layer.size
        if self.advertiser is not None:
            self.advertiser.gained(layer.digest)

    def put_blobs(self, layers: Sequence[Layer]) -> int:
        """Add blobs that have arrived, into reserved space; return their bytes."""
        blobs, size = self.blobs, 0
        for layer in layers:
            blobs[layer.digest] = layer.size
            size += layer.size
        self.reserved -= size
        self.held += size
        if self.advertiser is not None:
            for layer in layers:
                self.advertiser.gained(layer.digest)
        return size

    def put_chains(self, chains: Sequence[ChainId], sizes: Sequence[int]) -> None:
        """Add committed chains, into reserved space."""
        size = sum(sizes)
        self.reserved -= size
        self.held += size
        self.chains.update(zip(chains, sizes, strict=True))

    def put_image(self, runtime_image: RuntimeImage, now: float) -> bool:
        """Add an image whose chains are all held; return False if the node held it already."""
        if runtime_image.image.digest in self.images:
            return False
        assert self.prefix(runtime_image) == len(runtime_image.chains), "an image needs all its layers"
        self._enter(runtime_image, now)
        self._use_chains(runtime_image)
        if self._keeps:
            refs = self._blob_refs
            for digest in runtime_image.blobs:
                refs[digest] = refs.get(digest, 0) + 1
        return True

    def finish(self, runtime_image: RuntimeImage, now: float) -> bool:
        """Add an image and drop the references of its pull; return False if the node held it already."""
        if runtime_image.image.digest in self.images or not self._keeps:
            news = self.put_image(runtime_image, now)
            self.drop(runtime_image)
            return news
        # Shortcut for the usual case: the references of the pull become those of the image.
        self._enter(runtime_image, now)
        return True

    def drop(self, runtime_image: RuntimeImage) -> int:
        """Drop the references of a pull; return the bytes that became free."""
        freed = self._drop_blobs(runtime_image) + self._drop_chains(runtime_image)
        if freed:
            self.on_relief()
        return freed

    # -- pods and garbage collection ---------------------------------------------------------------------------------

    def acquire(self, image: Image, now: float) -> None:
        """Mark an image as used by one more pod; it is not removed until all its pods have released it."""
        record = self._records[image.digest]
        if not record.users:
            record.since = now
            self.idle -= 1
        record.users += 1

    def release(self, image: Image, now: float) -> None:
        """End one pod's use of an image."""
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
        """Scan all images and return the unused ones: least recently used first, then oldest first."""
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
        """Remove an unused image; return the bytes that became free."""
        record = self._records.pop(digest)
        assert not record.users, "an image in use cannot be removed"
        del self.images[digest]
        self.idle -= 1
        self.edition += 1
        freed = self._drop_chains(record.runtime_image)
        if self._keeps:
            freed += self._drop_blobs(record.runtime_image)
        if freed:
            self.on_relief()
        return freed

    # ----------------------------------------------------------------------------------------------------------------

    def _begin_with(self, runtime_image: RuntimeImage) -> None:
        if runtime_image.image.digest in self.images:
            return
        if self._keeps:
            for layer in runtime_image.layers:
                if layer.digest not in self.blobs:
                    self.reserved += layer.size
                    self.put_blob(layer)
        for chain, size in zip(runtime_image.chains, runtime_image.unpacked, strict=True):
            if chain not in self.chains:
                self.reserved += size
                self.put_chains([chain], [size])
        if self.held > self.capacity:
            raise WiringError(
                f"the images a node begins with take {self.held} bytes and its disk has {self.capacity}; "
                "give it a larger disk or fewer images"
            )
        self.put_image(runtime_image, 0.0)
        # The kubelet's first scan treats every image it finds as old.
        self._records[runtime_image.image.digest].first_seen = -math.inf

    def _enter(self, runtime_image: RuntimeImage, now: float) -> None:
        digest = runtime_image.image.digest
        self.images[digest] = runtime_image.image
        self._records[digest] = KubeletImageRecord(
            runtime_image, self.phase + SCAN * math.ceil((now - self.phase) / SCAN)
        )
        self.idle += 1
        self.edition += 1
        if self.held + self.reserved >= self.alarm_at:
            self.on_alarm()

    def _use_chains(self, runtime_image: RuntimeImage) -> None:
        refs = self._chain_refs
        for chain in runtime_image.chains:
            refs[chain] = refs.get(chain, 0) + 1

    def _drop_chains(self, runtime_image: RuntimeImage) -> int:
        refs, freed = self._chain_refs, 0
        for chain in runtime_image.chains:
            left = refs[chain] - 1
            if left:
                refs[chain] = left
            else:
                del refs[chain]
                freed += self.chains.pop(chain, 0)
        self.held -= freed
        return freed

    def _drop_blobs(self, runtime_image: RuntimeImage) -> int:
        refs, freed = self._blob_refs, 0
        for digest in runtime_image.blobs:
            left = refs[digest] - 1
            if left:
                refs[digest] = left
                continue
            del refs[digest]
            size = self.blobs.pop(digest, None)
            if size is not None:
                freed += size
                if self.advertiser is not None:
                    self.advertiser.lost(digest)
        self.held -= freed
        return freed
