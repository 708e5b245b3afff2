"""Laws of reading what people wrote."""

import json
from typing import Annotated, Literal

import msgspec
import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lamina.model import plain
from lamina.model.conversion import convert, mistakes_in
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml, read_yaml_all


def looks_like_text_to_pyyaml_only(text):
    """The documented exception: an exponent without point or sign is a number here, and text to PyYAML."""
    try:
        return not isinstance(plain.scalar(text), str) and isinstance(yaml.safe_load(yaml.safe_dump(text)), str)
    except ValueError:
        return True


characters = st.characters(exclude_categories=["Cs"])
names = st.text(characters, max_size=12).filter(lambda text: text != "<<")
texts = st.text(characters, max_size=20) | st.from_regex(r"[-+]?[0-9._:xob]{1,6}([eE][-+]?[0-9]{1,3})?", fullmatch=True)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False)
    | texts
    | st.sampled_from(
        ["yes", "No", "on", "null", "~", "1:30", "017", "0o17", "2024-05-01", "=", "<<", "1_0", ".5", "-"]
    )
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=20)


def typed(value):
    """The value with its types, since 1, 1.0 and True are equal."""
    match value:
        case list():
            return [typed(item) for item in value]
        case dict():
            return {name: typed(item) for name, item in value.items()}
    return type(value), value


def texts_in(value):
    """All text in a value, names of fields too."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from texts_in(item)
        case dict():
            for name, item in value.items():
                yield name
                yield from texts_in(item)


@given(values, st.booleans(), st.booleans())
@example({"a": {"on": "off"}}, True, False)
def test_what_pyyaml_writes_is_read_back_equal(value, braces, unicode):
    """
    Any plain data comes back with the same types, in either style, except text that is a number in newer YAML.
    """
    assume(not any(looks_like_text_to_pyyaml_only(text) for text in texts_in(value)))
    # Unescaped, PyYAML writes these as line breaks, and reads them back as spaces.
    breaks = any(not set("\x85\u2028\u2029").isdisjoint(text) for text in texts_in(value))
    text = yaml.safe_dump(value, default_flow_style=braces, allow_unicode=unicode and not breaks)

    assert typed(value) == typed(read_yaml(text, "f.yaml").data)


@given(values, st.sampled_from([None, 2]))
def test_json_is_read_as_json(value, indent):
    """
    A file that a program wrote as JSON is read like any other, up to characters that JSON must write as two escapes.
    """
    assume(all(character <= "\uffff" for text in texts_in(value) for character in text))
    text = json.dumps(value, indent=indent, separators=(",", ":"))
    assume("Infinity" not in text)

    assert typed(value) == typed(read_yaml(text, "f.yaml").data)


fragments = st.lists(
    st.sampled_from(
        [*"[]{}:,-?&*!|>%@`'\"#~\\ \n\tab01", "<<", "---", "...", "&a ", "*a", "!!int ", "  ", "\n  ", "\\x"]
    ),
    max_size=40,
).map("".join)


@given(st.text(max_size=60) | fragments)
@example("&a [*a]")
@example('"\\U00110000"')
@example("[" * 5000)
def test_any_text_is_read_or_refused_with_an_input_error(text):
    """
    Nothing else escapes, and every message is one line that points into the file.
    """
    try:
        documents = read_yaml_all(text, "f.yaml")
        mistakes = [mistake for document in documents for mistake in document.mistakes]
    except InputError as error:
        mistakes = list(error.mistakes)
        assert mistakes

    assert [] == [one for one in mistakes if len(str(one).splitlines()) != 1]
    assert [] == [one for one in mistakes if one.line > max(1, len(text.splitlines()))]


class Image(msgspec.Struct, rename="camel"):
    """An image of a scenario."""

    repository: str
    layer_sizes: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()


class Burst(msgspec.Struct, tag="burst"):
    """Pods that come together."""

    count: int
    moment: float = 0.0


class Steady(msgspec.Struct, tag="steady"):
    """Pods that come one after another."""

    interval: float


class Workload(msgspec.Struct, rename="camel"):
    """What runs."""

    display_name: str
    images: list[Image]
    arrivals: Burst | Steady
    restart: Literal["always", "never"] = "always"
    labels: dict[str, str] = {}
    priority: int | None = None


class Scenario(msgspec.Struct):
    """A scenario."""

    workloads: list[Workload]
    seed: int | str = 0
    ready: bool = True


finite = st.floats(allow_nan=False, allow_infinity=False)
quiet = st.text(characters, max_size=10).filter(lambda text: not looks_like_text_to_pyyaml_only(text))
images = st.builds(Image, quiet, st.lists(st.integers(0, 2**62), max_size=3).map(tuple))
workloads = st.builds(
    Workload,
    quiet,
    st.lists(images, max_size=3),
    st.builds(Burst, st.integers(), finite) | st.builds(Steady, finite),
    st.sampled_from(["always", "never"]),
    st.dictionaries(quiet.filter(lambda text: text != "<<"), quiet, max_size=3),
    st.none() | st.integers(-(2**31), 2**31),
)
scenarios = st.builds(Scenario, st.lists(workloads, min_size=1, max_size=3), st.integers() | quiet, st.booleans())


@given(scenarios, st.booleans())
def test_a_struct_that_was_written_is_read_back_equal(scenario, braces):
    """
    Writing and reading are inverse.
    """
    text = yaml.safe_dump(msgspec.to_builtins(scenario), default_flow_style=braces)

    assert scenario == convert(read_yaml(text, "f.yaml"), Scenario)


def struct_fields(value, path=()):
    """The paths of all fields of structs in the data, those of labels excepted: there any name is valid."""
    match value:
        case dict():
            for name, item in value.items():
                yield (*path, name)
                if name != "labels":
                    yield from struct_fields(item, (*path, name))
        case list() | tuple():
            for position, item in enumerate(value):
                yield from struct_fields(item, (*path, position))


def changed(value, path, change):
    """The data with *change* applied to what stands at the path, everything else in its place."""
    if not path:
        return change(value)
    first, *rest = path
    if isinstance(value, dict):
        return {name: changed(item, rest, change) if name == first else item for name, item in value.items()}
    return [changed(item, rest, change) if at == first else item for at, item in enumerate(value)]


@given(scenarios, values, st.data())
def test_the_walk_and_msgspec_agree(scenario, other, data):
    """
    Where a value is replaced by any other, no mistake means that msgspec builds the struct, and the other way round.

    The exceptions are unknown fields, which msgspec lets pass.
    """
    written = msgspec.to_builtins(scenario)
    path = data.draw(st.sampled_from([(), *struct_fields(written)]))
    document = read_yaml(yaml.safe_dump(changed(written, path, lambda _: other)), "f.yaml")
    found = mistakes_in(document, Scenario)

    try:
        built = msgspec.convert(document.root.value, Scenario)
    except msgspec.ValidationError:
        built = None

    if built is None:
        assert found
    else:
        assert [] == [mistake for mistake in found if "unknown field" not in mistake.message]


@given(scenarios | fragments.map(lambda text: {"workloads": text}), fragments)
def test_converting_any_document_raises_an_input_error_or_nothing(scenario, text):
    """
    Whatever follows a sound beginning, `convert` tells what `mistakes_in` lists.
    """
    try:
        document = read_yaml(f"{yaml.safe_dump(msgspec.to_builtins(scenario))}\n{text}", "f.yaml")
    except InputError:
        return
    expected = mistakes_in(document, Scenario)

    actual = []
    try:
        convert(document, Scenario)
    except InputError as error:
        actual = list(error.mistakes)

    assert expected == actual


@given(scenarios, st.data())
def test_every_misspelled_field_is_found_where_it_stands(scenario, data):
    """
    With the path and the line of the wrong name, and with the right name as the suggestion.
    """
    written = msgspec.to_builtins(scenario)
    path = data.draw(st.sampled_from(list(struct_fields(written))))
    name = path[-1]
    at = data.draw(st.integers(0, len(name)))
    wrong = f"{name[:at]}Q7{name[at:]}"

    def rename(fields):
        return {wrong if one == name else one: item for one, item in fields.items()}

    text = yaml.safe_dump(changed(written, path[:-1], rename), sort_keys=False, width=10**6)
    line = next(number for number, one in enumerate(text.split("\n"), start=1) if wrong in one)

    found = mistakes_in(read_yaml(text, "f.yaml"), Scenario)

    assert [(line, plain.written_path((*path[:-1], wrong)), f"unknown field '{wrong}'; did you mean '{name}'?")] == [
        (one.line, one.path, one.message) for one in found if wrong in one.path and "unknown" in one.message
    ]
    assert len(found) == 1 or name == "type"


@pytest.mark.parametrize("text", ["1e5", "12E3", "1.5e3"], ids=str)
def test_the_documented_exception_is_one(text):
    """
    PyYAML writes such text without quotes, and Kubernetes reads it as a number; so do we.
    """
    assert yaml.safe_dump(text).startswith(text)
    assert float(text) == read_yaml(yaml.safe_dump(text), "f.yaml").data
