"""
What an agent's two halves say to each other: the reader, who sees the runtime, tells the publisher, who sees the API server.

    Look         everything the runtime holds, in the words of a report
    Describe     what one image consists of; the manifest is checked against its digest before anybody believes it
    Trouble      the runtime cannot be asked, and why
    Alive        nothing new; when the runtime was last looked at

A frame is `MARK`, four bytes of length, four of checksum, and as many bytes of MessagePack as the length says. The reader
holds the runtime's socket and may have been taken over, so its words are bounded in every direction: what does not fit
the schema is a `FrameError`, and whoever reads hangs up. An inventory that is too large is cut by one rule
(`cut_images`): the largest `NAMED` images have names, as many as a report has room for, the others up to `IMAGES` are a
digest and a size, and what is beyond that is only counted.
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
"""No text has these bytes, so that a reading that begins in the middle of a frame is noticed at once."""
HEAD: Final = len(MARK) + 8
FRAME_LIMIT: Final = 1024 * 1024
"""Bytes of a frame's body."""
NAMED: Final = IMAGE_LIMIT
IMAGES: Final = 5_000
"""Images in a frame; 5,000 without names take about 400 kB."""
PROBLEM_LENGTH: Final = 256

Count: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]
Rate: TypeAlias = Annotated[float, Meta(ge=0.0, le=1e15)]
Moment: TypeAlias = Annotated[float, Meta(ge=0.0, le=1e11)]
Text: TypeAlias = Annotated[str, Meta(max_length=TEXT_LENGTH)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH)]
Sha: TypeAlias = Annotated[str, Meta(max_length=71, pattern=r"\Asha256:[0-9a-f]{64}\Z")]


class FrameError(LaminaError):
    """What came out of the pipe is no frame; *problem* says why, and quotes nothing of it."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the pipe brought what is no frame: {self.problem}"


class FrameImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One image of a look."""

    digest: Sha
    size: Count = 0
    names: Annotated[tuple[Name, ...], Meta(max_length=NAME_LIMIT)] = ()
    lazy: bool = False


class FramePull(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One pull of a look."""

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
    """What the runtime holds."""

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
    """Different ones."""
    size: Count = 0
    """Bytes they take on the disk."""
    left_out: Count = 0
    """Images beyond `IMAGES`."""


class ImageFrame(msgspec.Struct, frozen=True, kw_only=True, tag="describe", forbid_unknown_fields=True):
    """What one image consists of."""

    manifest: Annotated[bytes, Meta(min_length=2, max_length=MANIFEST_LIMIT)]
    media_type: Text = ""
    platform: FramePlatform | None = None
    diff_ids: Annotated[tuple[Sha, ...], Meta(max_length=LAYER_LIMIT)] = ()
    """Bottom first; empty unless every one is known."""
    unpacked: Annotated[tuple[Count, ...], Meta(max_length=LAYER_LIMIT)] = ()
    """Bottom first; empty unless every one is known. They may become known later than the image."""


class RuntimeErrorFrame(msgspec.Struct, frozen=True, tag="trouble", forbid_unknown_fields=True):
    """The runtime cannot be asked."""

    problem: Annotated[str, Meta(min_length=1, max_length=PROBLEM_LENGTH)]


class HeartbeatFrame(msgspec.Struct, frozen=True, tag="alive", forbid_unknown_fields=True):
    """The reader is there, and nothing changed."""

    observed_at: Moment = 0.0
    """Of the last look that went well; 0: none did."""


Frame: TypeAlias = InventoryFrame | ImageFrame | RuntimeErrorFrame | HeartbeatFrame

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Frame]] = msgspec.msgpack.Decoder(Frame)


def encode_frame(frame: Frame) -> bytes:
    """Write a frame, head included."""
    body = _ENCODER.encode(frame)
    return b"".join([MARK, len(body).to_bytes(4), zlib.crc32(body).to_bytes(4), body])


class FrameCutter:
    """Takes bytes as they come and gives frames; holds at most one of them."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Give the frames that *data* completes; raises `FrameError`, after which this cutter is of no use."""
        self._held += data
        while len(self._held) >= HEAD:
            length = int.from_bytes(self._held[len(MARK) : len(MARK) + 4])
            if not self._held.startswith(MARK):
                raise FrameError("it does not begin as one")
            if length > FRAME_LIMIT:
                raise FrameError(f"it has {length} bytes, more than the {FRAME_LIMIT} one may have")
            if len(self._held) < HEAD + length:
                return
            body = bytes(self._held[HEAD : HEAD + length])
            checksum = int.from_bytes(self._held[HEAD - 4 : HEAD])
            del self._held[: HEAD + length]
            if zlib.crc32(body) != checksum:
                raise FrameError("its checksum is another; part of it may be missing")
            yield _decoded(body)

    @property
    def half(self) -> bool:
        """Whether the beginning of a frame waits for its end."""
        return bool(self._held)


def _decoded(body: bytes) -> Frame:
    try:
        return _DECODER.decode(body)
    except (ValueError, RecursionError) as error:
        # What msgspec says names a field and a rule, and no value.
        raise FrameError(f"{error!s:.160}") from None


def cut_images(images: Iterable[HeldImage]) -> tuple[tuple[FrameImage, ...], int]:
    """Return what a look has room for, and how many images it has not; see the head of this module."""
    found = sorted(
        (image for image in images if image.digest.startswith("sha256:")), key=lambda one: (-one.size, one.digest)
    )
    named = [FrameImage(image.digest, _count(image.size), image.names, image.lazy) for image in keep(found[:NAMED])]
    others = [FrameImage(image.digest, _count(image.size), (), image.lazy) for image in found[len(named) : IMAGES]]
    return (*named, *others), max(len(found) - IMAGES, 0)


def held_images(look: InventoryFrame) -> tuple[HeldImage, ...]:
    """Return the images of a look as a report has them."""
    return tuple([HeldImage(Digest(one.digest), one.size, one.names, one.lazy) for one in look.images])


def pulls(look: InventoryFrame) -> tuple[ActivePull, ...]:
    """Return the pulls of a look as a report has them."""
    return tuple(
        ActivePull(one.name, None if one.digest is None else Digest(one.digest), one.done, one.total)
        for one in look.pulling
    )


def runtime(look: InventoryFrame) -> NodeRuntime:
    """Return the runtime of a look as a report has it."""
    return NodeRuntime(look.runtime, look.version)


def platform(machine: FramePlatform | None) -> Platform | None:
    """Return a platform as the model has it."""
    return None if machine is None else Platform(machine.os, machine.architecture, machine.variant)


def _count(number: int) -> int:
    return min(max(number, 0), LARGEST)
