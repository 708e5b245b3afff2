"""The figures of a catalog, worked out by hand."""

import pytest

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.simulator.workloads.catalog_statistics import describe_catalog, repository_of

MB = 1_000_000
BASE, RUN = Layer(digest_of(b"base"), 50 * MB), Layer(digest_of(b"run"), 200 * MB)


def own(name: str, size: int) -> Layer:
    return Layer(digest_of(name.encode()), size)


IMAGES = (
    Image(digest_of(b"1"), (BASE, RUN, own("a1", 10 * MB)), ("a:1",)),
    Image(digest_of(b"2"), (BASE, RUN, own("a2", 10 * MB)), ("docker.io/library/a:2", "a:latest")),
    Image(digest_of(b"3"), (BASE, own("b1", 100)), ("b:1",)),
    Image(digest_of(b"4"), (own("b2", 100), own("b2", 100)), ("b:2",)),
)
TOTAL = 260 * MB + 260 * MB + 50 * MB + 100 + 100
UNIQUE = 50 * MB + 200 * MB + 20 * MB + 200


def test_all_figures_of_a_small_catalog():
    told = describe_catalog(IMAGES)

    assert (4, 2, 6) == (told["images"], told["repositories"], told["layers"])
    assert (TOTAL, UNIQUE, TOTAL / UNIQUE) == (told["bytes_total"], told["bytes_unique"], told["deduplication"])
    # The base is used three times, the runtime twice; only the base by both repositories.
    assert (3 * 50 * MB + 2 * 200 * MB) / TOTAL == told["bytes_shared_by_images"]
    assert (3 * 50 * MB) / TOTAL == told["bytes_shared_by_repositories"]
    assert 4 / 6 == told["layers_of_one_image"]
    assert 2 / 6 == told["layers_below_1_mb"]
    assert 200 * MB / UNIQUE == told["unique_bytes_in_layers_above_100_mb"]
    # A layer that an image lists twice is pulled once, and is two of its layers all the same.
    assert {"p5": 2, "p25": 2, "p50": 2, "p75": 3, "p95": 3, "p99": 3, "max": 3} == told["layers_per_image"]
    assert (100, 50 * MB + 100, 260 * MB) == tuple(told["image_bytes"][key] for key in ("p5", "p50", "max"))
    # a:2 keeps 250 of 260 MB, b:2 keeps nothing.
    assert {"count": 2, "bytes_kept_mean": (250 / 260) / 2, "keep_nothing": 0.5} == told["updates"]
    assert ["a:1", "docker.io/library/a:2", "b:1", "b:2"] == [one["image"] for one in told["largest"]]


def test_an_empty_catalog_has_the_same_keys():
    told = describe_catalog(())

    assert set(describe_catalog(IMAGES)) == set(told)
    assert (0, None, {"count": 0, "bytes_kept_mean": None, "keep_nothing": None}) == (
        told["images"],
        told["deduplication"],
        told["updates"],
    )
    assert {None} == set(told["image_bytes"].values())


def test_an_image_of_another_platform_is_no_update():
    images = (IMAGES[0], Image(digest_of(b"5"), (BASE,), ("a:1",), Platform("linux", "arm64")))

    assert 0 == describe_catalog(images)["updates"]["count"]


@pytest.mark.parametrize(
    ("names", "home"),
    [
        pytest.param(("nginx",), "docker.io/library/nginx", id="spelled out"),
        pytest.param((f"registry.example/a/b@{digest_of(b'x')}",), "registry.example/a/b", id="by digest"),
        pytest.param(("b:1", "a:1"), "docker.io/library/b", id="the first name counts"),
        pytest.param((), "", id="no name"),
        pytest.param(("Not A Name",), "Not A Name", id="a name that is none"),
    ],
)
def test_the_repository_of_an_image(names, home):
    assert home == repository_of(Image(digest_of(b"x"), (), names))
