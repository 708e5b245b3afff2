"""An extender put together: which parts it has for which agents."""

import asyncio
from pathlib import Path

import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.scheduling.plugins.in_tree import AGENTS, agents
from lamina.services.extender.configuration import AgentEntry, PartialExtenderSettings
from lamina.services.extender.environment_variables import read_environment
from lamina.services.extender.settings import ExtenderFlags, merge_settings
from lamina.services.extender.wiring import ExtenderOptions, ExtenderService, reads_layers
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
    assert ["layers"] == [agent.name for agent in AGENTS if reads_layers(agent)]


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
        flags = ExtenderFlags(agents=(AgentEntry(name=served),))
        settings = merge_settings(
            flags, read_environment({}, []), PartialExtenderSettings(), agents(entry_points=False)
        )
        extender = ExtenderService(
            ExtenderOptions(settings=settings, access=load_access(kubeconfig, ""), rules=RegistryConfig())
        )
        try:
            door = extender.image_gate
            return door is not None and door._ours(a_pod("p", scheduler=pod))
        finally:
            await extender._close()

    assert expected is asyncio.run(story())


def test_what_is_watched_passes_the_image_gate_although_the_gate_is_empty(kubeconfig: Path) -> None:
    async def story() -> None:
        flags = ExtenderFlags(agents=(AgentEntry(name="layers"),))
        settings = merge_settings(
            flags, read_environment({}, []), PartialExtenderSettings(), agents(entry_points=False)
        )
        extender = ExtenderService(
            ExtenderOptions(settings=settings, access=load_access(kubeconfig, ""), rules=RegistryConfig())
        )
        try:
            assert extender.informers is not None
            assert extender.image_gate is not None
            assert extender.informers._sink is extender.image_gate
        finally:
            await extender._close()

    asyncio.run(story())
