"""The parts that show and store measurements exist if a profile measures, and start and stop with the scheduler."""

import asyncio
import socket
from pathlib import Path

import aiohttp
import pytest

from lamina.clients.kube.access import load_access
from lamina.model import events
from lamina.model.errors import InputError
from lamina.scheduling.config.loader import load
from lamina.scheduling.contract.commands import Evict
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.scheduler.options import SchedulerOptions
from lamina.services.scheduler.qos.qos_log import QosLogSettings
from lamina.services.scheduler.qos.qos_service import QosOptions
from lamina.services.scheduler.wiring import SchedulerService
from lamina.testing import a_pod
from tests.unit.clients.kube.kubeconfigs import config, saved

MEASURING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: lamina
  plugins:
    preBind: {enabled: [{name: QosAware}]}
    postBind: {enabled: [{name: QosAware}]}
"""
PLAIN = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


def a_scheduler(folder: Path, text: str, qos: QosOptions | None = None, *, observe: bool = False) -> SchedulerService:
    """A scheduler whose API server does not exist."""
    server = saved(folder / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))
    options = SchedulerOptions(
        configuration=load(text, "test", registry(entry_points=False)),
        access=load_access(server),
        port=0,
        qos=qos or QosOptions(port=0),
        observe=observe,
    )
    return SchedulerService(options)


async def test_a_profile_that_measures_brings_the_page_the_metrics_and_the_log(tmp_path):
    path = tmp_path / "metrics.log"
    scheduler = a_scheduler(tmp_path, MEASURING, QosOptions(port=0, log=QosLogSettings(path)))
    qos = scheduler.qos
    assert qos is not None
    running = asyncio.create_task(scheduler.run())
    while not qos.server.port:
        await asyncio.sleep(0.01)
    pod = a_pod("web-0", annotations={"controller": "web", "slo": "0.9"})
    scheduler.ring.take(events.TimePassed(scheduler.clock.now()), events.PodSeen(pod))

    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{qos.server.port}/") as response:
            assert "web  0.00/0.90" in await response.text()
        async with session.get(f"http://127.0.0.1:{scheduler.port}/metrics") as response:
            assert 'lamina_qos_slo_ratio{class="0.90",controller="web",kind="",namespace="default"} 0.9' in (
                await response.text()
            )
    scheduler.ring.take(events.PodGone(pod.uid))
    scheduler.stop()
    await running

    assert "web-0,web,0.9" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "observe", "ready"),
    [
        pytest.param(MEASURING, False, False, id="pods wait until the history is read"),
        pytest.param(MEASURING, True, True, id="an observer stores nothing"),
    ],
)
def test_pods_wait_for_the_history_if_there_is_one(tmp_path, text, observe, ready):
    qos = a_scheduler(tmp_path, text, observe=observe).qos

    assert qos is not None
    assert ready == qos.ready


def test_evictions_are_counted_by_controller(tmp_path):
    scheduler = a_scheduler(tmp_path, MEASURING)
    victim = a_pod("web-0", annotations={"controller": "web", "slo": "0.9"})
    scheduler.ring.take(events.TimePassed(5.0), events.PodSeen(victim))
    scheduler.host._listener.attempted(0.1, [Evict(victim, a_pod("other"), "n1")])

    assert 'lamina_qos_evictions_total{class="0.90",controller="web"' in scheduler.metrics.exposition().decode()
    assert 'lamina_qos_class_evictions_total{class="0.90"} 1.0' in scheduler.metrics.exposition().decode()


def test_without_such_a_profile_there_is_nothing(tmp_path):
    scheduler = a_scheduler(tmp_path, PLAIN)

    assert scheduler.qos is None
    assert "lamina_qos" not in scheduler.metrics.exposition().decode()


def test_a_log_without_measurements_is_an_error(tmp_path):
    with pytest.raises(InputError, match="--qos-log: no profile enables QosAware"):
        a_scheduler(tmp_path, PLAIN, QosOptions(port=0, log=QosLogSettings(tmp_path / "metrics.log")))


async def test_a_port_that_is_taken_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        scheduler = a_scheduler(tmp_path, MEASURING, QosOptions(port=port))
        with pytest.raises(
            InputError, match=f"--qos-listen: cannot listen on 127.0.0.1:{port}: Address already in use"
        ):
            await scheduler.run()
