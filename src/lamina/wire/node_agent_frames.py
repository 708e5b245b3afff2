"""
Frames from the node agent's reader, which sees the runtime, to its publisher, which sees the API server.

    look         everything the runtime holds, as in a report
    describe     the layers of one image; the publisher verifies the manifest against its digest
    trouble      the runtime cannot be queried, and why
    alive        nothing new; when the runtime was last queried

A frame is `MARK`, four bytes of length, four of checksum, and a MessagePack body of that length. The reader has access
to the runtime's socket and may be compromised, so its frames are bounded in every dimension. Data that does not fit the
schema raises a `FrameError`, and the publisher closes the pipe. `cut_images` truncates an inventory that is too large:
the largest `NAMED` images have names, as many as a report has room for; the others up to `IMAGES` have a digest and a
size; the rest is only counted.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from lamina.model.digest import Digest
from lamina.model.errors import LaminaError
from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, HeldImage, NodeRuntime
from lamina.wire.custom_resources.image_layers import MANIFEST_LIMIT
from lamina.wire.custom_resources.node_layers import (
    IMAGE_LIMIT,
    LARGEST,
    NAME_LENGTH,
    NAME_LIMIT,
    PULL_LIMIT,
    TEXT_LENGTH,
)
from lamina.wire.custom_resources.node_layers_status import keep
from lamina.wire.oci.manifest import LAYER_LIMIT

MARK: Final = b"\xff\xfelam"
"""These bytes are not valid UTF-8, so a read that begins in the middle of a frame is detected at once."""
HEAD: Final = len(MARK) + 8
FRAME_LIMIT: Final = 1024 * 1024
"""Largest body of a frame in bytes."""
NAMED: Final = IMAGE_LIMIT
IMAGES: Final = 5_000
"""Largest number of images in a frame; 5,000 without names take about 400 kB."""
PROBLEM_LENGTH: Final = 256

Count: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]
Rate: TypeAlias = Annotated[float, Meta(ge=0.0, le=1e15)]
Moment: TypeAlias = Annotated[float, Meta(ge=0.0, le=1e11)]
Text: TypeAlias = Annotated[str, Meta(max_length=TEXT_LENGTH)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH)]
Sha: TypeAlias = Annotated[str, Meta(max_length=71, pattern=r"\Asha256:[0-9a-f]{64}\Z")]


class FrameError(LaminaError):
    """Data in the pipe that is not a frame; *problem* gives the reason and quotes none of the data."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"invalid frame from the reader: {self.problem}"


class FrameImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One image of an inventory."""

    digest: Sha
    size: Count = 0
    names: Annotated[tuple[Name, ...], Meta(max_length=NAME_LIMIT)] = ()
    lazy: bool = False


class FramePull(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One pull of an inventory."""

    name: Annotated[str, Meta(max_length=NAME_LENGTH)] = ""
    digest: Sha | None = None
    done: Count = 0
    total: Count = 0


class FramePlatform(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A platform."""

    os: Text = ""
    architecture: Text = ""
    variant: Text = ""


class InventoryFrame(msgspec.Struct, frozen=True, kw_only=True, tag="look", forbid_unknown_fields=True):
    """Everything the runtime holds."""

    observed_at: Moment
    """Seconds since 1970."""
    runtime: Text = ""
    version: Text = ""
    reuse: Literal["prefix", "set"] = "prefix"
    platform: FramePlatform | None = None
    images: Annotated[tuple[FrameImage, ...], Meta(max_length=IMAGES)] = ()
    pulling: Annotated[tuple[FramePull, ...], Meta(max_length=PULL_LIMIT)] = ()
    download_rate: Rate = 0.0
    unpack_rate: Rate = 0.0
    disk: Count = 0
    disk_free: Count = 0
    layers: Count = 0
    """Number of different layers."""
    size: Count = 0
    """Bytes on the disk."""
    left_out: Count = 0
    """Number of images beyond `IMAGES`."""


class ImageFrame(msgspec.Struct, frozen=True, kw_only=True, tag="describe", forbid_unknown_fields=True):
    """The manifest of one image, with hints."""

    manifest: Annotated[bytes, Meta(min_length=2, max_length=MANIFEST_LIMIT)]
    media_type: Text = ""
    platform: FramePlatform | None = None
    diff_ids: Annotated[tuple[Sha, ...], Meta(max_length=LAYER_LIMIT)] = ()
    """Bottom first; empty unless all are known."""
    unpacked: Annotated[tuple[Count, ...], Meta(max_length=LAYER_LIMIT)] = ()
    """Bottom first; empty unless all are known. They may become known later than the image."""


class RuntimeErrorFrame(msgspec.Struct, frozen=True, tag="trouble", forbid_unknown_fields=True):
    """The runtime cannot be queried."""

    problem: Annotated[str, Meta(min_length=1, max_length=PROBLEM_LENGTH)]


class HeartbeatFrame(msgspec.Struct, frozen=True, tag="alive", forbid_unknown_fields=True):
    """The reader is alive, and nothing changed."""

    observed_at: Moment = 0.0
    """Time of the last successful query of the runtime; 0 if there was none."""


Frame: TypeAlias = InventoryFrame | ImageFrame | RuntimeErrorFrame | HeartbeatFrame

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Frame]] = msgspec.msgpack.Decoder(Frame)


def encode_frame(frame: Frame) -> bytes:
    """Return an encoded frame with its head."""
    body = _ENCODER.encode(frame)
    return b"".join([MARK, len(body).to_bytes(4), zlib.crc32(body).to_bytes(4), body])


class FrameCutter:
    """Splits received bytes into frames; buffers at most one frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that *data* completes. Raises FrameError, after which the cutter must not be used."""
        self._held += data
        while len(self._held) >= HEAD:
            length = int.from_bytes(self._held[len(MARK) : len(MARK) + 4])
            if not self._held.startswith(MARK):
                raise FrameError("it does not begin with the frame mark")
            if length > FRAME_LIMIT:
                raise FrameError(f"it has {length} bytes, the limit is {FRAME_LIMIT}")
            if len(self._held) < HEAD + length:
                return
            body = bytes(self._held[HEAD : HEAD + length])
            checksum = int.from_bytes(self._held[HEAD - 4 : HEAD])
            del self._held[: HEAD + length]
            if zlib.crc32(body) != checksum:
                raise FrameError("its checksum does not match; part of it may be missing")
            yield _decoded(body)

    @property
    def half(self) -> bool:
        """Whether an incomplete frame is buffered."""
        return bool(self._held)


def _decoded(body: bytes) -> Frame:
    try:
        return _DECODER.decode(body)
    except (ValueError, RecursionError) as error:
        # msgspec's message names a field and a rule, but no value.
        raise FrameError(f"{error!s:.160}") from None


def cut_images(images: Iterable[HeldImage]) -> tuple[tuple[FrameImage, ...], int]:
    """Return the images that fit into an inventory frame, and the number of the others; see the module docstring."""
    found = sorted(
        (image for image in images if image.digest.startswith("sha256:")), key=lambda one: (-one.size, one.digest)
    )
    named = [FrameImage(image.digest, _count(image.size), image.names, image.lazy) for image in keep(found[:NAMED])]
    others = [FrameImage(image.digest, _count(image.size), (), image.lazy) for image in found[len(named) : IMAGES]]
    return (*named, *others), max(len(found) - IMAGES, 0)


def held_images(inventory: InventoryFrame) -> tuple[HeldImage, ...]:
    """Return the images of an inventory as in a report."""
    return tuple([HeldImage(Digest(one.digest), one.size, one.names, one.lazy) for one in inventory.images])


def pulls(inventory: InventoryFrame) -> tuple[ActivePull, ...]:
    """Return the pulls of an inventory as in a report."""
    return tuple(
        ActivePull(one.name, None if one.digest is None else Digest(one.digest), one.done, one.total)
        for one in inventory.pulling
    )


def runtime(inventory: InventoryFrame) -> NodeRuntime:
    """Return the runtime of an inventory as in a report."""
    return NodeRuntime(inventory.runtime, inventory.version)


def platform(machine: FramePlatform | None) -> Platform | None:
    """Return the platform as in the model."""
    return None if machine is None else Platform(machine.os, machine.architecture, machine.variant)


def _count(number: int) -> int:
    return min(max(number, 0), LARGEST)
