"""Selectors: which labels and names match, and what a malformed selector matches (nothing)."""

import pytest

from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement

LABELS = {"zone": "a", "cores": "16", "spot": "", "example.com/tier": "gold", "word": "many"}


def having(key, operator, *values):
    return Requirement(key, operator, values)


@pytest.mark.parametrize(
    ("requirement", "want"),
    [
        pytest.param(having("zone", "In", "b", "a"), True, id="In: one of them"),
        pytest.param(having("zone", "In", "b"), False, id="In: none of them"),
        pytest.param(having("gone", "In", "a"), False, id="In: no such label"),
        pytest.param(having("spot", "In", ""), True, id="In: the empty value is a value"),
        pytest.param(having("gone", "In", ""), False, id="In: the empty value is not a missing label"),
        pytest.param(having("zone", "NotIn", "b"), True, id="NotIn: another value"),
        pytest.param(having("zone", "NotIn", "b", "a"), False, id="NotIn: one of them"),
        pytest.param(having("gone", "NotIn", "a"), True, id="NotIn: a missing label matches"),
        pytest.param(having("spot", "Exists"), True, id="Exists: even when empty"),
        pytest.param(having("gone", "Exists"), False, id="Exists: no such label"),
        pytest.param(having("gone", "DoesNotExist"), True, id="DoesNotExist: no such label"),
        pytest.param(having("spot", "DoesNotExist"), False, id="DoesNotExist: not even when empty"),
        pytest.param(having("example.com/tier", "In", "gold"), True, id="a key with a prefix"),
    ],
)
def test_a_requirement_is_met_by_its_operator(requirement, want):
    """The four operators that both kinds of selectors have."""
    assert want == requirement.matches(LABELS)


@pytest.mark.parametrize(
    ("held", "operator", "bound", "want"),
    [
        pytest.param("16", "Gt", "15", True, id="greater"),
        pytest.param("16", "Gt", "16", False, id="equal is not greater"),
        pytest.param("9", "Gt", "10", False, id="numbers, not text"),
        pytest.param("16", "Lt", "17", True, id="less"),
        pytest.param("16", "Lt", "16", False, id="equal is not less"),
        pytest.param("-1", "Lt", "0", True, id="a negative label"),
        pytest.param("+1", "Gt", "0", True, id="a label with a plus"),
        pytest.param("007", "Lt", "8", True, id="leading zeros"),
        pytest.param("9223372036854775807", "Gt", "0", True, id="the largest 64-bit number"),
        pytest.param("9223372036854775808", "Gt", "0", False, id="beyond 64 bits"),
        pytest.param("-9223372036854775808", "Lt", "0", True, id="the smallest 64-bit number"),
        pytest.param("-9223372036854775809", "Lt", "0", False, id="beyond 64 bits below zero"),
        pytest.param("many", "Gt", "0", False, id="a word"),
        pytest.param("", "Gt", "0", False, id="empty"),
        pytest.param("1.5", "Gt", "0", False, id="a fraction"),
        pytest.param("1_000", "Gt", "0", False, id="python's underscore"),
        pytest.param(" 1", "Gt", "0", False, id="a space"),
        pytest.param("٣", "Gt", "0", False, id="a digit of another script"),
        pytest.param("1" * 100_000, "Gt", "0", False, id="more digits than a label may have"),
        pytest.param("16", "Gt", "few", False, id="the bound is a word"),
        pytest.param("16", "Gt", "-1", False, id="a bound no label value could be"),
        pytest.param(None, "Gt", "0", False, id="no such label"),
        pytest.param(None, "Lt", "0", False, id="no such label, less"),
    ],
)
def test_gt_and_lt_compare_64_bit_integers(held, operator, bound, want):
    """What is not such a number on either side does not match."""
    assert want == having("cores", operator, bound).matches({} if held is None else {"cores": held})


@pytest.mark.parametrize(
    "requirement",
    [
        pytest.param(having("zone", "In"), id="In without values"),
        pytest.param(having("gone", "NotIn"), id="NotIn without values"),
        pytest.param(having("zone", "Exists", "a"), id="Exists with a value"),
        pytest.param(having("gone", "DoesNotExist", "a"), id="DoesNotExist with a value"),
        pytest.param(having("cores", "Gt"), id="Gt without a value"),
        pytest.param(having("cores", "Gt", "1", "2"), id="Gt with two values"),
        pytest.param(having("zone", "Equals", "a"), id="an operator there is not"),
        pytest.param(having("zone", "", "a"), id="no operator"),
        pytest.param(having("zone", "In", "a", "not a label"), id="a good value beside one no label can have"),
        pytest.param(having("gone", "NotIn", "-a"), id="a value that begins with a dash"),
        pytest.param(having("gone", "NotIn", "a" * 64), id="a value longer than labels are"),
        pytest.param(having("", "DoesNotExist"), id="no key"),
        pytest.param(having("a b", "DoesNotExist"), id="a key with a space"),
        pytest.param(having("k" * 64, "DoesNotExist"), id="a key longer than keys are"),
        pytest.param(having("/k", "DoesNotExist"), id="an empty prefix"),
        pytest.param(having("a/b/k", "DoesNotExist"), id="two prefixes"),
        pytest.param(having("Example.com/k", "DoesNotExist"), id="a prefix in upper case"),
        pytest.param(having("a..b/k", "DoesNotExist"), id="a prefix with an empty part"),
        pytest.param(having("p" * 254 + "/k", "DoesNotExist"), id="a prefix longer than prefixes are"),
    ],
)
def test_a_malformed_requirement_matches_nothing(requirement):
    """Whatever its operator says; nodes must not be let in by a mistake."""
    assert not requirement.matches(LABELS)


NAMED = having("metadata.name", "In", "n1")
ODD = having("disk", "Is", "ssd")


@pytest.mark.parametrize(
    ("term", "want"),
    [
        pytest.param(NodeSelectorTerm(), None, id="nothing is asked for"),
        pytest.param(NodeSelectorTerm((having("disk", "Exists"),), (NAMED,)), None, id="both make sense"),
        pytest.param(NodeSelectorTerm((having("disk", "Exists"), ODD)), ODD, id="an operator there is not"),
        pytest.param(NodeSelectorTerm((having("n", "Gt", "5"),)), None, id="more than a number"),
        pytest.param(NodeSelectorTerm((having("n", "Lt", "a"),)), having("n", "Lt", "a"), id="less than a word"),
        pytest.param(NodeSelectorTerm((having("n", "Gt"),)), having("n", "Gt"), id="more than nothing"),
        pytest.param(NodeSelectorTerm((), (NAMED, ODD)), ODD, id="an operator there is not for fields"),
        pytest.param(
            NodeSelectorTerm((), (having("metadata.name", "In", "a", "b"),)),
            having("metadata.name", "In", "a", "b"),
            id="two names at once",
        ),
    ],
)
def test_a_term_tells_what_in_it_makes_no_sense(term, want):
    """The first such requirement, so that the error can name it."""
    assert want == term.malformed()


@pytest.mark.parametrize(
    "requirement",
    [
        pytest.param(having("k" * 63, "DoesNotExist"), id="the longest key"),
        pytest.param(having("p" * 253 + "/k", "DoesNotExist"), id="the longest prefix"),
        pytest.param(having("gone", "NotIn", "a" * 63), id="the longest value"),
        pytest.param(having("A_b-c.d", "NotIn", "A_b-c.d"), id="every character there is"),
    ],
)
def test_the_longest_well_formed_requirements_count(requirement):
    """The caps are the API's own."""
    assert requirement.matches(LABELS)


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param(LabelSelector(), True, id="empty: everything"),
        pytest.param(LabelSelector((("zone", "a"),)), True, id="one label"),
        pytest.param(LabelSelector((("zone", "a"), ("cores", "8"))), False, id="one of two labels"),
        pytest.param(LabelSelector((("gone", ""),)), False, id="an empty value is not a missing label"),
        pytest.param(LabelSelector((), (having("zone", "NotIn", "b"),)), True, id="one expression"),
        pytest.param(
            LabelSelector((("zone", "a"),), (having("spot", "DoesNotExist"),)), False, id="label but not expression"
        ),
        pytest.param(
            LabelSelector((("zone", "b"),), (having("spot", "Exists"),)), False, id="expression but not label"
        ),
        pytest.param(LabelSelector((), (having("cores", "Gt", "1"),)), False, id="Gt is for nodes"),
        pytest.param(LabelSelector((), (having("cores", "Lt", "99"),)), False, id="Lt is for nodes"),
    ],
)
def test_a_label_selector_wants_all_of_it(selector, want):
    """Labels and expressions are joined by and; none of them is no condition."""
    assert want == selector.matches(LABELS)


ZONE_A = having("zone", "In", "a")
ZONE_B = having("zone", "In", "b")
ON_N1 = having("metadata.name", "In", "n1")
NOT_ON_N1 = having("metadata.name", "NotIn", "n1")


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([], False, id="no terms: nothing"),
        pytest.param([NodeSelectorTerm()], False, id="an empty term: nothing"),
        pytest.param(
            [NodeSelectorTerm(), NodeSelectorTerm((ZONE_A,))], True, id="an empty term beside one that matches"
        ),
        pytest.param([NodeSelectorTerm((ZONE_B,)), NodeSelectorTerm((ZONE_A,))], True, id="terms are joined by or"),
        pytest.param([NodeSelectorTerm((ZONE_A, ZONE_B))], False, id="expressions are joined by and"),
        pytest.param([NodeSelectorTerm((having("cores", "Gt", "8"),))], True, id="Gt"),
        pytest.param([NodeSelectorTerm((), (ON_N1,))], True, id="by name"),
        pytest.param([NodeSelectorTerm((), (NOT_ON_N1,))], False, id="not by name"),
        pytest.param([NodeSelectorTerm((ZONE_B,), (ON_N1,))], False, id="name but not labels"),
        pytest.param([NodeSelectorTerm((ZONE_A,), (NOT_ON_N1,))], False, id="labels but not name"),
        pytest.param(
            [NodeSelectorTerm((having("zone", "In"),)), NodeSelectorTerm((ZONE_A,))], True, id="one malformed"
        ),
    ],
)
def test_a_node_selector_wants_one_whole_term(terms, want):
    """Terms are alternatives; a term is met as a whole or not at all."""
    assert want == NodeSelector(tuple(terms)).matches(LABELS, "n1")


@pytest.mark.parametrize(
    ("field", "want"),
    [
        pytest.param(having("metadata.name", "In", "n1", "n2"), False, id="two names"),
        pytest.param(having("metadata.name", "In"), False, id="no name"),
        pytest.param(having("metadata.name", "NotIn", "n2", "n3"), False, id="two names to avoid"),
        pytest.param(having("metadata.name", "Exists"), False, id="Exists"),
        pytest.param(having("metadata.name", "Gt", "1"), False, id="Gt"),
        pytest.param(having("metadata.name", "In", "N1"), False, id="names differ in case"),
        pytest.param(having("metadata.name", "NotIn", "not a name"), True, id="names are not labels"),
        pytest.param(having("metadata.uid", "In", "n1"), False, id="another field is not the name"),
        pytest.param(having("metadata.uid", "In", ""), True, id="another field reads as empty"),
        pytest.param(having("metadata.uid", "NotIn", "n1"), True, id="another field is not anything"),
    ],
)
def test_fields_are_the_name_and_take_one_value(field, want):
    """In and NotIn with exactly one value; anything else matches nothing."""
    assert want == NodeSelectorTerm((), (field,)).matches(LABELS, "n1")


@pytest.mark.parametrize(
    ("field", "want"),
    [
        pytest.param(ON_N1, True, id="In is passed over"),
        pytest.param(having("metadata.name", "In"), False, id="a malformed one is not"),
    ],
)
def test_fields_are_passed_over_for_a_node_without_a_name(field, want):
    """Upstream does so for nodes that are only imagined."""
    assert want == NodeSelectorTerm((ZONE_A,), (field,)).matches(LABELS)
