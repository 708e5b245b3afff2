"""PodCounts: how many pods of a controller, or with certain labels, each row has; kept right as pods come and go."""

from collections.abc import Mapping

import msgspec
import pytest

from lamina.model.pod import Owner, Pod
from lamina.model.selectors import LabelSelector, Requirement
from lamina.scheduling.state import pod_counts
from lamina.scheduling.state.pod_counts import PodCounts, owner_key
from lamina.testing import a_pod

WEB = Owner("ReplicaSet", "web", "u1")
WEB_KEY = ("default", "u1")


def pod(owner: Owner | None = None, namespace: str = "default", deleting: bool = False, **labels: str) -> Pod:
    return msgspec.structs.replace(a_pod(owner=owner, labels=labels), namespace=namespace, deleting=deleting)


def where(**labels: str) -> LabelSelector:
    return LabelSelector(tuple(labels.items()))


def which(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector((), (Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("owner", "want"),
    [
        pytest.param(None, None, id="nobody's pod"),
        pytest.param(Owner("ReplicaSet", "web", "u1"), ("shop", "u1"), id="a controller with a uid"),
        pytest.param(Owner("ReplicaSet", "web"), ("shop", "ReplicaSet/web"), id="one without: kind and name"),
    ],
)
def test_a_pod_belongs_to_its_controller_in_its_namespace(owner, want):
    assert want == owner_key(pod(owner, "shop"))


def test_nobody_has_pods_to_begin_with():
    counts = PodCounts()

    assert [0, 0] == counts.owned(WEB_KEY, 2).tolist()
    assert [0, 0, 0] == counts.matching("default", where(app="web"), 3).tolist()


@pytest.mark.parametrize("asked_first", [pytest.param(True, id="asked before"), pytest.param(False, id="asked after")])
def test_pods_of_a_controller_are_counted_by_row(asked_first):
    """Whatever their labels are, and only in their namespace."""
    counts = PodCounts()
    if asked_first:
        counts.owned(WEB_KEY, 3)
    counts.add(0, pod(WEB, app="web"))
    counts.add(2, pod(WEB, app="web"))
    counts.add(2, pod(WEB, app="web", index="2"))
    counts.add(1, pod(WEB, "other"))
    counts.add(1, pod(Owner("ReplicaSet", "web", "u2")))
    counts.add(1, pod())

    assert [1, 0, 2] == counts.owned(WEB_KEY, 3).tolist()
    assert [0, 1, 0] == counts.owned(("other", "u1"), 3).tolist()


@pytest.mark.parametrize("asked_first", [pytest.param(True, id="asked before"), pytest.param(False, id="asked after")])
@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param(where(app="web"), [1, 2, 0], id="a label"),
        pytest.param(where(app="web", tier="front"), [1, 0, 0], id="two labels"),
        pytest.param(which("app", "In", "web"), [1, 2, 0], id="one of one value"),
        pytest.param(which("app", "In", "web", "db"), [1, 2, 1], id="one of two values"),
        pytest.param(which("tier", "Exists"), [1, 0, 0], id="any value"),
        pytest.param(which("tier", "DoesNotExist"), [1, 2, 1], id="no value"),
        pytest.param(which("app", "NotIn", "web"), [1, 0, 1], id="another value, or none"),
        pytest.param(LabelSelector(), [2, 2, 1], id="whatever there is"),
        pytest.param(which("app", "Like", "web"), [0, 0, 0], id="an operator that does not exist"),
    ],
)
def test_pods_that_a_selector_matches_are_counted_by_row(selector, want, asked_first):
    """Whoever they belong to, and only in the namespace."""
    counts = PodCounts()
    if asked_first:
        counts.matching("default", selector, 3)
    counts.add(0, pod(app="web", tier="front"))
    counts.add(0, pod())
    counts.add(1, pod(WEB, app="web"))
    counts.add(1, pod(app="web"))
    counts.add(2, pod(app="db"))
    counts.add(2, pod(namespace="other", app="web", tier="front"))

    assert want == counts.matching("default", selector, 3).tolist()


def test_what_is_removed_counts_no_longer():
    counts = PodCounts()
    counts.owned(WEB_KEY, 2)
    counts.matching("default", where(app="web"), 2)
    for row in (0, 0, 1):
        counts.add(row, pod(WEB, app="web"))
    counts.remove(0, pod(WEB, app="web"))

    assert 2 == counts.owned_in_all(WEB_KEY, 2)
    assert [1, 1] == counts.owned(WEB_KEY, 2).tolist()
    assert [1, 1] == counts.matching("default", where(app="web"), 2).tolist()


def test_pods_that_are_being_deleted_do_not_count():
    """Neither when they come nor when they go."""
    counts = PodCounts()
    counts.add(0, pod(WEB, deleting=True, app="web"))
    counts.remove(1, pod(WEB, deleting=True, app="web"))

    assert [0, 0] == counts.owned(WEB_KEY, 2).tolist()
    assert [0, 0] == counts.matching("default", LabelSelector(), 2).tolist()


def test_counters_grow_with_the_rows():
    counts = PodCounts()
    counts.owned(WEB_KEY, 1)
    counts.add(9, pod(WEB))

    assert [0] * 9 + [1, 0] == counts.owned(WEB_KEY, 11).tolist()


def test_nothing_is_kept_of_pods_that_are_gone():
    counts = PodCounts()
    counts.add(0, pod(WEB, app="web"))
    counts.add(0, pod(app="db"))
    counts.remove(0, pod(WEB, app="web"))
    counts.remove(0, pod(app="db"))

    assert {} == counts._namespaces


def test_a_kind_of_pod_that_comes_back_is_counted_again():
    """Its group was let go and is made anew."""
    counts = PodCounts()
    counts.owned(WEB_KEY, 1)
    counts.matching("default", where(app="web"), 1)
    counts.add(0, pod(WEB, app="web"))
    counts.remove(0, pod(WEB, app="web"))
    counts.add(0, pod(WEB, app="web"))

    assert [1] == counts.owned(WEB_KEY, 1).tolist()
    assert [1] == counts.matching("default", where(app="web"), 1).tolist()


def test_questions_nobody_asked_lately_are_let_go(monkeypatch):
    """They are answered all the same when somebody asks again."""
    monkeypatch.setattr(pod_counts, "KEPT_BYTES", 0)
    monkeypatch.setattr(pod_counts, "KEPT_AT_LEAST", 2)
    counts = PodCounts()
    counts.add(0, pod(WEB, app="web"))
    first, second = where(app="web"), which("app", "Exists")
    for selector in (first, second):
        assert [1] == counts.matching("default", selector, 1).tolist()
    counts.matching("default", first, 1)
    assert [1] == counts.owned(WEB_KEY, 1).tolist()

    # The second was asked longest ago.
    assert [("default", first), WEB_KEY] == list(counts._counters)
    counts.add(0, pod(WEB, app="web"))
    assert [2] == counts.matching("default", second, 1).tolist()
    assert [WEB_KEY, ("default", second)] == list(counts._counters)
    assert [2] == counts.matching("default", first, 1).tolist()
    assert [2] == counts.owned(WEB_KEY, 1).tolist()


def test_a_placement_looks_only_at_counters_that_could_match(monkeypatch):
    """A new kind of pod is held against the selectors that need one of its labels, not against all there are."""
    counts = PodCounts()
    for number in range(50):
        counts.matching("default", where(app=f"app-{number}"), 1)
    looked: list[LabelSelector] = []
    plain = LabelSelector.matches

    def watched(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        looked.append(selector)
        return plain(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", watched)
    counts.add(0, pod(app="app-7", hash="x"))
    counts.add(0, pod(app="app-7", hash="x"))

    assert [where(app="app-7")] == looked
