"""How long a pod runs at most."""

import math

import msgspec
import pytest

from lamina.model.walltime import WALLTIME, walltime_of, walltime_problem
from lamina.testing import a_pod


@pytest.mark.parametrize(
    ("text", "deadline", "seconds"),
    [
        pytest.param(None, None, math.inf, id="neither"),
        pytest.param("1h30m", None, 5400.0, id="annotation"),
        pytest.param("90", None, 90.0, id="annotation without a unit is in seconds"),
        pytest.param(None, 120.0, 120.0, id="deadline"),
        pytest.param("60s", 120.0, 60.0, id="the shorter one, annotation"),
        pytest.param("10m", 120.0, 120.0, id="the shorter one, deadline"),
        pytest.param("soon", 120.0, 120.0, id="an annotation that is no duration is ignored"),
        pytest.param("-5s", None, math.inf, id="so is a negative one"),
    ],
)
def test_the_shorter_of_annotation_and_deadline_counts(
    text: str | None, deadline: float | None, seconds: float
) -> None:
    pod = msgspec.structs.replace(a_pod(annotations={} if text is None else {WALLTIME: text}), deadline=deadline)

    assert walltime_of(pod) == seconds


def test_an_unreadable_annotation_is_named_with_an_example() -> None:
    assert walltime_problem(a_pod(annotations={WALLTIME: "soon"})) == (
        "annotation lamina.dev/walltime is ignored: 'soon' is not a duration; write for example 500ms, 10s, 5m or 1h"
    )
    assert walltime_problem(a_pod(annotations={WALLTIME: "10s"})) == ""
    assert walltime_problem(a_pod()) == ""
