"""
Random sequences of API requests, for the comparison of the façade with a real API server.

A sequence is a list of `Step`. It depends only on seed and number, so a difference can be repeated. Bodies may hold
placeholders, because the two servers give out different uids and resource versions:

    $uid:pods/a     uid of the object, as this server returned it last
    $rv:pods/a      its resource version
    $old:pods/a     a resource version that it had before
"""

import json
import random
from typing import Any, Final

import msgspec

from tests.integration.facade.differential_objects import KINDS, ObjectKind, RandomObjects

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
NAMES: Final = ("a", "b", "c")
STEPS: Final = (6, 16)
"""Fewest and most steps of a sequence."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request, or the beginning of a watch."""

    method: str
    path: str
    query: str = ""
    content_type: str = JSON
    body: Any = None
    base: str = ""
    """An object such as ``pods/a``: *body* is merged into its last known version before it is sent."""
    watch: bool = False
    sentinel: Any = None
    """Of a watch: requests that produce its last event, as a list of method, path, content type and body."""


class Sequence(msgspec.Struct, frozen=True):
    """Steps that run on both servers, in one namespace."""

    seed: int
    number: int
    steps: tuple[Step, ...]

    @property
    def namespace(self) -> str:
        """Namespace of the sequence; also the prefix of its cluster-scoped names."""
        return f"d{self.seed}-{self.number}"


def make_sequence(seed: int, number: int) -> Sequence:
    """Return the sequence with this number."""
    return Sequence(seed, number, tuple(SequenceMaker(seed, number).steps()))


class SequenceMaker:
    """Draws the steps of one sequence."""

    def __init__(self, seed: int, number: int) -> None:
        """Prepare; one or two kinds are used, so that steps often meet the same objects."""
        self._dice = random.Random(f"{seed}/{number}")
        self._prefix = f"d{seed}-{number}"
        self._objects = RandomObjects(self._dice, self._prefix)
        self._generated: list[ObjectKind] = []
        self._kinds = self._dice.sample(KINDS, self._dice.choice((1, 1, 2)))
        if self._dice.random() < 0.3 and KINDS[0] not in self._kinds:
            self._kinds.append(KINDS[0])

    def steps(self) -> list[Step]:
        """Return the steps."""
        dice = self._dice
        found = [self._create(dice.choice(self._kinds)) for _ in range(dice.choice((0, 1, 2, 3)))]
        if dice.random() < 0.7:
            found.insert(dice.randrange(len(found) + 1), self._watch(dice.choice(self._kinds), len(found)))
        return found + [self._step() for _ in range(dice.randint(*STEPS))]

    def _step(self) -> Step:
        dice, kind = self._dice, self._dice.choice(self._kinds)
        makers = [
            (self._create, 5),
            (self._replace, 4),
            (self._patch, 6),
            (self._delete, 3),
            (self._list, 4),
            (self._get, 1),
            (self._delete_many, 0.5),
        ]
        if kind.has_status:
            makers.append((self._status, 3))
        if kind.resource == "pods":
            makers += [(self._bind, 2), (self._evict, 0.7)]
        if kind.resource == "deployments":
            makers.append((self._scale, 1))
        maker = dice.choices([one for one, _ in makers], [weight for _, weight in makers])[0]
        return maker(kind)

    # -- paths -------------------------------------------------------------------------------------------------------

    def _name(self, kind: ObjectKind) -> str:
        name = self._dice.choice(NAMES)
        return name if kind.namespaced else f"{self._prefix}-{name}"

    def _collection(self, kind: ObjectKind) -> str:
        return kind.path(self._prefix)

    def _one(self, kind: ObjectKind, name: str, subresource: str = "") -> str:
        return f"{self._collection(kind)}/{name}" + (f"/{subresource}" if subresource else "")

    def _dry(self) -> str:
        return "dryRun=All" if self._dice.random() < 0.05 else ""

    # -- writes ------------------------------------------------------------------------------------------------------

    def _create(self, kind: ObjectKind) -> Step:
        body = self._objects.new(kind, self._name(kind))
        if self._dice.random() < 0.08 and kind not in self._generated:
            # Once only: the order of two generated names is random.
            self._generated.append(kind)
            body["metadata"].pop("name", None)
            body["metadata"]["generateName"] = "g-" if kind.namespaced else f"{self._prefix}-g-"
        return Step("POST", self._collection(kind), self._dry(), body=body)

    def _replace(self, kind: ObjectKind) -> Step:
        name = self._name(kind)
        change = self._objects.change(kind, name)
        if self._dice.random() < 0.2:
            change = self._conditioned(kind, name, change)
        if self._dice.random() < 0.15:
            body = self._objects.new(kind, name)
            return Step("PUT", self._one(kind, name), self._dry(), body=body)
        return Step("PUT", self._one(kind, name), self._dry(), body=change, base=f"{kind.resource}/{name}")

    def _conditioned(self, kind: ObjectKind, name: str, change: Any) -> Any:
        reference = f"{kind.resource}/{name}"
        metadata = self._dice.choice(
            (
                {"resourceVersion": f"$rv:{reference}"},
                {"resourceVersion": f"$old:{reference}"},
                {"resourceVersion": None},
                {"uid": f"$uid:{reference}"},
                {"uid": "11111111-2222-4333-8444-555555555555"},
                {"uid": None, "resourceVersion": None},
            )
        )
        return {**change, "metadata": {**change.get("metadata", {}), **metadata}}

    def _patch(self, kind: ObjectKind) -> Step:
        name, dice = self._name(kind), self._dice
        content_type = dice.choice((JSON_PATCH, MERGE, STRATEGIC, STRATEGIC, APPLY))
        if content_type == JSON_PATCH:
            body: Any = self._objects.operations(kind, name)
        elif content_type == APPLY:
            body = self._objects.applied(kind, name)
            query = "&".join(
                filter(
                    None,
                    (
                        f"fieldManager={dice.choice(('one', 'two'))}",
                        "force=true" if dice.random() < 0.7 else "",
                        self._dry(),
                    ),
                )
            )
            return Step("PATCH", self._one(kind, name), query, APPLY, body)
        else:
            body = self._objects.change(kind, name)
            if dice.random() < 0.15:
                body = self._conditioned(kind, name, body)
        return Step("PATCH", self._one(kind, name), self._dry(), content_type, body)

    def _status(self, kind: ObjectKind) -> Step:
        name = self._name(kind)
        change = self._objects.status(kind)
        if self._dice.random() < 0.3:
            change = {**self._objects.change(kind, name), **change}
        if self._dice.random() < 0.15:
            change = self._conditioned(kind, name, change)
        path = self._one(kind, name, "status")
        if self._dice.random() < 0.5:
            return Step("PUT", path, self._dry(), body=change, base=f"{kind.resource}/{name}")
        return Step("PATCH", path, self._dry(), self._dice.choice((MERGE, STRATEGIC)), change)

    def _bind(self, kind: ObjectKind) -> Step:
        name, dice = self._name(kind), self._dice
        metadata: dict[str, Any] = {"name": dice.choice((name, name, name, name, "other"))}
        if dice.random() < 0.3:
            metadata["annotations"] = {"bound-by": "test"}
        if dice.random() < 0.15:
            metadata["uid"] = dice.choice((f"$uid:pods/{name}", "11111111-2222-4333-8444-555555555555"))
        target = {"kind": dice.choice(("Node", "Node", "Node", "", "Pod")), "name": dice.choice(("n1", "n1", "n2", ""))}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        if dice.random() < 0.2:
            return Step("POST", f"/api/v1/namespaces/{self._prefix}/bindings", body=body)
        return Step("POST", self._one(kind, name, "binding"), body=body)

    def _evict(self, kind: ObjectKind) -> Step:
        name = self._name(kind)
        body: Any = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        if self._dice.random() < 0.3:
            body["deleteOptions"] = {"gracePeriodSeconds": self._dice.choice((0, 5))}
        return Step("POST", self._one(kind, name, "eviction"), body=body)

    def _scale(self, kind: ObjectKind) -> Step:
        name, replicas = self._name(kind), self._dice.choice((0, 1, 3, 7))
        path = self._one(kind, name, "scale")
        if self._dice.random() < 0.4:
            return Step("GET", path)
        if self._dice.random() < 0.5:
            return Step("PATCH", path, content_type=MERGE, body={"spec": {"replicas": replicas}})
        metadata = {"name": name, "namespace": self._prefix}
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}
        return Step("PUT", path, body=body)

    # -- deletions ---------------------------------------------------------------------------------------------------

    def _options(self, kind: ObjectKind, name: str) -> Any:
        dice, reference = self._dice, f"{kind.resource}/{name}"
        options: dict[str, Any] = {}
        if dice.random() < 0.5:
            options["gracePeriodSeconds"] = dice.choice((0, 0, 5, 60))
        if dice.random() < 0.3:
            options["preconditions"] = dice.choice(
                (
                    {"uid": f"$uid:{reference}"},
                    {"uid": "11111111-2222-4333-8444-555555555555"},
                    {"resourceVersion": f"$rv:{reference}"},
                    {"resourceVersion": f"$old:{reference}"},
                )
            )
        if dice.random() < 0.1:
            options["propagationPolicy"] = "Background"
        if dice.random() < 0.05:
            options["dryRun"] = ["All"]
        return {"apiVersion": "v1", "kind": "DeleteOptions", **options}

    def _delete(self, kind: ObjectKind) -> Step:
        name, dice = self._name(kind), self._dice
        if dice.random() < 0.3:
            return Step("DELETE", self._one(kind, name), self._dry())
        if dice.random() < 0.2:
            return Step("DELETE", self._one(kind, name), f"gracePeriodSeconds={dice.choice((0, 5))}")
        return Step("DELETE", self._one(kind, name), body=self._options(kind, name))

    def _delete_many(self, kind: ObjectKind) -> Step:
        return Step("DELETE", self._collection(kind), self._selected(kind))

    # -- reads -------------------------------------------------------------------------------------------------------

    def _selected(self, kind: ObjectKind) -> str:
        """Return a selector that keeps to the objects of this sequence."""
        dice = self._dice
        words = []
        labels = [] if kind.namespaced else [f"sequence={self._prefix}"]
        if dice.random() < 0.4:
            labels.append(dice.choice(self._objects.label_selectors))
        if labels:
            words.append(f"labelSelector={','.join(labels)}")
        if dice.random() < 0.3:
            words.append(f"fieldSelector={dice.choice(kind.field_selectors)}")
        return "&".join(words)

    def _list(self, kind: ObjectKind) -> Step:
        dice, words = self._dice, [self._selected(kind)]
        if dice.random() < 0.3:
            words.append(f"limit={dice.choice((1, 2))}")
        if dice.random() < 0.1:
            words.append("resourceVersion=0")
        elif dice.random() < 0.08:
            words.append(dice.choice(VERSION_MATCHES))
        return Step("GET", self._collection(kind), "&".join(filter(None, words)))

    def _get(self, kind: ObjectKind) -> Step:
        return Step("GET", self._one(kind, self._name(kind), "status" if kind.has_status and self._heads() else ""))

    def _heads(self) -> bool:
        return self._dice.random() < 0.5

    def _watch(self, kind: ObjectKind, serial: int) -> Step:
        """Begin a watch whose selection includes an object that is created at the end."""
        dice = self._dice
        choice = dice.choice(kind.watches)
        labels, fields, sentinel_labels, change, phase = choice
        words = [
            dice.choice(
                (
                    "watch=true",
                    "watch=1",
                    "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                )
            )
        ]
        labels = ",".join(filter(None, ("" if kind.namespaced else f"sequence={self._prefix}", labels)))
        if labels:
            words.append(f"labelSelector={labels}")
        if fields:
            words.append(f"fieldSelector={fields}")
        name = "zz-last" if kind.namespaced else f"{self._prefix}-zz-last"
        last = self._objects.plain(kind, name)
        last["metadata"]["labels"] = {**last["metadata"].get("labels", {}), **sentinel_labels}
        last["metadata"].setdefault("annotations", {})["last"] = str(serial)
        last = merged(last, change)
        requests: list[Any] = [["POST", self._collection(kind), JSON, last]]
        if phase:
            body = {"status": {"phase": phase}}
            requests.append(["PATCH", self._one(kind, name, "status"), MERGE, body])
        return Step("GET", self._collection(kind), "&".join(words), watch=True, sentinel=requests)


VERSION_MATCHES: Final = (
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=NotOlderThan",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=NotOlderThan",
    "resourceVersion=1&resourceVersionMatch=Sometimes",
    "resourceVersion=x",
    "limit=x",
    "continue=nonsense",
)


def merged(found: Any, change: Any) -> Any:
    """Return *found* after a JSON merge patch (RFC 7386)."""
    if not isinstance(change, dict):
        return change
    result = dict(found) if isinstance(found, dict) else {}
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def show(step: Step) -> str:
    """Return one line for a report."""
    body = "" if step.body is None else f" {json.dumps(step.body)}"
    base = f" [onto {step.base}]" if step.base else ""
    return f"{step.method} {step.path}{'?' if step.query else ''}{step.query} ({step.content_type}){base}{body}"
