"""Reports: what is written when, what a trouble changes, and what happens when the API server says no."""

import asyncio
import json
import random
from typing import Any

import msgspec
import pytest

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.services.node_agent.node_identity import NodeIdentity, NodeIdentityReader
from lamina.services.node_agent.node_layers_client import NodeLayersClient, next_sequence
from lamina.services.node_agent.node_layers_reporter import CHANGE, NOTHING, PROGRESS, NodeLayersReporter, difference
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.custom_resources.node_layers_status import NodeLayersCondition, encode_trouble
from lamina.wire.custom_resources.stored_node_layers import StoredNodeLayers
from lamina.wire.node_agent_frames import FrameImage, FramePull, InventoryFrame
from tests.unit.services.fakes import Asked, leaping
from tests.unit.services.node_agent.scripted import an_image

NOON = 1772366400.0
ME = NodeIdentity("n1", "u1")
IMAGE = an_image(1)
LOOK = InventoryFrame(
    observed_at=NOON, runtime="containerd", images=(FrameImage(IMAGE.digest, 5),), disk=1000, disk_free=500
)
MORE = msgspec.structs.replace(LOOK, images=(*LOOK.images, FrameImage(an_image(2).digest, 6)))


class Server:
    """Keeps one NodeLayers as an API server would, and does what *refusals* say before."""

    def __init__(self, stored: Any = None) -> None:
        self.stored: Any = stored
        self.refusals: list[BaseException | None] = []
        self.asked: list[Asked] = []
        self.pause = 0.0

    @property
    def short(self) -> list[str]:
        return [one.short for one in self.asked]

    @property
    def writes(self) -> list[float]:
        """When the status was written."""
        return [one.at for one in self.asked if one.short == "PATCH status"]

    async def request(self, method, path, *, query=None, body=None, content_type="", timeout=0.0, limit=0) -> bytes:
        self.asked.append(Asked(method, path, {}, body or b"", asyncio.get_running_loop().time()))
        await asyncio.sleep(self.pause)
        if self.refusals and (refusal := self.refusals.pop(0)) is not None:
            raise refusal
        if method == "POST":
            self.stored = json.loads(body)
        if self.stored is None:
            raise ApiError(f"{method} {path}", 404, "NotFound")
        if method == "PATCH":
            assert "application/merge-patch+json" == content_type
            self.merge(self.stored, json.loads(body))
        return json.dumps(self.stored).encode()

    def merge(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        for name, value in new.items():
            if isinstance(value, dict) and isinstance(old.get(name), dict):
                self.merge(old[name], value)
            else:
                old[name] = value

    def condition(self, name: str) -> tuple[str, str, str, str]:
        found = next(one for one in self.stored["status"]["conditions"] if one["type"] == name)
        return found["status"], found["reason"], found["message"], found["lastTransitionTime"]


class NoToken:
    async def headers(self) -> dict[str, str]:
        return {}


def report(server: Server, *steps: Any, heartbeat: float = 600.0, who: NodeIdentityReader | None = None) -> Server:
    """Let a reporter hear one thing after the other; numbers are seconds in between."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        reporter = NodeLayersReporter(
            NodeLayersClient(server),
            who or NodeIdentityReader(NoToken(), *msgspec.structs.astuple(ME)),
            heartbeat,
            random.Random(1),
            wall=lambda: NOON + loop.time() - 1000.0,
        )
        running = asyncio.create_task(reporter.run())
        for step in steps:
            match step:
                case InventoryFrame():
                    reporter.look(step)
                case str():
                    reporter.trouble(step)
                case int() | float():
                    await asyncio.sleep(step)
                case _:
                    step(reporter)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    leaping(story())
    return server


# ------------------------------------------------------------------------------------------------------------------ when


def test_the_first_report_is_written_at_once_with_its_object():
    server = report(Server(), LOOK, 1)
    found = decode_node_layers(json.dumps(server.stored).encode())

    assert ["GET n1", "POST nodelayers", "PATCH status"] == server.short
    assert [1000.0] == server.writes
    assert (NOON, "u1", 750.0) == (found.observed_at, found.node_uid, found.renews_within)
    assert [IMAGE.digest] == [image.digest for image in found.images]
    assert ("True", "Answering", "", "2026-03-01T12:00:00Z") == server.condition("RuntimeReachable")


def test_nothing_is_written_before_anything_was_heard():
    assert [] == report(Server(), 3000).asked


def test_nothing_is_written_when_nothing_changed():
    later = msgspec.structs.replace(LOOK, observed_at=NOON + 300, disk_free=499, download_rate=0.0)
    server = report(Server(), LOOK, 300, later, 100)

    assert 1 == len(server.writes)


def test_a_change_after_a_quiet_time_is_written_at_once_and_the_next_ones_together():
    steps = [msgspec.structs.replace(LOOK, images=(FrameImage(an_image(one).digest),)) for one in range(3)]
    server = report(Server(), LOOK, 100, steps[0], 1, steps[1], 1, steps[2], 100)

    assert [1000.0, 1100.0] == server.writes[:2]
    assert 3 == len(server.writes)
    assert 1110.0 <= server.writes[2] <= 1112.0
    assert an_image(2).digest == server.stored["status"]["images"][0]["digest"]


def test_a_heartbeat_renews_the_time_of_the_last_look_and_the_sequence():
    server = report(Server(), LOOK, 60, lambda reporter: reporter.alive(NOON + 60), 700)
    first, second = (json.loads(one.body)["status"] for one in server.asked if one.short == "PATCH status")

    assert ("2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z") == (first["observedAt"], second["observedAt"])
    assert first["sequence"] < second["sequence"]
    assert 480 <= server.writes[1] - server.writes[0] <= 720
    assert 1 == server.short.count("GET n1")


@pytest.mark.parametrize("heartbeat", [10.0, 60.0, 36_000.0])
def test_the_promise_fits_the_heartbeat(heartbeat):
    server = report(Server(), LOOK, 1.2 * heartbeat + 1, heartbeat=heartbeat)

    assert round(1.25 * heartbeat) == server.stored["status"]["renewSeconds"]
    assert 2 == len(server.writes)


def test_progress_of_a_pull_is_told_by_and_by_and_its_end_at_once():
    def pulling(done: int) -> InventoryFrame:
        return msgspec.structs.replace(LOOK, pulling=(FramePull("big:1", None, done, 100),))

    steps: list[object] = [LOOK, 50]
    for done in range(0, 100, 4):
        steps += [pulling(done), 2]
    server = report(Server(), *steps, MORE, 1)

    # Heard of at 1050; told at 1070 and 1092; the end, at 1100.
    assert [1000.0, 1070.0, 1092.0, 1100.0] == server.writes


def test_a_change_during_a_write_is_written_after_it():
    server = Server()
    server.pause = 3.0
    report(server, LOOK, 1, MORE, 60)

    assert 2 == len(server.writes)
    assert 2 == len(server.stored["status"]["images"])


@pytest.mark.parametrize(
    ("fields", "worth"),
    [
        pytest.param({"observed_at": NOON + 9}, NOTHING, id="time"),
        pytest.param({"disk_free": 481}, NOTHING, id="a little of the disk"),
        pytest.param({"disk_free": 479}, PROGRESS, id="more than 2 % of the disk"),
        pytest.param({"download_rate": 1.0}, PROGRESS, id="the first rate"),
        pytest.param({"pulling": (FramePull("x"),)}, PROGRESS, id="a pull"),
        pytest.param({"size": 1}, PROGRESS, id="sizes"),
        pytest.param({"images": ()}, CHANGE, id="images"),
        pytest.param({"reuse": "set"}, CHANGE, id="reuse"),
        pytest.param({"version": "9"}, CHANGE, id="version"),
        pytest.param({"disk": 2000}, CHANGE, id="another disk"),
    ],
)
def test_what_is_worth_a_report(fields, worth):
    assert worth == difference(LOOK, msgspec.structs.replace(LOOK, **fields))


def test_a_rate_that_wavers_is_not_worth_a_report():
    one, other = (msgspec.structs.replace(LOOK, unpack_rate=rate) for rate in (100.0, 130.0))

    assert NOTHING == difference(one, other)
    assert PROGRESS == difference(one, msgspec.structs.replace(LOOK, unpack_rate=140.0))


# --------------------------------------------------------------------------------------------------------------- trouble


def test_a_trouble_changes_conditions_and_leaves_the_rest_as_it_was():
    server = report(Server(), LOOK, 50, "containerd: gone", 5)
    status = server.stored["status"]

    assert ("False", "RuntimeUnreachable", "containerd: gone", "2026-03-01T12:00:50Z") == server.condition("Ready")
    assert ("False", "RuntimeUnreachable") == server.condition("RuntimeReachable")[:2]
    assert ("2026-03-01T12:00:00Z", 1) == (status["observedAt"], len(status["images"]))
    assert {"sequence", "renewSeconds", "conditions"} == set(json.loads(server.asked[-1].body)["status"])


def test_heartbeats_go_on_in_a_trouble_and_the_last_look_grows_old():
    server = report(Server(), LOOK, 50, "gone", 3000)

    assert 6 <= len(server.writes) <= 8
    assert "2026-03-01T12:00:00Z" == server.stored["status"]["observedAt"]
    assert "2026-03-01T12:00:50Z" == server.condition("Ready")[3]


def test_the_end_of_a_trouble_is_told_even_if_nothing_else_changed():
    server = report(Server(), LOOK, 50, "gone", 50, msgspec.structs.replace(LOOK, observed_at=NOON + 100), 5)

    assert ("True", "Answering", "", "2026-03-01T12:01:40Z") == server.condition("RuntimeReachable")
    assert [1000.0, 1050.0, 1100.0] == server.writes


def test_a_trouble_that_is_over_before_it_could_be_told_is_not_told():
    server = report(Server(), LOOK, 2, "gone", 2, LOOK, 100)

    assert [1000.0] == server.writes


def an_earlier_report(uid: str = "u1") -> Any:
    server = report(Server(), LOOK, 1, who=NodeIdentityReader(NoToken(), "n1", uid))
    return server.stored


def test_a_trouble_from_the_start_leaves_what_an_earlier_agent_reported():
    before = an_earlier_report()
    server = report(Server(json.loads(json.dumps(before))), 30, "gone", 5)

    assert before["status"]["images"] == server.stored["status"]["images"]
    assert before["status"]["imageCount"] == server.stored["status"]["imageCount"]
    assert ("False", "RuntimeUnreachable", "gone", "2026-03-01T12:00:30Z") == server.condition("Ready")


def test_a_trouble_from_the_start_says_nothing_where_there_is_nothing_to_say():
    """An empty list of images would be a lie, and a status has to have a time."""
    server = report(Server(), "gone", 5)

    assert ["GET n1", "POST nodelayers"] == server.short
    assert "status" not in server.stored


def test_a_look_from_the_future_is_taken_for_one_of_now():
    server = report(Server(), msgspec.structs.replace(LOOK, observed_at=NOON + 1e6), 5)

    assert "2026-03-01T12:00:00Z" == server.stored["status"]["observedAt"]


def test_a_clock_that_went_back_is_believed_at_once():
    """Else the time of a look would lie in the future until the clock has come there again."""
    server = report(Server(), LOOK, 5, lambda reporter: reporter.alive(NOON - 3600.0), 700)

    assert "2026-03-01T11:00:00Z" == server.stored["status"]["observedAt"]


def test_a_reader_that_has_seen_nothing_yet_says_nothing_of_the_last_look():
    server = report(Server(), LOOK, 5, lambda reporter: reporter.alive(0.0), 700)

    assert "2026-03-01T12:00:00Z" == server.stored["status"]["observedAt"]


# -------------------------------------------------------------------------------------------------------------- sequence


def test_the_sequence_goes_on_from_what_is_stored_or_the_time():
    assert int(NOON * 1000) == next_sequence(0, NOON)
    assert int(NOON * 1000) + 9 == next_sequence(int(NOON * 1000) + 8, NOON)
    assert 2**63 - 1 == next_sequence(2**63 - 1, NOON)


def test_an_agent_that_starts_anew_with_a_clock_that_went_back_goes_on():
    before = an_earlier_report()
    before["status"]["sequence"] = ahead = int(NOON * 1000) + 10**9
    server = report(Server(before), LOOK, 1)

    assert ahead + 1 == server.stored["status"]["sequence"]


# -------------------------------------------------------------------------------------------------------- who it belongs to


def test_an_object_of_an_earlier_node_is_adopted():
    server = report(Server(an_earlier_report("old")), LOOK, 1)

    assert ["GET n1", "PATCH n1", "PATCH status"] == server.short
    assert ["u1"] == [owner["uid"] for owner in server.stored["metadata"]["ownerReferences"]]
    assert "u1" == server.stored["status"]["nodeUID"]


def test_what_another_node_reported_is_not_kept_in_a_trouble():
    server = report(Server(an_earlier_report("old")), "gone", 1)

    assert ["GET n1", "PATCH n1"] == server.short


class Reborn(NodeIdentityReader):
    """A node that is deleted and comes back."""

    uid = "u1"

    async def now(self) -> NodeIdentity:
        return NodeIdentity("n1", self.uid)


def test_a_node_that_came_back_under_its_name_is_noticed_with_the_next_token():
    who = Reborn(NoToken())

    def come_back(_: NodeLayersReporter) -> None:
        who.uid = "u2"

    server = report(Server(), LOOK, 20, come_back, MORE, 5, who=who)

    assert ["u2"] == [owner["uid"] for owner in server.stored["metadata"]["ownerReferences"]]
    assert "u2" == server.stored["status"]["nodeUID"]


def test_an_object_that_was_deleted_is_created_again():
    server = Server()

    def delete(_: NodeLayersReporter) -> None:
        server.stored = None

    report(server, LOOK, 20, delete, MORE, 5)

    assert ["PATCH status", "POST nodelayers", "PATCH status"] == server.short[-3:]
    assert 2 == len(server.stored["status"]["images"])


def test_an_object_that_was_deleted_in_a_trouble_is_created_again_with_all_that_is_known():
    server = Server()

    def delete(_: NodeLayersReporter) -> None:
        server.stored = None

    report(server, LOOK, 20, "gone", 20, delete, 800)

    assert 1 == len(server.stored["status"]["images"])
    assert "False" == server.condition("Ready")[0]


def test_who_else_creates_it_first_does_no_harm():
    class Contested(Server):
        async def request(self, method, path, **more) -> bytes:
            if method == "POST":
                self.stored = other
            return await super().request(method, path, **more)

    other, server = an_earlier_report(), Contested()
    server.refusals = [None, ApiError("POST", 409, "AlreadyExists")]
    report(server, LOOK, 1)

    assert ["GET n1", "POST nodelayers", "GET n1", "PATCH status"] == server.short


# --------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(ApiError("x", 403, "Forbidden", "no"), id="not allowed"),
        pytest.param(ApiError("x", 422, "Invalid", "no"), id="not valid"),
        pytest.param(ApiError("x", 500), id="server error"),
        pytest.param(UnreachableError("x", "refused"), id="nobody there"),
    ],
)
def test_a_refused_report_is_tried_again_ever_more_seldom_with_what_is_newest(refusal):
    server = Server()
    server.refusals = [refusal] * 8
    report(server, LOOK, 3, MORE, 1200)
    gaps = [later.at - earlier.at for earlier, later in zip(server.asked, server.asked[1:8], strict=False)]

    assert all(2.0**step <= gap <= 300.0 for step, gap in enumerate(gaps))
    assert 2 == len(server.stored["status"]["images"])


def test_a_server_that_asks_for_a_rest_gets_it():
    server = Server()
    server.refusals = [ApiError("x", 429, "TooManyRequests", "later", 42.0)]
    report(server, LOOK, 60)

    assert 1042.0 == server.asked[1].at


@pytest.mark.parametrize(
    "answer", [b"[]", b"{", b'{"status": {"conditions": 1}}', b'{"metadata": {"ownerReferences": 1}}']
)
async def test_an_answer_that_cannot_be_read_is_as_good_as_none(answer: bytes) -> None:
    class Odd:
        async def request(self, *_: object, **__: object) -> bytes:
            return answer

    assert StoredNodeLayers() == await NodeLayersClient(Odd()).find(ME)


def test_a_condition_keeps_the_time_since_which_it_holds():
    before = [
        NodeLayersCondition("Ready", "False", "x", "y", "2026-01-01T00:00:00Z"),
        NodeLayersCondition("Truncated", "True", "z"),
    ]
    told = json.loads(encode_trouble(before, "gone " * 100, NOON, 5, 750.0))["status"]
    times = {one["type"]: (one["lastTransitionTime"], len(one["message"])) for one in told["conditions"]}

    assert ("2026-01-01T00:00:00Z", 256) == times["Ready"]
    assert "2026-03-01T12:00:00Z" == times["RuntimeReachable"][0]
    assert "Truncated" in times
