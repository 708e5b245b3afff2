"""What a field may hold, in words."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import inspect

from lamina.model import shapes


class Listed(msgspec.Struct, array_like=True):
    """A struct that is written as a list."""

    x: int


class Named(msgspec.Struct):
    """A struct that is written as a mapping."""

    x: int


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(str, "text", id="str"),
        pytest.param(int, "a whole number", id="int"),
        pytest.param(float, "a number", id="float"),
        pytest.param(bool, "true or false", id="bool"),
        pytest.param(None, "nothing", id="None"),
        pytest.param(tuple[int, str], "a list", id="pair"),
        pytest.param(frozenset[int], "a list", id="set"),
        pytest.param(dict[str, int], "a mapping", id="dict"),
        pytest.param(Named, "a mapping", id="struct"),
        pytest.param(Literal["a", "b"], "one of 'a', 'b'", id="choice"),
        pytest.param(int | None, "a whole number or nothing", id="optional"),
        pytest.param(Annotated[str, msgspec.Meta(extra={})], "text", id="annotated"),
    ],
)
def test_a_kind_has_a_name_that_a_person_would_use(kind, expected):
    """
    No type names in messages.
    """
    assert expected == shapes.expected(inspect.type_info(kind))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        pytest.param(float, 1, True, id="a whole number is a number"),
        pytest.param(int, 1.0, False, id="a number is not a whole number"),
        pytest.param(int, True, False, id="true is not a number"),
        pytest.param(float, float("nan"), False, id="not a number"),
        pytest.param(float, float("inf"), True, id="infinity is a number"),
        pytest.param(Literal["a"], "b", True, id="another choice is of the same shape"),
        pytest.param(Literal["a"], 1, False, id="a number is no choice"),
        pytest.param(Any, {"a": 1}, True, id="anything goes"),
        pytest.param(Listed, [1], True, id="a struct written as a list is left to msgspec"),
        pytest.param(int | None, None, True, id="optional"),
    ],
)
def test_a_value_fits_by_its_shape(kind, value, expected):
    """
    Types are compared strictly; what is inside is not looked at.
    """
    assert expected == shapes.fits(inspect.type_info(kind), value)


def test_a_choice_fits_exactly_when_it_is_allowed():
    """
    Hints are only given when following them would help.
    """
    assert not shapes.fits(inspect.type_info(Literal["a"] | None), "b", exactly=True)
    assert shapes.fits(inspect.type_info(Literal["a"] | None), "a", exactly=True)
