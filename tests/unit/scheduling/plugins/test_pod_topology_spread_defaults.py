"""PodTopologySpread: which pods default constraints count, as Services and controllers come and go."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.cluster_objects import key_of
from lamina.model.pod import Owner
from lamina.model.selecting_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from lamina.model.selectors import LabelSelector, Requirement
from lamina.scheduling.plugins.upstream.pod_topology_spread.default_selector import SELECTING, DefaultSelector
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import ZONE, DefaultConstraint, SpreadArgs
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.testing import LoopHarness, a_loop, a_pod
from tests.unit.scheduling.plugins.spreading import NAME, bench, node

LABELS = {"app": "web", "hash": "5"}
BY_APP = LabelSelector((("app", "web"),))
BY_HASH = LabelSelector((("hash", "5"),))
BY_BOTH = LabelSelector((("app", "web"), ("hash", "5")))
HASHED = LabelSelector((), (Requirement("hash", "Exists"),))


def an_object(kind, selector, name="web", namespace="default"):
    return kind(namespace=namespace, name=name, selector=selector)


def owned(kind="ReplicaSet", version="apps/v1", name="web"):
    return a_pod(labels=LABELS, owner=Owner(kind, name, "u1", version))


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(a_pod(labels=LABELS), [an_object(Service, BY_APP)], BY_APP, id="a Service of the pod"),
        pytest.param(
            a_pod(labels=LABELS),
            [an_object(Service, BY_APP), an_object(Service, BY_HASH, "second")],
            BY_BOTH,
            id="two Services: pods of both",
        ),
        pytest.param(
            a_pod(labels=LABELS), [an_object(Service, LabelSelector((("app", "db"),)))], None, id="another Service"
        ),
        pytest.param(a_pod(labels=LABELS), [an_object(Service, None)], None, id="a Service without selector"),
        pytest.param(a_pod(labels=LABELS), [an_object(Service, LabelSelector())], None, id="an empty selector"),
        pytest.param(
            a_pod(labels=LABELS), [an_object(Service, BY_APP, namespace="other")], None, id="in another namespace"
        ),
        pytest.param(owned(), [an_object(ReplicaSet, BY_HASH)], BY_HASH, id="its ReplicaSet"),
        pytest.param(
            owned("StatefulSet"),
            [an_object(StatefulSet, HASHED)],
            HASHED,
            id="its StatefulSet, with expressions",
        ),
        pytest.param(
            owned("ReplicationController", "v1"),
            [an_object(ReplicationController, BY_HASH)],
            BY_HASH,
            id="its ReplicationController",
        ),
        pytest.param(
            owned(), [an_object(ReplicaSet, BY_HASH), an_object(Service, BY_APP)], BY_BOTH, id="ReplicaSet and Service"
        ),
        pytest.param(
            owned(),
            [an_object(ReplicaSet, LabelSelector((("app", "old"),))), an_object(Service, BY_APP)],
            LabelSelector((("app", "old"), ("app", "web"))),
            id="a ReplicaSet that contradicts the Service: no pod matches",
        ),
        pytest.param(
            owned("ReplicationController", "v1"),
            [an_object(ReplicationController, LabelSelector((("app", "old"),))), an_object(Service, BY_APP)],
            LabelSelector((("app", "old"),)),
            id="a ReplicationController that contradicts the Service replaces it",
        ),
        pytest.param(owned(), [an_object(ReplicaSet, BY_HASH, "other")], None, id="another ReplicaSet"),
        pytest.param(owned(), [an_object(ReplicaSet, None)], None, id="a ReplicaSet without selector"),
        pytest.param(owned(), [an_object(StatefulSet, BY_HASH)], None, id="a StatefulSet of the same name"),
        pytest.param(
            owned("StatefulSet", "apps.kruise.io/v1beta1"),
            [an_object(StatefulSet, BY_HASH)],
            None,
            id="a kind of the same name in another API group",
        ),
        pytest.param(owned("Job", "batch/v1"), [an_object(Service, None)], None, id="a Job has no selector"),
        pytest.param(owned("ReplicaSet"), [], None, id="a ReplicaSet that is gone"),
        pytest.param(owned("ReplicaSet", ""), [], ("default", "u1"), id="simulated: the controller itself"),
        pytest.param(owned("Job", ""), [an_object(Service, None)], ("default", "u1"), id="simulated Job"),
        pytest.param(
            owned("ReplicaSet", ""), [an_object(Service, BY_APP)], BY_APP, id="simulated, selected by a Service"
        ),
    ],
)
def test_default_constraints_count_what_services_and_controllers_select(pod, objects, expected):
    known = ClusterObjects()
    for one in objects:
        known.put(one)

    assert expected == DefaultSelector(known).counted(pod)


def test_the_answer_follows_the_objects():
    known = ClusterObjects()
    selector, pod = DefaultSelector(known), a_pod(labels=LABELS)
    answers = [selector.counted(pod)]
    known.put(an_object(Service, BY_APP))
    answers.append(selector.counted(pod))
    known.put(an_object(Service, BY_HASH))
    answers.append(selector.counted(pod))
    known.remove(key_of(an_object(Service, None)))
    answers.append(selector.counted(pod))

    assert [None, BY_APP, BY_HASH, None] == answers


def test_answers_are_kept_for_a_bounded_number_of_pods(monkeypatch):
    module = "lamina.scheduling.plugins.upstream.pod_topology_spread.default_selector"
    monkeypatch.setattr(f"{module}.MOST_KNOWN", 3)
    known = ClusterObjects()
    known.put(an_object(Service, LabelSelector((("app", "web"),))))
    selector = DefaultSelector(known)
    for number in range(10):
        selector.counted(a_pod(labels={"app": "web", "number": str(number)}))

    assert 3 >= len(selector._known)


# ------------------------------------------------------------------------------------------------------------ signatures


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(None, SELECTING, id="the system's defaults"),
        pytest.param(SpreadArgs(defaulting_type="List"), frozenset(), id="an empty list: nothing to watch"),
    ],
)
def test_services_and_controllers_are_watched_if_there_are_default_constraints(args, expected):
    assert expected == bench([], {}).make(NAME, args).objects


def test_a_signature_depends_on_the_selector_and_not_on_the_controller():
    on = bench([], {})
    plugin = on.make(NAME)
    for name in ("web", "other"):
        on.context.objects.put(an_object(ReplicaSet, BY_APP, name))
    on.context.objects.put(an_object(ReplicaSet, BY_HASH, "third"))

    first, second, third = (plugin.sign(owned(name=name)) for name in ("web", "other", "third"))
    assert first == second
    assert first != third
    assert isinstance(hash(first), int)


def test_a_new_edition_comes_with_another_selector_only():
    on = bench([], {})
    plugin, none = on.make(NAME), on.make(NAME, SpreadArgs(defaulting_type="List"))
    editions = [plugin.edition]
    for selector in (BY_APP, BY_APP, BY_HASH):
        on.context.objects.put(an_object(Service, selector))
        editions.append(plugin.edition)

    assert [0, 1, 1, 2] == editions
    assert 0 == none.edition


# ------------------------------------------------------------------------------------------------------------ in the loop

PLUGINS = ["PrioritySort", NAME, "DefaultBinder"]


def harness(**args):
    made = LoopHarness(a_loop(PLUGINS, weights={NAME: 2}, **args))
    made.tell(*(events.NodeSeen(node(f"n{zone}", f"z{zone}")) for zone in "12"))
    made.see(*(named(f"old{number}", node_name="n1") for number in range(3)))
    return made


def named(name, **changes):
    return msgspec.structs.replace(a_pod(name, labels=LABELS), uid=name, **changes)


def test_a_pod_of_a_service_is_placed_away_from_the_others():
    """Three pods of the Service are on the first node; each node is a zone."""
    made = harness()
    made.tell(events.ObjectSeen(an_object(Service, BY_APP)))
    made.see(named("p1"))

    assert "n2" == made.bound["p1"]


def test_a_pod_that_waited_is_placed_by_the_service_that_came_meanwhile():
    """It is signed when it arrives and placed when a node has arrived, with a Service in between."""
    made = LoopHarness(a_loop(PLUGINS, weights={NAME: 2}))
    made.see(*(named(f"old{number}", node_name="n1") for number in range(3)))
    made.see(named("p1"))
    made.tell(events.ObjectSeen(an_object(Service, BY_APP)))
    made.tell(*(events.NodeSeen(node(f"n{zone}", f"z{zone}")) for zone in "12"))
    made.at(20.0)

    assert "n2" == made.bound["p1"]


def test_hard_default_constraints_keep_pods_of_a_service_apart():
    constraint = DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    args = SpreadArgs(defaulting_type="List", default_constraints=(constraint,))
    on = bench([node("a", "z1"), node("b", "z2")], {"a": 1}, named("old"))
    on.context.objects.put(an_object(Service, BY_APP))
    plugin = on.make(NAME, args)

    rules = plugin._rules.hard(named("p1"))
    assert [(BY_APP, 1)] == [(rule.counted, rule.own) for rule in rules]


def test_a_pod_that_its_own_replica_set_does_not_match_is_not_counted_itself():
    """Its labels were changed and the controller has not released it yet."""
    constraint = DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    args = SpreadArgs(defaulting_type="List", default_constraints=(constraint,))
    on = bench([], {})
    on.context.objects.put(an_object(ReplicaSet, LabelSelector((("app", "old"),))))

    assert [0] == [rule.own for rule in on.make(NAME, args)._rules.hard(owned())]
