"""Laws of catalog files: what is written is read again, and joining is the same in any number of steps."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.digest import digest_of
from lamina.model.errors import InputError
from lamina.model.image import Image, Layer, Platform
from lamina.wire.catalog_file import encode_catalog, read_catalog
from lamina.wire.image_merge import ImageMerger

# A layer is the same wherever it is: everything about it follows from its number.
LAYERS = [
    Layer(
        digest_of(b"layer %d" % number),
        number * 10**number,
        digest_of(b"diff %d" % number) if number % 2 else None,
        number * 7 if number % 3 else None,
    )
    for number in range(12)
]
PLATFORMS = st.sampled_from([Platform(), Platform("linux", "arm64"), Platform("linux", "arm", "v7")])


@st.composite
def catalogs(draw: st.DrawFn) -> list[Image]:
    """Images with names of their own, some without any."""
    counts = draw(st.lists(st.integers(0, 3), max_size=8))
    return [
        Image(
            digest_of(b"image %d" % number),
            tuple(draw(st.lists(st.sampled_from(LAYERS), min_size=1, max_size=6))),
            tuple(f"registry.example/app{number}:{tag}" for tag in range(names)),
            draw(PLATFORMS),
        )
        for number, names in enumerate(counts)
    ]


def gathered(images: list[Image]) -> tuple[Image, ...]:
    gathering = ImageMerger()
    for image in images:
        assert [] == gathering.add(image, "here")
    return gathering.images()


@given(catalogs(), st.sampled_from(["c.jsonl", "c.jsonl.gz", "c.jsonl.zst"]))
@settings(max_examples=60)
def test_what_is_written_is_read_again(images, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(encode_catalog(images, name))

        assert tuple(images) == read_catalog(path)


@given(catalogs(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_saying_things_twice_changes_nothing(images, rng):
    """However often, and in whichever order after the first time."""
    again = [rng.choice(images) for _ in range(10)] if images else []

    assert tuple(images) == gathered([*images, *again])


def refusal(path: Path) -> str:
    try:
        read_catalog(path)
    except InputError as error:
        return str(error)
    return ""


@given(st.binary(max_size=400))
@settings(max_examples=150)
def test_whatever_is_in_a_file_it_is_read_or_refused_in_words(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.jsonl"
        path.write_bytes(b'{"format":"lamina-catalog","version":1}\n' + data)

        assert all(line.startswith(f"{path}:") for line in refusal(path).splitlines())
