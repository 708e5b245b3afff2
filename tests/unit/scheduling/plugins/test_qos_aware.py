"""QosAware measures pods, orders the queue by the promises of their controllers, and survives restarts and snapshots."""

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from lamina.model import events
from lamina.model.errors import InputError, WiringError
from lamina.model.pod import Owner, Pod, PodUid
from lamina.model.pod_controllers import Deployment
from lamina.model.selecting_objects import ReplicaSet
from lamina.qos.promise import ControllerKey
from lamina.qos.qos_summary import encoded
from lamina.scheduling.config.loader import load
from lamina.scheduling.contract.kept_state import QosPlugin
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import assemble, pieces
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.plugins.qos_aware.plugin import QosAware
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from lamina.testing.loop_harness import first

PLUGINS = ("QosAware", "NodeResourcesFit", "DefaultBinder")
SEED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {enabled: [{name: QosAware}], disabled: [{name: "*"}]}
    preBind: {enabled: [{name: QosAware}]}
    postBind: {enabled: [{name: QosAware}]}
  pluginConfig:
  - name: QosAware
    args: {safetyMargin: 20s, minimumRunningTime: 10m, acceptablePreemptionOverhead: 1.0}
"""
MEASURING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    reserve: {enabled: [{name: QosAware}]}
    preBind: {enabled: [{name: QosAware}]}
    postBind: {enabled: [{name: QosAware}]}
"""


def promising(name: str, slo: float, of: str = "", created: float = 0.0) -> Pod:
    pod = a_pod(name, cpu=1, annotations={"slo": f"{slo:g}", "controller": of or name})
    return msgspec.structs.replace(pod, created_at=created)


OLD, NEW = promising("old", 0.5, "web", created=10.0), promising("new", 0.9, "web", created=20.0)


def plugin_of(loop: Loop) -> QosAware:
    (found,) = [one for one in loop.profiles["default-scheduler"].plugins.values() if isinstance(one, QosPlugin)]
    assert isinstance(found, QosAware)
    return found


def key(name: str) -> ControllerKey:
    return ControllerKey("default", "", name)


def qos(loop: Loop, name: str, now: float) -> float:
    found = plugin_of(loop).qos.controller_standing(key(name), now)
    assert found is not None
    return found.qos


def loop_of(text: str) -> Loop:
    return Loop(load(text, "test", registry(entry_points=False)).profiles, first)


def test_the_pod_whose_promise_breaks_first_is_bound_first():
    harness = LoopHarness(a_loop(PLUGINS))
    harness.see(promising("low", 0.5), promising("high", 1.0), promising("middle", 0.8))
    harness.at(100.0)
    harness.tell(events.NodeSeen(a_node("n1", cpu=1)))
    # Lost time weighs more, the less a controller has promised: 100 / 0.5 is not missing, but 0 / s - 100 is the same
    # for all; the importance decides below the safety margin.
    assert list(harness.bound) == ["high"]


def test_a_binding_counts_as_binding_and_the_wait_before_as_waiting():
    loop = a_loop(PLUGINS)
    loop.feed(events.NodeSeen(a_node("n1", cpu=1)), events.TimePassed(10.0), events.PodSeen(promising("p", 0.5)))
    loop.feed(events.TimePassed(13.0), events.BindDone("p"))
    loop.feed(events.TimePassed(20.0))
    times = plugin_of(loop).qos.pod_times("p", 20.0)

    assert times is not None
    assert (times.waiting, times.binding, times.effective) == (0.0, 3.0, 7.0)


def test_a_pod_that_is_seen_on_its_node_before_the_answer_has_the_same_times():
    loop = a_loop(PLUGINS)
    pod = promising("p", 0.5)
    loop.feed(events.NodeSeen(a_node("n1", cpu=1)), events.TimePassed(10.0), events.PodSeen(pod))
    loop.feed(events.TimePassed(13.0), events.PodSeen(msgspec.structs.replace(pod, node_name="n1", bound_at=12.0)))
    loop.feed(events.BindDone("p"))
    times = plugin_of(loop).qos.pod_times("p", 20.0)

    assert times is not None
    assert (times.waiting, times.binding, times.effective) == (0.0, 3.0, 7.0)


@pytest.mark.parametrize("text", [SEED, MEASURING], ids=["the seed's profile", "measuring beside kube-default"])
def test_configurations_of_the_original_work_as_written(text: str):
    loop = loop_of(text)
    harness = LoopHarness(loop)
    harness.tell(events.NodeSeen(a_node("n1", cpu=1)))
    harness.see(promising("p", 0.5))
    harness.at(50.0)

    assert harness.bound == {"p": "n1"}
    assert qos(loop, "p", 50.0) == 1.0


def test_profiles_share_one_measurement():
    two = MEASURING + MEASURING[MEASURING.index("- plugins") :].replace(
        "- plugins", "- schedulerName: other\n  plugins"
    )
    loop = loop_of(two)
    one, other = (profile.plugins["QosAware"] for profile in loop.profiles.values())
    loop.feed(events.PodSeen(promising("p", 0.5)), events.TimePassed(8.0))

    assert isinstance(one, QosAware)
    assert isinstance(other, QosAware)
    assert one.qos is other.qos
    assert len(one.qos) == 1


def test_profiles_with_different_arguments_are_refused():
    two = SEED + "- schedulerName: other\n  plugins:\n" + SEED.split("plugins:\n", 1)[1].replace("20s", "30s")
    with pytest.raises(WiringError, match="different arguments"):
        loop_of(two)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"safetyMargin": "20 seconds"}, "safetyMargin: '20 seconds' is not a duration"),
        ({"minimumRunningTime": -1}, "minimumRunningTime: -1.0 is negative"),
        ({"window": "99999h"}, "window: '99999h' is too long"),
        ({"acceptablePreemptionOverhead": 2}, "acceptablePreemptionOverhead"),
        ({"slo": -0.1}, "slo"),
        ({"importance": 1e13}, "importance"),
        ({"mode": "best"}, "mode"),
        ({"measuring": "sum"}, "measuring"),
        ({"runningFrom": "scheduled"}, "runningFrom"),
        ({"safetymargin": "20s"}, "safetyMargin"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, Mapping) else "",
)
def test_wrong_arguments_are_named(args: Mapping[str, object], message: str):
    text = SEED.replace(
        "{safetyMargin: 20s, minimumRunningTime: 10m, acceptablePreemptionOverhead: 1.0}",
        msgspec.json.encode(args).decode(),
    )
    with pytest.raises(InputError) as error:
        load(text, "test", registry(entry_points=False))
    assert message in str(error.value)


def test_an_invalid_promise_is_a_note_of_the_pod():
    loop = a_loop(PLUGINS)
    pod = a_pod("p", annotations={"slo": "often"})

    assert "slo: 'often' is not a number from 0 to 1" in plugin_of(loop).notes(pod)


def test_replicas_come_from_the_topmost_owner():
    loop = a_loop(PLUGINS)
    top = Owner("Deployment", "web", "d", "apps/v1")
    loop.feed(
        events.ObjectSeen(Deployment(namespace="default", name="web", replicas=3)),
        events.ObjectSeen(ReplicaSet(namespace="default", name="web-1", replicas=1, owner=top)),
        events.PodSeen(a_pod("p", owner=Owner("ReplicaSet", "web-1"))),
    )
    found = plugin_of(loop).qos.controller_standing(ControllerKey("default", "Deployment", "web"), 1.0)

    assert found is not None
    assert found.counts.needed == 3


def history(loop: Loop, now: float) -> events.PluginHistoryLoaded:
    return events.PluginHistoryLoaded("QosAware", encoded(plugin_of(loop).qos.summary(now, 100, 100)))


def lived() -> Loop:
    """Return a loop in which a pod waited for 60 s and another one ran for 40 s and was deleted."""
    loop = a_loop(PLUGINS)
    loop.feed(events.PodSeen(promising("a-1", 0.5, "a")), events.TimePassed(60.0))
    loop.feed(events.PodSeen(msgspec.structs.replace(promising("a-1", 0.5, "a"), node_name="n1", bound_at=60.0)))
    loop.feed(events.TimePassed(100.0), events.PodGone("a-1"))
    loop.feed(events.PodSeen(promising("a-2", 0.5, "a", created=100.0)))
    return loop


def test_a_history_is_used_after_the_pods_were_seen():
    old, new = lived(), a_loop(PLUGINS)
    new.feed(events.TimePassed(110.0), events.PodSeen(promising("a-2", 0.5, "a", created=100.0)), history(old, 105.0))

    assert qos(new, "a", 120.0) == pytest.approx(40 / 120)


def test_a_pod_that_had_ended_is_counted_once():
    ended = msgspec.structs.replace(
        promising("a-1", 0.5, "a"), node_name="n1", bound_at=60.0, finished=True, ended_at=100.0
    )
    old, new = a_loop(PLUGINS), a_loop(PLUGINS)
    for loop in (old, new):
        loop.feed(events.TimePassed(110.0), events.PodSeen(ended))
    new.feed(history(old, 105.0))

    assert qos(new, "a", 120.0) == pytest.approx(qos(old, "a", 120.0))
    assert ["a-1"] == [one.pod for one in plugin_of(new).qos.notes.finished], "it is not reported again"


def test_a_history_that_cannot_be_read_changes_nothing():
    loop = lived()
    commands = loop.feed(events.PluginHistoryLoaded("QosAware", b"no history"))

    assert qos(loop, "a", 120.0) == pytest.approx(40 / 120)
    assert any("adopt" in str(command) for command in commands)


def test_a_snapshot_contains_the_measurements():
    loop, twin = lived(), a_loop(PLUGINS)
    twin.restore(assemble(pieces(loop.snapshot())))

    assert qos(twin, "a", 120.0) == qos(loop, "a", 120.0)
    assert twin.feed(events.TimePassed(120.0), events.NodeSeen(a_node())) == loop.feed(
        events.TimePassed(120.0), events.NodeSeen(a_node())
    )


def changed(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, labels={"changed": "yes"})


@pytest.mark.parametrize(
    ("seen", "slo"),
    [
        pytest.param([OLD, NEW], 0.9, id="in order"),
        pytest.param([NEW, OLD], 0.9, id="the older one is seen last"),
        pytest.param([OLD, NEW, changed(OLD)], 0.9, id="the older one changes"),
        pytest.param([OLD, NEW, promising("new", 0.7, "web", created=20.0)], 0.7, id="the newer one changes"),
        pytest.param([OLD, NEW, "new", changed(OLD)], 0.5, id="the newer one is gone"),
    ],
)
def test_the_promise_follows_the_newest_pod(seen: Sequence[Pod | str], slo: float):
    loop = a_loop(PLUGINS)
    for one in seen:
        loop.feed(events.PodGone(PodUid(one)) if isinstance(one, str) else events.PodSeen(one))

    promise = plugin_of(loop).qos.promise_of(key("web"))
    assert promise is not None
    assert promise.slo == slo


def test_a_pod_that_changes_its_controller_leaves_nothing_behind():
    loop = a_loop(PLUGINS)
    loop.feed(events.PodSeen(OLD), events.PodSeen(promising("old", 0.7, "other", created=10.0)))
    promise = plugin_of(loop).qos.promise_of(key("web"))
    assert promise is not None
    assert promise.slo == 0.7
    assert plugin_of(loop).qos.promise_of(key("other")) is None

    loop.feed(events.PodGone(OLD.uid))

    assert plugin_of(loop).tracker.snapshot().told == ()
