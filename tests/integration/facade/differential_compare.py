"""
Comparison of two answers: what is different by nature is replaced, everything else must be equal.

Uids and resource versions become ordinal numbers in the order in which a server first showed them for an object. So a
write that changes nothing must keep the version on both servers, and an object that is created again must have a new
uid on both. Times and managedFields are not compared.
"""

import re
from typing import Any, Final

TIME: Final = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
FIXED_TIMES: Final = frozenset({"2026-01-01T00:00:00Z"})
"""Times that sequences write themselves."""


ALWAYS_WRITTEN: Final = frozenset({"daemonEndpoints", "nodeInfo"})
"""Parts of a node's status that a real server writes even if they are empty, with empty texts."""
ACCOUNT: Final = ("serviceAccountName", "serviceAccount")
"""The testbed's API server runs without the admission plugin that sets a pod's service account."""


class Canonical:
    """Replaces what differs by nature in the answers of one server."""

    def __init__(self) -> None:
        """Start without uids and versions."""
        self._uids: dict[str, str] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def answer(self, status: int, body: Any) -> Any:
        """Return status and body for the comparison; of a refusal, code and reason."""
        if isinstance(body, dict) and body.get("kind") == "Status":
            kept = {name: body.get(name) for name in ("status", "reason", "code")}
            return {"http": status, **kept}
        return {"http": status, "body": self.object(body)}

    def words(self, body: Any) -> str:
        """Return the message of a refusal without uids and numbers; empty for other answers."""
        if not isinstance(body, dict) or body.get("kind") != "Status":
            return ""
        return re.sub(r"\d{2,}", "#", UID.sub("UID", str(body.get("message", ""))))

    def event(self, event: Any) -> Any:
        """Return a watch event for the comparison."""
        if event["type"] == "BOOKMARK":
            return {"type": "BOOKMARK", "annotations": event["object"]["metadata"].get("annotations")}
        return {"type": event["type"], "object": self.object(event["object"])}

    def object(self, found: Any) -> Any:
        """Return an object or a list for the comparison."""
        if isinstance(found, dict) and str(found.get("kind", "")).endswith("List") and "items" in found:
            metadata = {name: value for name, value in found["metadata"].items() if name != "resourceVersion"}
            if "continue" in metadata:
                metadata["continue"] = "<token>"
            return {**found, "metadata": metadata, "items": [self.object(one) for one in found["items"] or ()]}
        if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
            return self._value(found)
        metadata = dict(found["metadata"])
        metadata.pop("managedFields", None)
        uid = str(metadata.get("uid", ""))
        generated = metadata.get("generateName")
        if generated and str(metadata.get("name", "")).startswith(generated):
            metadata["name"] = f"{generated}<suffix>"
        if isinstance(found.get("spec"), dict):
            spec = {name: value for name, value in found["spec"].items() if name not in ACCOUNT or value != "default"}
            found = {**found, "spec": spec}
        key = uid or f"{found.get('kind')}/{metadata.get('name')}"
        if "resourceVersion" in metadata:
            metadata["resourceVersion"] = self._version(key, str(metadata["resourceVersion"]))
        if uid:
            metadata["uid"] = self._uids.setdefault(uid, f"uid {len(self._uids) + 1}")
        return self._value({**found, "metadata": metadata})

    def _version(self, key: str, version: str) -> str:
        found = self._versions.get((key, version))
        if found is None:
            self._counts[key] = self._counts.get(key, 0) + 1
            found = self._versions[key, version] = f"version {self._counts[key]}"
        return found

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            kept = {name: self._value(inner) for name, inner in value.items() if name not in ALWAYS_WRITTEN}
            return {name: inner for name, inner in kept.items() if inner is not None and inner not in ({}, [])}
        if isinstance(value, list):
            return [self._value(inner) for inner in value]
        if isinstance(value, str) and TIME.match(value) and value not in FIXED_TIMES:
            return "<time>"
        return value


def differing_fields(left: Any, right: Any, path: str = "") -> list[str]:
    """Return one line for each field that differs."""
    if isinstance(left, dict) and isinstance(right, dict):
        lines: list[str] = []
        for name in {**left, **right}:
            inner = f"{path}.{name}" if path else str(name)
            if name not in left:
                lines.append(f"{inner}: missing, real has {right[name]!r}")
            elif name not in right:
                lines.append(f"{inner}: façade has {left[name]!r}, real has none")
            else:
                lines += differing_fields(left[name], right[name], inner)
        return lines
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            line
            for index, (one, other) in enumerate(zip(left, right, strict=True))
            for line in differing_fields(one, other, f"{path}[{index}]")
        ]
    if type(left) is type(right) and left == right:
        return []
    return [f"{path}: façade has {left!r}, real has {right!r}"]


def is_compared(event: Any) -> bool:
    """Return whether an event is compared: a bookmark only if it ends the initial events, others depend on time."""
    return event["type"] != "BOOKMARK" or bool(event["object"]["metadata"].get("annotations"))
