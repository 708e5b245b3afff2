"""What the roster does with requests that are not about its nodes."""

import tracemalloc

from lamina.services.extender.name_roster import NameRoster


def test_a_list_with_more_names_than_nodes_costs_no_line_for_each_of_them():
    """Each line is as wide as the longest name."""
    roster = NameRoster(["n" * 250, "m"])
    text = b'"",' * 100_000 + b'"m"'

    tracemalloc.start()
    try:
        found = roster.find(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found is None
    assert most < 20 * len(text)
