"""Images from several places: what is the same is one image, what contradicts names both places."""

import pytest

from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer, Platform
from lamina.wire.image_merge import ImageMerger, read_platform, written

BASE, APP = digest_of(b"base"), digest_of(b"app")
ARM = Platform("linux", "arm64")


def an_image(*layers: Layer, key: bytes = b"image", names: tuple[str, ...] = ("app:1",), **more) -> Image:
    return Image(digest_of(key), layers or (Layer(BASE, 100), Layer(APP, 20)), names, **more)


def gathered(*images: Image, names_move: bool = False) -> tuple[ImageMerger, list[str]]:
    gathering = ImageMerger(names_move=names_move)
    problems = [problem for number, image in enumerate(images, 1) for problem in gathering.add(image, f"line {number}")]
    return gathering, problems


def test_the_same_manifest_is_one_image_with_all_names_each_once():
    first = an_image(names=("app:1", "docker.io/library/app:1"))
    second = an_image(names=("other/app:2",))
    gathering, problems = gathered(first, second)

    assert [] == problems
    assert (an_image(names=("app:1", "other/app:2")),) == gathering.images()


def test_images_keep_the_order_they_came_in():
    images = [an_image(key=key, names=(f"app:{key.decode()}",)) for key in (b"z", b"a", b"m")]
    gathering, _ = gathered(*images, images[0])

    assert tuple(images) == gathering.images()
    assert 3 == len(gathering)


def test_what_one_place_knows_about_a_layer_holds_for_all():
    known = Layer(BASE, 100, digest_of(b"diff"), 250)
    gathering, problems = gathered(
        an_image(Layer(BASE, 100), key=b"1", names=("a:1",)), an_image(known, key=b"2", names=("a:2",))
    )

    assert [] == problems
    assert [(known,), (known,)] == [image.layers for image in gathering.images()]


def test_two_platforms_may_share_a_name():
    gathering, problems = gathered(an_image(key=b"1"), an_image(key=b"2", platform=ARM))

    assert [] == problems
    assert [("app:1",), ("app:1",)] == [image.names for image in gathering.images()]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        pytest.param(
            an_image(Layer(BASE, 101), key=b"2", names=("b:1",)),
            f"layer {BASE[:19]} has a size of 101 here and a size of 100 in line 1; keep one of them",
            id="two sizes",
        ),
        pytest.param(
            an_image(Layer(APP, 20, None, 41), key=b"2", names=("b:1",)),
            f"layer {APP[:19]} has an unpacked size of 41 here and an unpacked size of 40 in line 1; keep one of them",
            id="two unpacked sizes",
        ),
        pytest.param(
            an_image(Layer(APP, 20, BASE), key=b"2", names=("b:1",)),
            f"layer {APP[:19]} has the diff id {BASE} here and the diff id {APP} in line 1; keep one of them",
            id="two diff ids",
        ),
        pytest.param(
            an_image(Layer(BASE, 100), names=("b:1",)),
            f"image {digest_of(b'image')[:19]} has other layers in line 1; keep one of them",
            id="other layers",
        ),
        pytest.param(
            an_image(Layer(BASE, 100), Layer(APP, 20), names=("b:1",), platform=ARM),
            f"image {digest_of(b'image')[:19]} is for linux/arm64 here and for linux/amd64 in line 1; keep one of them",
            id="another platform",
        ),
        pytest.param(
            an_image(Layer(BASE, 100), key=b"2", names=("docker.io/library/app:1",)),
            "docker.io/library/app:1 is another image in line 1; write one of them with its digest",
            id="a name that is taken",
        ),
        pytest.param(
            an_image(Layer(BASE, 100), key=b"2", names=("App:1",)),
            "'App:1' is not an image reference: repository names are lower case; did you mean 'app:1'?",
            id="a name that is none",
        ),
    ],
)
def test_a_contradiction_names_both_places_and_nothing_is_taken(second, words):
    first = an_image(Layer(BASE, 100), Layer(APP, 20, APP, 40))
    gathering, problems = gathered(first, second)

    assert [words] == problems
    assert (first,) == gathering.images()


def test_a_layer_listed_twice_with_two_sizes_is_a_contradiction_in_itself():
    _, problems = gathered(an_image(Layer(BASE, 1), Layer(BASE, 2)))

    assert [f"layer {BASE[:19]} has a size of 2 here and a size of 1 in line 1; keep one of them"] == problems


def test_where_names_move_the_later_image_has_the_name_and_the_earlier_its_digest():
    old, new = an_image(key=b"old", names=("app:1", "app:old")), an_image(key=b"new")
    gathering, problems = gathered(old, new, names_move=True)

    assert ([], 1) == (problems, gathering.moved)
    assert [("app:old", f"docker.io/library/app@{old.digest}"), ("app:1",)] == [
        image.names for image in gathering.images()
    ]


def test_a_name_may_move_back():
    old, new = an_image(key=b"old"), an_image(key=b"new")
    gathering, _ = gathered(old, new, old, names_move=True)

    assert [(f"docker.io/library/app@{old.digest}", "app:1"), (f"docker.io/library/app@{new.digest}",)] == [
        image.names for image in gathering.images()
    ]


@pytest.mark.parametrize("text", ["linux/amd64", "linux/arm/v7", "windows/amd64"])
def test_a_platform_is_written_as_it_is_read(text):
    assert text == written(read_platform(text))


@pytest.mark.parametrize("text", ["", "linux", "linux/", "/amd64", "a/b/c/d", "linux/a\nb", "linux/" + "a" * 65])
def test_what_is_no_platform_is_told(text):
    with pytest.raises(ValueError, match="is not a platform; write for example linux/amd64"):
        read_platform(text)
