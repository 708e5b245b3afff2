"""
The held images as they are reported, with unpacked layer sizes, and the unpack rate.

Results are kept between looks, so that unchanged images are the same objects.
"""

from collections.abc import Iterable, Mapping

from lamina.clients.cri.containerd.event_log import ContainerdEventLog
from lamina.clients.cri.containerd.image_documents import ContainerdImage
from lamina.clients.cri.containerd.snapshots import ContainerdSnapshots, is_lazy
from lamina.clients.cri.rate_estimates import SMALLEST, RateEstimate
from lamina.model.digest import Digest
from lamina.model.holdings import StoredImage
from lamina.model.image import Layer


class ReportedImages:
    """The last report of each image."""

    def __init__(self, event_log: ContainerdEventLog, snapshots: ContainerdSnapshots) -> None:
        self.rate = RateEstimate()
        """Unpacked bytes per second."""
        self._event_log, self._snapshots = event_log, snapshots
        self._images: dict[Digest, StoredImage] = {}
        self._measured: set[Digest] = set()
        """Images whose layers all have a size."""
        self._complete: set[Digest] = set()
        """Measured images that were reported with all sizes."""

    async def measure(self, held: Iterable[ContainerdImage]) -> bool:
        """Query unknown layer sizes, new images first; return whether some are left for the next look."""
        new = [image for image in held if image.digest not in self._measured]
        new.sort(key=lambda image: image.digest in self._images)
        left = await self._snapshots.measure(chain for image in new for chain in image.chain())
        for image in new:
            chain = image.chain()
            self._time(image, chain)
            if all(one in self._snapshots.sizes for one in chain):
                self._measured.add(image.digest)
        return left

    def images(self, held: Mapping[str, ContainerdImage], names: Mapping[str, list[str]]) -> tuple[StoredImage, ...]:
        """Return the held images in the order of digests; *held* and *names* are by target."""
        called: dict[Digest, set[str]] = {}
        known = {}
        for target, image in held.items():
            known[image.digest] = image
            called.setdefault(image.digest, set()).update(names[target])
        self._images = {digest: self._image(image, called[digest]) for digest, image in sorted(known.items())}
        self._measured &= known.keys()
        self._complete = set(self._measured)
        return tuple(self._images.values())

    def untimed(self, images: Iterable[ContainerdImage]) -> set[str]:
        """Return layers whose unpacking was seen but not their download; the store may have the time."""
        if not self._event_log.spans:
            return set()
        return {
            str(layer.digest)
            for image in images
            if image.digest not in self._measured
            for layer, chain in zip(image.layers, image.chain(), strict=True)
            if chain in self._event_log.spans and layer.digest not in self._event_log.created
        }

    def _time(self, image: ContainerdImage, chain: tuple[Digest, ...]) -> None:
        for layer, one in zip(image.layers, chain, strict=True):
            size = self._snapshots.sizes.get(one)
            if size is None or one not in self._event_log.spans:
                continue
            span = self._event_log.spans.pop(one)
            created = self._event_log.created.get(layer.digest)
            # Without the end of the download, unpacking cannot be separated from waiting for it.
            if created is not None and size >= SMALLEST:
                self.rate.add(size, span.end - max(span.start, created))

    def _image(self, image: ContainerdImage, names: set[str]) -> StoredImage:
        before = self._images.get(image.digest)
        called = tuple(sorted(names))
        lazy = is_lazy(self._snapshots.holders(image.top)[0])
        sizes = self._snapshots.sizes
        if before is not None and (before.names, before.lazy) == (called, lazy) and image.digest in self._complete:
            return before
        layers = tuple(
            Layer(layer.digest, layer.size, layer.diff_id, sizes.get(chain))
            for layer, chain in zip(image.layers, image.chain(), strict=True)
        )
        image_now = StoredImage(
            digest=image.digest,
            names=called,
            size=sum({layer.digest: layer.size for layer in layers}.values()),
            lazy=lazy,
            layers=layers,
            manifest=image.manifest,
            media_type=image.media_type,
            platform=image.platform,
        )
        return before if before == image_now else image_now
