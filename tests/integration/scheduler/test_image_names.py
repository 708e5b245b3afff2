"""Ten thousand pods whose image names are written to make us go where we must not: we go nowhere, and all come through."""

import asyncio
import random

import pytest

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.resolver import RegistryResolver
from lamina.model.events import LayersReported, NodeSeen, PodSeen
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.model.reference import DOCKER_HUB
from lamina.services.informers.image_gate import ImageGate
from lamina.services.informers.node_image_facts import registry_of
from lamina.services.informers.pod_image_resolver import PodImageResolver
from lamina.testing import a_digest, a_node, a_pod
from tests.integration.scheduler import hostile
from tests.unit.services.informers.asking import Inside

pytestmark = pytest.mark.realtime

PODS = 10_000
NAMESPACES = 500
FAR = ("metadata.google.internal", "localhost.localdomain", "127.0.0.1.")
EAR = hostile.Ear()
PASSWORD = "canary-password-4711"


def evil_reports(ports: tuple[int, ...]) -> list[LayerReport]:
    """Nodes that were taken over say that they have pulled from all the places we must not go to."""
    places = [f"{host}{port}" for host in hostile.hosts() for port in ("", *(f":{one}" for one in ports))]
    names = [f"{place}/app:1" for place in places]
    # Names that only a name server could answer would be asked for outside: those are left to the pods.
    near = [name for name in names if registry_of(name) not in ("", DOCKER_HUB) and not name.startswith(FAR)]
    return [
        LayerReport(node=f"evil-{start}", images=tuple(HeldImage(a_digest(one), 0, (one,)) for one in some))
        for start in range(0, len(near), 16)
        if (some := near[start : start + 16])
    ]


async def run(resolver: RegistryResolver, names: list[str], reports: list[LayerReport]) -> Inside:
    inside = Inside()
    resolving = PodImageResolver(inside.find, resolver, inside.put)
    door = ImageGate(inside, resolving, ours=lambda _: True, deadline=2.0)
    task = asyncio.create_task(door.run(lambda: True))
    await asyncio.sleep(0)
    door.put(NodeSeen(a_node("evil")))
    for report in reports:
        door.put(LayersReported(report))
    for number, name in enumerate(names):
        door.put(PodSeen(a_pod(f"p{number}", image=name, namespace=f"team-{number % NAMESPACES}")))
        if number % 100 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(60.0):
        while len(door):
            await asyncio.sleep(0.05)
    task.cancel()
    await resolving.close()
    await resolver.close()
    return inside


async def test_no_name_of_an_image_makes_us_go_where_the_rules_do_not_lead(caplog):
    notes = hostile.Notes()
    forbidden: list[str] = []
    async with hostile.server(hostile.canary(notes)) as quiet, hostile.server(hostile.trap(notes, forbidden)) as loud:
        forbidden += [
            f"http://127.0.0.1:{quiet}/token",
            f"https://127.0.0.1:{quiet}/token",
            f"http://localhost:{quiet}/token",
            f"http://[::1]:{quiet}/token",
            f"https://[::1]:{quiet}/x",
            f"http://user:secret@127.0.0.1:{quiet}/",
            f"//127.0.0.1:{quiet}/",
            "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
            "https://169.254.169.254/",
            "https://10.96.0.1/api/v1/secrets",
            "https://2130706433/",
            "https://0x7f000001/",
            "file:///etc/passwd",
            "gopher://127.0.0.1:70/",
            f"https://127.0.0.1:{quiet}@registry.invalid:99999/",
        ]
        allowed = f"127.0.0.1:{loud}"
        rules = RegistryConfig(registries=(RegistrySettings(host=allowed, plain_http=True, private=True),))
        secret = f'{{"auths": {{"{allowed}": {{"username": "u", "password": "{PASSWORD}"}}}}}}'.encode()
        resolver = RegistryResolver(rules, Keyring.from_secrets([secret]))
        names = list(hostile.names(PODS, (quiet, 80, 443), allowed, random.Random(0)))
        with EAR.listening():
            inside = await run(resolver, names, evil_reports((quiet,)))
        counts = dict(resolver.counts)

    pods = [event.pod.uid for _, event in inside.events if isinstance(event, PodSeen)]
    assert sorted(f"p{number}" for number in range(PODS)) == sorted(pods)
    assert 0 == notes.requests["canary"]
    assert [] == notes.credentials
    assert {("127.0.0.1", loud)} == {tuple(address[:2]) for address in EAR.connected}
    assert set(EAR.looked_up) <= {"127.0.0.1", "localhost"}, "nobody outside was asked for a name"
    assert 100 < notes.requests["trap"], counts
    assert [] == [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}]
    assert PASSWORD not in caplog.text
