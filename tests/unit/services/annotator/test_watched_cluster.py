"""Nodes as an annotator sees them: ready or not."""

import json

import pytest

from lamina.services.annotator.watched_cluster import decode_node_readiness
from lamina.wire.errors import WireError


def a_machine(**status):
    node = {"kind": "Node", "metadata": {"name": "n1", "uid": "u", "annotations": {"a": "1"}}, "status": status}
    return decode_node_readiness(json.dumps(node).encode())


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        pytest.param([{"type": "Ready", "status": "True"}], True, id="ready"),
        pytest.param([{"type": "Ready", "status": "False"}], False, id="not ready"),
        pytest.param([{"type": "Ready", "status": "Unknown"}], False, id="silent"),
        pytest.param([{"type": "DiskPressure", "status": "True"}], False, id="something else is true"),
        pytest.param([], False, id="nothing said"),
        pytest.param(None, False, id="nothing there"),
    ],
)
def test_a_node_is_ready_when_it_says_so(conditions, ready):
    machine = a_machine(conditions=conditions)

    assert (ready, {"a": "1"}) == (machine.ready, machine.node.annotations)


def test_what_cannot_be_read_is_a_wire_error():
    with pytest.raises(WireError):
        a_machine(conditions="ready")
    with pytest.raises(WireError):
        decode_node_readiness(b"<html>")
