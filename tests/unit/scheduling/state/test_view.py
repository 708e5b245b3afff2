"""NodeView and NodeRow: what plugins see of the columns."""

import numpy as np
import pytest

from lamina.model.pod import Owner
from lamina.model.selectors import LabelSelector
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.view import NodeRow, everything, only
from lamina.testing import a_node, a_pod

GPU = "example.com/gpu"
TAINT = Taint("gpu")


@pytest.fixture
def columns():
    """Four rows, of which the second is dead."""
    made = NodeColumns()
    for number in range(4):
        made.put(a_node(f"n{number}", cpu=number + 1, more={GPU: 2} if number == 2 else None))
    made.put(a_node("n3", cpu=4, taints=[TAINT], unschedulable=True))
    pod = a_pod(cpu=2, memory="1Gi")
    made.use(2, pod)
    made.remove("n1")
    return made


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param(None, [1000, 0, 1000, 4000], id="all rows, dead ones too"),
        pytest.param([2], [1000], id="one"),
        pytest.param([3, 0], [4000, 1000], id="some, in the order given"),
        pytest.param([], [], id="none"),
    ],
)
def test_a_view_shows_the_rows_it_was_made_for(columns, rows, want):
    """One answer per row."""
    view = everything(columns) if rows is None else only(columns, rows)

    assert want == view.free("cpu").tolist()
    assert len(want) == len(view) == view.size


def test_a_view_tells_all_there_is_about_its_rows(columns):
    """Each property is an array of the view's length."""
    view = only(columns, [1, 2, 3])

    assert [False, True, True] == view.alive.tolist()
    assert [False, False, True] == view.unschedulable.tolist()
    assert [0, 3000, 4000] == view.allocatable("cpu").tolist()
    assert [0, 1000, 4000] == view.free("cpu").tolist()
    assert [0, 2000, 0] == view.ranked("cpu").tolist()
    assert [0, 1024**3, 0] == view.ranked("memory").tolist()
    assert [(), (), (TAINT,)] == [view.taint_sets[number] for number in view.taint_set]
    assert ("cpu", "memory", "ephemeral-storage", "pods", GPU) == view.resources
    assert [0, 2, 0] == view.allocatable(GPU).tolist()


def test_a_resource_nobody_ever_mentioned_is_there_zero_times(columns):
    """Also in views of one row or none."""
    assert [0, 0, 0, 0] == everything(columns).free("example.com/fpga").tolist()
    assert [0] == only(columns, [2]).allocatable("example.com/fpga").tolist()
    assert [] == only(columns, []).free("example.com/fpga").tolist()


def test_only_cpu_and_memory_have_a_count_of_their_own_for_rankings(columns):
    """Everything else is ranked by requests."""
    with pytest.raises(KeyError):
        everything(columns).ranked(GPU)


def test_a_view_knows_the_whole_cluster_around_it(columns):
    """Living nodes, and rows."""
    view = only(columns, [2])

    assert (3, 4) == (view.total, view.height)


@pytest.mark.parametrize(
    ("rows", "name", "want"),
    [
        pytest.param(None, "n2", 2, id="all rows"),
        pytest.param(None, "n1", None, id="a node that left"),
        pytest.param(None, "n9", None, id="a node nobody knows"),
        pytest.param([2], "n2", 0, id="the only row"),
        pytest.param([2], "n3", None, id="another than the only row"),
        pytest.param([2], "n0", None, id="one before the only row"),
        pytest.param([3, 0], "n0", 1, id="some rows"),
        pytest.param([3, 0], "n2", None, id="none of some rows"),
    ],
)
def test_a_node_is_found_by_name_if_it_is_in_view(columns, rows, name, want):
    """As a position of the view, not as a row."""
    view = everything(columns) if rows is None else only(columns, rows)

    assert want == view.position(name)


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param(None, ["n0", None, "n2", "n3"], id="all rows, a dead one has no node"),
        pytest.param([2], ["n2"], id="one row"),
        pytest.param([3, 0], ["n3", "n0"], id="some rows"),
    ],
)
def test_positions_lead_back_to_nodes(columns, rows, want):
    """And to rows."""
    view = everything(columns) if rows is None else only(columns, rows)
    nodes = [view.node(position) for position in range(len(view))]

    assert want == [node and node.name for node in nodes]
    assert (rows if rows is not None else [0, 1, 2, 3]) == [view.row(position) for position in range(len(view))]


def test_a_view_of_no_nodes_is_empty():
    """Nothing breaks in an empty cluster."""
    view = everything(NodeColumns())

    assert (0, 0, 0) == (len(view), view.total, view.height)
    assert [] == view.free("cpu").tolist()
    assert view.position("n0") is None


@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_a_single_node_is_told_as_a_view_tells_it(columns, row):
    """In plain integers."""
    one, view = NodeRow(columns, row), only(columns, [row])

    for resource in ("cpu", "memory", "pods", GPU, "example.com/fpga"):
        assert view.free(resource).tolist() == [one.free(resource)]
        assert view.allocatable(resource).tolist() == [one.allocatable(resource)]
        assert (one.allocatable(resource), one.free(resource)) == one.capacity_and_free(resource)
        assert type(one.free(resource)) is int
    for resource in ("cpu", "memory"):
        assert view.ranked(resource).tolist() == [one.ranked(resource)]
        assert (one.allocatable(resource), one.ranked(resource)) == one.capacity_and_ranked(resource)
    assert view.node(0) is one.node
    assert view.images is one.images
    assert 3 == one.total


@pytest.mark.parametrize(
    ("amount", "want"),
    [
        # n0 has 1 cpu free of 1, n2 has 1 of 3 (in use: 2), n3 has 4 of 4
        pytest.param(0, [100, 33, 100], id="as it is"),
        pytest.param(500, [50, 16, 87], id="with half a cpu more: 500/1000, 500/3000, 3500/4000"),
        pytest.param(1000, [0, 0, 75], id="with a cpu more"),
    ],
)
def test_what_would_be_left_is_ready_as_a_percentage(columns, amount, want):
    """Rounded down it is what integers give."""
    assert want == np.floor(only(columns, [0, 2, 3]).headroom_with("cpu", amount)).tolist()


def test_more_than_there_is_leaves_less_than_nothing(columns):
    """Whoever ranks decides what that means."""
    assert (only(columns, [0, 2]).headroom_with("cpu", 3000) < 0).all()


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(a_node("odd", cpu=0), id="no cpu"),
        pytest.param(a_node("odd", memory="0"), id="no memory"),
        pytest.param(a_node("odd", memory=str(2**42)), id="too much memory"),
    ],
)
def test_a_cluster_is_plain_while_every_node_is(node):
    """One odd node makes it odd, wherever one looks, until the node changes or leaves."""
    made = NodeColumns()
    made.put(a_node("plain"))
    told = [everything(made).plain]
    made.put(node)
    told.append(only(made, [0]).plain)
    made.put(a_node("odd"))
    told.append(everything(made).plain)
    made.put(node)
    made.remove("odd")
    told.append(everything(made).plain)

    assert [True, False, True, True] == told


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param(None, True, id="all of them"),
        pytest.param([0, 1, 2], False, id="some"),
        pytest.param([3, 2, 1, 0], False, id="all of them in another order"),
        pytest.param([1], False, id="one"),
    ],
)
def test_a_view_is_whole_with_every_row_in_order(columns, rows, want):
    assert want == (everything(columns) if rows is None else only(columns, rows)).whole


def test_pods_are_counted_for_the_rows_in_view(columns):
    """By controller and by labels."""
    for row, app in [(0, "web"), (2, "web"), (2, "db"), (3, "db")]:
        columns.use(row, a_pod(owner=Owner("ReplicaSet", app, app), labels={"app": app}))
    view = only(columns, [3, 2])

    assert [0, 1] == view.owned(("default", "web")).tolist()
    assert [1, 1] == view.matching("default", LabelSelector((("app", "db"),))).tolist()
    assert [1, 0, 1, 0] == everything(columns).owned(("default", "web")).tolist()


def test_a_reader_that_comes_back_is_told_what_changed(columns):
    """For the whole cluster, whatever is in view."""
    view = only(columns, [0])
    noted = view.noted(Facet.RESOURCES)
    columns.use(3, a_pod(cpu=1))

    assert [3] == view.changed_since(Facet.RESOURCES, noted)
    assert [] == view.changed_since(Facet.RESOURCES, view.noted(Facet.RESOURCES))


def test_of_some_nodes_only_their_own_taints_are_judged():
    """However many sets of taints there are on others."""
    columns = NodeColumns()
    for number in range(50):
        columns.put(a_node(f"n{number}", taints=[Taint("own", str(number // 2), NO_SCHEDULE)]))
    judged: list[tuple[Taint, ...]] = []

    def judge(taints: tuple[Taint, ...]) -> int:
        judged.append(taints)
        return int(taints[0].value)

    assert [2, 2, 20] == only(columns, [4, 5, 40]).judged(judge).tolist()
    assert 2 == len(judged)
    assert [number // 2 for number in range(50)] == everything(columns).judged(
        lambda one: int(one[0].value) if one else 0
    ).tolist()
