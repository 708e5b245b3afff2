"""What a node's runtime holds."""

import pytest

from lamina.simulator.pulls import Store
from lamina.testing import a_digest, an_image

APP = an_image("app:1", {"base": 60, "runtime": 30, "app": 10})
OTHER = an_image("other:1", {"base": 60, "other": 5})


@pytest.mark.parametrize(
    ("held", "missing"),
    [
        pytest.param([], ["base", "runtime", "app"], id="a cold node misses all layers, bottom first"),
        pytest.param([OTHER], ["runtime", "app"], id="a layer of another image counts"),
        pytest.param([APP], [], id="the image itself"),
    ],
)
def test_missing_is_what_no_image_brought(held, missing):
    assert [a_digest(name) for name in missing] == [layer.digest for layer in Store(held).missing(APP)]


def test_a_layer_that_an_image_repeats_is_missed_once():
    """Manifests do list the same empty layer several times."""
    image = an_image("app:1", {"empty": 1, "app": 10})
    twice = type(image)(image.digest, (*image.layers, image.layers[0]), image.names)

    assert [a_digest("empty"), a_digest("app")] == [layer.digest for layer in Store().missing(twice)]


def test_shared_layers_take_room_once():
    store = Store([APP, OTHER])

    assert 105 == store.size
    assert [APP.digest, OTHER.digest] == list(store.images)


def test_an_image_is_not_there_before_its_layers_are():
    store = Store()
    store.put_layer(APP.layers[0])

    with pytest.raises(AssertionError, match="all its layers"):
        store.put_image(APP)
