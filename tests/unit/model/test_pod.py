"""Pods: how they are called, which images they need, and what they count for when filtered and when ranked."""

import pytest

from lamina.model.pod import Container, Pod, PodUid, total_requests

MEGABYTE = 2**20


def test_a_pod_is_called_by_namespace_and_name():
    """As in events and on the command line."""
    assert "shop/cart-0" == Pod(uid=PodUid("u"), name="cart-0", namespace="shop").key


def test_a_pod_needs_the_images_of_all_its_parts_in_the_order_a_kubelet_meets_them():
    """Init containers, containers, image volumes; an image used twice is listed twice."""
    pod = Pod(
        uid=PodUid("u"),
        name="p",
        init_containers=(Container("setup"), Container("proxy", sidecar=True)),
        containers=(Container("app"), Container("app")),
        image_volumes=("models",),
    )

    assert ("setup", "proxy", "app", "app", "models") == pod.images


def test_pods_with_equal_fields_are_equal_and_cannot_be_changed():
    """A pod is a value: any holder may keep it."""
    first, second = Pod(uid=PodUid("u"), name="p"), Pod(uid=PodUid("u"), name="p")

    assert first == second
    with pytest.raises(AttributeError):
        first.name = "q"  # type: ignore[misc]


BARE = Container("app")
SMALL = Container("app", (("cpu", 50), ("memory", 100 * MEGABYTE)))
CPU_ONLY = Container("app", (("cpu", 500),))
ZERO = Container("app", (("cpu", 0), ("memory", 0)))
GPU = Container("app", (("cpu", 50), ("example.com/gpu", 1), ("memory", 100 * MEGABYTE)))
BARE_SIDECAR = Container("proxy", sidecar=True)
BIG_INIT = Container("setup", (("cpu", 1000), ("memory", 100 * MEGABYTE)))


@pytest.mark.parametrize(
    ("containers", "init", "asked", "ranked"),
    [
        pytest.param(
            [BARE],
            [],
            {},
            {"cpu": 100, "memory": 200 * MEGABYTE},
            id="asks nothing: ranked as 100m and 200Mi",
        ),
        pytest.param(
            [SMALL],
            [],
            {"cpu": 50, "memory": 100 * MEGABYTE},
            {"cpu": 50, "memory": 100 * MEGABYTE},
            id="asks less than is assumed: ranked as asked",
        ),
        pytest.param(
            [CPU_ONLY],
            [],
            {"cpu": 500},
            {"cpu": 500, "memory": 200 * MEGABYTE},
            id="asks cpu only: memory is assumed",
        ),
        pytest.param(
            [ZERO],
            [],
            {"cpu": 0, "memory": 0},
            {"cpu": 0, "memory": 0},
            id="asks zero: zero it is",
        ),
        pytest.param(
            [BARE, SMALL, BARE],
            [],
            {"cpu": 50, "memory": 100 * MEGABYTE},
            {"cpu": 250, "memory": 500 * MEGABYTE},
            id="assumed for each container: 100+50+100 and 200+100+200",
        ),
        pytest.param(
            [GPU],
            [],
            {"cpu": 50, "example.com/gpu": 1, "memory": 100 * MEGABYTE},
            {"cpu": 50, "example.com/gpu": 1, "memory": 100 * MEGABYTE},
            id="nothing is assumed about other resources",
        ),
        pytest.param(
            [SMALL],
            [BARE_SIDECAR],
            {"cpu": 50, "memory": 100 * MEGABYTE},
            {"cpu": 150, "memory": 300 * MEGABYTE},
            id="assumed for a sidecar: 50+100 and 100+200",
        ),
        pytest.param(
            [SMALL],
            [BARE_SIDECAR, BIG_INIT],
            {"cpu": 1000, "memory": 100 * MEGABYTE},
            {"cpu": 1100, "memory": 300 * MEGABYTE},
            id="assumed for a sidecar beside an init container: 1000+100 and max(100+200, 100+200)",
        ),
    ],
)
def test_a_pod_is_ranked_by_more_than_it_asks_for(containers, init, asked, ranked):
    """Containers that ask nothing use something; filters go by what was asked, rankings by what is likely."""
    got_asked, got_ranked = total_requests(tuple(containers), tuple(init))

    assert asked == dict(got_asked)
    assert ranked == dict(got_ranked)


def test_amounts_for_the_whole_pod_and_overhead_count_in_both():
    """The pod's own cpu replaces the containers'; its overhead is added to either total."""
    asked, ranked = total_requests((BARE, SMALL), (), (("cpu", 700),), (("cpu", 5), ("memory", MEGABYTE)))

    assert {"cpu": 705, "memory": 101 * MEGABYTE} == dict(asked)
    assert {"cpu": 705, "memory": 301 * MEGABYTE} == dict(ranked)
