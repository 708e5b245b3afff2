"""An extender put together: which parts it has for which agents."""

import asyncio
from pathlib import Path

import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.oci.rules import Rules
from lamina.scheduling.plugins.in_tree import AGENTS, agents
from lamina.services.extender.configuration import AgentEntry, Said
from lamina.services.extender.environment import read_environment
from lamina.services.extender.settings import Flags, settle
from lamina.services.extender.wiring import Extender, Options, looks_at_layers
from lamina.testing.builders import a_pod

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG, encoding="utf-8")
    return path


def test_of_the_agents_in_tree_only_layers_looks_at_layers() -> None:
    assert ["layers"] == [agent.name for agent in AGENTS if looks_at_layers(agent)]


@pytest.mark.parametrize(
    ("served", "pod", "expected"),
    [
        pytest.param("congestion", "my-scheduler", False, id="an agent that needs no layers"),
        pytest.param("layers", "somebody-else", False, id="a pod of a scheduler that asks somebody else"),
        pytest.param("layers", "my-scheduler", True, id="layers, and a scheduler that asks"),
    ],
)
def test_registries_are_asked_for_layers_and_for_pods_of_schedulers_that_ask(
    served: str, pod: str, expected: bool, kubeconfig: Path
) -> None:
    async def story() -> bool:
        flags = Flags(agents=(AgentEntry(name=served),))
        settings = settle(flags, read_environment({}, []), Said(), agents(entry_points=False))
        extender = Extender(Options(settings=settings, access=load_access(kubeconfig, ""), rules=Rules()))
        try:
            door = extender.door
            return door is not None and door._ours(a_pod("p", scheduler=pod))
        finally:
            await extender._close()

    assert expected is asyncio.run(story())
