"""PlacedTermIndex: which terms of placed pods match which pods, and the signatures that follow from them."""

import msgspec
import pytest

from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector, Requirement
from lamina.scheduling.state.namespace_labels import NamespaceLabels
from lamina.scheduling.state.placed_terms import PlacedTermIndex, required_anti_affinity
from lamina.testing import a_pod

WEB = LabelSelector((("app", "web"),))


def an_index(namespaces: NamespaceLabels | None = None) -> PlacedTermIndex:
    """Return an empty index of required anti-affinity."""
    return PlacedTermIndex(namespaces or NamespaceLabels(), required_anti_affinity)


def loner(*terms: PodTerm, namespace: str = "default") -> Pod:
    return msgspec.structs.replace(a_pod(namespace=namespace), repels=terms)


def web(**labels: str) -> Pod:
    return a_pod(labels={"app": "web", **labels})


def test_pods_with_the_same_rule_are_one_rule():
    """In the same namespace; the rows are where they are, however many on each."""
    anti_affinity = an_index()
    for row in (3, 3, 5):
        anti_affinity.add(row, loner(PodTerm("zone", WEB)))
    anti_affinity.add(7, loner(PodTerm("zone", WEB), namespace="shop"))

    (rule,) = anti_affinity.about(web())

    assert {3: 2, 5: 1} == rule.rows


@pytest.mark.parametrize(
    ("selector", "labels", "want"),
    [
        pytest.param(LabelSelector((("app", "web"), ("tier", "x"))), {"tier": "x"}, True, id="two labels"),
        pytest.param(LabelSelector((("app", "web"), ("tier", "x"))), {}, False, id="one of two labels"),
        pytest.param(LabelSelector((), (Requirement("tier", "In", ("x",)),)), {"tier": "x"}, True, id="one value"),
        pytest.param(LabelSelector((), (Requirement("tier", "In", ("x", "y")),)), {"tier": "y"}, True, id="two values"),
        pytest.param(LabelSelector((), (Requirement("tier", "DoesNotExist"),)), {}, True, id="no label"),
        pytest.param(LabelSelector((), (Requirement("tier", "DoesNotExist"),)), {"tier": "x"}, False, id="a label"),
        pytest.param(LabelSelector(), {}, True, id="any"),
    ],
)
def test_a_rule_is_found_by_what_its_selector_needs(selector, labels, want):
    anti_affinity = an_index()
    anti_affinity.add(0, loner(PodTerm("zone", selector)))

    assert want == bool(anti_affinity.about(web(**labels)))


def test_the_signature_of_a_pod_is_the_rules_about_it():
    """The same for pods with other labels, as long as the rules do not mind."""
    anti_affinity = an_index()
    anti_affinity.add(0, loner(PodTerm("zone", WEB), PodTerm("zone", LabelSelector((("tier", "x"),)))))

    assert anti_affinity.sign(web()) == anti_affinity.sign(web(hash="1"))
    assert anti_affinity.sign(web()) != anti_affinity.sign(web(tier="x"))
    assert () == anti_affinity.sign(a_pod())


def test_a_number_is_never_used_again():
    """Or what was kept for an old signature would be taken for an answer to a new one."""
    anti_affinity = an_index()
    pod = loner(PodTerm("zone", WEB))
    anti_affinity.add(0, pod)
    before = anti_affinity.sign(web())
    anti_affinity.remove(0, pod)
    anti_affinity.add(0, loner(PodTerm("rack", WEB)))

    assert before != anti_affinity.sign(web())


def test_the_edition_grows_when_signatures_may_change_and_only_then():
    anti_affinity = an_index()
    pod, editions = loner(PodTerm("zone", WEB)), [0]
    for change in (
        lambda: anti_affinity.add(0, pod),  # a rule
        lambda: anti_affinity.add(1, pod),  # the same rule
        lambda: anti_affinity.remove(0, pod),  # still there
        lambda: anti_affinity.remove(1, pod),  # gone
    ):
        change()
        editions.append(anti_affinity.edition)

    assert [0, 1, 1, 1, 2] == editions


def test_what_is_gone_leaves_nothing_behind():
    """However often pods come and go."""
    anti_affinity = an_index()
    pod = loner(PodTerm("zone", WEB, ("a", "b", "a")), PodTerm("zone", None), PodTerm("zone", WEB))
    anti_affinity.add(0, pod)
    anti_affinity.remove(0, pod)

    assert ({}, {}) == (anti_affinity._rules, anti_affinity._buckets)
