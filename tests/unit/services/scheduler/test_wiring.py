"""The scheduler as a whole: when a part of it breaks, what led there is on the disk before the process ends."""

import pytest

from lamina.cli.options.scheduler_profile import configuration
from lamina.clients.kube.access import load_access
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.model import events
from lamina.services.scheduler.options import SchedulerOptions
from lamina.services.scheduler.recordings import RecordingSettings
from lamina.services.scheduler.wiring import SchedulerService
from lamina.testing import a_node
from lamina.trace.recording import DecideCall, TakenEvents
from lamina.trace.recording_reader import read_recording
from tests.unit.clients.kube.kubeconfigs import config, saved


async def test_a_part_that_breaks_leaves_a_recording(tmp_path, monkeypatch):
    """With the segments that waited to be written, and the decision that broke the core as the last entry."""
    server = saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))
    folder = tmp_path / "recordings"
    options = SchedulerOptions(
        configuration=configuration("lamina-balanced"),
        access=load_access(server),
        leader_elect=False,
        port=0,
        record=RecordingSettings(folder),
    )
    scheduler = SchedulerService(options)

    def broken(_: int = 0) -> None:
        raise ZeroDivisionError("by nothing")

    async def host() -> None:
        scheduler.ring.take(events.NodeSeen(a_node("n1")))
        assert scheduler.record_files is not None
        scheduler.record_files.put(scheduler.ring.recording())
        scheduler.ring.decide(1)

    monkeypatch.setattr(scheduler.loop, "decide", broken)
    monkeypatch.setattr(scheduler.host, "run", host)
    with pytest.raises(ExceptionGroup):
        await scheduler.run()

    first, last = sorted(folder.iterdir(), key=lambda path: path.name[-13:])
    assert ["TakenEvents"] == [
        type(one).__name__ for one in read_recording(first) if isinstance(one, TakenEvents | DecideCall)
    ]
    decided = [one for one in read_recording(last) if isinstance(one, TakenEvents | DecideCall)][-1]
    assert isinstance(decided, DecideCall)
    assert "ZeroDivisionError: by nothing" == decided.broke


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("apiVersion: kubescheduler.config.k8s.io/v1\n", 0, id="v1"),
        pytest.param("", 1, id="no version"),
        pytest.param("healthzBindAddress: 0.0.0.0:10251\nmetricsBindAddress: 0.0.0.0:10251\n", 1, id="and old fields"),
    ],
)
async def test_a_configuration_of_an_older_version_is_logged_in_one_warning(tmp_path, monkeypatch, caplog, text, lines):
    server = saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))
    file = tmp_path / "old.yaml"
    file.write_text(f"{text}kind: KubeSchedulerConfiguration\n", encoding="utf-8")
    options = SchedulerOptions(
        configuration=configuration(str(file)), access=load_access(server), leader_elect=False, port=0
    )
    scheduler = SchedulerService(options)

    async def nothing() -> None:
        """Run no part."""

    monkeypatch.setattr(scheduler, "_run_parts", nothing)
    await scheduler.run()
    warned = [record for record in caplog.records if record.message == "configuration is outdated"]

    assert lines == len(warned)
    assert all("apiVersion" in str(vars(record)["fields"]["problem"]) for record in warned)


@pytest.mark.parametrize("rules", [None, RegistryConfig()], ids=["no registries", "registries"])
async def test_what_is_watched_passes_the_image_gate_if_there_is_one_although_the_gate_is_empty(tmp_path, rules):
    server = saved(tmp_path / "kubeconfig", config(cluster={"server": "http://127.0.0.1:1"}))
    scheduler = SchedulerService(
        SchedulerOptions(
            configuration=configuration("lamina-balanced"), access=load_access(server), leader_elect=False, rules=rules
        )
    )

    assert (rules is None) == (scheduler.image_gate is None)
    sink = scheduler.event_queue if scheduler.image_gate is None else scheduler.image_gate
    assert scheduler.informers._sink is sink
    await scheduler._close_sources()
