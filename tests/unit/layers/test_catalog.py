"""Catalog: what images consist of, by digest and by any of their names."""

import msgspec
import pytest

from lamina.layers.catalog import Catalog, folded
from lamina.model.image import Image, Platform
from lamina.testing import a_digest, an_image

ARM = Platform(architecture="arm64")
NGINX = an_image("nginx:1.27", {"os": 1, "nginx": 2})


def renamed(image: Image, *names: str) -> Image:
    return msgspec.structs.replace(image, names=names)


def catalog(*images: Image) -> Catalog:
    made = Catalog()
    for image in images:
        made.learn(image)
    return made


@pytest.mark.parametrize(
    ("learned", "asked", "found"),
    [
        pytest.param("nginx:1.27", "nginx:1.27", True, id="as it was learned"),
        pytest.param("nginx:1.27", "docker.io/library/nginx:1.27", True, id="spelled out"),
        pytest.param("docker.io/library/nginx:1.27", "nginx:1.27", True, id="in short"),
        pytest.param("index.docker.io/library/nginx:1.27", "library/nginx:1.27", True, id="by an old registry name"),
        pytest.param("nginx", "nginx:latest", True, id="without a tag"),
        pytest.param("nginx:1.27", "nginx:1.28", False, id="another tag"),
        pytest.param("nginx:1.27", "quay.io/library/nginx:1.27", False, id="another registry"),
        pytest.param(f"nginx@{a_digest('x')}", f"docker.io/library/nginx@{a_digest('x')}", True, id="by digest"),
        pytest.param("NOT A REFERENCE", "NOT A REFERENCE", True, id="text that is no reference stands for itself"),
        pytest.param("NOT A REFERENCE", "not a reference", False, id="and only for itself"),
    ],
)
def test_an_image_is_found_by_every_spelling_of_its_names(learned, asked, found):
    """Spellings are folded into one."""
    image = renamed(NGINX, learned)

    assert (image if found else None) == catalog(image).find(asked)


def test_an_image_is_found_by_its_manifests_digest():
    """However it is called."""
    assert NGINX == catalog(NGINX).by_digest(NGINX.digest)
    assert catalog(NGINX).by_digest(a_digest("other")) is None


def test_a_name_means_one_image_per_platform():
    """A multi-platform tag is several images."""
    arm = msgspec.structs.replace(NGINX, digest=a_digest("arm"), platform=ARM)
    known = catalog(NGINX, arm)

    assert (NGINX, arm, None) == (
        known.find("nginx:1.27"),
        known.find("nginx:1.27", ARM),
        known.find("nginx:1.27", Platform(os="windows")),
    )


def test_linux_on_amd64_is_meant_unless_said_otherwise():
    """An image for another platform alone is not found without naming the platform."""
    arm = msgspec.structs.replace(NGINX, platform=ARM)

    assert catalog(arm).find("nginx:1.27") is None


def test_a_name_moves_to_the_image_it_was_last_seen_with():
    """Tags are pushed again; the image it was before keeps its digest."""
    newer = msgspec.structs.replace(NGINX, digest=a_digest("newer"))
    known = catalog(NGINX, newer)

    assert (newer, NGINX, 2) == (known.find("nginx:1.27"), known.by_digest(NGINX.digest), len(known))


@pytest.mark.parametrize(
    ("image", "news"),
    [
        pytest.param(NGINX, False, id="the same again"),
        pytest.param(renamed(NGINX), False, id="the same without names"),
        pytest.param(renamed(NGINX, "docker.io/library/nginx:1.27"), False, id="the same, spelled differently"),
        pytest.param(renamed(NGINX, "nginx:1.27", "nginx:stable"), True, id="another name for it"),
        pytest.param(an_image("redis:7", {"os": 1}), True, id="another image"),
        pytest.param(msgspec.structs.replace(NGINX, digest=a_digest("newer")), True, id="another image of that name"),
    ],
)
def test_it_says_whether_there_was_anything_new(image, news):
    """What was kept about pods need not be judged anew otherwise."""
    assert news == catalog(NGINX).learn(image)


def test_another_name_leads_to_the_same_image():
    """The same content under several names is one image."""
    known = catalog(NGINX, renamed(NGINX, "nginx:stable"))

    assert 1 == len(known)
    assert known.find("nginx:1.27") is known.find("nginx:stable")


def test_images_are_listed_in_the_order_they_were_learned():
    """Each once."""
    images = [an_image(f"image:{number}", {}) for number in (3, 1, 2)]

    assert images == list(catalog(*images, *images))


def test_nothing_is_known_in_the_beginning():
    """Not even nothing."""
    assert (0, None, []) == (len(Catalog()), Catalog().find("nginx"), list(Catalog()))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("nginx", "docker.io/library/nginx:latest", id="short"),
        pytest.param("ghcr.io/team/app:1", "ghcr.io/team/app:1", id="full"),
        pytest.param("", "", id="no reference"),
    ],
)
def test_folding_spells_out(name, want):
    """What is no reference stays as it is."""
    assert want == folded(name)


@pytest.mark.parametrize("name", ["app@{}", "app:1@{}", "mirror.example/else@{}"])
def test_a_name_with_a_digest_means_that_manifest(name):
    """Whatever the name before it says, and also when the tag has moved on."""
    old, new = an_image("app:1", {"a": 1}), an_image("app:1", {"b": 2})
    old = msgspec.structs.replace(old, digest=a_digest("old"))
    made = catalog(old, new)

    assert old == made.find(name.format(old.digest))
    assert made.find(name.format(a_digest("never seen"))) is None
