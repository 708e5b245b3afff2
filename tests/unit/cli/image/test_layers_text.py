"""The page of an image: its layers and nodes as text, and as data."""

import io

import pytest
from rich.console import Console

from lamina.cli.image.layers_text import MOST_NODES, NodeHolding, facts, print_image
from lamina.cli.output.screen import Screen
from lamina.testing import an_image

IMAGE = an_image("team/app:2", {"base": 100_000_000, "libs": 50_000_000, "app2": 7_000_000})
BEFORE = an_image("team/app:1", {"base": 100_000_000, "libs": 50_000_000, "app1": 5_000_000})
ALL = NodeHolding("n1", True, 157_000_000, 0, (0, 1, 2))
SOME = NodeHolding("n2", False, 150_000_000, 7_000_000, (0, 1))
NONE = NodeHolding("n3", False, 0, 157_000_000, ())
SILENT = NodeHolding("n4", False, 0, 157_000_000, (), reported=False)


def page(nodes=None, images=(IMAGE, BEFORE), seconds=None, others=0):
    text = io.StringIO()
    console = Console(file=text, width=110, no_color=True, force_terminal=False)
    print_image(facts(IMAGE, images, {}, nodes, seconds, others), Screen(console))
    return text.getvalue()


def test_without_nodes_the_page_has_layers_only():
    text = page()

    assert "team/app:2  linux/amd64, 157 MB in 3 layers" in text
    assert "shared with, of 1 other image" in text
    assert "node" not in text


def test_an_image_that_is_the_only_one_known_is_not_said_to_share_nothing():
    assert "shared" not in page(images=(IMAGE,))


def rows(text):
    """Return the cells of the lines of all tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_each_layer_and_each_node_says_what_is_there():
    text = page([ALL, SOME, NONE, SILENT])
    summary = "the whole image on 1 of 4 nodes, some of its bytes on 1, nothing on 1, no report from 1"

    assert summary in text
    assert [["100 MB", "1", "2"], ["50 MB", "1", "2"], ["7.0 MB", "0", "1"]] == [
        [size, shared, nodes] for layer, size, _, shared, nodes in rows(text)[1:4]
    ]
    assert [
        ["n1", "all of it", "3 of 3", "nothing"],
        ["n2", "150 MB", "2 of 3", "7.0 MB"],
        ["n3", "0 B", "0 of 3", "157 MB"],
        ["n4", "no report", "-", "157 MB"],
    ] == [cells[:4] for cells in rows(text)[5:]]


@pytest.mark.parametrize(
    ("seconds", "begin"), [pytest.param(100.0, "at 100.0 s: the", id="simulated"), pytest.param(None, "the", id="real")]
)
def test_only_a_simulated_cluster_has_a_time(seconds, begin):
    assert any(line.startswith(f"{begin} whole image on") for line in page([ALL], seconds=seconds).splitlines())


def test_nodes_of_other_platforms_are_told():
    assert "not listed: 3 nodes of other platforms" in page([ALL], others=3)


def test_a_cluster_without_nodes_has_no_empty_table():
    text = page([])

    assert "the whole image on 0 of 0 nodes" in text
    assert "would pull" not in text


def test_a_long_list_of_nodes_is_cut_and_says_where_the_rest_is():
    text = page([SOME] * (MOST_NODES + 5))

    assert MOST_NODES == sum(cells[0] == "n2" for cells in rows(text))
    assert "and 5 more nodes; -o json lists all of them" in text


def test_many_names_are_cut():
    image = an_image("team/app:0", {"base": 1})
    many = type(image)(image.digest, image.layers, tuple(f"team/app:{number}" for number in range(9)))
    text = io.StringIO()
    console = Console(file=text, width=200, no_color=True)
    print_image(facts(many, [many], {}, None, None), Screen(console))

    assert "team/app:3 and 5 more names" in text.getvalue()
    assert "team/app:4" not in text.getvalue()


def test_the_data_names_units_and_counts_nodes_for_each_layer():
    told = facts(IMAGE, [IMAGE, BEFORE], {}, [ALL, SOME, NONE, SILENT], None, 2)

    assert [(100_000_000, 2), (50_000_000, 2), (7_000_000, 1)] == [
        (one["bytes"], one["nodes"]) for one in told["layers"]
    ]
    assert {
        "node": "n2",
        "whole": False,
        "present": 150_000_000,
        "missing": 7_000_000,
        "layers": (0, 1),
        "reported": True,
    } == told["nodes"][1]
    assert (None, 2) == (told["at_seconds"], told["nodes_of_other_platforms"])
