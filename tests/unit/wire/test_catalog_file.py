"""Catalog files: written the same every time, read within bounds, every mistake with its line."""

import gzip
import json

import pytest

from lamina.model.digest import digest_of
from lamina.model.errors import InputError
from lamina.model.image import Image, Layer, Platform
from lamina.wire import catalog_file
from lamina.wire.catalog_file import LAYER_LIMIT, MOST_MISTAKES, encode_catalog, read_catalog

BASE, APP, WEB = digest_of(b"base"), digest_of(b"app"), digest_of(b"web")
HEADER = '{"format":"lamina-catalog","version":1}'

IMAGES = (
    Image(WEB, (Layer(BASE, 100, APP, 250), Layer(APP, 20)), ("web:1", "mirror.example/web:1")),
    Image(APP, (Layer(BASE, 100, APP, 250), Layer(WEB, 5, None, 12)), (), Platform("linux", "arm", "v7")),
)


def a_line(**fields) -> str:
    """An image of one layer, except for *fields*; None leaves one out."""
    entry = {"digest": WEB, "names": ["web:1"], "layers": [[BASE, 100]], **fields}
    return json.dumps({name: value for name, value in entry.items() if value is not None})


@pytest.fixture
def read(tmp_path):
    """Read a file made of these lines."""

    def read(*lines: str) -> tuple[Image, ...]:
        (tmp_path / "c.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return read_catalog(tmp_path / "c.jsonl")

    return read


@pytest.fixture
def told(read, tmp_path):
    """Read a file that cannot be read; return the message without the folder."""

    def told(*lines: str) -> str:
        with pytest.raises(InputError) as caught:
            read(*lines)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return told


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.jsonl.zst", "c"])
def test_what_is_written_is_read_again(name, tmp_path):
    (tmp_path / name).write_bytes(encode_catalog(IMAGES, name))

    assert IMAGES == read_catalog(tmp_path / name)


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.jsonl.zst"])
def test_the_same_images_give_the_same_bytes(name):
    assert encode_catalog(IMAGES, name) == encode_catalog(iter(IMAGES), name)


def test_the_format_is_one_object_a_line():
    lines = encode_catalog(IMAGES, "c.jsonl").decode().splitlines()

    layers = f'[["{BASE}",100,"{APP}",250],["{APP}",20]]'
    others = f'[["{BASE}",100,"{APP}",250],["{WEB}",5,null,12]]'
    names = '["web:1","mirror.example/web:1"]'
    assert [
        HEADER,
        f'{{"digest":"{WEB}","names":{names},"platform":"linux/amd64","layers":{layers}}}',
        f'{{"digest":"{APP}","names":[],"platform":"linux/arm/v7","layers":{others}}}',
    ] == lines


def test_names_that_end_alike_are_compressed_alike():
    assert encode_catalog(IMAGES, "x") == gzip.decompress(encode_catalog(IMAGES, "images.gz"))


def test_names_and_platform_may_be_left_out(read):
    (image,) = read(HEADER, a_line(names=None))

    assert ((), Platform()) == (image.names, image.platform)


def test_empty_lines_do_not_count(read):
    assert 1 == len(read(HEADER, "", a_line(), "  "))


def test_a_catalog_may_be_empty(read):
    assert () == read(HEADER)


def test_lines_about_the_same_image_are_folded(read):
    (image,) = read(HEADER, a_line(), a_line(names=["web:1", "web:latest"]), a_line(layers=[[BASE, 100, APP]]))

    assert (("web:1", "web:latest"), (Layer(BASE, 100, APP),)) == (image.names, image.layers)


def test_two_sizes_for_one_digest_name_both_lines(told):
    words = told(HEADER, a_line(), a_line(digest=APP, names=["app:1"], layers=[[BASE, 101]]))

    assert f"c.jsonl:3: layer {BASE[:19]} has a size of 101 here and a size of 100 in line 2; keep one of them" == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("{", "is not an image (Input data was truncated)", id="no JSON"),
        pytest.param("[]", "is not an image (Expected `object`, got `array`)", id="a list"),
        pytest.param("[" * 100_000, "is not an image (", id="deep lists"),
        pytest.param(a_line(digest=None), "is not an image (Object missing required field `digest`)", id="no digest"),
        pytest.param(a_line(size=1), "is not an image (Object contains unknown field `size`)", id="an unknown field"),
        pytest.param(a_line(digest="sha256:1"), "is not an image ('sha256:1' is not a digest", id="no digest at all"),
        pytest.param(a_line(layers=[["md5:1", 1]]), "is not an image ('md5:1' is not a digest", id="a layer's digest"),
        pytest.param(a_line(layers=[[BASE, 1, "x"]]), "is not an image ('x' is not a digest", id="a diff id"),
        pytest.param(a_line(layers=[[BASE, -1]]), "is not an image (a layer of -1 bytes", id="negative size"),
        pytest.param(a_line(layers=[[BASE, 1, None, -1]]), "is not an image (a layer of -1", id="negative unpacked"),
        pytest.param(a_line(layers=[[BASE, 2**51]]), "is not an image (a layer of 2251799813685248", id="too large"),
        pytest.param(a_line(layers=[[BASE, 2**64]]), "is not an image (", id="larger than numbers go"),
        pytest.param(a_line(layers=[[BASE, 1.5]]), "is not an image (Expected `int`", id="half a byte"),
        pytest.param(a_line(layers=[[BASE]]), "is not an image (Expected `array` of at least length 2", id="no size"),
        pytest.param(a_line(layers=[[BASE, 1, None, 2, 3]]), "is not an image (", id="too much about a layer"),
        pytest.param(a_line(layers=[]), "has 0 layers; an image has 1 to 1024", id="no layers"),
        pytest.param(a_line(layers=[[BASE, 1]] * 1025), "has 1025 layers; an image has 1 to 1024", id="many layers"),
        pytest.param(a_line(platform="linux"), "is not an image ('linux' is not a platform", id="half a platform"),
        pytest.param(a_line(names=["Web:1"]), "'Web:1' is not an image reference", id="a name that is none"),
        pytest.param(a_line(names="web"), "is not an image (Expected `array`", id="a name that is no list"),
        pytest.param(a_line(digest=BASE), "web:1 is another image in line 2", id="a name that is taken"),
    ],
)
def test_a_line_that_is_no_image_is_told_with_its_number(line, words, told):
    assert told(HEADER, a_line(), line).startswith(f"c.jsonl:3: {words}")


def test_all_mistakes_are_told_at_once(told):
    words = told(HEADER, "{}", a_line(), a_line(layers=[]), a_line(digest=APP, names=[], layers=[[BASE, 7]]))

    assert ["c.jsonl:2", "c.jsonl:4", "c.jsonl:5"] == [line.split(": ")[0] for line in words.splitlines()]


def test_a_file_of_another_kind_is_given_up_after_a_while(told):
    assert MOST_MISTAKES == len(told(HEADER, *["{}"] * (MOST_MISTAKES + 50)).splitlines())


def test_as_many_layers_as_allowed_are_read(read):
    (image,) = read(HEADER, a_line(layers=[[digest_of(b"%d" % number), 1] for number in range(LAYER_LIMIT)]))

    assert LAYER_LIMIT == image.size


def test_more_images_than_allowed_are_not_read(monkeypatch, told):
    monkeypatch.setattr(catalog_file, "IMAGE_LIMIT", 2)
    lines = [a_line(digest=digest_of(b"%d" % number), names=[]) for number in range(3)]

    assert "c.jsonl:4: has more than 2 images; split it" == told(HEADER, *lines)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param([], "c.jsonl: is empty; a catalog begins with", id="nothing"),
        pytest.param([a_line()], f"c.jsonl:1: is not a catalog; the first line must be {HEADER}", id="no header"),
        pytest.param(['{"format":"lamina-trace","version":1}'], "c.jsonl:1: is not a catalog", id="a trace"),
        pytest.param(["name: web"], "c.jsonl:1: is not a catalog", id="YAML"),
        pytest.param(
            ['{"format":"lamina-catalog","version":2}'],
            "c.jsonl:1: has version 2, this Lamina reads 1; use a newer Lamina",
            id="a later version",
        ),
        pytest.param(['{"format":"lamina-catalog"}'], "c.jsonl:1: has version 0", id="no version"),
    ],
)
def test_what_is_no_catalog_is_told_at_once(lines, words, told):
    assert told(*lines).startswith(words)
