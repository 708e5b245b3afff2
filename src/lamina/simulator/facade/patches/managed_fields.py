"""
Field managers of an object: which client set which fields, as metadata.managedFields records it.

A client has one entry for what it applies, and one for what it updates in each version of the API.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.patches.field_set import FieldSet, field_set_from_json, field_set_to_json

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATE_MANAGERS: Final = 10
"""The API server's limit; the oldest entries are joined."""
OLD_UPDATES: Final = "ancient-changes"


class FieldManager(NamedTuple):
    """Identity of an entry; the version is empty for applied configurations, which have one entry in all versions."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""


class ManagedFieldsEntry(msgspec.Struct, frozen=True):
    """What one manager owns."""

    fields: FieldSet
    api_version: str
    time: str = ""


class ManagedFields:
    """The entries of one object, by manager."""

    def __init__(self, entries: dict[FieldManager, ManagedFieldsEntry]) -> None:
        """Take over the entries."""
        self._entries = entries

    @classmethod
    def of(cls, found: KubeObject) -> "ManagedFields":
        """Read the entries of an object; entries in another form than FieldsV1 are ignored."""
        entries: dict[FieldManager, ManagedFieldsEntry] = {}
        listed = part(found, "metadata").get("managedFields")
        for entry in listed if isinstance(listed, list) else ():
            if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
                continue
            version, operation = text(entry, "apiVersion"), text(entry, "operation")
            manager = FieldManager(
                text(entry, "manager"), operation, "" if operation == APPLY else version, text(entry, "subresource")
            )
            fields = field_set_from_json(entry.get("fieldsV1"))
            entries[manager] = ManagedFieldsEntry(fields, version, text(entry, "time"))
        return cls(entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __iter__(self) -> Iterator[FieldManager]:
        return iter(list(self._entries))

    def fields(self, manager: FieldManager) -> FieldSet:
        """Return what a manager owns."""
        entry = self._entries.get(manager)
        return FieldSet() if entry is None else entry.fields

    def entry(self, manager: FieldManager) -> ManagedFieldsEntry | None:
        """Return the entry of a manager; None if it owns nothing."""
        return self._entries.get(manager)

    def all_fields(self, except_of: FieldManager) -> FieldSet:
        """Return what all other managers own."""
        owned = FieldSet()
        for manager, entry in self._entries.items():
            if manager != except_of:
                owned = owned | entry.fields
        return owned

    def put(self, manager: FieldManager, entry: ManagedFieldsEntry) -> None:
        """Set what a manager owns; a manager that owns nothing has no entry."""
        if entry.fields:
            self._entries[manager] = entry
        else:
            self._entries.pop(manager, None)

    def take_away(self, manager: FieldManager, fields: FieldSet) -> None:
        """Remove fields from what a manager owns."""
        entry = self._entries.get(manager)
        if entry is not None:
            self.put(manager, msgspec.structs.replace(entry, fields=entry.fields - fields))

    def join_old_updates(self) -> None:
        """Join the oldest entries of updates in one version until there are not too many."""
        updates = sorted(
            (manager for manager in self._entries if manager.operation == UPDATE),
            key=lambda manager: (self._entries[manager].time, manager),
        )
        surplus = len(updates) - MAX_UPDATE_MANAGERS
        first: dict[str, FieldManager] = {}
        for manager in updates:
            if surplus <= 0:
                return
            bucket = first.setdefault(manager.api_version, manager)
            if bucket == manager:
                continue
            old, entry = self._entries.pop(bucket), self._entries.pop(manager)
            joined = FieldManager(OLD_UPDATES, UPDATE, manager.api_version)
            if joined in self._entries and joined not in (bucket, manager):
                old = msgspec.structs.replace(old, fields=old.fields | self._entries[joined].fields)
            self._entries[joined] = msgspec.structs.replace(entry, fields=old.fields | entry.fields)
            first[manager.api_version] = joined
            surplus -= 1

    def to_json(self) -> list[dict[str, Any]]:
        """Return the entries in the API server's order."""
        listed = []
        for manager, entry in self._entries.items():
            written = {"manager": manager.name, "operation": manager.operation, "apiVersion": entry.api_version}
            if entry.time:
                written["time"] = entry.time
            encoded: dict[str, Any] = {
                **written,
                "fieldsType": "FieldsV1",
                "fieldsV1": field_set_to_json(entry.fields),
            }
            if manager.subresource:
                encoded["subresource"] = manager.subresource
            listed.append(encoded)
        return sorted(
            listed,
            key=lambda entry: (
                entry["operation"],
                entry.get("time", ""),
                entry["manager"],
                entry["apiVersion"],
                entry.get("subresource", ""),
            ),
        )
