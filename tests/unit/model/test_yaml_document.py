"""Reading YAML that a person wrote."""

import pytest
import yaml

from lamina.model import yaml_document
from lamina.model.errors import InputError
from lamina.model.yaml_document import read_yaml, read_yaml_all


@pytest.fixture(
    autouse=True,
    params=[
        pytest.param("CSafeLoader", id="fast parser"),
        pytest.param("SafeLoader", id="slow parser"),
    ],
)
def parser(request, monkeypatch):
    """Both parsers of PyYAML must give the same answers."""
    if not hasattr(yaml, request.param):
        pytest.skip("this PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_document, "LOADER", getattr(yaml, request.param))


def said(text):
    """All that is said about *text*, whether reading went on or not."""
    with pytest.raises(InputError) as caught:
        _ = read_yaml(text, "f.yaml").data
    return [str(mistake) for mistake in caught.value.mistakes]


SCENARIO = """\
# a comment
name: demo
nodes:
  - name: n1
    labels: {zone: a,
             disk: ssd}
  -
    name: n2
base: &base
  cpu: 4
copy: *base
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param((), 2, id="the root: its first field"),
        pytest.param(("name",), 2, id="a field: the line of its name"),
        pytest.param(("nodes",), 3, id="a field whose value starts below"),
        pytest.param(("nodes", 0), 4, id="an item"),
        pytest.param(("nodes", 0, "labels", "disk"), 6, id="inside braces"),
        pytest.param(("nodes", 1), 8, id="an item that starts below its dash"),
        pytest.param(("nodes", 1, "name"), 8, id="a field of an item"),
        pytest.param(("copy",), 11, id="an alias: where it is used"),
        pytest.param(("copy", "cpu"), 10, id="inside an alias: where it is written"),
        pytest.param(("nodes", 0, "absent", "deeper"), 4, id="absent: the nearest around it"),
        pytest.param(("nodes", 7), 3, id="absent item: the list"),
        pytest.param(("name", "deeper"), 2, id="inside text: the text"),
    ],
)
def test_everything_knows_its_line(path, expected):
    """
    A field stands where its name stands; what is absent stands where the nearest thing around it does.
    """
    assert expected == read_yaml(SCENARIO, "f.yaml").line(path)


def test_a_document_is_plain_data():
    """
    Mappings, lists, text, numbers, true, false and nothing; an alias is what it names.
    """
    expected = {
        "name": "demo",
        "nodes": [{"name": "n1", "labels": {"zone": "a", "disk": "ssd"}}, {"name": "n2"}],
        "base": {"cpu": 4},
        "copy": {"cpu": 4},
    }

    assert expected == read_yaml(SCENARIO, "f.yaml").data


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("yes", True, id="unquoted yes"),
        pytest.param("'yes'", "yes", id="quoted yes"),
        pytest.param('"12"', "12", id="quoted digits"),
        pytest.param("|\n  12\n", "12\n", id="a block of text"),
        pytest.param("!!str 12", "12", id="tagged as text"),
        pytest.param("! 12", "12", id="tagged as not to be guessed"),
        pytest.param("!!float 3", 3.0, id="tagged as number"),
        pytest.param("!!int '3'", 3, id="quoted, tagged as whole number"),
        pytest.param("!!null ''", None, id="tagged as nothing"),
        pytest.param("!!bool no", False, id="tagged as true or false"),
        pytest.param("!!seq [1]", [1], id="tagged as list"),
        pytest.param("!!map {b: 1}", {"b": 1}, id="tagged as mapping"),
        pytest.param("2024-05-01", "2024-05-01", id="a date stays text"),
        pytest.param("1:30", "1:30", id="a time stays text"),
        pytest.param("", None, id="nothing at all"),
        pytest.param("&x {b: 1}", {"b": 1}, id="an unused anchor"),
    ],
)
def test_a_value_is_what_it_looks_like_unless_quoted_or_tagged(written, expected):
    """
    Quotes make text, core tags decide, and the rest is read as told in the module on plain data.
    """
    actual = read_yaml(f"a: {written}", "f.yaml").data["a"]

    assert (type(expected), expected) == (type(actual), actual)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1\n", [{"a": 1}], id="one"),
        pytest.param("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="two"),
        pytest.param("---\n# nothing\n---\na: 1\n---\n", [{"a": 1}], id="empty ones are left out"),
        pytest.param("--- &x 1\n--- null\n", [1, None], id="a written null is not empty"),
    ],
)
def test_a_file_may_hold_several_documents(text, expected):
    """
    Documents are separated by ---, and empty ones do not count, as with kubectl.
    """
    assert expected == [one.data for one in read_yaml_all(text, "f.yaml")]


def test_lines_are_counted_through_the_whole_file():
    """
    The second document does not start at line one again.
    """
    assert 3 == read_yaml_all("a: 1\n---\nb: 2\n", "f.yaml")[1].line(("b",))


def test_each_document_carries_its_own_mistakes():
    """
    A mistake in one document leaves the others usable.
    """
    first, second, third = read_yaml_all("a: 1\n---\nb: 1\nb: 2\n---\nc: 3\n", "f.yaml")

    assert ((), ()) == (first.mistakes, third.mistakes)
    assert ["f.yaml:4: b: written twice in one mapping, first on line 3"] == [str(one) for one in second.mistakes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a: 1\nb: 2\na: 3\nc: {x: 1,\n  x: 2}\n",
            [
                "f.yaml:3: a: written twice in one mapping, first on line 1",
                "f.yaml:5: c.x: written twice in one mapping, first on line 4",
            ],
            id="fields written twice, all of them",
        ),
        pytest.param(
            "- on: 1\n- 3: 2\n- ~: 3\n",
            [
                "f.yaml:1: [0].on: YAML does not read this name as text; put it in quotes",
                "f.yaml:2: [1]['3']: YAML does not read this name as text; put it in quotes",
                "f.yaml:3: [2]['~']: YAML does not read this name as text; put it in quotes",
            ],
            id="names that are not text",
        ),
        pytest.param(
            "? [a, b]\n: 1\n",
            ["f.yaml:1: ['?']: the name of a field cannot be a list or a mapping"],
            id="a list as a name",
        ),
        pytest.param(
            "a: {b: 1}\nc:\n  <<: 1\n",
            ["f.yaml:3: c['<<']: merge keys (<<) are not read; write the fields out"],
            id="a merge key",
        ),
        pytest.param(
            "a: !!timestamp 2024-05-01\nb: !mine {c: 1}\nd: !!int x\ne: !!set [1]\n",
            [
                "f.yaml:1: a: tag '!!timestamp' does not fit or is not understood; remove it",
                "f.yaml:2: b: tag '!mine' does not fit or is not understood; remove it",
                "f.yaml:3: d: tag '!!int' does not fit or is not understood; remove it",
                "f.yaml:4: e: tag '!!set' does not fit or is not understood; remove it",
            ],
            id="tags beyond the core",
        ),
        pytest.param(
            "a: !!python/object/apply:os.getcwd []\n",
            ["f.yaml:1: a: tag '!!python/object/apply:os.getcwd' does not fit or is not understood; remove it"],
            id="a tag that would run code",
        ),
        pytest.param("a: [*b]\n", ["f.yaml:1: a[0]: *b has no &b above it"], id="an alias of nothing"),
        pytest.param("a: &b [*b]\n", ["f.yaml:1: a[0]: *b stands inside what it names"], id="an alias of itself"),
        pytest.param(
            "a: 1e999\n",
            ["f.yaml:1: a: the number '1e999' is too large; put it in quotes if it is text"],
            id="a number too large",
        ),
        pytest.param(
            "a: 1\na: 2\nb: [\n",
            [
                "f.yaml:2: a: written twice in one mapping, first on line 1",
                "f.yaml:3: not valid YAML: a value or a ',' is missing, or a bracket is never closed",
            ],
            id="what was noted before reading had to stop is told too",
        ),
    ],
)
def test_all_mistakes_are_told_with_line_and_field(text, expected):
    """
    Reading goes on after whatever can be stepped over.
    """
    assert expected == said(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a:\n\t- b\n", "f.yaml:2: not valid YAML: no value starts with this character", id="a tab"),
        pytest.param("a: b: c\n", "f.yaml:1: not valid YAML: a ':' where no field can start", id="two colons"),
        pytest.param("a: - b\n", "f.yaml:1: not valid YAML: a list cannot start on the line of its name", id="a dash"),
        pytest.param(
            "a:\n  b: 1\n c: 2\n",
            "f.yaml:3: not valid YAML: this line does not line up with the lines above it; "
            "check the indentation (inside what begins on line 1)",
            id="indentation",
        ),
        pytest.param(
            "a: 'x\nb: 2\nc: 3\n",
            "f.yaml:3: not valid YAML: a quote is opened and never closed (inside what begins on line 1)",
            id="an open quote: where it ends and where it began",
        ),
        pytest.param("a: {b: 1\n", "f.yaml:1: not valid YAML: a value or a ',' is missing", id="an open brace"),
        pytest.param(
            "a: 1\n...\nb: 2\n", "f.yaml:3: not valid YAML: the data ended above this line", id="after the end"
        ),
        pytest.param("a: \x07\n", "f.yaml:1: character U+0007 is not allowed in YAML", id="a control character"),
        pytest.param("a: 1\nb: \ud800\n", "f.yaml:2: character U+D800 is not allowed in YAML", id="half a character"),
        pytest.param('"\\U00110000"', "not valid YAML: ", id="an escape beyond all characters"),
        pytest.param("!<%ff> a", "not valid YAML: ", id="a tag that is not text"),
        pytest.param("%YAML 9.9\n---\na", "not valid YAML: found incompatible YAML document", id="another YAML"),
        pytest.param("", "f.yaml:1: nothing in it: the file is empty or holds only comments", id="empty"),
        pytest.param("# a\n---\n# b\n", "f.yaml:1: nothing in it: the file is empty", id="only comments"),
        pytest.param("a: 1\n---\nb: 2\n", "f.yaml:3: a second document starts here", id="two documents"),
    ],
)
def test_what_is_not_one_yaml_document_is_refused_in_plain_words(text, expected):
    """
    One line, with the place and what to check.
    """
    (message,) = said(text)

    assert expected in message
    assert 1 == len(message.splitlines())


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[" * 100_000, "f.yaml:1: nested too deep; at most 64 levels are read", id="brackets"),
        pytest.param("- " * 100_000, "f.yaml:1: nested too deep; at most 64 levels are read", id="dashes"),
        pytest.param("? " * 100_000, "f.yaml:1: nested too deep; at most 64 levels are read", id="names of names"),
        pytest.param(
            f"a: &a {'[' * 40}{']' * 40}\nb: {'[' * 40}*a{']' * 40}\n",
            "f.yaml:2: nested too deep; at most 64 levels are read",
            id="deep by an alias",
        ),
        pytest.param(
            BOMB,
            "f.yaml:6: too much in it; at most 200000 values are read, aliases written out",
            id="aliases of aliases",
        ),
        pytest.param("a: " + "x" * yaml_document.MAX_BYTES, "f.yaml: too large; at most 16 MiB are read", id="large"),
        pytest.param(
            "ä" * (yaml_document.MAX_BYTES // 2 + 1), "f.yaml: too large; at most 16 MiB are read", id="large in bytes"
        ),
    ],
)
def test_no_text_makes_the_reader_work_without_end(text, expected):
    """
    Size, depth and number are bounded before anything is built.
    """
    assert [expected] == said(text)


def test_the_bounds_themselves_are_allowed(monkeypatch):
    """
    64 levels are read, and as many values as the bound says.
    """
    monkeypatch.setattr(yaml_document, "MAX_NODES", 64)

    assert 64 == read_yaml("[" * 64 + "]" * 64, "f.yaml").root.height
    assert ["f.yaml:1: too much in it; at most 64 values are read, aliases written out"] == said(
        "[" * 64 + "1" + "]" * 64
    )


def test_an_alias_counts_as_all_it_stands_for():
    """
    A list of two is three things, here twice; with both names and the mapping around them, nine.
    """
    assert 9 == read_yaml("a: &x [1, 2]\nb: *x\n", "f.yaml").root.size


def test_a_document_with_mistakes_gives_no_data_but_can_be_looked_at():
    """Its data cannot be used by accident; the schema check still finds more mistakes."""
    doubtful = read_yaml("a: 1\na: 2\n", "f.yaml")

    assert {"a": 1} == doubtful.root.value
    with pytest.raises(InputError):
        _ = doubtful.data
