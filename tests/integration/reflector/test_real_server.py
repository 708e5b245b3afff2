"""
A reflector beside a real API server that is killed, paused, compacted and restored.

What is asserted is what the fault tests assert against a scripted server; here nobody scripted anything.
"""

import asyncio
import shutil

import pytest

from lamina.clients.kube import reflector as reflector_module
from testbed import Testbed
from tests.integration.reflector.following import Following
from tests.unit.clients.kube.mirrored import until

pytestmark = [pytest.mark.realtime, pytest.mark.slow]


def crash(bed: Testbed) -> None:
    """Kill the API server and start it again."""
    bed.parts["kube-apiserver"].kill()
    bed.parts["kube-apiserver"].start()


async def test_a_real_server_is_followed_from_a_streamed_list_on(control_plane):
    async with Following(control_plane) as following:
        await following.settle()
        await following.write("a", "1")
        await following.write("a", "2")
        await following.write("b", "1")
        await following.settle()
        await following.delete("a")
        await following.settle()

        assert (1, 0) == (following.witness.streamed_lists, following.witness.pages)
        assert 1 == following.reflector.counts.connects
        assert 0 == following.reflector.counts.undecodable
        assert {"b": {"value": "1"}} == following.held
        await following.delete("b")


async def test_a_server_that_is_killed_and_comes_back_is_followed_again(bed_factory):
    bed = bed_factory()
    async with Following(bed) as following:
        for number in range(6):
            await following.write(f"c{number}", "1")
        await following.settle()
        await asyncio.to_thread(bed.parts["kube-apiserver"].kill)
        await until(lambda: following.reflector.stale_since is not None)
        await asyncio.sleep(8)
        assert 6 == len(following.held), "what we had is kept"
        await asyncio.to_thread(bed.parts["kube-apiserver"].start)
        await following.delete("c3")
        await following.write("c4", "changed")
        await following.settle()

        assert 1 >= following.reflector.counts.relists.total()
        assert 10 >= following.witness.most_in_ten_seconds


async def test_what_was_deleted_while_nobody_watched_and_history_was_compacted_vanishes(bed_factory):
    """A server that starts anew has no history of its own, and etcd's begins after the version we have."""
    bed = bed_factory()
    async with Following(bed) as following:
        for number in range(6):
            await following.write(f"c{number}", "1")
        await following.settle()
        # Nothing gets through from here on: the address is one where nobody listens.
        base, following.client._base = following.client._base, "https://127.0.0.1:1"
        await asyncio.to_thread(crash, bed)
        await until(lambda: following.reflector.stale_since is not None)
        for number in range(3):
            await following.delete(f"c{number}")
        await following.write("c4", "changed")
        await asyncio.to_thread(bed.compact_etcd)
        await asyncio.to_thread(crash, bed)
        following.client._base = base
        # Whatever was opened meanwhile was opened to nowhere.
        await following.client.close()
        await following.settle()

        assert {"expired": 1} == following.reflector.counts.relists
        assert 2 == following.witness.streamed_lists
        assert 10 >= following.witness.most_in_ten_seconds


async def test_a_paused_server_is_given_up_and_found_again_without_a_list(bed_factory, monkeypatch):
    monkeypatch.setattr(reflector_module, "IDLE", 3.0)
    bed = bed_factory()
    async with Following(bed) as following:
        await following.write("a", "1")
        await following.settle()
        await asyncio.to_thread(bed.parts["kube-apiserver"].pause)
        await until(lambda: following.reflector.counts.idle)
        await asyncio.to_thread(bed.parts["kube-apiserver"].resume)
        await following.write("a", "2")
        await following.settle()

        assert {} == following.reflector.counts.relists


async def test_a_quiet_watch_goes_on_however_often_it_is_given_up(bed_factory, monkeypatch):
    """A server sends no bookmark while its history stands still; to reconnect then costs nothing."""
    monkeypatch.setattr(reflector_module, "IDLE", 1.5)
    bed = bed_factory()
    async with Following(bed) as following:
        await following.write("a", "1")
        await following.settle()
        await until(lambda: following.reflector.counts.idle >= 3)
        await following.write("a", "2")
        await following.settle()

        assert {} == following.reflector.counts.relists
        assert 1 == following.witness.streamed_lists


async def test_a_cluster_restored_from_a_backup_is_listed_anew(bed_factory):
    """
    Its versions begin again below ours, and the server would not tell.

    What was written after the backup is gone, what is written after the restore has versions we have seen before.
    """
    bed = bed_factory()
    etcd, server = bed.parts["etcd"], bed.parts["kube-apiserver"]
    data = next(word.partition("=")[2] for word in etcd.command if word.startswith("--data-dir="))
    async with Following(bed) as following:
        await following.write("kept", "1")
        await following.settle()
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(etcd.stop)
        await asyncio.to_thread(shutil.copytree, data, f"{data}-backup")
        await asyncio.to_thread(etcd.start)
        await asyncio.to_thread(server.start)
        for number in range(20):
            await following.write("kept", f"lost {number}")
        await following.write("doomed", "1")
        await following.settle()

        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(etcd.kill)
        await asyncio.to_thread(shutil.rmtree, data)
        await asyncio.to_thread(shutil.copytree, f"{data}-backup", data)
        before = following.reflector.counts.relists.total()
        await asyncio.to_thread(etcd.start)
        await asyncio.to_thread(server.start)
        await following.settle()

        assert {"kept": {"value": "1"}} == following.held
        assert before + 1 == following.reflector.counts.relists.total()
        assert 1 == following.reflector.counts.relists["restored"]


async def test_a_server_that_does_not_stream_lists_is_listed_by_pages(bed_factory):
    bed = bed_factory(flags={"kube-apiserver": ["--feature-gates=WatchList=false"]})
    await listed_by_pages(bed)


@pytest.mark.soak
@pytest.mark.parametrize(
    "version",
    [
        pytest.param("1.30.14", marks=pytest.mark.testbed(version="1.30.14")),
        pytest.param("1.33.13", marks=pytest.mark.testbed(version="1.33.13")),
    ],
)
async def test_older_servers_are_followed(bed_factory, version):
    bed = bed_factory(version=version)
    async with Following(bed) as following:
        await following.write("a", "1")
        await following.settle()
        await following.write("a", "2")
        await following.settle()

        assert 0 == following.reflector.counts.relists.total()


async def listed_by_pages(bed):
    async with Following(bed) as following:
        for number in range(12):
            await following.write(f"c{number}", "1")
        await following.settle()
    async with Following(bed) as following:
        await following.settle()
        following.written = set(following.held)
        await following.write("c1", "changed")
        await following.delete("c2")
        await following.settle()

        assert (1, 1) == (following.witness.streamed_lists, following.witness.pages)
        assert {} == following.reflector.counts.relists


@pytest.mark.soak
async def test_a_paused_server_is_noticed_within_ninety_seconds(bed_factory):
    """With the figures as they are: a connection on which nothing comes counts as dead after 75 seconds."""
    bed = bed_factory()
    async with Following(bed) as following:
        await following.write("a", "1")
        await following.settle()
        await asyncio.to_thread(bed.parts["kube-apiserver"].pause)
        await until(lambda: following.reflector.stale_since is not None, 90)
        await asyncio.to_thread(bed.parts["kube-apiserver"].resume)
        await following.write("a", "2")
        await following.settle()

        assert {} == following.reflector.counts.relists
