"""
Events are written down and read again as the same, so that what a scheduler was fed can be fed to another.

The examples are drawn from the types of the fields: a field that is added to an event is among them from the start.
"""

import typing
from types import UnionType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.events import Event

KINDS = typing.get_args(Event)

MESSAGE_PACK = msgspec.msgpack.Decoder(Event)
JSON = msgspec.json.Decoder(Event)


def drawn(kind, floats):
    """A strategy for everything that a type allows."""
    if isinstance(kind, typing.NewType):
        return drawn(kind.__supertype__, floats)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{name: drawn(hints[name], floats) for name in kind.__struct_fields__})
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and inside[-1] is Ellipsis:
        return st.lists(drawn(inside[0], floats), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(drawn(one, floats) for one in inside))
    if origin is dict:
        return st.dictionaries(*(drawn(one, floats) for one in inside), max_size=2)
    if origin in (typing.Union, UnionType):
        return st.one_of(*(drawn(one, floats) for one in inside))
    if origin is typing.Literal:
        return st.sampled_from(inside)
    plain = {
        str: st.text(max_size=5),
        bytes: st.binary(max_size=5),
        int: st.integers(-(2**63), 2**63 - 1),
        float: floats,
        bool: st.booleans(),
        type(None): st.none(),
    }
    return plain[kind]


def test_every_event_is_one_of_the_union():
    """Or it could be fed and not be written down."""
    defined = {
        one
        for one in vars(events).values()
        if isinstance(one, type) and issubclass(one, events.EventBase) and one is not events.EventBase
    }

    assert defined == set(KINDS)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in KINDS])
@given(st.data())
def test_an_event_comes_back_from_message_pack_as_the_same(kind, data):
    event = data.draw(drawn(kind, st.floats(allow_nan=False)))
    again = MESSAGE_PACK.decode(msgspec.msgpack.encode(event))

    assert (kind, event) == (type(again), again)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in KINDS])
@given(st.data())
def test_an_event_comes_back_from_json_as_the_same(kind, data):
    event = data.draw(drawn(kind, st.floats(allow_nan=False, allow_infinity=False)))
    again = JSON.decode(msgspec.json.encode(event))

    assert (kind, event) == (type(again), again)
