"""Amounts: how resource lists are read and added up, and what a pod with sidecars needs at its worst moment."""

import pytest

from lamina.model import resources
from lamina.model.quantity import QuantityError


def cpu(thousandths):
    return (("cpu", thousandths),)


def test_cpu_is_counted_in_thousandths_and_everything_else_in_units():
    """The result is sorted, so that equal lists are equal."""
    listed: dict[str, str | float] = {"memory": "1Gi", "cpu": "1.5", "example.com/gpu": 2, "ephemeral-storage": "1M"}

    want = (("cpu", 1500), ("ephemeral-storage", 1_000_000), ("example.com/gpu", 2), ("memory", 2**30))
    assert want == resources.amounts(listed)


def test_a_bad_amount_is_told_by_its_own_error():
    """The reader of the list does not hide what the reader of quantities found."""
    with pytest.raises(QuantityError, match="'GB' is not a suffix"):
        resources.amounts({"memory": "1GB"})


@pytest.mark.parametrize(
    ("sets", "want"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param([cpu(1), cpu(2)], cpu(3), id="the same resource"),
        pytest.param([cpu(1), (("memory", 5),)], (("cpu", 1), ("memory", 5)), id="different resources"),
        pytest.param([cpu(0)], cpu(0), id="zero is kept, because it was asked for"),
    ],
)
def test_amounts_add_up_resource_by_resource(sets, want):
    """A resource that one of them lacks counts as zero."""
    assert want == resources.add(*sets)


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param(cpu(1), cpu(2), cpu(2), id="the second is larger"),
        pytest.param(cpu(2), cpu(1), cpu(2), id="the first is larger"),
        pytest.param(
            (("cpu", 1), ("memory", 9)), (("cpu", 3), ("memory", 2)), (("cpu", 3), ("memory", 9)), id="one each"
        ),
        pytest.param((), cpu(1), cpu(1), id="only in the second"),
        pytest.param(cpu(1), (), cpu(1), id="only in the first"),
    ],
)
def test_the_larger_amount_wins_resource_by_resource(first, second, want):
    """A maximum of two lists is not one of the two."""
    assert want == resources.at_least(first, second)


def test_only_what_was_not_asked_for_is_filled_in():
    """An explicit zero is an answer."""
    assert (("cpu", 0), ("memory", 200 * 2**20)) == resources.filled(cpu(0), resources.DEFAULT_REQUESTS)


SIDECAR, ORDINARY = True, False


# Each case is worked by hand by asking what runs at each moment: an init container beside the sidecars before it, and in
# the end all sidecars beside all containers.
@pytest.mark.parametrize(
    ("containers", "init", "want"),
    [
        pytest.param([], [], None, id="an empty pod asks nothing"),
        pytest.param([100, 200], [], 300, id="containers run together: 100+200"),
        pytest.param([100, 200], [(250, ORDINARY)], 300, id="a small init container: max(250, 300)"),
        pytest.param([100, 200], [(500, ORDINARY)], 500, id="a large init container: max(500, 300)"),
        pytest.param(
            [300], [(400, ORDINARY), (500, ORDINARY)], 500, id="init containers run in turn: max(400, 500, 300)"
        ),
        pytest.param([300], [(50, SIDECAR)], 350, id="a sidecar stays: 300+50"),
        pytest.param([300], [(50, SIDECAR), (60, SIDECAR)], 410, id="two sidecars stay: 300+50+60"),
        pytest.param([300], [(400, ORDINARY), (50, SIDECAR)], 400, id="before the sidecar: max(400, 50, 350)"),
        pytest.param([300], [(50, SIDECAR), (400, ORDINARY)], 450, id="beside the sidecar: max(50, 450, 350)"),
        pytest.param(
            [300], [(50, SIDECAR), (250, ORDINARY), (100, SIDECAR)], 450, id="between sidecars: max(50, 300, 150, 450)"
        ),
        pytest.param(
            [100],
            [(50, SIDECAR), (400, ORDINARY), (100, SIDECAR), (350, ORDINARY)],
            500,
            id="two peaks: max(50, 450, 150, 500, 250)",
        ),
        pytest.param([], [(70, SIDECAR), (10, ORDINARY)], 80, id="no containers: max(70, 80, 70)"),
    ],
)
def test_a_pod_needs_what_its_worst_moment_needs(containers, init, want):
    """The rule of the Kubernetes API for sidecars."""
    got = resources.pod_total([cpu(one) for one in containers], [(cpu(one), stays) for one, stays in init])

    assert (() if want is None else cpu(want)) == got


def test_the_worst_moment_is_found_for_each_resource_alone():
    """Init wins memory (max(900, 300)), the containers win cpu (max(100, 700))."""
    containers = [(("cpu", 300), ("memory", 100)), (("cpu", 400), ("memory", 200))]
    init = [((("cpu", 100), ("memory", 900)), ORDINARY)]

    assert (("cpu", 700), ("memory", 900)) == resources.pod_total(containers, init)


def test_a_resource_only_an_init_container_asks_for_counts():
    """A device needed for a moment is needed."""
    assert (("cpu", 100), ("example.com/gpu", 1)) == resources.pod_total(
        [cpu(100)], [((("example.com/gpu", 1),), ORDINARY)]
    )


@pytest.mark.parametrize(
    ("pod_level", "overhead", "want"),
    [
        pytest.param(cpu(1000), (), (("cpu", 1000), ("memory", 64)), id="replaces what containers add up to"),
        pytest.param(cpu(100), (), (("cpu", 100), ("memory", 64)), id="replaces even what is larger"),
        pytest.param((), cpu(10), (("cpu", 310), ("memory", 64)), id="overhead on top: 300+10"),
        pytest.param(
            cpu(1000), cpu(10), (("cpu", 1010), ("memory", 64)), id="overhead on top of the replaced: 1000+10"
        ),
        pytest.param((), (("disk", 5),), (("cpu", 300), ("disk", 5), ("memory", 64)), id="overhead of something else"),
    ],
)
def test_amounts_for_the_whole_pod_replace_and_overhead_is_added(pod_level, overhead, want):
    """Replacing is done resource by resource; overhead always comes on top."""
    assert want == resources.pod_total([(("cpu", 300), ("memory", 64))], [], pod_level, overhead)


def test_only_cpu_memory_and_huge_pages_can_be_given_for_the_pod_as_a_whole():
    """The API refuses others; one that slipped through does not hide what the containers ask for."""
    containers = [resources.amounts({"cpu": 1, "example.com/gpu": 2, "hugepages-2Mi": 4})]
    whole = resources.amounts({"cpu": 3, "example.com/gpu": 9, "hugepages-2Mi": 8})

    assert resources.amounts({"cpu": 3, "example.com/gpu": 2, "hugepages-2Mi": 8}) == resources.pod_total(
        containers, pod_level=whole
    )
