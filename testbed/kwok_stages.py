"""
What kwok does to pods and nodes, as its Stage objects. kwok itself has no default.

    pod:   Pending, on a node --> Running --> Succeeded, if it has the annotation RUN_FOR, after that time
           being deleted --> gone
    node:  not Ready --> Ready

Used by the launcher of kwok. A template is Go's, and its result is a patch of the object's status.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

Rule: TypeAlias = tuple[str, str, Sequence[str]]
"""When a stage applies: a jq expression, an operator, and its values."""

RUN_FOR: Final = "testbed/run-for"
"""The annotation that makes a pod succeed: how long it runs, such as ``5s``."""

ANNOTATION: Final = f'.metadata.annotations["{RUN_FOR}"]'
READY: Final = '.status.conditions.[] | select( .type == "Ready" ) | .status'
LIVES: Final[Rule] = (".metadata.deletionTimestamp", "DoesNotExist", ())
IS_DELETED: Final[Rule] = (".metadata.deletionTimestamp", "Exists", ())

RUNNING: Final = """\
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
"""
SUCCEEDED: Final = """\
{{ $now := Now }}
{{ $started := .status.startTime }}
phase: Succeeded
conditions:
- {type: ContainersReady, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state:
    terminated: {exitCode: 0, reason: Completed, startedAt: {{ $started | Quote }}, finishedAt: {{ $now | Quote }}}
{{ end }}
"""
NODE_READY: Final = """\
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"""


def stage(
    name: str, kind: str, rules: Sequence[Rule], next_state: Mapping[str, Any], delay: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return one Stage: objects of *kind* for which all *rules* hold get *next_state* after *delay*."""
    expressions = [
        {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
        for key, operator, values in rules
    ]
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": expressions},
        "next": dict(next_state),
    }
    if delay is not None:
        spec["delay"] = dict(delay)
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


STAGES: Final = (
    stage("node-ready", "Node", [(READY, "NotIn", ["True"])], {"statusTemplate": NODE_READY}),
    stage("pod-running", "Pod", [LIVES, (".status.phase", "In", ["Pending"])], {"statusTemplate": RUNNING}),
    stage(
        "pod-succeeded",
        "Pod",
        [LIVES, (".status.phase", "In", ["Running"]), (ANNOTATION, "Exists", ())],
        {"statusTemplate": SUCCEEDED},
        {"durationFrom": {"expressionFrom": ANNOTATION}},
    ),
    stage("pod-gone", "Pod", [IS_DELETED], {"delete": True}),
)


def text() -> str:
    """Return all stages as a file for kwok."""
    return yaml.safe_dump_all(STAGES)
