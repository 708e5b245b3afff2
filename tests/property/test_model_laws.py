"""
Laws of the model, each held against something that computes the same by other means.

Quantities against `decimal`, chain ids against `hashlib`, selectors and tolerations against sets of everything they
accept, pod totals against the moments of a pod's life; and for all parsers: any text is read or refused by the parser's
own error, and what was read is written and read again as the same.
"""

import decimal
import hashlib
import string
from decimal import Decimal
from itertools import accumulate, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.model import quantity, resources
from lamina.model.digest import Digest, DigestError, chain_ids, parse_digest
from lamina.model.quantity import LARGEST, QuantityError
from lamina.model.reference import ImageReference, ReferenceFormatError, locality_name, parse_reference
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Taint, Toleration, tolerates, untolerated


def attempt(parse, text, error):
    """What *parse* makes of *text*; None when it refuses with its own *error*, and any other exception is a failure."""
    try:
        return parse(text)
    except error as refusal:
        return None if str(refusal) else pytest.fail("a refusal without a word")


# ---------------------------------------------------------------------------------------------------------- quantities

POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
POWERS_OF_TEN |= {f"{e}{power:{sign}}": power for e in "eE" for sign in "+-" for power in (-25, -2, 0, 2, 25)}
FACTORS = {suffix: Decimal(10) ** power for suffix, power in POWERS_OF_TEN.items()}
FACTORS |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}

digits = st.text(string.digits, max_size=25)
numbers = st.builds(
    lambda sign, integer, point, fraction: sign + integer + (point + fraction if point or not integer else ""),
    st.sampled_from(["", "+", "-"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
).filter(lambda text: any(character.isdigit() for character in text))


def by_decimal(number, factor, unit):
    """What `decimal` makes of it: ROUND_UP is its name for away from zero."""
    with decimal.localcontext(prec=1000):
        exact = Decimal(number) * factor * unit
        return max(-LARGEST, min(int(exact.to_integral_value(decimal.ROUND_UP)), LARGEST))


@given(numbers, st.sampled_from(sorted(FACTORS)))
def test_quantities_are_what_decimal_arithmetic_says(number, suffix):
    assert by_decimal(number, FACTORS[suffix], 1) == quantity.whole(number + suffix)
    assert by_decimal(number, FACTORS[suffix], 1000) == quantity.milli(number + suffix)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_as_the_text_they_print_as(value):
    assert by_decimal(repr(value), 1, 1000) == quantity.milli(value)


@given(st.integers())
def test_integers_are_read_as_themselves(value):
    assert by_decimal(value, 1, 1) == quantity.whole(value)
    assert by_decimal(value, 1, 1000) == quantity.milli(value)


@given(st.integers(-LARGEST, LARGEST))
def test_amounts_are_written_and_read_again_as_the_same(amount):
    assert amount == quantity.milli(quantity.format_milli(amount))
    assert amount == quantity.whole(quantity.format_bytes(amount))


@given(st.integers(0, LARGEST))
def test_bytes_for_people_are_short_and_within_a_twentieth(size):
    number, unit = quantity.human_bytes(size).split()
    shown = Decimal(number) * 1000 ** ["B", "kB", "MB", "GB", "TB", "PB", "EB"].index(unit)

    assert len(number) <= 3
    assert abs(shown - size) * 20 <= size


@given(st.one_of(st.text(), st.text("0123456789.+-eEinumkKMGTP "), st.text("0123456789", min_size=120, max_size=140)))
def test_any_text_is_a_quantity_or_a_quantity_error(text):
    amount = attempt(quantity.milli, text, QuantityError)

    assert amount is None or -LARGEST <= amount <= LARGEST


# ------------------------------------------------------------------------------------------------------------- digests

sha256s = st.text("0123456789abcdef", min_size=64, max_size=64).map(lambda text: Digest(f"sha256:{text}"))


@given(st.lists(sha256s, max_size=6))
def test_chain_ids_are_what_hashlib_says(diff_ids):
    def next_link(chain, diff_id):
        return "sha256:" + hashlib.new("sha256", chain.encode() + b" " + diff_id.encode()).hexdigest()

    assert tuple(accumulate(diff_ids, next_link)) == chain_ids(diff_ids)


@given(st.lists(sha256s, max_size=6), st.lists(sha256s, max_size=3), st.lists(sha256s, max_size=3))
def test_images_with_a_common_base_have_common_chain_ids(base, first, second):
    shared = len(base)

    assert chain_ids(base + first)[:shared] == chain_ids(base + second)[:shared] == chain_ids(base)


almost_digests = st.builds(
    lambda algorithm, digit, length, end: f"{algorithm}:{digit * length}{end}",
    st.sampled_from(["sha256", "sha384", "sha512", "SHA256", ""]),
    st.sampled_from("09afAFg"),
    st.sampled_from([0, 62, 63, 64, 65, 126, 127, 128, 129]),
    st.sampled_from(["", "0", "f", "F", ":", "\n"]),
)


@given(st.one_of(st.text(), almost_digests))
@example("sha512:" + "0" * 128)
def test_any_text_is_a_digest_or_a_digest_error(text):
    digest = attempt(parse_digest, text, DigestError)

    assert digest is None or text == digest
    assert digest is None or (digest[:7], len(digest)) in (("sha256:", 71), ("sha512:", 135))


# ---------------------------------------------------------------------------------------------------------- references

words = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=6)
components = st.lists(words, min_size=1, max_size=3).flatmap(
    lambda parts: st.lists(
        st.sampled_from([".", "_", "__", "-", "---"]), min_size=len(parts) - 1, max_size=len(parts) - 1
    ).map(lambda joints: parts[0] + "".join(joint + part for joint, part in zip(joints, parts[1:], strict=True)))
)
registries = st.sampled_from(
    [
        "docker.io",
        "localhost",
        "localhost:5000",
        "ghcr.io",
        "h:1",
        "Host",
        "10.0.0.1:80",
        "[::1]",
        "[fe80::1]:443",
    ]
)
tags = st.text(string.ascii_letters + string.digits + "_.-", min_size=1, max_size=128).filter(
    lambda t: t[0] not in ".-"
)


@st.composite
def references(draw):
    registry = draw(registries)
    repository = "/".join(draw(st.lists(components, min_size=1, max_size=4)))
    if registry == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    tag, digest = draw(st.one_of(st.none(), tags)), draw(st.one_of(st.none(), sha256s))
    return ImageReference(registry, repository, tag or (None if digest else "latest"), digest)


@given(references())
@example(ImageReference("docker.io", "a.b/c", "latest"))
@example(ImageReference("docker.io", "localhost/c", "latest"))
@example(ImageReference("docker.io", "library/library/c", "latest"))
def test_references_are_written_and_read_again_as_the_same(reference):
    assert reference == parse_reference(str(reference))
    assert reference == parse_reference(reference.familiar)
    assert len(reference.familiar) <= len(str(reference))


@given(st.one_of(st.text(), st.text("abA0._-/:@[]", max_size=12), st.text("a/", min_size=240, max_size=270)))
@example("a" * 5000)
def test_any_text_is_a_reference_or_a_reference_error(text):
    reference = attempt(parse_reference, text, ReferenceFormatError)

    assert reference is None or reference == parse_reference(str(reference)) == parse_reference(reference.familiar)


@given(st.text("ab:/", max_size=8))
def test_a_name_to_look_up_by_has_a_colon_after_its_last_slash(name):
    looked_up = locality_name(name)

    assert looked_up in (name, f"{name}:latest")
    assert ":" in looked_up.split("/")[-1]
    assert looked_up == locality_name(looked_up)


# ----------------------------------------------------------------------------------------------------------- selectors

VALUES = ["", "1", "2", "10", "007", "x"]
KEYS = ["zone", "cores", "example.com/tier"]
# Everything a label can be in these tests; None is a label that is not there.
POSSIBLE = frozenset([*VALUES, None])
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
node_names = st.sampled_from(["n1", "n2"])

keys = st.sampled_from(KEYS)
some_values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3).map(tuple)
plain_requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["In", "NotIn"]), some_values),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
node_requirements = st.one_of(
    plain_requirements,
    st.builds(Requirement, keys, st.sampled_from(["Gt", "Lt"]), st.sampled_from(VALUES).map(lambda value: (value,))),
)
field_requirements = st.builds(
    Requirement, st.just("metadata.name"), st.sampled_from(["In", "NotIn"]), node_names.map(lambda name: (name,))
)


def accepted(requirement):
    """The set of all values (None: no label) that meet a well-formed requirement."""
    listed = set(requirement.values)
    numbers = {value for value in VALUES if value.isdigit()}
    match requirement.operator:
        case "In":
            return listed
        case "NotIn":
            return POSSIBLE - listed
        case "Exists":
            return POSSIBLE - {None}
        case "DoesNotExist":
            return {None}
        case "Gt":
            return {value for value in numbers for bound in listed & numbers if int(value) > int(bound)}
        case _:
            return {value for value in numbers for bound in listed & numbers if int(value) < int(bound)}


@given(node_requirements, labels)
def test_a_requirement_matches_what_it_accepts(requirement, held):
    assert (held.get(requirement.key) in accepted(requirement)) == requirement.matches(held)


@given(
    st.dictionaries(keys, st.sampled_from(VALUES)).map(lambda wanted: tuple(wanted.items())),
    st.lists(plain_requirements, max_size=3).map(tuple),
    labels,
)
def test_a_label_selector_matches_what_all_its_parts_accept(wanted, expressions, held):
    want = set(wanted) <= set(held.items()) and all(held.get(one.key) in accepted(one) for one in expressions)

    assert want == LabelSelector(wanted, expressions).matches(held)


terms = st.builds(
    NodeSelectorTerm,
    st.lists(node_requirements, max_size=2).map(tuple),
    st.lists(field_requirements, max_size=1).map(tuple),
)


@given(st.lists(terms, max_size=3).map(tuple), labels, node_names)
def test_a_node_selector_matches_what_one_of_its_terms_accepts(alternatives, held, name):
    want = any(
        (term.expressions or term.fields)
        and all(held.get(one.key) in accepted(one) for one in term.expressions)
        and all((name in one.values) is (one.operator == "In") for one in term.fields)
        for term in alternatives
    )

    assert want == NodeSelector(alternatives).matches(held, name)


@given(keys, some_values, labels)
def test_in_and_not_in_divide_the_world(key, values, held):
    assert Requirement(key, "In", values).matches(held) is not Requirement(key, "NotIn", values).matches(held)


@given(st.text(), st.text(), st.lists(st.text(), max_size=2).map(tuple), st.dictionaries(st.text(), st.text()))
def test_no_requirement_makes_matching_fail(key, operator, values, held):
    assert Requirement(key, operator, values).matches(held) in (True, False)


# -------------------------------------------------------------------------------------------------------------- taints

TAINT_KEYS, TAINT_VALUES, EFFECTS = ["a", "b"], ["", "1"], ["NoSchedule", "NoExecute", "PreferNoSchedule"]
ALL_TAINTS = [Taint(*parts) for parts in product(TAINT_KEYS, TAINT_VALUES, EFFECTS)]
taints = st.sampled_from(ALL_TAINTS)
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", *TAINT_KEYS]),
    st.sampled_from(["", "Equal", "Exists", "Gt", "Lt"]),
    st.sampled_from(TAINT_VALUES),
    st.sampled_from(["", *EFFECTS]),
)


def covered(toleration):
    """Every taint there can be in these tests that the toleration covers."""
    values = {"": [toleration.value], "Equal": [toleration.value], "Exists": TAINT_VALUES}
    return {
        Taint(*parts)
        for parts in product(
            [toleration.key] if toleration.key else TAINT_KEYS,
            values.get(toleration.operator, []),
            [toleration.effect] if toleration.effect else EFFECTS,
        )
    }


@given(st.lists(tolerations, max_size=3), taints)
def test_tolerations_cover_the_union_of_what_each_covers(several, taint):
    assert (taint in set().union(*map(covered, several))) == tolerates(several, taint)


@given(st.lists(taints, max_size=5), st.lists(tolerations, max_size=3), st.sets(st.sampled_from(EFFECTS)))
def test_the_first_untolerated_taint_is_the_first_that_is_left(several, put_up_with, effects):
    left = [one for one in several if one.effect in effects and one not in set().union(*map(covered, put_up_with))]

    assert (left[0] if left else None) == untolerated(several, put_up_with, effects)


# ----------------------------------------------------------------------------------------------------------- resources

RESOURCES = ["cpu", "memory", "example.com/gpu"]
asked_amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 1000)).map(
    lambda asked: tuple(sorted(asked.items()))
)


def moments(containers, init):
    """Who runs at each moment of a pod's life that can be its worst."""
    sidecars: list[resources.Amounts] = []
    for asked, stays in init:
        yield [*sidecars, asked]
        if stays:
            sidecars.append(asked)
    yield [*sidecars, *containers]


@given(
    st.lists(asked_amounts, max_size=3),
    st.lists(st.tuples(asked_amounts, st.booleans()), max_size=4),
    asked_amounts,
    asked_amounts,
)
def test_a_pod_needs_the_largest_of_its_moments(containers, init, pod_level, overhead):
    needed: dict[str, int] = {}
    for running in moments(containers, init):
        for name in {name for asked in running for name, _ in asked}:
            needed[name] = max(needed.get(name, 0), sum(dict(asked).get(name, 0) for asked in running))
    needed.update((name, amount) for name, amount in pod_level if name in ("cpu", "memory") or "hugepages" in name)
    for name, amount in overhead:
        needed[name] = needed.get(name, 0) + amount

    assert tuple(sorted(needed.items())) == resources.pod_total(containers, init, pod_level, overhead)


@given(asked_amounts, asked_amounts, asked_amounts)
def test_adding_and_taking_the_larger_do_not_depend_on_order(first, second, third):
    assert resources.add(first, second, third) == resources.add(third, resources.add(second, first))
    assert resources.at_least(first, second) == resources.at_least(second, first)
    assert first == resources.at_least(first, first)


@pytest.mark.parametrize(
    ("parse", "error"),
    [
        pytest.param(quantity.whole, QuantityError, id="quantity"),
        pytest.param(parse_digest, DigestError, id="digest"),
        pytest.param(parse_reference, ReferenceFormatError, id="reference"),
    ],
)
@given(character=st.characters(), length=st.integers(4097, 100_000))
def test_text_beyond_every_cap_is_refused_and_quoted_in_part(parse, error, character, length):
    with pytest.raises(error, match="longer than") as caught:
        parse(character * length)

    assert len(str(caught.value)) < 2000
