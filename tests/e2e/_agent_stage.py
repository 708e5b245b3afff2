"""Nodes in the state a case describes, and pods that two schedulers place on them."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import RefusedError, Testbed
from tests.e2e._agent_cases import IMAGE, LAYERS, MILLI, OTHER_IMAGE, POD, At, Case, SetUp, Use
from tests.e2e._live import Reporter, manifest_of, node_of, publish_image, remove_pod, until
from tests.integration.extender.processes import PODS, Extender, empty

STOCK: Final = "default-scheduler"
MI: Final = 2**20
SETTLED_WITHIN: Final = 15.0


class Stage:
    """A control plane whose nodes are set up again and again."""

    def __init__(self, bed: Testbed) -> None:
        """Play on *bed*."""
        self.bed = bed

    def set_up(self, case: Case) -> None:
        """Take everything away, and put the nodes of a case in its place."""
        empty(self.bed)
        self.bed.add_nodes({"name": name, "cpu": f"{MILLI}m", "memory": f"{case.memory}Mi"} for name in case.nodes)
        for name, state in case.nodes.items():
            self._annotate(name, notes_of(state, case))
            for number, asked in enumerate(state.pods):
                # Of an image of its own: otherwise it would be pulling what the pod of the case needs.
                self.bed.api("POST", PODS, pod(f"{name}-{number}", asked, OTHER_IMAGE, nodeName=name))
        held = {name: tuple(state.holds) for name, state in case.nodes.items()}
        if any(held.values()):
            self._report(held)

    def _report(self, held: Mapping[str, tuple[tuple[bytes, int], ...]]) -> None:
        """Say for each node which layers it has, as agents would."""
        if LAYERS not in held.values():
            # Somebody has to have the image for its tag to be known: a node that takes no pods.
            self.bed.add_node("elsewhere", taints=[{"key": "full", "effect": "NoSchedule"}])
            held = {**held, "elsewhere": LAYERS}
        agent = Reporter(self.bed)
        for name, layers in held.items():
            if not layers:
                agent.report(name, {})
                continue
            whole = layers == LAYERS
            # Others have another image with the same layers at the bottom; what it is called does not matter.
            digest = publish_image(self.bed, manifest_of(layers if whole else [*layers, (name.encode(), 1)]))
            agent.report(name, {digest: (IMAGE,) if whole else (f"registry.example/{name}:1",)})

    def _annotate(self, node: str, notes: Mapping[str, str]) -> None:
        self.bed.api("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": dict(notes)}})

    def place(self, name: str, asked: tuple[int, int], scheduler: str, **spec: Any) -> str:
        """Let a pod come, return where it went, and take it away again."""
        self.bed.api("POST", PODS, pod(name, asked, schedulerName=scheduler, **spec))
        placed = until(f"{name} is bound by {scheduler}", lambda: node_of(self.bed, name))
        remove_pod(self.bed, name)
        return placed

    def waits(self, name: str, asked: tuple[int, int], scheduler: str) -> str:
        """Let a pod come that nobody may have, and return what its owner is told by an event."""
        uid = self.bed.api("POST", PODS, pod(name, asked, schedulerName=scheduler))["metadata"]["uid"]
        said = until(f"{name} is told why it waits", lambda: self.event(uid))
        if node_of(self.bed, name) is not None:
            raise AssertionError(f"{name} was bound, and was told {said!r}")
        remove_pod(self.bed, name)
        return said

    def event(self, uid: str) -> str | None:
        """What the last event of a pod says about why it waits."""
        path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reason%3DFailedScheduling"
        found = [one["note"] for one in self.bed.api("GET", path)["items"] if one["regarding"].get("uid") == uid]
        return found[-1] if found else None

    def is_gone(self, name: str) -> bool:
        """Whether there is no such pod."""
        try:
            self.bed.api("GET", f"{PODS}/{name}")
        except RefusedError as error:
            return error.status == 404
        return False


def notes_of(state: At, case: Case) -> dict[str, str]:
    """The annotations of a node; use is with the pod on it, and annotations say what is free without it."""
    notes = {} if state.factor is None else {"congestion-factor": str(state.factor)}
    capacities = {"cpu": (MILLI, case.pod[0]), "memory": (case.memory * MI, case.pod[1] * MI)}
    uses: dict[str, Use | None] = {"cpu": state.cpu, "memory": state.memory}
    for resource, use in uses.items():
        if use is not None:
            capacity, asked = capacities[resource]
            notes[f"mean-free-{resource}"] = f"{capacity * (1 - use[0]) + asked:.3f}"
            notes[f"std-free-{resource}"] = f"{capacity * use[1]:.3f}"
    return notes


def pod(name: str, asked: tuple[int, int] = POD, image: str = IMAGE, **spec: Any) -> dict[str, Any]:
    """A pod that asks for thousandths of a cpu and MiB."""
    requests = {"cpu": f"{asked[0]}m", "memory": f"{asked[1]}Mi"}
    container = {"name": "main", "image": image, "resources": {"requests": requests}}
    # Nobody is there to let it end in peace.
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def start(bed: Testbed, stack: ExitStack, wanted: SetUp, name: str) -> tuple[list[Extender], dict[str, Any]]:
    """Start the processes of a set-up; return them and the configuration of a scheduler that asks them all."""
    words: list[str] = []
    if wanted.configuration is not None:
        path = Path(bed.folder) / f"{name}-extender.yaml"
        path.write_text(yaml.safe_dump(dict(wanted.configuration)), encoding="utf-8")
        words = ["--config", str(path)]
    extenders = [
        Extender(bed, agents, f"{name}-{number}", words=words, environment=wanted.environment, scheduler=name)
        for number, agents in enumerate(wanted.agents)
    ]
    for one in extenders:
        one.start(wait=False)
        stack.callback(one.kill)
    for one in extenders:
        one.wait_ready()
    return extenders, joined(extenders)


def joined(extenders: Sequence[Extender]) -> dict[str, Any]:
    """What is printed for all agents in one process, with each entry led to the process that serves it."""
    if len(extenders) == 1:
        return extenders[0].config()
    together = Extender(
        extenders[0].bed, ",".join(one.agents for one in extenders), "printed", scheduler=extenders[0].scheduler
    )
    config = together.config()
    for one in extenders:
        verbs = {entry["prioritizeVerb"] for entry in one.config()["extenders"]}
        for entry in config["extenders"]:
            if entry["prioritizeVerb"] in verbs:
                entry["urlPrefix"] = f"http://127.0.0.1:{one.port}/scheduler"
    return config


def check_answers(extenders: Sequence[Extender], case: Case) -> None:
    """Wait until the extenders say to each node what the case says; they may not have seen all of it yet."""
    end = time.monotonic() + SETTLED_WITHIN
    while wrong := wrong_answers(extenders, case):
        if time.monotonic() > end:
            raise AssertionError(f"{case.name}: {wrong}")
        time.sleep(0.05)


def wrong_answers(extenders: Sequence[Extender], case: Case) -> str:
    """Say what an extender answers that the case does not; empty if nothing."""
    asks = pod("asked", case.pod, schedulerName=extenders[0].scheduler)
    for verb, levels in case.levels.items():
        said = served(extenders, verb).levels(verb, asks, sorted(levels))
        # Answers leave out what all nodes have.
        least = min(levels.values())
        expected = {node: level - least for node, level in levels.items()}
        if said != expected:
            return f"{verb} should say {expected}, says {said}"
    if case.refused:
        refused = served(extenders, "safe-overload").refused("safe-overload", asks, sorted(case.nodes))
        if refused != dict(case.refused):
            return f"safe-overload should refuse {case.refused}, refuses {refused}"
    return ""


def served(extenders: Sequence[Extender], verb: str) -> Extender:
    """The process that has a verb."""
    if len(extenders) == 1:
        return extenders[0]
    return next(one for one in extenders if verb.partition("-")[0] in one.agents)
