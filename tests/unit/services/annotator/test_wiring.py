"""One round or a removal: what is refused or left undone is a failure; a service that is stopped is none."""

import asyncio
import os
import signal

import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.pod import Pod
from lamina.services.annotator import wiring
from lamina.services.annotator.annotation_writer import WritesRejectedError
from lamina.services.annotator.wiring import AnnotatorOptions, StoppedError
from lamina.testing import a_node
from tests.unit.clients.kube.kubeconfigs import config, saved
from tests.unit.services.fakes import LOST, ScriptedClient, refused


class Client(ScriptedClient):
    """An API server, and a connection to it."""

    async def close(self) -> None:
        """Nothing is open."""


class Cluster:
    """Thirty nodes that carry something of ours."""

    follows = True

    async def run(self) -> None:
        await asyncio.sleep(3600)

    async def seen(self) -> None:
        """At once."""

    def nodes(self):
        written = {"requested-cpu": "1", "lamina.dev/allocation-observed-at": "2026-03-01T12:00:00Z"}
        return {f"n{n:02}": a_node(f"n{n:02}", uid=f"u{n}", annotations=written) for n in range(30)}

    def ready(self) -> set[str]:
        return set(self.nodes())

    def pods(self) -> list[Pod]:
        return []


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Let an annotator of allocation talk to a scripted server."""

    async def annotate(client: Client, **how: bool) -> None:
        monkeypatch.setattr(wiring, "KubeClient", lambda *_, **__: client)
        monkeypatch.setattr(wiring, "WatchedCluster", lambda *_, **__: Cluster())
        access = load_access(saved(tmp_path / "kubeconfig", config()))
        options = AnnotatorOptions(
            what="allocation", access=access, per_second=1e6, refresh=600.0, forget=1800.0, **how
        )
        await wiring.annotate(options, lambda *_: None)

    return annotate


@pytest.mark.parametrize("how", ["once", "remove"])
@pytest.mark.parametrize(
    ("answers", "tried", "error", "line"),
    [
        pytest.param(
            [b"{}", refused(422, "Too long")],
            30,
            WritesRejectedError,
            "1 of 30 annotation writes were rejected; n01: POST binding: 422 Reason: Too long",
            id="one node",
        ),
        pytest.param(
            [refused(403)] * 30,
            20,
            WritesRejectedError,
            "20 annotation writes in a row rejected: 403 Reason; n00: POST binding: 403 Reason: no",
            id="all nodes",
        ),
        pytest.param([b"{}", LOST], 2, UnreachableError, str(LOST), id="nobody answers"),
        pytest.param([refused(401)], 1, ApiError, "401 Reason", id="nobody knows us"),
    ],
)
async def test_what_was_refused_is_one_line_after_everything_else_was_written(run, how, answers, tried, error, line):
    client = Client(*answers)
    with pytest.raises(error) as raised:
        await run(client, **{how: True})

    assert line in str(raised.value)
    assert (1, 1, tried) == (raised.value.exit_code, len(str(raised.value).splitlines()), len(client.asked))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how", ["once", "remove"])
async def test_whoever_is_stopped_in_the_middle_has_failed(run, how, number):
    client = Client()
    client.before = lambda _: os.kill(os.getpid(), number) if len(client.asked) == 3 else None
    with pytest.raises(StoppedError, match="stopped before all nodes were written") as raised:
        await run(client, **{how: True})

    assert (1, True) == (raised.value.exit_code, len(client.asked) < 30)


async def test_a_service_that_is_stopped_has_done_its_work(run):
    client = Client()
    client.before = lambda _: os.kill(os.getpid(), signal.SIGTERM) if len(client.asked) == 3 else None
    await run(client)

    assert 3 <= len(client.asked) < 30
