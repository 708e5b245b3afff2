"""
Catalog files: the layers of images, one image per line.

    {"format":"lamina-catalog","version":1}
    {"digest":"sha256:…","names":["nginx:1.27"],"platform":"linux/amd64","layers":[["sha256:…",28561],…]}

A layer is its digest and its compressed size, bottom first; its diff id and its unpacked size may follow. The writer
compresses if the file name ends in ``.gz`` or ``.zst``; the reader decides by the first bytes. The same images give the
same bytes. The reader reports every mistake with its line.
"""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import zstandard

from lamina.model.digest import Digest, parse_digest
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Image, Layer
from lamina.wire.compressed_lines import ReadBounds, read_lines
from lamina.wire.image_merge import ImageMerger, read_platform, written

FORMAT: Final = "lamina-catalog"
VERSION: Final = 1
SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
"""Usual suffixes of catalog files."""

BOUNDS: Final = ReadBounds(line=1024**2, size=2 * 1024**3)
IMAGE_LIMIT: Final = 500_000
LAYER_LIMIT: Final = 1024
SIZE_LIMIT: Final = 2**50
"""Largest layer in bytes: 1 PiB, as in a scenario, so that sums stay exact."""
MOST_MISTAKES: Final = 100
"""The reader stops after this many mistakes: a file of another format has one on every line."""

# Fixed, because the bytes depend on it.
LEVEL: Final = 9


class CatalogLayer(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One layer, encoded as an array."""

    digest: str
    size: int
    diff_id: str | None = None
    unpacked: int | None = None


class CatalogImage(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """One line of the file."""

    digest: str
    names: tuple[str, ...] = ()
    platform: str = "linux/amd64"
    layers: tuple[CatalogLayer, ...]


class CatalogHeader(msgspec.Struct, frozen=True):
    """The fields of the first line that all versions have in common."""

    format: str = ""
    version: int = 0


_HEADER: Final = msgspec.json.Decoder(CatalogHeader)
_IMAGE: Final = msgspec.json.Decoder(CatalogImage)
_ENCODER: Final = msgspec.json.Encoder()


def read_catalog(path: str | Path) -> tuple[Image, ...]:
    """Return all images of a file. Raises InputError with every mistake in it."""
    source = str(path)
    merger = ImageMerger()
    mistakes: list[Mistake] = []
    digests: dict[str, Digest] = {}
    number = 0
    for number, line in read_lines(Path(path), BOUNDS):
        if number == 1:
            _check_header(source, line)
        elif number - 1 > IMAGE_LIMIT:
            raise InputError.one(source, f"has more than {IMAGE_LIMIT} images; split it", line=number)
        elif line.strip():
            problems = _read_line(line, f"line {number}", merger, digests)
            mistakes += (Mistake(source, problem, line=number) for problem in problems)
            if len(mistakes) >= MOST_MISTAKES:
                break
    if number == 0:
        raise InputError.one(source, f"is empty; a catalog begins with {_first_line().decode()}")
    if mistakes:
        raise InputError(mistakes[:MOST_MISTAKES])
    return merger.images()


def encode_catalog(images: Iterable[Image], name: str) -> bytes:
    """Return images as the bytes of a file with this *name*."""
    data = b"\n".join([_first_line(), *(_ENCODER.encode(_entry(image)) for image in images), b""])
    if name.endswith(".gz"):
        return gzip.compress(data, LEVEL, mtime=0)
    if name.endswith(".zst"):
        return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)
    return data


def is_catalog(line: bytes) -> bool:
    """Return whether a file that begins with this line is a catalog of any version."""
    try:
        return _HEADER.decode(line).format == FORMAT
    except (ValueError, RecursionError):
        return False


def _first_line() -> bytes:
    return _ENCODER.encode(CatalogHeader(FORMAT, VERSION))


def _check_header(source: str, line: bytes) -> None:
    if not is_catalog(line):
        message = f"is not a catalog; the first line must be {_first_line().decode()}"
        raise InputError.one(source, message, line=1)
    version = _HEADER.decode(line).version
    if not 1 <= version <= VERSION:
        raise InputError.one(source, f"has version {version}, this Lamina reads {VERSION}; use a newer Lamina", line=1)


def _read_line(line: bytes, where: str, merger: ImageMerger, digests: dict[str, Digest]) -> list[str]:
    try:
        entry = _IMAGE.decode(line)
        if not 1 <= len(entry.layers) <= LAYER_LIMIT:
            return [f"has {len(entry.layers)} layers; an image has 1 to {LAYER_LIMIT}"]
        layers = tuple(_layer(one, digests) for one in entry.layers)
        image = Image(parse_digest(entry.digest), layers, entry.names, read_platform(entry.platform))
    except (ValueError, RecursionError) as error:
        return [f"is not an image ({error})"]
    return merger.add(image, where)


def _layer(entry: CatalogLayer, digests: dict[str, Digest]) -> Layer:
    for size in (entry.size, entry.unpacked or 0):
        if not 0 <= size <= SIZE_LIMIT:
            raise ValueError(f"a layer of {size} bytes; write 0 to {SIZE_LIMIT}")
    # Most layers are listed many times; the table validates and stores each digest once.
    digest = digests.get(entry.digest)
    if digest is None:
        digest = digests[entry.digest] = parse_digest(entry.digest)
    diff_id = None if entry.diff_id is None else parse_digest(entry.diff_id)
    return Layer(digest, entry.size, diff_id, entry.unpacked)


def _entry(image: Image) -> dict[str, object]:
    return {
        "digest": image.digest,
        "names": image.names,
        "platform": written(image.platform),
        "layers": [_listed(layer) for layer in image.layers],
    }


def _listed(layer: Layer) -> list[object]:
    listed: list[object] = [layer.digest, layer.size, layer.diff_id, layer.unpacked]
    while listed[-1] is None:
        listed.pop()
    return listed
