"""Which runtime is found, and what is said when none is."""

import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lamina.clients.cri import runtime_discovery
from lamina.clients.cri.containerd import containerd_client
from lamina.clients.cri.containerd.containerd_source import ContainerdSource
from lamina.clients.cri.plain.cri_source import CriSource
from lamina.clients.cri.runtime_discovery import INSTALL, KNOWN_SOCKETS, find_source
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.cri.storage.storage_source import StorageSource
from tests.unit.clients.cri.plain.spoken import Spoken
from tests.unit.clients.cri.storage.written import Disk

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """No runtime of this machine is found, only what a test puts there."""
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.setattr(runtime_discovery, "STORAGE", folder / "storage")
    monkeypatch.setattr(runtime_discovery, "CONTAINERD_SOCKETS", (folder / "containerd.sock",))
    monkeypatch.setattr(runtime_discovery, "CRIO_SOCKETS", (folder / "crio.sock",))
    monkeypatch.setattr(runtime_discovery, "KNOWN_SOCKETS", (folder / "containerd.sock", folder / "crio.sock"))
    return folder


@pytest.fixture
def store(places):
    Disk(places / "storage").save()
    return places / "storage"


@pytest.fixture
async def runtime():
    async with Spoken() as one:
        yield one


def listening(path):
    """A socket at which no response."""
    one = socket.socket(socket.AF_UNIX)
    one.bind(str(path))
    return one


async def kind(wanted, **where):
    source = await find_source(wanted, **{"socket": None, "storage": None, "disk": None, **where})
    await source.close()
    return type(source)


async def test_the_files_of_cri_o_are_found_where_it_runs(places, store):
    with listening(places / "crio.sock"):
        assert StorageSource is await kind("auto")


async def test_files_that_somebody_left_are_no_runtime(store):
    """podman keeps its images in the same place."""
    with pytest.raises(
        RuntimeSourceError, match="storage is an image store, but no CRI-O listens; name it as the storage"
    ):
        await kind("auto")


@pytest.mark.parametrize("wanted", ["auto", "crio"])
async def test_a_store_that_was_named_is_taken(wanted, places, tmp_path):
    Disk(tmp_path / "elsewhere").save()

    assert StorageSource is await kind(wanted, storage=tmp_path / "elsewhere")


async def test_whoever_asks_for_cri_o_gets_its_files(store):
    assert StorageSource is await kind("crio")


@pytest.mark.parametrize("wanted", ["auto", "cri"])
async def test_whatever_speaks_cri_is_taken_when_nothing_better_is_there(wanted, places, runtime):
    assert CriSource is await kind(wanted, socket=runtime.socket)


async def test_a_containerd_that_lets_only_cri_through_is_taken_as_it_is(places, runtime):
    runtime.name = "containerd"

    assert CriSource is await kind("auto", socket=runtime.socket)


async def test_a_containerd_that_answers_too_late_is_asked_again_and_not_taken_for_less(runtime, monkeypatch):
    """One that hung lets the first question pass, and answers the next one, which is CRI's."""
    runtime.name = "containerd"
    asked = []

    async def version(self):
        asked.append(self.socket)
        if len(asked) == 1:
            raise RuntimeSourceError("containerd", "Version: no response in 10 s")
        return "2.4.2"

    monkeypatch.setattr(containerd_client.ContainerdClient, "version", version)

    assert ContainerdSource is await kind("auto", socket=runtime.socket)
    assert [runtime.socket] * 2 == asked


async def test_a_containerd_that_never_answers_for_itself_is_no_runtime(runtime, monkeypatch):
    runtime.name = "containerd"

    async def version(self):
        raise RuntimeSourceError("containerd", "Version: no response in 10 s")

    monkeypatch.setattr(containerd_client.ContainerdClient, "version", version)

    with pytest.raises(RuntimeSourceError, match="no response in 10 s"):
        await kind("auto", socket=runtime.socket)
    assert CriSource is await kind("cri", socket=runtime.socket)


async def test_a_runtime_is_found_at_a_usual_place(places, runtime):
    (places / "containerd.sock").symlink_to(runtime.socket)

    assert CriSource is await kind("auto")


async def test_what_is_asked_for_is_not_replaced_by_something_lesser(places, runtime):
    with pytest.raises(RuntimeSourceError, match="no runtime found"):
        await kind("containerd", socket=runtime.socket)


async def test_every_place_that_was_tried_is_said(places):
    with (
        listening(places / "containerd.sock"),
        listening(places / "crio.sock"),
        pytest.raises(RuntimeSourceError) as caught,
    ):
        await kind("auto")

    said = str(caught.value)
    assert str(places / "storage") in said
    assert str(places / "containerd.sock") in said
    # Where CRI-O listens there is no containerd.
    assert 1 == said.count(str(places / "crio.sock"))
    assert "\n" not in said


@pytest.mark.parametrize("wanted", ["auto", "containerd", "crio", "cri"])
async def test_where_nothing_is_the_usual_places_are_said(places, wanted):
    with pytest.raises(RuntimeSourceError, match=r"no runtime found: .*run/\w+.*; name its socket") as caught:
        await kind(wanted)
    assert "\n" not in str(caught.value)


async def test_a_socket_that_is_none_is_said_once(places):
    with pytest.raises(RuntimeSourceError) as caught:
        await kind("auto", socket=places / "none.sock")

    assert 1 == str(caught.value).count("none.sock is not a socket; check that the runtime runs")


async def test_there_is_no_other_way_to_look():
    with pytest.raises(RuntimeSourceError, match="choose one of auto, containerd, crio, cri"):
        await kind("docker")


def test_sockets_are_absolute_paths_and_each_is_there_once():
    assert all(path.is_absolute() for path in KNOWN_SOCKETS)
    assert len(set(KNOWN_SOCKETS)) == len(KNOWN_SOCKETS)


WITHOUT_GRPC = """
import asyncio, sys
from pathlib import Path
sys.modules["grpc"] = sys.modules["google.protobuf"] = None
from lamina.clients.cri.runtime_discovery import find_source
from lamina.clients.cri.runtime_source import RuntimeSourceError
wanted, place = sys.argv[1], Path(sys.argv[2])
where = dict(socket=None, storage=place) if wanted == "crio" else dict(socket=place, storage=None)
if place.name == "nowhere":
    import lamina.clients.cri.runtime_discovery as find
    find.KNOWN_SOCKETS = find.CONTAINERD_SOCKETS = find.CRIO_SOCKETS = (place,)
    find.STORAGE = place / "storage"
    where = dict(socket=None, storage=None)
try:
    print(type(asyncio.run(find_source(wanted, disk=None, **where))).__name__)
except RuntimeSourceError as trouble:
    print(trouble)
"""


def without_grpc(wanted, place):
    command = [sys.executable, "-c", WITHOUT_GRPC, wanted, str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_files_of_cri_o_need_no_grpc(store):
    assert "StorageSource" == without_grpc("crio", store)


@pytest.mark.parametrize("wanted", ["auto", "containerd", "cri"])
def test_a_missing_grpc_is_said_with_what_to_install(tmp_path, wanted):
    said = without_grpc(wanted, tmp_path / "x.sock")

    assert "gRPC is not installed: pip install 'lamina[agent]'" in said
    assert "in a checkout: .venv/bin/pip install -c constraints.txt -e '.[agent]'" in said
    assert 1 == len(said.splitlines())


@pytest.mark.parametrize("wanted", ["auto", "containerd", "cri"])
def test_a_missing_grpc_is_said_where_no_runtime_listens_as_well(tmp_path, wanted):
    """The user would otherwise start a runtime first, and meet the missing package after that."""
    said = without_grpc(wanted, tmp_path / "nowhere")

    assert "there is none of" in said
    assert "gRPC is not installed: pip install 'lamina[agent]'" in said


def test_the_extra_that_the_message_names_is_one_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = set(re.findall(r"\[(\w+)\]", INSTALL))

    assert {"agent"} == names
    assert {"grpcio", "protobuf"} == {re.match(r"\w+", one)[0] for one in project["optional-dependencies"]["agent"]}
