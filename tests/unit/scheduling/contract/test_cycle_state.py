"""CycleState: what plugins carry from point to point."""

from typing import Final

import pytest

from lamina.scheduling.contract.cycle_state import CycleState, StateKey

COUNT: Final[StateKey[int]] = StateKey("one/count")
NAMES: Final[StateKey[list[str]]] = StateKey("two/names")


def test_what_is_written_is_read_again():
    """Under its own key."""
    state = CycleState()
    state[COUNT] = 3
    state[NAMES] = ["a"]

    assert (3, ["a"]) == (state[COUNT], state[NAMES])


def test_writing_again_replaces():
    """The newest note counts."""
    state = CycleState()
    state[COUNT] = 3
    state[COUNT] = 4

    assert 4 == state[COUNT]


def test_reading_before_anybody_wrote_names_the_key():
    """The name begins with the plugin's, so the KeyError says who."""
    with pytest.raises(KeyError, match="one/count"):
        CycleState()[COUNT]


def test_a_note_that_may_be_missing_can_be_asked_for():
    """None stands for nothing written, and for None written."""
    state = CycleState()

    assert state.get(COUNT) is None
    state[COUNT] = 0
    assert 0 == state.get(COUNT)


def test_two_keys_of_one_name_are_one_key():
    """A key is its name."""
    state = CycleState()
    state[COUNT] = 3
    twin: StateKey[int] = StateKey("one/count")

    assert 3 == state[twin]


def test_a_copy_has_notes_of_its_own():
    """What one pod writes after its node was chosen is not seen by others of its shape."""
    state = CycleState()
    state[COUNT] = 3
    twin = state.copy()
    twin[COUNT] = 4
    twin[NAMES] = ["a"]

    assert (3, None) == (state[COUNT], state.get(NAMES))
    assert (4, ["a"]) == (twin[COUNT], twin[NAMES])


def test_a_copy_shares_what_the_notes_point_to():
    """Copying is cheap because nothing inside is copied."""
    state = CycleState()
    state[NAMES] = ["a"]

    assert state[NAMES] is state.copy()[NAMES]
