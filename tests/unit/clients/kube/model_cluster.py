"""
An API server of one resource, without a network: objects, versions, a history that can be compacted and rewritten.

`Cluster` is what is true. The lines of a watch and the pages of a list come from it, as a real server would send them;
`tests/unit/clients/kube/model_client.py` and the loopback server of the fault tests do the sending.
"""

import copy
import json
from dataclasses import dataclass
from typing import Any

PATH = "/api/v1/pods"


@dataclass(frozen=True)
class Change:
    """One step of the history."""

    version: int
    type: str
    item: dict[str, Any]


def line(kind: str, item: dict[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n"


def status(code: int, reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    """A kube Status."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return body | {"reason": reason, "message": message or f"{reason} {code}", "details": details}


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    """A bookmark as a real server sends it: an object with nothing in it, and null where it would have to be."""
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if ends_list:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": None}})


class Cluster:
    """What is true."""

    def __init__(self) -> None:
        self.version = 100
        self.compacted = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[Change] = []
        self._backup: tuple[int, dict[str, dict[str, Any]]] | None = None

    def put(self, name: str, value: object = 0) -> None:
        """Create or change an object."""
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        metadata = {"name": name, "namespace": "default", "resourceVersion": str(self.version)}
        item = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "value": value}
        self.objects[name] = item
        self.history.append(Change(self.version, kind, item))

    def delete(self, name: str) -> None:
        """Delete an object if it is there."""
        item = copy.deepcopy(self.objects.pop(name, None))
        if item is None:
            return
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.history.append(Change(self.version, "DELETED", item))

    def compact(self) -> None:
        """Forget how we came here."""
        self.compacted = self.version

    def back_up(self) -> None:
        """Remember what there is."""
        self._backup = (self.version, dict(self.objects))

    def restore(self) -> None:
        """Go back to the backup, as an operator does after a disaster; the same versions are then used again."""
        if self._backup is None:
            return
        self.version, self.objects = self._backup[0], dict(self._backup[1])
        self.history = [change for change in self.history if change.version <= self.version]
        self.compacted = min(self.compacted, self.version)

    @property
    def truth(self) -> dict[str, object]:
        """What a mirror should hold."""
        return {f"default/{name}": item["value"] for name, item in self.objects.items()}

    def since(self, version: int) -> list[Change]:
        """What happened after *version*."""
        return [change for change in self.history if change.version > version]

    def initial(self) -> bytes:
        """A streamed list."""
        return b"".join(line("ADDED", item) for item in self.objects.values()) + bookmark(self.version, ends_list=True)

    def page(self, limit: int, token: str = "") -> dict[str, Any]:
        """One page of a list; the token holds the version of the list and how far it has come."""
        version, start = (int(part) for part in token.split(":")) if token else (self.version, 0)
        if token and version < self.compacted:
            return status(410, "Expired", "The provided continue parameter is too old")
        items = list(self._at(version).values())
        more = f"{version}:{start + limit}" if start + limit < len(items) else ""
        metadata = {"resourceVersion": str(version), "continue": more}
        return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items[start : start + limit]}

    def _at(self, version: int) -> dict[str, dict[str, Any]]:
        """What there was at *version*."""
        if version == self.version:
            return self.objects
        objects: dict[str, dict[str, Any]] = {}
        for change in self.history:
            if change.version <= version:
                name = change.item["metadata"]["name"]
                if change.type == "DELETED":
                    objects.pop(name, None)
                else:
                    objects[name] = change.item
        return objects
