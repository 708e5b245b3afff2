"""What is held, and what a sink is told."""

import json
import logging

import pytest

from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.reflector_store import ReflectorStore
from lamina.clients.kube.tombstones import Tombstones
from lamina.wire.errors import NothingSaidError
from tests.unit.clients.kube.mirrored import Keeper, Thing, decode


class Told:
    """A mirror with everything around it."""

    def __init__(self, key=lambda thing: thing.key, ended=None) -> None:
        self.keeper = Keeper()
        self.counts = ReflectorCounters()
        self.mirror: ReflectorStore[Thing] = ReflectorStore(decode, key, self.keeper, self.counts, ended)

    def see(self, name: str, version: int, value: object = 0, *, uid: str = "", listed: bool = False) -> None:
        metadata = {"name": name, "namespace": "d", "resourceVersion": str(version)}
        data = json.dumps({"metadata": metadata, "value": value}).encode()
        self.mirror.see(f"d/{name}", str(version), data, uid=uid, listed=listed)

    def list(self, *things: tuple[str, int, object], trusting: bool = True) -> list[str]:
        self.keeper.log.clear()
        self.mirror.begin(trusting=trusting)
        for thing in things:
            self.see(*thing, listed=True)
        for _ in self.mirror.finish():
            pass
        return self.keeper.log


def test_a_list_puts_what_is_new_or_changed_and_removes_what_is_gone():
    told = Told()
    told.list(("a", 1, 1), ("b", 2, 2), ("c", 3, 3))

    assert ["put d/c=9", "put d/d=4", "remove d/a"] == told.list(("b", 2, 2), ("c", 7, 9), ("d", 8, 4))
    assert {"d/b": 2, "d/c": 9, "d/d": 4} == {thing.key: thing.value for thing in told.mirror.items()}


def test_a_list_after_a_rewritten_history_trusts_no_version():
    told = Told()
    told.list(("a", 1, 1), ("b", 2, 2))

    assert ["put d/a=5", "put d/b=2"] == told.list(("a", 1, 5), ("b", 2, 2), trusting=False)


def test_an_object_is_found_only_in_exactly_the_version_that_is_stored():
    told = Told()
    told.see("a", 4, 9, uid="u")

    found = told.mirror.find("d/a", "u", "4")

    assert found is not None
    assert 9 == found.value
    for name, uid, version in (("d/b", "u", "4"), ("d/a", "other", "4"), ("d/a", "u", "3"), ("d/a", "u", "")):
        assert told.mirror.find(name, uid, version) is None


def test_a_list_that_never_ends_removes_nothing():
    told = Told()
    told.list(("a", 1, 1), ("b", 2, 2))
    told.mirror.begin()
    told.see("a", 5, 9, listed=True)

    assert {"d/a": 9, "d/b": 2} == told.keeper.things
    assert ["remove d/a"] == told.list(("b", 2, 2))


def test_what_an_event_brought_between_two_lists_is_removed_by_the_next():
    told = Told()
    told.list(("a", 1, 1))
    told.see("b", 2, 2)

    assert ["remove d/b"] == told.list(("a", 1, 1))


def test_events_are_told_in_their_order_even_with_a_version_that_is_known():
    told = Told()
    told.see("a", 1, 1)
    told.see("a", 1, 2)
    told.mirror.forget("d/a")
    told.mirror.forget("d/a")

    assert ["put d/a=1", "put d/a=2", "remove d/a"] == told.keeper.log


def test_a_removal_brings_the_object_as_it_was_last_seen():
    told = Told()
    seen: list[object] = []
    told.keeper.remove = lambda key, last: seen.append((key, last.value))  # type: ignore[method-assign]
    told.see("a", 1, "old")
    told.see("a", 2, "new")
    told.mirror.forget("d/a")

    assert [("d/a", "new")] == seen


def test_another_object_under_the_same_name_replaces_the_first():
    """A pod that was deleted and created again while nobody looked is another pod to a sink that goes by its uid."""
    log: list[str] = []
    told = Told(key=lambda thing: f"uid-{thing.value}")
    told.keeper.put = lambda item: log.append(f"put {item.value}")  # type: ignore[method-assign]
    told.keeper.remove = lambda key, last: log.append(f"remove {key}")  # type: ignore[method-assign]
    told.list(("a", 1, 1))
    told.list(("a", 5, 2))

    assert ["put 1", "remove uid-1", "put 2"] == log


def test_an_object_that_cannot_be_read_is_counted_and_told_once(caplog):
    told = Told()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            told.list(("a", 1, 1), ("b", 2, "unreadable"))
        told.see("b", 3, "unreadable")

    assert {"d/a": 1} == told.keeper.things
    assert 2 == told.counts.undecodable, "one for each version"
    assert ["object not decodable"] == [record.getMessage() for record in caplog.records]
    assert "d/b" == caplog.records[0].__dict__["object"]


def test_of_an_object_that_can_no_longer_be_read_the_last_good_version_stays():
    told = Told()
    told.list(("a", 1, 1))
    told.see("a", 2, "unreadable")
    assert [] == told.list(("a", 2, "unreadable"))
    assert {"d/a": 1} == told.keeper.things
    assert 1 == told.counts.undecodable

    told.see("a", 3, 3)
    assert {"d/a": 3} == told.keeper.things
    assert ["remove d/a"] == told.list()


def test_an_object_that_could_never_be_read_can_go():
    told = Told()
    told.see("a", 1, "unreadable")
    told.mirror.forget("d/a")
    told.see("a", 1, "unreadable")

    assert [] == told.keeper.log
    assert 2 == told.counts.undecodable


def test_an_unreadable_object_that_went_unseen_is_not_remembered():
    told = Told()
    told.list(("a", 1, "unreadable"), ("b", 2, "unreadable"))
    told.list(("b", 2, "unreadable"))

    assert ["d/b"] == list(told.mirror._unreadable)
    assert 2 == told.counts.undecodable


def test_what_a_sink_raises_is_its_own_affair():
    told = Told()

    def refuse(item: Thing) -> None:
        raise RuntimeError("a bug")

    told.keeper.put = refuse  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="a bug"):
        told.see("a", 1, 1)


def test_an_object_that_says_nothing_yet_is_as_if_it_were_not_there(caplog):
    told = Told()
    told.see("a", 1, 1)

    def silent(data: bytes) -> Thing:
        raise NothingSaidError("Thing", "nobody filled it in")

    told.mirror._decode = silent
    told.see("a", 2, 2)
    told.see("b", 3, 3)

    assert (["put d/a=1", "remove d/a"], 0, []) == (told.keeper.log, told.counts.undecodable, caplog.records)


@pytest.mark.parametrize(
    ("first", "second", "log", "left"),
    [
        pytest.param("one", "one", [], 1, id="the same object: what was read stays"),
        pytest.param("one", "two", ["remove d/a"], 0, id="another object of that name: what was read goes"),
        pytest.param("one", "", [], 1, id="the server does not say which"),
        pytest.param("", "two", [], 1, id="the server did not say which it was"),
    ],
)
@pytest.mark.parametrize("listed", [False, True], ids=["watched", "listed"])
def test_an_unreadable_version_keeps_what_was_read_of_the_same_object_only(first, second, log, left, listed):
    told = Told()
    told.see("a", 1, 1, uid=first)
    told.keeper.log.clear()
    told.see("a", 2, "unreadable", uid=second, listed=listed)

    assert log == told.keeper.log
    assert left == len(told.mirror)
    assert 1 == told.counts.undecodable


def test_an_object_that_took_an_unreadable_ones_place_is_put_when_it_can_be_read():
    told = Told()
    told.see("a", 1, 1, uid="one")
    told.see("a", 2, "unreadable", uid="two")
    told.see("a", 3, 3, uid="two")

    assert ["put d/a=1", "remove d/a", "put d/a=3"] == told.keeper.log


# ------------------------------------------------------------------------------------------------------ what has ended


def ending() -> Told:
    return Told(ended=lambda thing: thing.value == "ended")


def test_an_object_that_ends_is_put_once_more_and_not_held():
    told = ending()
    told.see("a", 1, 1, uid="one")
    told.see("a", 2, "ended", uid="one")
    told.see("a", 3, "ended", uid="one")
    told.mirror.forget("d/a")

    assert ["put d/a=1", "put d/a=ended"] == told.keeper.log, "neither a later version nor its deletion is news"
    assert (0, 0) == (len(told.mirror), len(told.mirror.tombstones))


def test_an_object_that_had_ended_before_it_was_first_seen_is_put_once():
    told = ending()
    told.mirror.begin()
    for _ in range(2):
        told.see("a", 1, "ended", uid="one", listed=True)

    assert ["put d/a=ended"] == told.keeper.log
    assert [] == list(told.mirror.items())


@pytest.mark.parametrize(
    ("second", "third", "log"),
    [
        pytest.param((2, 2, "two"), None, ["put d/a=ended", "put d/a=2"], id="runs"),
        pytest.param((2, "ended", "two"), None, ["put d/a=ended", "put d/a=ended"], id="ended, too"),
        pytest.param((2, "unreadable", "two"), None, ["put d/a=ended"], id="cannot be read"),
        pytest.param(
            (2, 2, "two"), (3, "ended", "two"), ["put d/a=ended", "put d/a=2", "put d/a=ended"], id="runs and ends"
        ),
    ],
)
def test_another_object_under_the_name_of_one_that_ended_is_another(second, third, log):
    told = ending()
    for version, value, uid in filter(None, [(1, "ended", "one"), second, third]):
        told.see("a", version, value, uid=uid)

    assert log == told.keeper.log


def test_a_list_neither_brings_back_what_has_ended_nor_keeps_what_is_gone():
    told = ending()
    for name in ("a", "b"):
        told.see(name, 1, "ended", uid=name)
    told.mirror.begin()
    told.see("a", 1, "ended", uid="a", listed=True)
    for _ in told.mirror.finish():
        pass

    assert ["put d/a=ended", "put d/b=ended"] == told.keeper.log
    assert 1 == len(told.mirror.tombstones)


def test_after_a_rewritten_history_what_had_ended_may_run():
    told = ending()
    told.see("a", 5, "ended", uid="one")
    told.mirror.begin(trusting=False)
    told.see("a", 3, 3, uid="one", listed=True)

    assert ["put d/a=ended", "put d/a=3"] == told.keeper.log


def test_of_very_many_that_ended_the_newest_are_remembered():
    stones = Tombstones(most=3)
    for number in range(5):
        stones.put(f"d/{number}", str(number), 1)

    assert [False, False, True, True, True] == [stones.knows(f"d/{number}", str(number), 1) for number in range(5)]
    assert 3 == len(stones)


def test_a_tombstone_without_a_uid_stands_for_nothing():
    stones = Tombstones()
    stones.put("d/a", "", 1)

    assert not stones.knows("d/a", "", 1)
