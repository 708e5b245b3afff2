"""Every import contract is broken once on purpose, and objects."""

import pytest

import check_walls

pytestmark = pytest.mark.slow


def test_every_contract_has_a_violation_and_every_violation_a_contract():
    assert check_walls.unmatched() == []


def test_a_contract_without_a_violation_is_reported():
    first, *others = check_walls.contracts()
    violations = [violation for violation in check_walls.VIOLATIONS if violation.contract in others]

    assert check_walls.unmatched(violations) == [f"contract {first!r} has no violation in check_walls.py"]


@pytest.mark.parametrize("contract", check_walls.contracts())
def test_a_contract_holds_as_long_as_nobody_breaks_it(contract):
    kept, output = check_walls.untouched(contract)

    assert kept, output


@pytest.mark.parametrize(
    "violation", [pytest.param(each, id=f"{each.contract}: {each.story}") for each in check_walls.VIOLATIONS]
)
def test_a_violation_is_caught(violation):
    finding = check_walls.attempt(violation)

    assert finding.caught, finding.output
