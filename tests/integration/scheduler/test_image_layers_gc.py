"""The custodian on a real API server, with the rights of the scheduler's own account."""

import asyncio
import base64
import json

import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.kube.transport import KubeClient
from lamina.layers.inventory import Inventory
from lamina.model.digest import digest_of
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import InformerSet
from lamina.services.scheduler import image_layers_gc
from lamina.services.scheduler.image_layers_gc import NOT_ITS_NAME, UNUSED, ImageLayersGC
from lamina.wire.custom_resources.api_group import object_name
from lamina.wire.custom_resources.image_layers import encode_image_layers
from tests.e2e._live import CUSTOM, Reporter, manifest_of, publish_image
from tests.integration.scheduler.live import ACCOUNT, NAMESPACE, install, kubeconfig

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kubectl")]


class Tally:
    """Counts what goes."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def deleted(self, reason: str) -> None:
        self.reasons.append(reason)


def names(bed) -> set[str]:
    return {one["metadata"]["name"] for one in bed.api("GET", f"{CUSTOM}/imagelayers")["items"]}


def test_wrong_and_unused_objects_go_and_the_others_stay(bed, monkeypatch):
    monkeypatch.setattr(image_layers_gc, "GRACE", 0.5)
    install(bed)
    bed.kubectl("delete", "imagelayers,nodelayers", "--all")
    bed.add_nodes({"name": name} for name in ("n1", "n2"))
    held, unused = (publish_image(bed, manifest_of([(name, 5)])) for name in (b"held", b"unused"))
    many = [publish_image(bed, manifest_of([(f"more {number}".encode(), 5)])) for number in range(8)]
    reporter = Reporter(bed)
    reporter.report("n1", dict.fromkeys((held, *many), ()))
    reporter.report("n2", {})
    lie = json.loads(encode_image_layers(manifest_of([(b"a lie", 5)])))
    lie["spec"]["manifest"] = base64.b64encode(manifest_of([(b"something else", 5)])).decode()
    bed.api("POST", f"{CUSTOM}/imagelayers", lie)
    tally = Tally()
    token = {"token": bed.service_account_token(NAMESPACE, ACCOUNT)}
    access = kubeconfig(bed, bed.folder / "custodian.kubeconfig", token)
    rounds: list[set[str]] = []

    async def story() -> None:
        client = KubeClient(load_access(access))
        informers = InformerSet(client, EventQueue())
        keeper = ImageLayersGC(client, informers, Inventory(), may_act=lambda: True, watch=tally)
        task = asyncio.create_task(informers.run())
        try:
            while not informers.synced:
                await asyncio.sleep(0.05)
            for _ in range(2):
                await keeper.collect()
                rounds.append(await asyncio.to_thread(names, bed))
                await asyncio.sleep(1.0)
            # Reports that vanish all at once take nothing with them while their nodes are there.
            await asyncio.to_thread(bed.kubectl, "delete", "nodelayers", "n1")
            for _ in range(2):
                await asyncio.sleep(1.0)
                await keeper.collect()
            rounds.append(await asyncio.to_thread(names, bed))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await client.close()

    asyncio.run(story())
    everything = {object_name(one) for one in (held, unused, *many)}
    assert [everything, everything - {object_name(unused)}, everything - {object_name(unused)}] == rounds
    assert [NOT_ITS_NAME, UNUSED] == tally.reasons
    assert lie["metadata"]["name"] == object_name(digest_of(manifest_of([(b"a lie", 5)])))
