"""From documents to structs, with every mistake at once."""

import datetime
import enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from lamina.model.conversion import convert, mistakes_in, suggest
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml


def a_size(text):
    """Read a size such as 5Gi, or say that it is none."""
    if not str(text).endswith("Gi"):
        raise ValueError(f"{text!r} is not a size;\n  write it like 5Gi")


Size = Annotated[str, msgspec.Meta(extra={"reads": a_size})]


class Reuse(enum.Enum):
    """What a node can reuse."""

    PREFIX = "prefix"
    SET = "set"


class Fixed(msgspec.Struct, tag="fixed"):
    """Pods that come at fixed times."""

    at: list[float]


class Poisson(msgspec.Struct, tag="poisson"):
    """Pods that come at random."""

    rate: float


class Node(msgspec.Struct, rename="camel"):
    """A node of a scenario."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=8, pattern="^[a-z0-9-]*$")]
    cores: Annotated[int, msgspec.Meta(ge=1, le=512)] = 1
    bandwidth: Size | None = None
    disk_size: Size = "1Gi"
    labels: dict[str, str] = {}
    speed: Annotated[float, msgspec.Meta(gt=0, lt=10)] = 1.0
    ready: bool = True
    reuse: Reuse = Reuse.PREFIX


class Scenario(msgspec.Struct, kw_only=True):
    """A scenario."""

    nodes: Annotated[list[Node], msgspec.Meta(min_length=1, max_length=3)]
    policy: Literal["locality", "spread", "on"] = "spread"
    arrivals: Fixed | Poisson | None = None
    only: Poisson | None = None
    window: tuple[int, int] = (0, 1)
    amounts: tuple[tuple[str, int], ...] = ()
    seed: int | str = 0
    limit: Annotated[int | str, msgspec.Meta(extra={"reads": a_size})] = "1Gi"
    start: datetime.date | None = None
    notes: Any = None


def said(text, kind=Scenario):
    """All that is said about *text*."""
    return [str(mistake) for mistake in mistakes_in(read_yaml(text, "f.yaml"), kind)]


def test_a_document_without_mistakes_becomes_the_struct():
    """
    Renamed fields, optional ones, choices, tagged and untagged unions, tuples and readers.
    """
    text = """\
nodes:
  - {name: n1, cores: 4, bandwidth: 5Gi, diskSize: 2Gi, labels: {zone: a}, speed: 2, ready: no, reuse: set}
  - {name: n2, bandwidth: null}
policy: locality
arrivals: {type: poisson, rate: 2}
only: {rate: .5}
window: [1, 2]
amounts: [[cpu, 1], [memory, 2]]
seed: abc
start: 2024-05-01
notes: [1, {x: null}]
"""
    expected = Scenario(
        nodes=[
            Node("n1", 4, "5Gi", "2Gi", {"zone": "a"}, 2.0, False, Reuse.SET),
            Node("n2"),
        ],
        policy="locality",
        arrivals=Poisson(2.0),
        only=Poisson(0.5),
        window=(1, 2),
        amounts=(("cpu", 1), ("memory", 2)),
        seed="abc",
        start=datetime.date(2024, 5, 1),
        notes=[1, {"x": None}],
    )

    assert expected == convert(read_yaml(text, "f.yaml"), Scenario)


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines():
    """
    Mistakes in the YAML and in its meaning come in one list, from the top of the file to its end.
    """
    text = """\
polcy: spread
nodes:
  - name: n1
    bandwith: 5Gi
    cores: four
  - cores: 0
    cores: 2
    diskSize: 5
"""
    expected = [
        "f.yaml:1: polcy: unknown field 'polcy'; did you mean 'policy'?",
        "f.yaml:4: nodes[0].bandwith: unknown field 'bandwith'; did you mean 'bandwidth'?",
        "f.yaml:5: nodes[0].cores: expected a whole number, found text 'four'",
        "f.yaml:6: nodes[1].cores: must be at least 1, found 0",
        "f.yaml:6: nodes[1].name: required field is missing",
        "f.yaml:7: nodes[1].cores: written twice in one mapping, first on line 6",
        "f.yaml:8: nodes[1].diskSize: expected text, found the number 5; put it in quotes",
    ]
    document = read_yaml(text, "f.yaml")

    with pytest.raises(InputError) as caught:
        convert(document, Scenario)

    assert expected == [str(mistake) for mistake in caught.value.mistakes]
    assert list(caught.value.mistakes) == mistakes_in(document, Scenario)


NODES = "nodes: [{name: n1}]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[]", "f.yaml:1: expected a mapping, found a list", id="a list at the root"),
        pytest.param("null", "f.yaml:1: expected a mapping, found nothing", id="nothing at the root"),
        pytest.param("policy: on", "policy: expected one of", id="on: the YAML trap in a choice"),
        pytest.param(
            "policy: on",
            "found on (which YAML reads as true); put it in quotes",
            id="on: how to get out of the trap",
        ),
        pytest.param("policy: 3", "'spread', found the number 3", id="a number where a choice is expected"),
        pytest.param("policy: sprad", "policy: 'sprad' is not allowed; did you mean 'spread'?", id="near a choice"),
        pytest.param("policy: x", "'x' is not allowed; choose from locality, on, spread", id="near no choice"),
        pytest.param(
            "nodes: [{name: n1, reuse: sett}]", "nodes[0].reuse: 'sett' is not allowed; did you mean 'set'?", id="enum"
        ),
        pytest.param("nodes: {name: n1}", "f.yaml:1: nodes: expected a list, found a mapping", id="mapping for list"),
        pytest.param("nodes:", "f.yaml:1: nodes: expected a list, found nothing", id="nothing for list"),
        pytest.param("nodes: []", "nodes: must have at least 1 item, found 0", id="too few items"),
        pytest.param(
            "nodes: [{name: a}, {name: b}, {name: c}, {name: d}]",
            "nodes: must have at most 3 items, found 4",
            id="too many",
        ),
        pytest.param("nodes: [{name: ''}]", "nodes[0].name: must have at least 1 character, found 0", id="too short"),
        pytest.param("nodes: [{name: abcdefghi}]", "must have at most 8 characters, found 9", id="too long"),
        pytest.param("nodes: [{name: N1}]", "must match the pattern ^[a-z0-9-]*$, found 'N1'", id="pattern"),
        pytest.param(
            "nodes: [{name: no}]", "expected text, found no (which YAML reads as false); put it in quotes", id="Norway"
        ),
        pytest.param("nodes: [{name: 1.10}]", "expected text, found the number 1.10; put it in quotes", id="a version"),
        pytest.param(
            "nodes: [{name: a, cores: '4'}]",
            "expected a whole number, found text '4'; remove the quotes",
            id="quoted number",
        ),
        pytest.param(
            "nodes: [{name: a, cores: 4.5}]", "expected a whole number, found the number 4.5", id="half a core"
        ),
        pytest.param(
            "nodes: [{name: a, cores: 1e2}]", "expected a whole number, found the number 1e2; write 100", id="exponent"
        ),
        pytest.param("nodes: [{name: a, cores: true}]", "expected a whole number, found true", id="true is no number"),
        pytest.param("nodes: [{name: a, cores: 513}]", "must be at most 512, found 513", id="too many cores"),
        pytest.param("nodes: [{name: a, speed: 0}]", "must be more than 0", id="not above"),
        pytest.param("nodes: [{name: a, speed: 10}]", "must be less than 10", id="not below"),
        pytest.param("nodes: [{name: a, speed: .nan}]", "expected a number, found the number .nan", id="not a number"),
        pytest.param(
            "nodes: [{name: a, ready: 1}]", "expected true or false, found the number 1", id="one is not true"
        ),
        pytest.param("nodes: [{name: a, ready: 'yes'}]", "found text 'yes'; remove the quotes", id="quoted yes"),
        pytest.param(
            "nodes: [{name: a, labels: {x: 1}}]", "nodes[0].labels.x: expected text, found the number 1", id="label"
        ),
        pytest.param(
            "nodes: [{name: a, labels: [x]}]", "nodes[0].labels: expected a mapping, found a list", id="labels"
        ),
        pytest.param(
            "nodes: [{name: a, bandwidth: 5}]",
            "expected text or nothing, found the number 5; put it in quotes",
            id="union",
        ),
        pytest.param(
            "nodes: [{name: a, disk_size: 5Gi}]", "unknown field 'disk_size'; did you mean 'diskSize'?", id="snake case"
        ),
        pytest.param(
            "nodes: [{NAME: a}]", "unknown field 'NAME'; did you mean 'name'?", id="capitals, and not missing too"
        ),
        pytest.param(
            "nodes: [{name: a, zzz: 1}]",
            "unknown field 'zzz'; choose from name, cores, bandwidth, diskSize, labels, speed, ready, reuse",
            id="near no field",
        ),
        pytest.param(
            "nodes: [{name: a, diskSize: 5}]", "found the number 5; put it in quotes", id="reader: wrong type first"
        ),
        pytest.param(
            "nodes: [{name: a, diskSize: 5G}]",
            "'5G' is not a size; write it like 5Gi",
            id="reader: its message on one line",
        ),
        pytest.param(
            "nodes: [{name: a, bandwidth: 5G}]", "nodes[0].bandwidth: '5G' is not a size", id="reader inside a union"
        ),
        pytest.param(f"{NODES}limit: 7", "f.yaml:2: limit: 7 is not a size", id="reader around a union"),
        pytest.param(f"{NODES}window: [1]", "f.yaml:2: window: must have at least 2 items, found 1", id="short pair"),
        pytest.param(
            f"{NODES}window: [1, x]", "window[1]: expected a whole number, found text 'x'", id="wrong half of a pair"
        ),
        pytest.param(f"{NODES}amounts: [[cpu, x]]", "amounts[0][1]: expected a whole number", id="pairs"),
        pytest.param(
            f"{NODES}seed: 1.5", "expected a whole number or text, found the number 1.5; put it in quotes", id="either"
        ),
        pytest.param(f"{NODES}arrivals: 3", "expected a mapping or nothing, found the number 3", id="no struct at all"),
        pytest.param(
            f"{NODES}arrivals: {{rate: 3}}",
            "arrivals.type: required field is missing; choose from fixed, poisson",
            id="no tag",
        ),
        pytest.param(
            f"{NODES}arrivals: {{type: poison}}",
            "arrivals.type: 'poison' is not allowed; did you mean 'poisson'?",
            id="near a tag",
        ),
        pytest.param(
            f"{NODES}arrivals: {{type: [1]}}",
            "arrivals.type: [1] is not allowed; choose from fixed, poisson",
            id="odd tag",
        ),
        pytest.param(
            f"{NODES}arrivals: {{type: fixed, at: [x]}}",
            "arrivals.at[0]: expected a number, found text 'x'",
            id="tagged",
        ),
        pytest.param(
            f"{NODES}only: {{type: fixed, rate: 1}}",
            "only.type: 'fixed' is not allowed; choose from poisson",
            id="only tag",
        ),
        pytest.param(f"{NODES}start: 3", "f.yaml:2: start: ", id="a kind judged by msgspec alone"),
        pytest.param(f'{NODES}"a\\nb": 1', "f.yaml:2: ['a\\nb']: unknown field 'a\\nb'", id="an odd name"),
    ],
)
def test_a_mistake_says_what_is_wrong_and_what_to_try(text, expected):
    """
    Whatever is wrong, the message stands on one line with file, line and field.
    """
    with pytest.raises(InputError) as caught:
        convert(read_yaml(text, "f.yaml"), Scenario)
    actual = [str(mistake) for mistake in caught.value.mistakes]

    assert [expected] == [expected for one in actual if expected in one]
    assert len(actual) == len("\n".join(actual).splitlines())


def test_a_misspelled_required_field_is_told_once():
    """
    The suggestion already says what is missing.
    """
    assert ["f.yaml:1: nodes[0].nme: unknown field 'nme'; did you mean 'name'?"] == said("nodes: [{nme: a}]")


def test_what_the_document_already_says_about_a_value_is_not_said_again():
    """
    An alias that names nothing is not also "nothing" where a number is expected.
    """
    assert ["f.yaml:2: only.rate: *x has no &x above it"] == said(f"{NODES}only: {{rate: *x}}")


def test_a_misspelled_tag_is_pointed_out():
    """
    Without its tag nothing is known about a struct, but the wrong name is.
    """
    expected = [
        "f.yaml:2: arrivals.typ: unknown field 'typ'; did you mean 'type'?",
        "f.yaml:2: arrivals.type: required field is missing; choose from fixed, poisson",
    ]

    assert expected == said(f"{NODES}arrivals: {{typ: fixed, at: []}}")


def test_unknown_fields_are_mistakes_even_where_the_struct_would_ignore_them():
    """
    msgspec alone would let them pass.
    """
    assert Poisson(1.0) == msgspec.convert({"rate": 1, "rat": 2}, Poisson)
    assert ["f.yaml:1: rat: unknown field 'rat'; did you mean 'rate'?"] == said("{rate: 1, rat: 2}", Poisson)


class Range(msgspec.Struct):
    """A struct with a rule of its own."""

    low: int
    high: int

    def __post_init__(self) -> None:
        """Keep the order."""
        if self.low > self.high:
            raise ValueError("low is above high - at all times it must be below")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        pytest.param(
            list[Range],
            "- {low: 1, high: 2}\n- {low: 3,\n   high: 2}\n",
            "f.yaml:2: [1]: low is above high - at all times it must be below",
            id="in a list: its line",
        ),
        pytest.param(
            dict[str, Range],
            "a: {low: 1, high: 2}\nb: {low: 3, high: 2}\n",
            "f.yaml:1: low is above high - at all times it must be below",
            id="in a mapping: msgspec does not say which field",
        ),
        pytest.param(dict[int, int], "'x': 1\n", "f.yaml:1: x: expected a whole number, found text 'x'", id="a key"),
    ],
)
def test_what_only_msgspec_finds_is_a_mistake_too(kind, text, expected):
    """
    Rules inside structs are heard last, and reported like everything else.
    """
    with pytest.raises(InputError) as caught:
        convert(read_yaml(text, "f.yaml"), kind)

    assert expected == str(caught.value)


def test_part_of_a_document_can_be_converted():
    """
    A caller that learns from one field what another one holds converts piece by piece; lines and paths stay whole.
    """
    document = read_yaml("kind: Range\nargs:\n  low: 1\n  high: 2\nbad:\n  low: x\n", "f.yaml")

    assert Range(1, 2) == convert(document, Range, ("args",))
    assert [
        "f.yaml:5: bad.high: required field is missing",
        "f.yaml:6: bad.low: expected a whole number, found text 'x'",
    ] == [str(mistake) for mistake in mistakes_in(document, Range, ("bad",))]


def test_no_part_of_a_doubtful_document_is_converted():
    """
    A field written twice elsewhere stops the conversion of a sound part, but is not listed with its mistakes.
    """
    document = read_yaml("a: 1\na: 2\nargs: {low: 1, high: 2}\n", "f.yaml")

    assert [] == mistakes_in(document, Range, ("args",))
    with pytest.raises(InputError, match="a: written twice"):
        convert(document, Range, ("args",))


def test_a_reader_that_fails_by_our_own_fault_is_not_hidden():
    """
    Only ValueError speaks to the person; anything else is a bug and must be seen.
    """

    def broken(_):
        raise KeyError("bug")

    kind = Annotated[str, msgspec.Meta(extra={"reads": broken})]

    with pytest.raises(KeyError):
        mistakes_in(read_yaml("text", "f.yaml"), kind)


@pytest.mark.parametrize(
    ("name", "valid", "expected"),
    [
        pytest.param("bandwith", ["bandwidth", "cores"], "did you mean 'bandwidth'?", id="a letter missing"),
        pytest.param("CPU", ["cpu", "memory"], "did you mean 'cpu'?", id="capitals"),
        pytest.param("image-pull_policy", ["imagePullPolicy"], "did you mean 'imagePullPolicy'?", id="dashes"),
        pytest.param("zzz", ["cpu", "memory"], "choose from cpu, memory", id="near none"),
        pytest.param(
            "zzz",
            [f"n{i}" for i in range(14)],
            f"choose from {', '.join(f'n{i}' for i in range(12))} and 2 more",
            id="many",
        ),
        pytest.param("zzz", [], "nothing can be chosen here", id="none at all"),
        pytest.param("z" * 1_000_000, ["cpu"], "choose from cpu", id="a very long name"),
    ],
)
def test_a_suggestion_is_the_nearest_name_or_the_list(name, valid, expected):
    """
    One name if one is near, else up to twelve.
    """
    assert expected == suggest(name, valid)
