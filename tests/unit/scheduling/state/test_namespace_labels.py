"""NamespaceLabels: which namespaces a pod affinity term means, and when that changes."""

import pytest

from lamina.model.pod import PodTerm
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.namespace_labels import NAME_LABEL, NamespaceLabels, explicit
from lamina.testing import a_pod

TEAM_A = LabelSelector((("team", "a"),))


@pytest.mark.parametrize(
    ("term", "namespace", "want"),
    [
        pytest.param(PodTerm("z", None, ("shop",)), "shop", True, id="named"),
        pytest.param(PodTerm("z", None, ("shop",)), "ops", False, id="not named"),
        pytest.param(PodTerm("z", None, (), LabelSelector()), "unknown", True, id="an empty selector means all"),
        pytest.param(PodTerm("z", None, (), TEAM_A), "shop", True, id="selected by label"),
        pytest.param(PodTerm("z", None, (), TEAM_A), "ops", False, id="another label"),
        pytest.param(PodTerm("z", None, ("ops",), TEAM_A), "ops", True, id="named although not selected"),
        pytest.param(PodTerm("z", None, (), LabelSelector(((NAME_LABEL, "new"),))), "new", True, id="by name"),
    ],
)
def test_a_term_means_the_namespaces_it_names_and_those_it_selects(term, namespace, want):
    namespaces = NamespaceLabels()
    namespaces.put("shop", {"team": "a"})
    namespaces.put("ops", {"team": "b"})

    assert want == namespaces.within(term, namespace)


@pytest.mark.parametrize(
    ("term", "want"),
    [
        pytest.param(PodTerm("z"), ("shop",), id="neither: the pod's own"),
        pytest.param(PodTerm("z", None, ("ops",)), ("ops",), id="names"),
        pytest.param(PodTerm("z", None, (), LabelSelector()), (), id="an empty selector is a selector"),
    ],
)
def test_a_term_without_namespaces_means_the_namespace_of_its_pod(term, want):
    assert want == explicit(term, a_pod(namespace="shop")).namespaces


def test_the_edition_increases_when_a_term_can_mean_other_namespaces():
    namespaces, seen = NamespaceLabels(), []
    for namespace, labels in [
        ("shop", {"team": "a"}),  # a label
        ("shop", {"team": "a", NAME_LABEL: "shop"}),  # the name is known anyway
        ("shop", {}),  # no label
        ("ops", {NAME_LABEL: "ops"}),  # nothing new
    ]:
        changed = namespaces.put(namespace, labels)
        seen.append((changed, namespaces.edition))
    seen.append((namespaces.forget("ops"), namespaces.edition))

    assert [(True, 1), (False, 1), (True, 2), (False, 2), (False, 2)] == seen
    assert {} == namespaces.snapshot()
