"""What the log of a reader tells of images that come and go."""

import logging
from typing import Any

import pytest

from lamina.model.digest import digest_of
from lamina.model.holdings import Holdings, StoredImage
from lamina.services.node_agent.inventory_changes import InventoryChangeLog
from lamina.services.node_agent.inventory_frames import InventoryFrameBuilder

WEB = StoredImage(digest=digest_of(b"web"), names=("web:1", f"web@{digest_of(b'web')}"), size=10)
DATA = StoredImage(digest=digest_of(b"data"), names=("data:1", "data:2"), size=20)


class Behind:
    """Whoever is told after."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def send(self, look: Any, images: Any) -> None:
        self.heard.append(images)

    def send_problem(self, problem: str) -> None:
        self.heard.append(problem)


def test_what_came_and_what_went_is_one_line_each(caplog: pytest.LogCaptureFixture):
    behind = Behind()
    changes = InventoryChangeLog(behind)
    renamed = StoredImage(digest=DATA.digest, names=("data:3",), size=20)

    with caplog.at_level(logging.INFO, "lamina"):
        for images in ((WEB, DATA), (WEB, DATA), (WEB, renamed), (renamed,)):
            changes.send(InventoryFrameBuilder().of(Holdings(images=images), 0.0), images)
        changes.send_problem("gone")

    assert [
        ("image present", "web:1"),
        ("image present", "data:1 data:2"),
        ("image present", "data:3"),
        ("image deleted", "web:1"),
    ] == [(record.getMessage(), vars(record)["image"]) for record in caplog.records]
    assert [(WEB, DATA), (WEB, DATA), (WEB, renamed), (renamed,), "gone"] == behind.heard
