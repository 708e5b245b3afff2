"""Lists by pages."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from lamina.clients.kube import paged_list
from lamina.clients.kube.errors import AnswerTooLongError, ApiError, UnreachableError
from lamina.wire.errors import NothingSaidError, WireError
from tests.unit.clients.kube.model_cluster import Cluster, status


class Pager:
    """Answers with pages of a cluster, unless there is something else to answer with."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.asked: list[dict[str, str]] = []
        self.longest = 10_000
        """Objects that fit into an answer."""

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **_: Any) -> bytes:
        assert ("GET", "/api/v1/pods") == (method, path)
        self.asked.append(dict(query or {}))
        limit = int(self.asked[-1]["limit"])
        if limit > self.longest:
            raise AnswerTooLongError(path, "too long")
        return json.dumps(self.cluster.page(limit, self.asked[-1].get("continue", ""))).encode()


async def listed(pager: Any, size: int = paged_list.PAGE) -> list[str]:
    return [
        json.loads(bytes(item))["metadata"]["name"]
        async for page in paged_list.list_pages(pager, "/api/v1/pods", {"fieldSelector": "x=y"}, size)
        for item in page.items or ()
    ]


@pytest.fixture
def cluster():
    made = Cluster()
    for number in range(25):
        made.put(f"p{number}")
    return made


async def test_pages_follow_each_other_and_show_one_moment(cluster):
    pager = Pager(cluster)
    names = []
    async for page in paged_list.list_pages(pager, "/api/v1/pods", {}, 10):
        names += [json.loads(bytes(item))["metadata"]["name"] for item in page.items or ()]
        assert "125" == page.metadata.resource_version
        cluster.put("later")

    assert [f"p{number}" for number in range(25)] == names


async def test_a_page_is_asked_for_with_a_limit_and_without_a_version(cluster):
    """With version 0 a server's cache ignores the limit, and everything would come at once."""
    pager = Pager(cluster)
    await listed(pager, 20)

    assert [
        {"fieldSelector": "x=y", "limit": "20"},
        {"fieldSelector": "x=y", "limit": "20", "continue": "125:20"},
    ] == pager.asked


async def test_a_page_that_is_too_long_is_asked_for_with_fewer_objects(cluster):
    pager = Pager(cluster)
    pager.longest = 40

    assert 25 == len(await listed(pager))
    assert ["500", "125", "31"] == [asked["limit"] for asked in pager.asked]


async def test_a_page_that_is_too_long_however_few_its_objects_is_an_error(cluster):
    pager = Pager(cluster)
    pager.longest = 1

    with pytest.raises(AnswerTooLongError):
        await listed(pager)


class Saying(Pager):
    """Says the same to everybody."""

    def __init__(self, body: bytes) -> None:
        super().__init__(Cluster())
        self.body = body

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        return self.body


async def test_a_status_in_place_of_a_page_is_a_refusal():
    with pytest.raises(ApiError) as raised:
        await listed(Saying(json.dumps(status(410, "Expired")).encode()))

    assert raised.value.expired


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"items":7}', b"", b"[" * 100_000])
async def test_what_is_no_list_is_said_to_be_none(body):
    with pytest.raises(UnreachableError, match="the response is not a list"):
        await listed(Saying(body))


@pytest.mark.parametrize("body", [b"{}", b'{"items":null,"metadata":{}}'])
async def test_a_list_may_be_empty(body):
    assert [] == await listed(Saying(body))


async def test_one_object_is_enough_to_learn_the_version(cluster):
    pager = Pager(cluster)

    assert "125" == await paged_list.current_version(pager, "/api/v1/pods", {"labelSelector": "a=b"})
    assert [{"labelSelector": "a=b", "limit": "1"}] == pager.asked


async def test_objects_come_from_all_pages_and_what_cannot_be_read_is_left_out_and_said(cluster):
    refused: list[WireError] = []

    def decode(data: bytes) -> str:
        name: str = json.loads(data)["metadata"]["name"]
        if name == "p3":
            raise WireError("Pod", "odd", name)
        if name == "p4":
            raise NothingSaidError("Pod", "nothing", name)
        return name

    found = paged_list.list_objects(Pager(cluster), "/api/v1/pods", decode, size=10, refused=refused)

    assert [f"p{number}" for number in range(25) if number not in (3, 4)] == [name async for name in found]
    assert ["cannot read Pod p3: odd"] == [str(error) for error in refused]
