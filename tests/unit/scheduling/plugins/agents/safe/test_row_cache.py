"""What is kept of what was worked out: only nodes whose figures changed are worked out again."""

import numpy as np
import pytest

from lamina.scheduling.plugins.agents.safe.row_cache import MOST, RowCache


@pytest.fixture
def sums():
    """Sums of two figures, and how many nodes they were worked out for each time."""
    counts = []

    def work_out(first, second):
        counts.append(len(first))
        return first + second

    return RowCache(work_out), counts


FIRST, SECOND = np.arange(50.0), np.full(50, 0.5)


def test_only_nodes_that_changed_are_worked_out_again(sums):
    kept, counts = sums
    kept.of("small", FIRST, SECOND)
    later, wider = FIRST.copy(), SECOND.copy()
    later[7], wider[9] = 70.0, 0.25

    answers = [kept.of("small", later, wider).tolist() for _ in range(2)]

    assert [50, 2] == counts
    assert [(later + wider).tolist()] * 2 == answers


def test_what_was_answered_before_stays_as_it_was(sums):
    kept, _ = sums
    first = kept.of("small", FIRST, SECOND)

    kept.of("small", FIRST + 1, SECOND)

    assert (FIRST + SECOND).tolist() == first.tolist()


def test_each_question_and_each_size_of_cluster_is_worked_out_for_itself(sums):
    kept, counts = sums

    kept.of("small", FIRST, SECOND)
    kept.of("large", FIRST, SECOND)
    kept.of("small", FIRST[:40], SECOND[:40])

    assert [50, 50, 40] == counts


def test_what_was_not_asked_for_longest_is_let_go(sums):
    kept, counts = sums
    for question in range(MOST):
        kept.of(question, FIRST, SECOND)
    kept.of(0, FIRST, SECOND)
    kept.of("one too many", FIRST, SECOND)
    counts.clear()

    kept.of(0, FIRST, SECOND)
    assert [] == counts
    kept.of(1, FIRST, SECOND)
    assert [50] == counts
