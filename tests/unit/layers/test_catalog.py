"""Catalog: what images consist of, by digest and by any of their names; and images that make no sense."""

import msgspec
import pytest

from lamina.layers.catalog import (
    FOR_EVER,
    IMPLAUSIBLE_SIZE,
    LARGEST_LAYER,
    MOST_LAYERS,
    TOO_MANY_LAYERS,
    TWO_SIZES,
    Catalog,
    folded,
    pinned,
    usual,
)
from lamina.model.image import Image, Layer, Platform
from lamina.model.layer_report import HeldImage
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


def test_a_name_with_the_digest_of_an_index_means_what_it_was_learned_to_mean():
    """The digest is of no manifest; it stands for one on each platform."""
    name = f"app@{a_digest('the index')}"
    arm = msgspec.structs.replace(renamed(NGINX, name), digest=a_digest("arm"), platform=ARM)
    made = catalog(renamed(NGINX, name), arm)

    assert (renamed(NGINX, name), arm) == (made.find(name), made.find(f"docker.io/library/{name}", ARM))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param(f"app:1@{a_digest('x')}", a_digest("x"), id="with a digest"),
        pytest.param("app:1", None, id="without"),
        pytest.param("NOT A REFERENCE", None, id="no reference"),
    ],
)
def test_a_reference_may_carry_a_digest(name, want):
    assert want == pinned(name)


# ------------------------------------------------------------------------------------------------------------- platforms


@pytest.mark.parametrize(
    ("image", "node", "found"),
    [
        pytest.param(Platform(), Platform(), True, id="the usual one"),
        pytest.param(Platform("linux", "arm64", "v8"), ARM, True, id="arm64 is v8, and kubelets do not say so"),
        pytest.param(ARM, Platform("linux", "arm64", "v8"), True, id="the other way round"),
        pytest.param(Platform("linux", "amd64", "v1"), Platform(), True, id="amd64 is v1"),
        pytest.param(Platform("linux", "arm", "v7"), Platform("linux", "arm"), True, id="32-bit arm is v7"),
        pytest.param(Platform("linux", "arm", "v6"), Platform("linux", "arm"), False, id="an older one is another"),
        pytest.param(Platform("linux", "amd64", "v3"), Platform(), False, id="a newer one is another"),
        pytest.param(Platform("windows"), Platform(), False, id="another system"),
        pytest.param(ARM, Platform(), False, id="another processor"),
    ],
)
def test_variants_that_runtimes_take_for_the_usual_one_are_the_usual_one(image, node, found):
    """Or no image for 64-bit Arm would ever be found: most say v8."""
    made = catalog(msgspec.structs.replace(NGINX, platform=image))

    assert found == (made.find("nginx:1.27", node) is not None)
    assert found == (usual(image) == usual(node))


# ------------------------------------------------------------------------------------------------------------------ time


def test_a_name_means_an_image_until_it_expires():
    """The image stays known by its digest, and the expiry is reported once."""
    made = Catalog()
    made.learn(NGINX, until=10.0)

    assert not made.expire(9.9)
    assert NGINX == made.find("nginx:1.27")
    assert made.expire(10.0)
    assert (None, NGINX) == (made.find("nginx:1.27"), made.by_digest(NGINX.digest))
    assert not made.expire(11.0)


@pytest.mark.parametrize(
    ("first", "second", "known_at"),
    [
        pytest.param(10.0, 20.0, [9.0, 10.0], id="longer"),
        pytest.param(20.0, 10.0, [9.0], id="shorter"),
        pytest.param(10.0, FOR_EVER, [9.0, 10.0, 20.0], id="for ever"),
        pytest.param(FOR_EVER, 10.0, [9.0], id="no longer for ever"),
        pytest.param(10.0, 10.0, [9.0], id="the same"),
    ],
)
def test_the_last_source_of_a_name_sets_its_lifetime(first, second, known_at):
    """The last word counts; that it was confirmed is no news."""
    made = Catalog()
    made.learn(NGINX, first)
    assert not made.learn(NGINX, second)

    found = []
    for now in (9.0, 10.0, 20.0):
        made.expire(now)
        found += [now] if made.find("nginx:1.27") else []
    assert known_at == found


def test_a_name_that_expired_is_news_when_it_is_learned_again():
    made = Catalog()
    made.learn(NGINX, until=10.0)
    made.expire(10.0)

    assert made.learn(NGINX, until=30.0)
    assert NGINX == made.find("nginx:1.27")


def test_names_of_all_platforms_may_expire_at_once():
    """A registry tells of a tag's platforms together, and for how long."""
    platforms = [Platform(), ARM, Platform("linux", "s390x"), Platform("windows", "amd64", "")]
    images = [msgspec.structs.replace(NGINX, digest=a_digest(str(one)), platform=one) for one in platforms]
    made = Catalog()
    for image in images:
        made.learn(image, until=10.0)

    assert images == [made.find("nginx:1.27", one) for one in platforms]
    assert made.expire(10.0)
    assert [None] * 4 == [made.find("nginx:1.27", one) for one in platforms]


def test_a_name_that_moved_does_not_expire_with_the_image_it_left():
    newer = msgspec.structs.replace(NGINX, digest=a_digest("newer"))
    made = Catalog()
    made.learn(NGINX, until=10.0)
    made.learn(newer, until=20.0)

    assert not made.expire(15.0)
    assert newer == made.find("nginx:1.27")


# ---------------------------------------------------------------------------------------------------- what makes no sense


def with_layers(*layers: Layer) -> Image:
    return msgspec.structs.replace(NGINX, layers=layers)


@pytest.mark.parametrize(
    ("image", "complaint"),
    [
        pytest.param(
            with_layers(*(Layer(a_digest(str(number)), 1) for number in range(MOST_LAYERS + 1))),
            TOO_MANY_LAYERS,
            id="a layer too many",
        ),
        pytest.param(with_layers(*[Layer(a_digest("x"), 1)] * 100_000), TOO_MANY_LAYERS, id="100,000 layers"),
        pytest.param(with_layers(Layer(a_digest("x"), -1)), IMPLAUSIBLE_SIZE, id="a negative size"),
        pytest.param(with_layers(Layer(a_digest("x"), LARGEST_LAYER + 1)), IMPLAUSIBLE_SIZE, id="a huge size"),
        pytest.param(with_layers(Layer(a_digest("x"), 10**400)), IMPLAUSIBLE_SIZE, id="a size no float can hold"),
        pytest.param(with_layers(Layer(a_digest("x"), 1, None, -1)), IMPLAUSIBLE_SIZE, id="a negative unpacked size"),
        pytest.param(with_layers(Layer(a_digest("x"), 1, None, 2**60)), IMPLAUSIBLE_SIZE, id="a huge unpacked size"),
    ],
)
def test_an_image_that_makes_no_sense_is_not_known(image, complaint):
    """And is complained of once."""
    made = Catalog()

    assert not made.learn(image)
    assert {complaint: 1} == made.complaints
    assert (0, None, None) == (len(made), made.find("nginx:1.27"), made.by_digest(image.digest))


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(
            with_layers(*(Layer(a_digest(str(number)), 1) for number in range(MOST_LAYERS))), id="many layers"
        ),
        pytest.param(with_layers(Layer(a_digest("x"), LARGEST_LAYER, None, LARGEST_LAYER)), id="a large layer"),
        pytest.param(with_layers(Layer(a_digest("x"), 0)), id="an empty layer"),
        pytest.param(with_layers(), id="no layers"),
    ],
)
def test_an_image_that_is_merely_unusual_is_known(image):
    made = catalog(image)

    assert (1, {}) == (len(made), made.complaints)


def test_a_layer_of_two_sizes_is_complained_of_and_both_images_are_known():
    """One of the two manifests lies, and it is not known which; each image keeps its own."""
    liar = an_image("liar:1", {"os": 7, "nginx": 2, "more": 3})
    made = catalog(NGINX, liar)

    assert {TWO_SIZES: 1} == made.complaints
    assert (1, 7) == (made.find("nginx:1.27").layers[0].size, made.find("liar:1").layers[0].size)


def test_a_lie_does_not_hide_the_next_one():
    """What an image says of its other layers is remembered all the same."""
    made = catalog(NGINX, an_image("liar:1", {"os": 7, "more": 3}), an_image("other:1", {"more": 4}))

    assert {TWO_SIZES: 2} == made.complaints


def test_an_image_may_contradict_itself():
    """Once more it is one complaint."""
    made = catalog(with_layers(Layer(a_digest("x"), 1), Layer(a_digest("x"), 2), Layer(a_digest("x"), 3)))

    assert {TWO_SIZES: 1} == made.complaints


def test_the_image_learned_first_is_let_go_when_there_are_too_many():
    """With its names; what is known of the others stays."""
    catalog = Catalog(most=2)
    images = [an_image(f"app:{number}", {f"layer {number}": 1, "base": 2}) for number in range(3)]
    for image in images:
        catalog.learn(image)

    assert (2, None, images[1], images[2]) == (len(catalog), *(catalog.find(f"app:{number}") for number in range(3)))
    assert catalog.by_digest(images[0].digest) is None


def test_a_name_that_moved_outlives_the_image_it_meant_before():
    """It means another by then."""
    catalog = Catalog(most=2)
    old = an_image("app:1", {"old": 1})
    new = msgspec.structs.replace(an_image("new", {"new": 1}), names=("app:1",))
    for image in (old, new, an_image("other:1", {"other": 1})):
        catalog.learn(image)

    assert new == catalog.find("app:1")


# ---------------------------------------------------------------------------------------------------- what nodes call images


def claimed(known: Catalog, image: Image, *names: str, platform: Platform | None = None) -> set[str]:
    return known.replace_votes(platform or Platform(), (), [HeldImage(image.digest, 1, names)])


def test_an_image_is_found_by_what_nodes_call_it():
    known = catalog(renamed(NGINX))

    assert {"docker.io/library/web:1"} == claimed(known, NGINX, "web:1")
    assert renamed(NGINX) == known.find("docker.io/library/web:1")


def test_nodes_may_vote_before_the_image_is_known():
    known = catalog()
    claimed(known, NGINX, "web:1")
    assert known.find("web:1") is None

    known.learn(renamed(NGINX))
    assert renamed(NGINX) == known.find("web:1")


def test_what_was_learned_counts_for_more_than_what_nodes_claim():
    """A registry has said what the tag means; a node cannot change that."""
    other = an_image("other:1", {"other": 1})
    known = catalog(NGINX, other)

    assert set() == claimed(known, other, "nginx:1.27")
    assert NGINX == known.find("nginx:1.27")


def test_votes_count_again_once_the_learned_name_expires():
    other = an_image("other:1", {"other": 1})
    known = catalog(other)
    known.learn(NGINX, until=10.0)
    claimed(known, other, "nginx:1.27")
    known.expire(10.0)

    assert other == known.find("nginx:1.27")


def test_nodes_speak_for_their_own_platform():
    """In any spelling of it."""
    known = catalog(renamed(NGINX))
    claimed(known, NGINX, "web:1", platform=Platform(architecture="arm64", variant="v8"))

    assert (None, renamed(NGINX)) == (known.find("web:1"), known.find("web:1", ARM))


def test_nodes_of_another_platform_do_not_change_for_which_one_an_image_was_described():
    """
    Nodes may hold it under its name, but pods there cannot use it.

    Under any other name, its platform is not known.
    """
    known = catalog(NGINX)

    assert {"docker.io/library/web:1"} == claimed(known, NGINX, "nginx:1.27", "web:1", platform=ARM)
    assert (None, NGINX) == (known.find("nginx:1.27", ARM), known.find("web:1", ARM))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param("web@{}", id="without a tag"),
        pytest.param("web:1.27@{}", id="with a tag, which says nothing then"),
        pytest.param("docker.io/library/web:other@{}", id="with any tag"),
    ],
)
def test_the_digest_of_an_index_leads_to_the_image_that_nodes_hold_under_it(asked):
    """Pods are pinned to indexes; runtimes remember under which index they pulled an image, without a tag."""
    index = a_digest("index")
    known = catalog(renamed(NGINX))
    claimed(known, NGINX, f"docker.io/library/web@{index}")

    assert renamed(NGINX) == known.find(asked.format(index))
