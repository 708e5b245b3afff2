"""Who is there: places for those who ask, bounds for those who are on their way out."""

import pytest

from lamina.serving.connection_table import SPARE, ConnectionTable
from lamina.serving.server_limits import ServerLimits
from tests.unit.serving.visiting import Notebook, routes


class Someone:
    """A connection that takes down what it is told."""

    def __init__(self, since: float = 0.0) -> None:
        self.since = since
        self.told: list[str] = []

    def look(self, now: float) -> None:
        self.told.append("look")

    def expire(self) -> None:
        self.told.append("expire")

    def retire(self) -> None:
        self.told.append("retire")

    def give_way(self) -> None:
        self.told.append("give way")

    def abort(self) -> None:
        self.told.append("abort")


def a_desk(connections: int = 2, *, newcomers_first: bool = False) -> tuple[ConnectionTable, Notebook]:
    notes = Notebook()
    return ConnectionTable(
        routes(), ServerLimits(connections=connections, newcomers_first=newcomers_first), notes
    ), notes


def admitted(desk: ConnectionTable, *since: float) -> list[Someone]:
    some = [Someone(when) for when in since]
    for one in some:
        desk.add(one, admitted=True)
    return some


@pytest.mark.parametrize(
    ("newcomers_first", "there", "found"),
    [
        pytest.param(False, 1, True, id="there is room"),
        pytest.param(False, 2, False, id="all are taken"),
        pytest.param(True, 1, True, id="there is room, and newcomers go first"),
        pytest.param(True, 2, True, id="all are taken, and newcomers go first"),
    ],
)
def test_there_is_a_place_unless_all_are_taken_and_newcomers_do_not_go_first(newcomers_first, there, found):
    desk, _ = a_desk(newcomers_first=newcomers_first)
    some = admitted(desk, *range(there))

    assert found == desk.make_room()
    assert (newcomers_first and there == 2) == (["give way"] in [one.told for one in some])


def test_a_newcomer_gets_the_place_of_whoever_has_been_idle_for_longest():
    desk, notes = a_desk(3, newcomers_first=True)
    some = admitted(desk, 7.0, 5.0, 6.0)
    for _ in range(2):
        assert desk.make_room()
        admitted(desk, 8.0)

    assert [[], ["give way"], ["give way"]] == [one.told for one in some]
    assert [1, 2, 3, 2, 3, 2, 3] == notes.counts


def test_who_is_on_its_way_out_takes_nobodys_place():
    desk, notes = a_desk()
    first, _ = admitted(desk, 0.0, 0.0)
    desk.mark_closing(first)

    assert (True, [1, 2, 1]) == (desk.make_room(), notes.counts)
    assert not desk.empty.is_set()
    desk.remove(first)
    assert [1, 2, 1] == notes.counts


def test_who_was_never_admitted_takes_nobodys_place_either():
    desk, notes = a_desk()
    for _ in range(5):
        desk.add(Someone(), admitted=False)

    assert (True, []) == (desk.make_room(), notes.counts)


def test_of_too_many_on_their_way_out_the_oldest_are_cut_off_each_once():
    """None of them has heard of it yet when the next one comes."""
    desk, _ = a_desk()
    some = [Someone() for _ in range(SPARE + 3)]
    for one in some:
        desk.add(one, admitted=False)
        desk.mark_closing(one)

    assert [["abort"]] * 3 + [[]] * SPARE == [one.told for one in some]


def test_who_is_gone_is_not_on_its_way_out_any_more():
    desk, _ = a_desk()
    for _ in range(3 * SPARE):
        one = Someone()
        desk.add(one, admitted=False)
        desk.mark_closing(one)
        desk.remove(one)
        desk.mark_closing(one)

        assert ([], True) == (one.told, desk.empty.is_set())
