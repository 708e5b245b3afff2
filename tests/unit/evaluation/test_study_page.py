"""The page of a study: ratios at the levels of a factor, for each design."""

import json
from typing import Any

import pytest

from lamina.evaluation.comparison import Run
from lamina.evaluation.report.study_page import study_page
from lamina.evaluation.study_results import study_results

NAMES = {"study": "small", "version": "1.2.3", "fingerprint": "0123"}
EFFECTS = {"a": {"1": 1.0, "2": 3.0}, "b": {"8": 1.0, "9": 16.0}}
"""What each level multiplies the other profile's bytes with."""


def ratios_by_level(*points: tuple[str, str]) -> dict[str, float]:
    """Return the ratios of the page for a study of the factors a and b."""
    levels = [dict(zip(EFFECTS, point, strict=True)) for point in points]
    runs = {}
    for number, here in enumerate(levels):
        factor = 1.0
        for name, level in here.items():
            factor *= EFFECTS[name][level]
        summaries = {"base": {"bytes_pulled": 100.0}, "other": {"bytes_pulled": 100.0 * factor}}
        runs[number] = [Run(profile, 1, {"scenario": "story", **one}) for profile, one in summaries.items()]
    page = study_page(study_results(runs, levels, ["bytes_pulled"], NAMES)).decode()
    _, _, rest = page.partition('<script type="application/json" id="data">')
    data: dict[str, Any] = json.loads(rest.partition("</script>")[0])
    return {
        f"{name}={row['level']}": row["ratio"]
        for name, rows in zip(EFFECTS, data["sensitivity"], strict=True)
        for row in rows
    }


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param(
            [("1", "8"), ("2", "8"), ("1", "9")], {"a=1": 1.0, "a=2": 3.0, "b=8": 1.0, "b=9": 16.0}, id="one at a time"
        ),
        pytest.param(
            [("1", "8"), ("1", "9"), ("2", "8"), ("2", "9")],
            {"a=1": 4.0, "a=2": 12.0, "b=8": 3**0.5, "b=9": 16 * 3**0.5},
            id="full",
        ),
    ],
)
def test_levels_are_compared_at_the_same_levels_of_other_factors(points, expected):
    assert ratios_by_level(*points) == pytest.approx(expected)
