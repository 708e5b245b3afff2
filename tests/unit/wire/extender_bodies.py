"""Bodies as kube-scheduler sends them to an extender, for the tests of the codec."""

import json
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).resolve().parents[2] / "data" / "extender"
"""Captured from kube-scheduler 1.36.3 with pods and nodes made for it."""

NAMES: Final = (DATA / "names.json").read_bytes()
NODES: Final = (DATA / "nodes.json").read_bytes()
VICTIMS: Final = (DATA / "victims.json").read_bytes()
META_VICTIMS: Final = (DATA / "meta_victims.json").read_bytes()

POD: Final[dict[str, Any]] = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"image": "app"}]}}


def encode(body: Any) -> bytes:
    """Write a body as Go does: without spaces."""
    return json.dumps(body, separators=(",", ":")).encode()


def asking(**keys: Any) -> bytes:
    """A body with a pod and these keys."""
    return encode({"Pod": POD, **keys})


def a_node(name: str, **more: Any) -> dict[str, Any]:
    """A node as far as the codec looks."""
    return {"metadata": {"name": name}, **more}


def nodes(*names: str) -> dict[str, Any]:
    """A list of such nodes."""
    return {"metadata": {}, "items": [a_node(name) for name in names]}
