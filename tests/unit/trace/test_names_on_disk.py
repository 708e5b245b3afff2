"""The names that records and events have on disk do not follow the names of their classes."""

import msgspec
import pytest

from lamina.model import events
from lamina.trace import trace_records


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        pytest.param(b'{"type":"end","at":3.0,"records":7}', trace_records.TraceEnd, id="end"),
        pytest.param(
            b'{"type":"pod-removed","at":1.0,"pod":"default/a","node":"n1","reason":"deleted"}',
            trace_records.PodRemoved,
            id="pod removed",
        ),
    ],
)
def test_a_line_of_an_older_trace_is_still_read(line: bytes, kind: type) -> None:
    """Traces are kept for years; a class that is renamed keeps its tag."""
    assert kind is type(msgspec.json.decode(line, type=trace_records.TraceRecord))


def test_the_tags_of_records_are_these() -> None:
    """The list is the format: a new record adds a line, and no line changes."""
    tags = [
        "decided", "end", "header", "images-removed", "layer-pulled", "node-failed", "node-joined", "node-left",
        "node-recovered", "pod-arrived", "pod-bound", "pod-evicted", "pod-failed", "pod-finished", "pod-rejected",
        "pod-removed", "pod-restarted", "pod-started", "pull-done", "pull-failed", "pull-started",
    ]  # fmt: skip
    assert tags == sorted(str(kind.__struct_config__.tag) for kind in trace_records.TraceRecord.__args__)


def test_the_tags_of_events_are_these() -> None:
    """Recordings name events by these tags."""
    tags = [
        "BindDone", "BindFailed", "EvictFailed", "ExtendersAnswered", "ImagesLearned", "LayersReported",
        "LayersWithdrawn", "NamespaceGone", "NamespaceSeen", "NodeGone", "NodeSeen", "ObjectGone", "ObjectSeen",
        "PermitGiven", "PermitRefused", "PluginHistoryLoaded", "PodGone", "PodSeen", "TellFailed", "TimePassed", "UsageReported",
        "WorkDone", "WorkFailed",
    ]  # fmt: skip
    assert tags == sorted(str(kind.__struct_config__.tag) for kind in events.Event.__args__)
