"""What is cleared away, what stays, and when nothing goes because too little is known."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.layers.inventory import Inventory
from lamina.model.digest import Digest, digest_of
from lamina.model.image import Image, Layer
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import InformerSet
from lamina.services.scheduler import image_layers_gc
from lamina.services.scheduler.image_layers_gc import BETWEEN_ROUNDS, GRACE, NOT_ITS_NAME, UNUSED, ImageLayersGC
from lamina.wire.custom_resources.image_layers import encode_image_layers
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_node_layers_status
from tests.unit.services.fakes import leaping

IMAGES = "/apis/lamina.dev/v1alpha1/imagelayers"
REPORTS = "/apis/lamina.dev/v1alpha1/nodelayers"


def a_manifest(name: str) -> bytes:
    return json.dumps({"schemaVersion": 2, "layers": [{"digest": digest_of(name.encode()), "size": 5}]}).encode()


def digest(name: str) -> Digest:
    return digest_of(a_manifest(name))


def an_object(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(encode_image_layers(a_manifest(name)))
    made["metadata"] |= {"uid": f"uid of {name}", "resourceVersion": "7"}
    return made


class Api:
    """Lists and deletes ImageLayers, and counts NodeLayers."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = {one["metadata"]["name"]: one for one in objects}
        self.reports = 0
        self.deleted: list[tuple[str, Any]] = []
        self.times: list[float] = []
        self.broken: Exception | None = None
        self.on_delete: Exception | None = None

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: bytes | None = None, **_: Any
    ) -> bytes:
        if self.broken is not None:
            raise self.broken
        if method == "DELETE":
            if self.on_delete is not None:
                raise self.on_delete
            name = path.removeprefix(f"{IMAGES}/")
            self.deleted.append((name, json.loads(body or b"{}")["preconditions"]))
            self.times.append(asyncio.get_running_loop().time())
            del self.objects[name]
            return b"{}"
        if path == REPORTS:
            rest = {"remainingItemCount": self.reports - 1} if self.reports > 1 else {}
            return json.dumps({"metadata": rest, "items": [{}] * min(self.reports, 1)}).encode()
        return json.dumps({"kind": "ImageLayersList", "metadata": {}, "items": list(self.objects.values())}).encode()


class House:
    """A custodian, and what it is told."""

    def __init__(self, *images: str, nodes: tuple[str, ...] = ("n1",)) -> None:
        self.api = Api(*map(an_object, images))
        self.informers = InformerSet(self.api, EventQueue())
        self.inventory = Inventory()
        self.leads = True
        self.reasons: list[str] = []
        self.custodian = ImageLayersGC(self.api, self.informers, self.inventory, may_act=lambda: self.leads, watch=self)
        for reflector in self.informers.reflectors.values():
            reflector.synced, reflector.stale_since = True, None
        for node in nodes:
            self.node(node)

    def deleted(self, reason: str) -> None:
        self.reasons.append(reason)

    def see(self, kind: str, name: str, said: Any, version: str = "1") -> None:
        self.informers.reflectors[kind].store.see(name, version, json.dumps(said).encode())

    def node(self, name: str) -> None:
        self.see("Node", name, {"metadata": {"name": name, "uid": f"uid of {name}"}})

    def report(self, node: str, *images: str) -> None:
        before = len(self.informers.reflectors["NodeLayers"].store)
        made = json.loads(encode_node_layers(node, f"uid of {node}"))
        held = tuple(HeldImage(digest(one)) for one in images)
        made |= json.loads(encode_node_layers_status(LayerReport(node=node, observed_at=1.0, images=held)))
        made["metadata"] = {"name": node}
        self.see("NodeLayers", node, made)
        self.api.reports += len(self.informers.reflectors["NodeLayers"].store) - before

    def silence(self, node: str) -> None:
        self.informers.reflectors["NodeLayers"].store.forget(node)
        self.api.reports -= 1

    def pod(self, image: str) -> None:
        spec = {"containers": [{"name": "c", "image": image}]}
        self.see("Pod", f"default/{image}", {"metadata": {"name": "p", "uid": image}, "spec": spec})

    @property
    def gone(self) -> list[str]:
        return [name for name, _ in self.api.deleted]

    async def look(self, after: float = 0.0) -> list[str]:
        """Look round, some time later; return what is gone by then."""
        await asyncio.sleep(after)
        await self.custodian.collect()
        return self.gone


def names(*images: str) -> list[str]:
    return [an_object(image)["metadata"]["name"] for image in images]


# -------------------------------------------------------------------------------------------------- not what it is called


def wrong(change: str) -> dict[str, Any]:
    made, other = an_object("a"), an_object("b")
    match change:
        case "another manifest":
            made["spec"]["manifest"] = other["spec"]["manifest"]
        case "no manifest":
            del made["spec"]["manifest"]
        case "no spec":
            del made["spec"]
        case "no base64":
            made["spec"]["manifest"] = "???"
        case "a name that is no digest":
            made["metadata"]["name"] = "somebody-s"
        case "a digest in capitals":
            made["metadata"]["name"] = made["metadata"]["name"].upper()
    return made


@pytest.mark.parametrize(
    "change",
    ["another manifest", "no manifest", "no spec", "no base64", "a name that is no digest", "a digest in capitals"],
)
def test_what_is_not_what_its_name_says_goes_at_once_and_no_other_of_its_name(change):
    async def story():
        house = House("kept")
        made = wrong(change)
        house.api.objects[made["metadata"]["name"]] = made
        await house.look()
        return house, made["metadata"]["name"]

    house, name = leaping(story())
    assert [(name, {"uid": "uid of a", "resourceVersion": "7"})] == house.api.deleted
    assert [NOT_ITS_NAME] == house.reasons


def test_a_manifest_that_we_cannot_use_is_not_wrong():
    """A newer Lamina may be able to; it goes when nobody refers to it."""

    async def story():
        manifest = b'{"schemaVersion": 9}'
        made = an_object("a")
        made["metadata"]["name"] = digest_of(manifest).replace(":", "-")
        made["spec"]["manifest"] = base64.b64encode(manifest).decode()
        house = House()
        house.api.objects = {made["metadata"]["name"]: made}
        return await house.look()

    assert [] == leaping(story())


# ------------------------------------------------------------------------------------------------------------ not in use


def test_what_nobody_refers_to_goes_after_the_grace_and_not_before():
    async def story():
        house = House("held", "wanted", "pinned", "pulling", "unused")
        house.report("n1", "held")
        house.inventory.learn([Image(digest("wanted"), (Layer(digest_of(b"x"), 1),), ("app:1",))])
        house.pod("app:1")
        house.pod(f"other@{digest('pinned')}")
        soon = [list(await house.look()), list(await house.look(GRACE - 1.0))]
        return soon, await house.look(2.0), house

    soon, later, house = leaping(story())
    assert [[], []] == soon
    # Five objects, of which a fifth may go in one round; "pulling" was never referred to either.
    assert 1 == len(later)
    assert set(later) <= set(names("unused", "pulling"))
    assert [UNUSED] == house.reasons


def test_what_is_referred_to_again_begins_anew():
    async def story():
        house = House("a", "held")
        house.report("n1", "held")
        await house.look()
        house.report("n1", "held", "a")
        await house.look(GRACE - 1.0)
        house.report("n1", "held")
        await house.look(10.0)
        return list(await house.look(GRACE - 1.0)), await house.look(2.0)

    assert ([], names("a")) == leaping(story())


def test_a_node_that_fell_silent_counts_with_its_last_report_while_it_is_there():
    async def story():
        house = House("a", "b", nodes=("n1", "n2"))
        house.report("n1", "a")
        house.report("n2", "b")
        await house.look()
        house.silence("n2")
        silent = list(await house.look(3 * GRACE))
        house.informers.reflectors["Node"].store.forget("n2")
        await house.look()
        return silent, await house.look(GRACE + 1.0)

    assert ([], names("b")) == leaping(story())


def test_no_more_than_a_fifth_and_no_more_than_fifty_go_in_one_round():
    async def story(count):
        house = House(*(f"image {number}" for number in range(count)))
        house.report("n1")
        await house.look()
        return len(await house.look(GRACE))

    assert [1, 4, 20, 50] == [leaping(story(count)) for count in (3, 20, 100, 300)]


def test_no_more_than_five_go_in_a_second():
    async def story():
        house = House(*(f"image {number}" for number in range(100)))
        house.report("n1")
        await house.look()
        await house.look(GRACE)
        return house.api.times

    times = leaping(story())
    # Twenty, with nineteen pauses of a fifth of a second between them.
    assert 3.8 == pytest.approx(times[-1] - times[0])


@pytest.mark.parametrize(
    ("prefix", "each"), [pytest.param("", 120, id="unused"), pytest.param("x", 550, id="not what they are called")]
)
def test_an_agent_that_never_stops_creating_objects_fills_nothing(prefix, each):
    """*each* come between two rounds: more than the fifty, or the five hundred wrong ones, that always may go."""

    async def story() -> list[int]:
        house = House("held")
        house.report("n1", "held")
        counts = []
        for number in range(26):
            for one in range(each):
                name = prefix + digest(f"{number}-{one}").replace(":", "-")
                house.api.objects[name] = {
                    "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
                    "spec": {"manifest": base64.b64encode(a_manifest(f"{number}-{one}")).decode()},
                }
            began = asyncio.get_running_loop().time()
            await house.look()
            took = asyncio.get_running_loop().time() - began
            assert BETWEEN_ROUNDS > took, "a round ends before the next"
            counts.append(len(house.api.objects))
            await asyncio.sleep(BETWEEN_ROUNDS - took)
        assert names("held")[0] in house.api.objects
        return counts

    counts = leaping(story())
    # What came within the hour of grace, and some rounds more.
    assert max(counts) <= each * (GRACE / BETWEEN_ROUNDS + 8)
    assert max(counts[-6:]) <= 1.02 * max(counts[-12:-6])


# --------------------------------------------------------------------------------------------- absence of data is no data


@pytest.mark.parametrize("kind", ["Node", "Pod", "Namespace", "NodeLayers", "ImageLayers"])
@pytest.mark.parametrize("how", ["never seen", "out of touch"])
def test_while_anything_was_not_seen_nothing_goes(kind, how):
    async def story():
        house = House("a", "b")
        house.report("n1")
        await house.look()
        reflector = house.informers.reflectors[kind]
        reflector.synced = how != "never seen"
        reflector.stale_since = 5.0 if how == "out of touch" else None
        return await house.look(GRACE + 1.0)

    assert [] == leaping(story())


def test_after_a_time_out_of_touch_the_grace_begins_anew():
    """An image that came to a node meanwhile is reported a moment after we are in touch again."""

    async def story():
        house = House("a", "b")
        house.report("n1")
        await house.look()
        reflector = house.informers.reflectors["NodeLayers"]
        reflector.stale_since = 5.0
        await house.look(GRACE - 1.0)
        reflector.stale_since = None
        again = list(await house.look(10.0))
        return again, len(await house.look(GRACE))

    assert ([], 1) == leaping(story())


def test_where_nobody_has_reported_nothing_is_unused():
    async def story():
        house = House("a", "b")
        await house.look()
        return await house.look(GRACE + 1.0)

    assert [] == leaping(story())


@pytest.mark.parametrize("served", [2, 5], ids=["one more than we have", "many more"])
def test_reports_that_we_do_not_have_keep_everything(served):
    async def story():
        house = House("a", "b")
        house.report("n1")
        await house.look()
        house.api.reports = served
        await house.look(GRACE + 1.0)
        house.api.reports = 1
        # And the time begins anew.
        return await house.look(1.0)

    assert [] == leaping(story())


def test_a_report_that_stays_unreadable_is_told_once(caplog):
    """It keeps everything, and would keep it for ever without a word."""

    async def story():
        house = House("a", "b")
        house.report("n1")
        house.api.reports = 2
        counts = []
        for _ in range(6):
            await house.look(image_layers_gc.BETWEEN_ROUNDS)
            counts.append(len(caplog.records))
        return counts

    with caplog.at_level("WARNING"):
        assert [0, 0, 1, 1, 1, 1] == leaping(story())
    assert "some NodeLayers are empty or unreadable" in caplog.text


def test_who_does_not_lead_deletes_nothing_and_forgets_since_when_nobody_refers():
    async def story():
        house = House("a", "b")
        house.report("n1")
        task = asyncio.create_task(house.custodian.run())
        await asyncio.sleep(image_layers_gc.FIRST_AFTER + 1.0)
        house.leads = False
        await asyncio.sleep(2 * GRACE)
        house.leads = True
        await asyncio.sleep(GRACE - 1.0)
        gone = list(house.gone)
        await asyncio.sleep(2 * image_layers_gc.BETWEEN_ROUNDS)
        task.cancel()
        return gone, len(house.gone)

    assert ([], 1) == leaping(story())


def test_leadership_that_ends_in_the_middle_of_a_round_ends_the_round():
    async def story():
        house = House(*(f"image {number}" for number in range(100)))
        house.report("n1")
        await house.look()
        asyncio.get_running_loop().call_later(GRACE + 1.0, setattr, house, "leads", False)
        return len(await house.look(GRACE))

    assert leaping(story()) in (5, 6)


# ---------------------------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize("status", [404, 409], ids=["gone already", "another one by now"])
def test_who_was_there_first_is_no_trouble(status):
    async def story():
        house = House()
        house.api.objects = {"somebody-s": wrong("a name that is no digest")}
        house.api.on_delete = ApiError("DELETE", status)
        return await house.look(), house.reasons

    assert ([], []) == leaping(story())


@pytest.mark.parametrize(
    "trouble",
    [UnreachableError("GET", "no answer"), ApiError("GET", 500), ValueError("odd")],
    ids=lambda one: type(one).__name__,
)
def test_trouble_ends_one_round_and_no_more(trouble, caplog):
    async def story():
        house = House()
        house.api.objects = {"somebody-s": wrong("a name that is no digest")}
        house.api.broken = trouble
        task = asyncio.create_task(house.custodian.run())
        await asyncio.sleep(image_layers_gc.FIRST_AFTER + 1.0)
        house.api.broken = None
        await asyncio.sleep(image_layers_gc.BETWEEN_ROUNDS + 1.0)
        task.cancel()
        return house.gone

    assert ["somebody-s"] == leaping(story())
    assert "ImageLayers garbage collection failed, retrying" in caplog.text


def test_an_object_that_does_not_tell_which_one_it_is_is_passed_over():
    async def story() -> list[str]:
        house = House()
        house.report("n1")
        house.api.objects = {"a": {}, "b": {"metadata": {"name": "b"}}}
        return await house.look()

    assert [] == leaping(story())
