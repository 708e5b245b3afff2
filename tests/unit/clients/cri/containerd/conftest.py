"""A fake containerd and a source that looks at it, both gone after the test."""

import pytest

from lamina.clients.cri.containerd import containerd_client, event_stream, poll_schedule
from lamina.clients.cri.containerd.containerd_source import ContainerdSource
from tests.unit.clients.cri.containerd import fake_containerd


@pytest.fixture
def unhurried(monkeypatch):
    """Without waiting: pace and rhythm have tests of their own."""
    monkeypatch.setattr(containerd_client, "ASKED_PER_SECOND", 10_000.0)
    monkeypatch.setattr(containerd_client, "READ_PER_SECOND", 10_000.0)
    monkeypatch.setattr(poll_schedule, "QUIET", 0.05)
    monkeypatch.setattr(poll_schedule, "UNFINISHED", 0.05)
    monkeypatch.setattr(event_stream, "SOON", 0.05)


@pytest.fixture
async def fake(tmp_path, unhurried):
    async with fake_containerd.running(tmp_path) as fake:
        yield fake


@pytest.fixture
async def source(fake, tmp_path):
    source = ContainerdSource(fake.socket, disk=tmp_path)
    yield source
    await source.close()
