"""NodeColumns: rows that come, change, go and come back, and what is noted of it."""

import pytest

from lamina.model.resources import amounts
from lamina.model.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from lamina.scheduling.state import scalar_resources
from lamina.scheduling.state.columns import FIRST_ROWS, MEMO, WIDE, NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.taint_sets import SPARE
from lamina.scheduling.state.view import everything
from lamina.testing import a_node, a_pod

GPU = "example.com/gpu"
TAINT = Taint("gpu", "", NO_SCHEDULE)


def columns(*nodes) -> NodeColumns:
    made = NodeColumns()
    for node in nodes:
        made.put(node)
    return made


def allocatable(of: NodeColumns, resource: str, node: str) -> int:
    return of.amounts_on(of.rows[node], resource)[0]


def free(of: NodeColumns, resource: str, node: str) -> int:
    return of.amounts_on(of.rows[node], resource)[1]


def kept_of_scalars(of: NodeColumns) -> int:
    """Count what is kept of resources that are not well known."""
    books = of.scalars
    tables = (books._offered, books._used, books._arrays, books._names_on)
    return sum(len(table) for table in tables)


def use(of: NodeColumns, node: str, *pods) -> None:
    for pod in pods:
        of.use(of.rows[node], pod)


def release(of: NodeColumns, node: str, *pods) -> None:
    for pod in pods:
        of.release(of.rows[node], pod)


def touched(of: NodeColumns, before: list[int]) -> dict[Facet, list[int]]:
    """Return what each facet's log has seen since *before*, where it has seen anything."""
    return {facet: rows for facet in Facet if (rows := of.logs[facet].since(before[facet]))}


def positions(of: NodeColumns) -> list[int]:
    return [log.position for log in of.logs]


# ---------------------------------------------------------------------------------------------------------------- rows


def test_rows_are_handed_out_in_the_order_nodes_arrive():
    """From 0, without a gap."""
    made = columns(a_node("b"), a_node("a"), a_node("c"))

    assert {"b": 0, "a": 1, "c": 2} == made.rows
    assert (3, 3) == (made.size, made.count)


def test_a_known_node_keeps_its_row():
    """An update is no arrival."""
    made = columns(a_node("a"), a_node("b"))

    assert 0 == made.put(a_node("a", cpu=8))
    assert (2, 2) == (made.size, made.count)


def test_a_node_that_leaves_leaves_nothing_behind():
    """Its row is dead: no amounts, no taints, no cordon, no name."""
    made = columns(a_node("a"), a_node("b", taints=[TAINT], unschedulable=True, more={GPU: 2}, images={"x": 1}))
    use(made, "b", a_pod(cpu=1, more={GPU: 1}))

    assert 1 == made.remove("b")
    assert ({"a": 0}, 2, 1) == (made.rows, made.size, made.count)
    assert [True, False] == made.alive[:2].tolist()
    assert not made.free[:, 1].any()
    assert not made.allocatable[:, 1].any()
    assert not made.ranked[:, 1].any()
    assert (0, False, None) == (made.taint_set[1], made.unschedulable[1], made.nodes[1])
    assert made.images.get("x") is None


def test_a_row_is_used_again_and_starts_afresh():
    """The last one freed comes first; what its node had is not inherited."""
    made = columns(a_node("a"), a_node("b"), a_node("c"))
    use(made, "a", a_pod(cpu=3))
    made.remove("c")
    made.remove("a")

    assert [0, 2, 3] == [made.put(a_node(name, cpu=2)) for name in ("d", "e", "f")]
    assert 2000 == free(made, "cpu", "d")
    assert [True] * 4 == made.alive[:4].tolist()
    assert 4 == made.count


def test_removing_a_node_nobody_knows_is_an_error():
    """The caller keeps the books."""
    with pytest.raises(KeyError):
        columns(a_node("a")).remove("b")


def test_there_may_be_any_number_of_nodes():
    """Arrays grow beyond the first rows and keep what is in them."""
    many = 3 * FIRST_ROWS
    made = columns(a_node("first", cpu=7, taints=[TAINT], unschedulable=True))
    use(made, "first", a_pod(cpu=2))
    for number in range(1, many):
        made.put(a_node(f"n{number}", cpu=number, more={GPU: number} if number == FIRST_ROWS else None))

    assert (many, many) == (made.size, made.count)
    assert 5000 == free(made, "cpu", "first")
    assert (1, True) == (made.taint_set[0], made.unschedulable[0])
    assert [number * 1000 for number in range(1, many)] == [free(made, "cpu", f"n{n}") for n in range(1, many)]
    assert FIRST_ROWS == free(made, GPU, f"n{FIRST_ROWS}")
    assert all(made.alive[:many])
    assert not any(made.alive[many:])
    assert {made.free.shape[1], made.allocatable.shape[1], made.ranked.shape[1], len(made.taint_set)} == {
        len(made.alive)
    }


# ------------------------------------------------------------------------------------------------------------- amounts


def test_pods_take_and_give_back():
    """Free is what nodes have less what pods request, and a place for each pod."""
    made = columns(a_node("a", cpu=4, memory="1000", pods=10))
    use(made, "a", a_pod(cpu=1, memory="100"), a_pod(cpu="500m"))

    assert (2500, 900, 8) == tuple(free(made, one, "a") for one in ("cpu", "memory", "pods"))
    release(made, "a", a_pod(cpu=1, memory="100"))
    assert (3500, 1000, 9) == tuple(free(made, one, "a") for one in ("cpu", "memory", "pods"))


def test_rankings_count_something_for_pods_that_ask_nothing():
    """100m and 200Mi for a container that says nothing, as upstream has it."""
    made = columns(a_node("a"))
    use(made, "a", a_pod(), a_pod(cpu=1))

    assert [100 + 1000, 2 * 200 * 1024**2] == made.ranked[:, 0].tolist()
    release(made, "a", a_pod(), a_pod(cpu=1))
    assert [0, 0] == made.ranked[:, 0].tolist()


def test_an_overcommitted_node_has_less_than_nothing():
    """Pods placed by somebody else count all the same."""
    made = columns(a_node("a", cpu=1, pods=1))
    use(made, "a", a_pod(cpu=3), a_pod())

    assert (-2000, -1) == (free(made, "cpu", "a"), free(made, "pods", "a"))


@pytest.mark.parametrize(
    ("cpu", "want"),
    [
        pytest.param(8, 5000, id="grows"),
        pytest.param(3, 0, id="shrinks to what is used"),
        pytest.param(1, -2000, id="shrinks below what is used"),
        pytest.param(0, -3000, id="offers nothing any more"),
    ],
)
def test_what_pods_use_stays_when_a_node_changes_its_size(cpu, want):
    """Only what is left changes."""
    made = columns(a_node("a", cpu=4))
    use(made, "a", a_pod(cpu=3))
    made.put(a_node("a", cpu=cpu))

    assert want == free(made, "cpu", "a")
    assert cpu * 1000 == allocatable(made, "cpu", "a")


def test_a_resource_a_node_stops_offering_is_gone():
    """What pods hold of it is owed."""
    made = columns(a_node("a", more={GPU: 2}))
    use(made, "a", a_pod(more={GPU: 1}))
    made.put(a_node("a"))

    assert (0, -1) == (allocatable(made, GPU, "a"), free(made, GPU, "a"))


def test_nothing_is_free_of_a_resource_that_only_other_nodes_offer():
    """What a pod uses where it is not offered is missing there."""
    made = columns(a_node("a"))
    made.put(a_node("b", more={GPU: 2}))
    use(made, "a", a_pod(more={"example.com/fpga": 1}))

    assert (0, 2) == (free(made, GPU, "a"), free(made, GPU, "b"))
    assert (-1, 0) == (free(made, "example.com/fpga", "a"), free(made, "example.com/fpga", "b"))


def test_what_a_pod_uses_counts_when_its_node_offers_it_later():
    """Another scheduler may have bound it before the device plugin came; and the offer may go and come again."""
    made = columns(a_node("a"), a_node("b"))
    use(made, "a", a_pod("p", more={GPU: 3}), a_pod("q", more={GPU: 1}))
    seen = [free(made, GPU, "a")]
    for offered in (8, 0, 5):
        made.put(a_node("a", more={GPU: offered}))
        seen.append(free(made, GPU, "a"))
    release(made, "a", a_pod("p", more={GPU: 3}))

    assert [-4, 4, -4, 1] == seen
    assert 4 == free(made, GPU, "a")
    assert [4, 0] == everything(made).free(GPU).tolist()


def test_an_array_that_was_asked_for_follows_what_changes():
    """Rows that came later are in it as well."""
    made = columns(a_node("a", more={GPU: 2}))
    assert [2] == everything(made).free(GPU).tolist()

    use(made, "a", a_pod(more={GPU: 1}))
    made.put(a_node("b", more={GPU: 4}))
    made.put(a_node("c"))
    use(made, "c", a_pod(more={GPU: 7}))

    assert [1, 4, -7] == everything(made).free(GPU).tolist()
    assert [2, 4, 0] == everything(made).allocatable(GPU).tolist()
    made.remove("b")
    assert [1, 0, -7] == everything(made).free(GPU).tolist()


@pytest.mark.parametrize("how", ["pod", "node", "changed node"])
def test_nothing_is_kept_of_many_resources_once_their_pod_or_node_is_gone(how):
    """One pod, or one kubelet, can name thousands of them."""
    made = columns(a_node("a"), a_node("b"))
    many = {f"example.com/r{number}": 1 for number in range(3200)}
    arrays = made.free.nbytes + made.allocatable.nbytes
    if how == "pod":
        use(made, "a", a_pod("wide", more=many))
        everything(made).free("example.com/r7")
        release(made, "a", a_pod("wide", more=many))
    else:
        made.put(a_node("c", more=many))
        everything(made).free("example.com/r7")
        assert 3200 + 4 == len(everything(made).resources)
        if how == "node":
            made.remove("c")
        else:
            made.put(a_node("c"))

    assert 0 == kept_of_scalars(made)
    assert ("cpu", "memory", "ephemeral-storage", "pods") == everything(made).resources
    assert arrays == made.free.nbytes + made.allocatable.nbytes
    assert all(len(asked) <= WIDE for asked in made._taken)


def test_the_arrays_of_resources_are_bounded(monkeypatch):
    """The one that was asked for longest ago is let go, and made again when it is asked for."""
    monkeypatch.setattr(scalar_resources, "KEPT_BYTES", 0)
    names = [f"example.com/r{number}" for number in range(2 * scalar_resources.KEPT_AT_LEAST)]
    made = columns(a_node("a", more=dict.fromkeys(names, 3)))

    assert [3] * len(names) == [everything(made).free(name).item(0) for name in names]
    assert scalar_resources.KEPT_AT_LEAST == len(made.scalars._arrays)
    assert 3 == everything(made).free(names[0]).item(0)


def test_the_memory_for_requests_is_bounded():
    """More distinct requests than are remembered are still answered."""
    made = columns(a_node("a"))
    taken = [made.taken(amounts({"cpu": f"{milli}m"}))[0][0] for milli in range(MEMO + 10)]

    assert list(range(MEMO + 10)) == [int(one) for one in taken]
    assert [5, 0, 0, 1] == made.taken(amounts({"cpu": "5m"}))[0].tolist()
    assert (("example.com/gpu", 2),) == made.taken(amounts({"cpu": 1, GPU: 2, "example.com/none": 0}))[1]
    assert len(made._taken) <= MEMO


def test_taint_sets_that_no_node_has_any_more_are_forgotten():
    """A controller that writes the time into a taint makes a new set with every change."""
    made = columns(*[a_node(f"n{number}", taints=[TAINT] if number % 2 else ()) for number in range(4)])
    for change in range(500):
        name = f"n{change % 4}"
        made.put(a_node(name, taints=[Taint("candidate", str(change), PREFER_NO_SCHEDULE)]))
        made.put(a_node(name, taints=[TAINT] if change % 2 else ()))

    assert len(made.taint_sets) <= 2 + 1
    assert 2 == made.taints.used
    assert [(), (TAINT,)] * 2 == [made.taint_sets[number] for number in made.taint_set[:4]]


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_numbers_of_taint_sets_are_given_back_when_most_are_unused(how):
    """Of very many sets at a time nothing stays behind, and who kept a taint still has it."""
    many = 5 * SPARE
    made = columns(*[a_node(f"n{number}", taints=[Taint("own", str(number), NO_SCHEDULE)]) for number in range(many)])
    assert many + 1 == len(made.taint_sets)

    for number in range(many - 1):
        if how == "changed":
            made.put(a_node(f"n{number}"))
        else:
            made.remove(f"n{number}")

    assert 2 == made.taints.used
    assert len(made.taint_sets) <= 2 * 2 + SPARE + 1
    assert (Taint("own", str(many - 1), NO_SCHEDULE),) == made.taint_sets[made.taint_set.item(many - 1)]
    assert all(made.taint_sets[made.taint_set.item(row)] == () for row in range(many - 1))


def test_structure_grows_only_when_arrays_get_another_shape():
    """Everything else is a change of rows, which readers can follow."""
    made = columns(a_node("a"), a_node("b", more={GPU: 1}))
    before = made.structure
    use(made, "a", a_pod(cpu=1, more={GPU: 1}))
    made.put(a_node("a", cpu=9, taints=[TAINT]))
    made.remove("b")
    made.put(a_node("c"))

    assert before == made.structure
    made.put(a_node("d"))
    assert before + 1 == made.structure


# --------------------------------------------------------------------------------------------------------------- notes


@pytest.mark.parametrize(
    ("now", "want"),
    [
        pytest.param(a_node("b"), set(), id="nothing changed"),
        pytest.param(a_node("b", cpu=8), {Facet.RESOURCES}, id="size"),
        pytest.param(a_node("b", more={GPU: 1}), {Facet.RESOURCES}, id="a resource more"),
        pytest.param(a_node("b", taints=[TAINT]), {Facet.TAINTS}, id="taints"),
        pytest.param(a_node("b", unschedulable=True), {Facet.TAINTS}, id="cordon"),
        pytest.param(a_node("b", labels={"zone": "1"}), {Facet.LABELS}, id="labels"),
        pytest.param(a_node("b", images={"x": 1}), {Facet.IMAGES}, id="images"),
        pytest.param(
            a_node("b", cpu=8, taints=[TAINT], labels={"zone": "1"}, images={"x": 1}),
            {Facet.RESOURCES, Facet.TAINTS, Facet.LABELS, Facet.IMAGES},
            id="all of it",
        ),
    ],
)
def test_an_update_is_noted_where_it_changed_something(now, want):
    """And nowhere else: readers of other facets need not look."""
    made = columns(a_node("a"), a_node("b"))
    before = positions(made)
    made.put(now)

    assert {facet: [1] for facet in want} == touched(made, before)


def test_an_image_list_in_another_order_is_no_news():
    """Kubelets sort by size; names are what counts."""
    made = columns(a_node("a", images={"x": 1, "y": 2}))
    before = positions(made)
    made.put(a_node("a", images={"y": 2, "x": 1}))

    assert {} == touched(made, before)


def test_coming_and_going_is_noted_everywhere():
    """Nothing that was known of the row holds."""
    made = columns(a_node("a"), a_node("b"))
    before = positions(made)
    made.remove("a")
    made.put(a_node("c"))

    assert {facet: [0, 0] for facet in Facet} == touched(made, before)


def test_placing_a_pod_is_noted_for_amounts_and_pods():
    """Once when it is counted, once when it is not any more."""
    made = columns(a_node("a"), a_node("b"))
    before = positions(made)
    use(made, "b", a_pod(cpu=1))
    release(made, "b", a_pod(cpu=1))

    assert {Facet.RESOURCES: [1, 1], Facet.PODS: [1, 1]} == touched(made, before)


def test_sets_of_taints_are_numbered_in_the_order_they_appear():
    """Number 0 is no taints at all; nodes with the same set share a number."""
    other = Taint("other")
    made = columns(
        a_node("a"), a_node("b", taints=[TAINT]), a_node("c", taints=[TAINT, other]), a_node("d", taints=[TAINT])
    )

    assert [0, 1, 2, 1] == made.taint_set[:4].tolist()
    assert [(), (TAINT,), (TAINT, other)] == made.taint_sets
