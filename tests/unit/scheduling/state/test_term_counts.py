"""TermCounts: how many pods on each row match a set of affinity terms, as pods, groups and namespaces change."""

import msgspec

from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state import term_counts
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.term_counts import pod_set
from lamina.testing import a_node, a_pod

WEB = LabelSelector((("app", "web"),))


def columns(nodes: int = 3) -> NodeColumns:
    """Make columns with some nodes."""
    made = NodeColumns()
    for number in range(nodes):
        made.put(a_node(f"n{number}"))
    return made


def web(name: str, namespace: str = "default", *, deleting: bool = False) -> Pod:
    """Build a pod that the term matches."""
    return msgspec.structs.replace(a_pod(name, labels={"app": "web"}, namespace=namespace), deleting=deleting)


def matching(*terms: PodTerm) -> term_counts.PodSet:
    """Return the set of pods that terms of a pod in the default namespace match."""
    return pod_set(terms, a_pod())


def test_a_counter_follows_pods_as_they_come_and_go():
    """Those that were there before it, and groups that come later; also while they are deleted."""
    made, wanted = columns(), matching(PodTerm("zone", WEB))
    made.use(0, web("one"))
    assert [1, 0, 0] == made.matched(wanted).tolist()

    made.use(1, web("two", deleting=True))
    made.use(2, web("elsewhere", "shop"))
    made.use(2, a_pod("other", labels={"app": "db"}))
    assert [1, 1, 0] == made.matched(wanted).tolist()

    made.recount(0, web("one"), web("one", deleting=True))
    assert [1, 1, 0] == made.matched(wanted).tolist()

    made.release(0, web("one", deleting=True))
    made.release(1, web("two", deleting=True))
    assert [0, 0, 0] == made.matched(wanted).tolist()


def test_terms_that_differ_only_in_topology_share_a_counter():
    """Namespaces that the terms do not name are the pod's own."""
    assert matching(PodTerm("zone", WEB), PodTerm("rack", WEB)) == matching(PodTerm("", WEB, ("default",)))


def test_labels_of_a_namespace_change_what_is_counted():
    made, wanted = columns(), matching(PodTerm("zone", WEB, (), LabelSelector((("team", "a"),))))
    made.use(0, web("one"))
    made.use(1, web("two", "shop"))
    seen = [made.matched(wanted).tolist()]
    for labels in ({"team": "a"}, {"team": "b"}, {"team": "a"}, None):
        made.label_namespace("shop", labels)
        made.use(2, web(f"more with {labels}", "shop"))
        seen.append(made.matched(wanted).tolist())

    assert [[0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 1, 3], [0, 0, 0]] == seen


def test_only_pods_that_a_term_matches_are_journaled():
    made, log = columns(), []

    def journaled(pod: Pod) -> bool:
        before = made.logs[Facet.POD_AFFINITY].position
        made.use(0, pod)
        return made.logs[Facet.POD_AFFINITY].position != before

    log.append(journaled(web("one")))
    made.matched(matching(PodTerm("zone", WEB)))
    log += [journaled(web("two")), journaled(a_pod("other")), journaled(web("leaving", deleting=True))]

    assert [False, True, False, True] == log


def test_the_least_recently_used_counter_is_dropped_and_its_readers_learn_of_it(monkeypatch):
    """Later changes of it would not be journaled."""
    monkeypatch.setattr(term_counts, "KEPT_AT_LEAST", 2)
    monkeypatch.setattr(term_counts, "KEPT_BYTES", 0)
    made = columns()
    made.use(0, web("one"))
    first, second, third = (matching(PodTerm("zone", WEB, (name, "default"))) for name in "abc")
    made.matched(first)
    made.matched(second)
    made.matched(first)
    before = made.logs[Facet.POD_AFFINITY].position

    made.matched(third)

    assert made.logs[Facet.POD_AFFINITY].position == before + 1
    made.use(1, web("two"))
    assert [[1, 1, 0]] * 3 == [made.matched(one).tolist() for one in (first, second, third)]
    assert (3, 2) == (made.term_counts.dropped, len(made.term_counts._kept))


def test_pods_that_are_gone_leave_nothing_behind():
    made, wanted = columns(), matching(PodTerm("zone", WEB))
    made.matched(wanted)
    for deleting in (False, True):
        made.use(0, web("one", deleting=deleting))
        made.release(0, web("one", deleting=deleting))

    assert [] == list(made.pods.namespaces())
