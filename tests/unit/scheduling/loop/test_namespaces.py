"""Namespaces come and go: one that is deleted leaves nothing behind."""

import msgspec

from lamina.model.events import NamespaceGone, NamespaceSeen, NodeSeen
from lamina.model.pod import PodTerm
from lamina.model.selectors import LabelSelector
from lamina.testing import LoopHarness, a_loop, a_node, a_pod

OPEN = LabelSelector((("team", "x"),))


def kept(desk):
    """Which namespaces are remembered, by annotations and by labels."""
    cluster = desk.loop.cluster
    return set(cluster.context.namespaces), set(cluster.columns.namespaces.snapshot())


def test_a_deleted_namespace_is_forgotten():
    desk = LoopHarness()
    for number in range(50):
        desk.tell(NamespaceSeen(f"ci-{number}", {"a": "b"}, {"team": "x"}))
    assert (50, 50) == tuple(map(len, kept(desk)))

    for number in range(50):
        desk.tell(NamespaceGone(f"ci-{number}"))

    assert (set(), set()) == kept(desk)


def test_a_namespace_that_was_never_seen_can_go():
    desk = LoopHarness()
    desk.tell(NamespaceGone("ci"))

    assert (set(), set()) == kept(desk)


def test_a_namespace_made_again_starts_without_labels():
    """A pod that keeps pods of team x away has nothing against those of the new namespace."""
    desk = LoopHarness(a_loop(("PrioritySort", "NodeResourcesFit", "InterPodAffinity", "DefaultBinder")))
    loner = msgspec.structs.replace(
        a_pod("loner", on="n"), repels=(PodTerm("host", LabelSelector(), namespace_selector=OPEN),)
    )
    desk.tell(NodeSeen(a_node("n", labels={"host": "n"})), NamespaceSeen("ci", {}, {"team": "x"}))
    desk.see(loner, a_pod("before", namespace="ci"))
    assert not desk.bound

    desk.tell(NamespaceGone("ci"))
    desk.tell(NamespaceSeen("ci"))
    desk.see(a_pod("after", namespace="ci"))

    assert {"after": "n"} == desk.bound
