"""What the doctor says of what nodes report."""

import pytest

from lamina.model.image import Platform
from lamina.services.doctor import node_report_checks
from lamina.services.doctor.finding import anything_broken
from tests.unit.services.doctor.asked import Asked, refused

NOON = 1772366400.0
STAMP = "2026-03-01T12:00:00Z"
DIGEST = "sha256:" + "a" * 64


def node(name):
    return {"metadata": {"name": name}}


def report(name, **status):
    told = {"observedAt": STAMP, "renewSeconds": 600, "reuse": "Set", "runtime": {"name": "containerd", "version": "2"}}
    told |= {"platform": {"os": "linux", "architecture": "amd64"}, **status}
    return {"metadata": {"name": name}, "status": told}


def server(nodes, layers):
    return Asked(nodes={"items": nodes}, nodelayers={"items": layers})


@pytest.mark.parametrize(
    ("asked", "at", "expected"),
    [
        pytest.param(server([node("a")], [report("a")]), NOON, ("reports", "ok", "1 of 1 node reports"), id="all"),
        pytest.param(
            server([node(name) for name in "abcde"], [report("a")]),
            NOON,
            ("reports", "fix", "1 of 5 nodes report; silent: b, c, d and 1 more"),
            id="some are silent",
        ),
        pytest.param(
            server([node("a")], [report("a")]),
            NOON + 1201,
            ("age", "warn", "old reports, trusted less over time: a"),
            id="an old one",
        ),
        pytest.param(
            server([node("a")], [report("a")]),
            NOON - 61,
            ("clock of nodes", "fix", "reports from the future: a"),
            id="from the future",
        ),
        pytest.param(
            server([node("a")], [report("a", platform=None)]),
            NOON,
            ("runtimes", "warn", "runtime or platform not reported: a"),
            id="says too little",
        ),
        pytest.param(
            server([node("a")], [report("a"), report("b", reuse="Prefix")]),
            NOON,
            ("reuse", "ok", "nodes: 1 reuse any layer they know, 1 reuse only layers on the same base"),
            id="how layers are reused",
        ),
        pytest.param(
            server([node("a")], [report("a", sequence=-1)]),
            NOON,
            ("reports", "warn", "1 cannot be used"),
            id="nonsense",
        ),
    ],
)
async def test_reports_are_judged(asked, at, expected):
    found, _ = await node_report_checks.check_node_reports(asked, at)

    subject, verdict, told = expected
    assert any((subject, verdict) == (one.subject, one.verdict) and told in one.told for one in found), found


async def test_one_image_of_each_registry_is_found_with_a_tag_if_there_is_one():
    names = [f"quay.example/a@{DIGEST}", "nginx:1", "quay.example/a/b:2", "quay.example/a/c:3", "not a name"]
    images = [{"digest": DIGEST, "names": [*names, f"pinned.example/x@{DIGEST}"]}]
    arm = {"os": "linux", "architecture": "arm64"}

    _, held = await node_report_checks.check_node_reports(
        server([node("a")], [report("a", images=images, platform=arm)]), NOON
    )

    assert {
        "docker.io": "nginx:1",
        "quay.example": "quay.example/a/b:2",
        "pinned.example": f"pinned.example/x@{DIGEST}",
    } == {host: sample.name for host, sample in held.items()}
    assert {Platform("linux", "arm64")} == {sample.platform for sample in held.values()}


@pytest.mark.parametrize("status", [403, 404])
async def test_reports_that_cannot_be_seen_are_not_judged(status):
    found, held = await node_report_checks.check_node_reports(Asked(nodes=refused(status)), NOON)

    assert (["skip"], {}) == ([one.verdict for one in found], held)
    assert not anything_broken(found)


async def test_lists_of_several_pages_are_read_to_the_end():
    pages = {
        None: {"metadata": {"continue": "more"}, "items": [node("a")]},
        "more": {"items": [node("b")]},
    }
    asked = Asked(
        nodes=lambda body, query: pages[query.get("continue")], nodelayers={"items": [report("a"), report("b")]}
    )

    found, _ = await node_report_checks.check_node_reports(asked, NOON)

    assert "2 of 2 nodes report" == found[0].told
