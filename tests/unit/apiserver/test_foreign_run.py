"""Foreign schedulers as users name them, and decision logs that cannot be repeated."""

import pytest

from lamina.apiserver.foreign_run import RepeatedRun, chosen_scheduler, starved_pods
from lamina.model.errors import InputError
from lamina.model.taints import Taint
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.image_reports import empty_image
from lamina.simulator.engine import Environment
from lamina.simulator.run.latency import modelled
from lamina.testing import a_node, a_pod

HEADER = b'{"format":"lamina-decisions","version":1,"scenario":"s","scheduler":"x","seed":3}\n'
SETTLED_LINE = b'{"feed":0,"at":0.0,"inputs":[{"op":"settled","object":{}}]}\n'


@pytest.mark.parametrize(
    ("text", "settle", "name", "method"),
    [
        pytest.param("kube-scheduler", "", "kube-scheduler", "log", id="a known name"),
        pytest.param("/opt/kube-scheduler --v=2", "", "kube-scheduler", "log", id="a known program"),
        pytest.param("./mine --x", "", "mine", "silence", id="a command"),
        pytest.param("kube-scheduler", "silence", "kube-scheduler", "silence", id="another method"),
        pytest.param("attach", "", "attached", "silence", id="attached by hand"),
    ],
)
def test_a_scheduler_is_a_name_a_command_or_attached(text, settle, name, method):
    found = chosen_scheduler(text, settle).profile

    assert (name, method) == (found.name, found.settle)


def test_a_scheduler_can_be_described_in_a_file(tmp_path):
    (tmp_path / "batch.yaml").write_text("name: batch\nprogram: /opt/batch\nschedulerName: batch\nsettle: silence\n")
    found = chosen_scheduler(str(tmp_path / "batch.yaml"))

    assert ("batch", ("/opt/batch",), "batch") == (found.profile.name, found.command, found.profile.scheduler_name)


def test_silence_can_have_a_duration():
    assert 1.5 == chosen_scheduler("x", "silence=1500ms").profile.silence


@pytest.mark.parametrize(
    ("text", "settle"),
    [
        pytest.param("x", "soon", id="no method"),
        pytest.param("x", "log=3s", id="a duration for another method"),
        pytest.param("x", "silence=0", id="no time"),
        pytest.param("x", "silence=2h", id="too long"),
        pytest.param("x", "silence=long", id="no duration"),
        pytest.param("attach", "log", id="a log that Lamina cannot read"),
        pytest.param('"x', "", id="a quote without an end"),
    ],
)
def test_a_wrong_scheduler_or_method_is_one_mistake(text, settle):
    with pytest.raises(InputError) as raised:
        chosen_scheduler(text, settle)
    assert 1 == len(raised.value.mistakes)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "is not a decision log", id="empty"),
        pytest.param(HEADER, "has no end", id="interrupted"),
        pytest.param(HEADER + b'{"feed":1', "cannot be read", id="cut short"),
        pytest.param(HEADER.replace(b'"version":1', b'"version":9'), "has the format lamina-decisions 9", id="newer"),
    ],
)
def test_a_log_that_cannot_be_repeated_is_refused(data, said):
    with pytest.raises(InputError, match=said):
        RepeatedRun(data, "my.decisions")


@pytest.mark.parametrize(
    ("latency", "name"),
    [
        pytest.param("free", "0.01s", id="not recorded: as the user says"),
        pytest.param("measured", "measured", id="measured"),
        pytest.param("0.005s", "0.005s", id="modelled"),
    ],
)
def test_a_repeated_run_has_the_latency_of_the_log(latency, name):
    header = HEADER.replace(b'"version":1', b'"version":1,"latency":"%s"' % latency.encode())
    run = RepeatedRun(header + SETTLED_LINE, "my.decisions", modelled(0.01))

    assert name == run.latency.name


def test_a_latency_that_is_no_duration_is_a_mistake():
    header = HEADER.replace(b'"version":1', b'"version":1,"latency":"soon"')

    with pytest.raises(InputError, match=r"my.decisions:1: latency"):
        RepeatedRun(header + SETTLED_LINE, "my.decisions").latency  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    ("settle", "method", "logs"),
    [
        pytest.param("", "metrics", False, id="by its metrics, without the log"),
        pytest.param("log", "log", True, id="unless the user wants the log"),
    ],
)
def test_the_log_does_not_slow_down_a_scheduler_whose_decisions_are_timed(settle, method, logs):
    profile = chosen_scheduler("kube-scheduler", settle, timed=True).profile

    assert (method, logs) == (profile.settle, any("vmodule" in one for one in profile.arguments))


class Silent:
    """Receives the events of a cluster."""

    def note(self, record: object) -> None: ...

    def publish(self, event: object) -> None: ...


def test_a_pod_starved_if_it_is_pending_although_a_node_has_room():
    """4 cpu free on n1, which only a pod with its toleration may use: the small pod fits n2, the large one nowhere."""
    cluster = VirtualCluster(Environment(), (), Delays(), Silent(), unknown_image=empty_image)
    for name, cpu, taints in (("n1", 4, (Taint("k", "v", "NoSchedule"),)), ("n2", 2, ())):
        spec = VirtualNodeSpec(name=name, allocatable=a_node(cpu=cpu).allocatable, bandwidth=1e6, taints=taints)
        cluster.join(spec)
    for name, cpu in (("small", 2), ("large", 3)):
        cluster.submit(a_pod(name, cpu=cpu))

    assert {"total": 1, "pods": ["default/small"]} == starved_pods(cluster)
