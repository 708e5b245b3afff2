"""
KubeSchedulerConfiguration for a stock scheduler that uses this extender, with comments on each choice.

``lamina extender --print-config`` prints it; the manifests under deploy/extender/ contain the same text. Equal options
give equal text. Each setting that the operator should decide has a comment with its cost.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lamina.model import plain
from lamina.model.errors import InputError
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent
from lamina.services.extender.address import ListenAddress
from lamina.services.extender.settings import ANYWHERE, SCHEDULER_NAMES

NAMESPACE: Final = "lamina-system"
LAYERS: Final = "layers"

WEIGHTS: Final = {LAYERS: 5}
"""Weights of verbs in every configuration; for layers as in the profile lamina-balanced."""
WEIGHTS_ALONE: Final = {"safe-balance": 10, "pigeon-holing": 10, "congestion": 10, "foo": 10}
"""Weights of verbs if their scheduling agent is the only one. It can then outvote the scheduler's own plugins."""
USUAL_WEIGHT: Final = 1

INSTEAD: Final = {"low-risk-overcommitment": "safe-overload", "target-load-packing": "safe-balance"}
"""Verbs that replace each other: only one of each pair is used."""

FILTER_TIMEOUT: Final = "2s"
SCORE_TIMEOUT: Final = "1s"

BATCHING: Final = """\
# Asking any extender makes kube-scheduler place pods one by one: opportunistic batching is off for every profile.
"""
SAMPLED: Final = """\
# kube-scheduler sends an extender the nodes that it samples: max(5, 50 - nodes/125) % of all nodes, and 100 at
# least: 420 of 1000, 500 of 5000.
"""
EVERY_NODE: Final = (
    SAMPLED
    + """\
# Layers on other nodes would not be considered, so this samples all nodes. That costs time for every pod: with
# thousands of nodes and many pods a second, use less than 100, or 0 for the share above.
percentageOfNodesToScore: 100
"""
)
SOME_NODES: Final = (
    SAMPLED
    + """\
# That is enough for the agents used here. To consider every node, at the cost of time for every pod:
# percentageOfNodesToScore: 100
"""
)
NAMES_ONLY: Final = """\
# - nodeCacheCapable: kube-scheduler sends node names, not whole nodes, which are some hundred times as long. From
#   Kubernetes 1.33 on it must be true if there is a filterVerb: otherwise nodes come back without their pods, and the
#   scheduler's own plugins see every node as empty.
# - weight: an extender scores 0 to 10, multiplied by 10 and the weight: at weight 1 up to 100 points, as a plugin.
"""
NOWHERE: Final = """\
  # The listen address cannot be called. Give the address of its Service with --asked-at: as an IP if this scheduler is
  # a static pod, which cannot resolve cluster names.
"""
GUARDED: Final = """\
  # Not ignorable: while the extender is down, pods wait. An extender that has just started and is not synced yet does
  # answer, and lets all nodes pass.
  ignorable: false
"""
LEASE: Final = """\
# A lease of its own: with the default one it would wait for the cluster's own scheduler to stop. It needs a Role in
# this namespace with the lease under `resourceNames`; deploy/extender/rbac.yaml has my-scheduler in lamina-system.
"""
PASSED_OVER: Final = """\
  # While the extender is down, pods are placed without it.
  ignorable: true
"""
_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9._/]*(://[-A-Za-z0-9._/:]+)?")


class SchedulerTlsFiles(msgspec.Struct, frozen=True):
    """Client certificate of the scheduler, and the authority of the extender; paths as the scheduler sees them."""

    ca: str
    cert: str = ""
    key: str = ""
    server_name: str = ""
    """Name in the extender's certificate, if it is not the host in its address."""


class ExtenderTarget(msgspec.Struct, frozen=True):
    """One extender process: its scheduling agents and its address."""

    agents: tuple[SchedulingAgent, ...]
    address: str = str(ListenAddress())
    """HOST:PORT, as the scheduler reaches it."""
    certificates: SchedulerTlsFiles | None = None
    https: bool = False


def kube_configuration(
    served: Sequence[ExtenderTarget], scheduler_names: Sequence[str] = SCHEDULER_NAMES, *, namespace: str = NAMESPACE
) -> str:
    """
    Return the configuration of a scheduler that uses these extenders, with a profile for each of its names.

    Raises InputError for HTTPS without an authority, and for port 0.
    """
    for one in served:
        if one.address.endswith(":0"):
            raise InputError.one(one.address, "port 0 means any free port; give the port that the scheduler calls")
        if one.https and (one.certificates is None or not one.certificates.ca):
            message = "without an authority kube-scheduler cannot verify the extender; give the one that signed it"
            raise InputError.one(f"https://{one.address}", message)
    agents = [agent for one in served for agent in one.agents]
    seen = any(LAYERS in agent.priorities for agent in agents)
    pieces = [
        _head(scheduler_names[0], namespace),
        EVERY_NODE if seen else SOME_NODES,
        "profiles:\n",
        *(_profile(name, without_images=seen) for name in dict.fromkeys(scheduler_names)),
        BATCHING,
        NAMES_ONLY,
        "extenders:\n",
    ]
    for one in served:
        for agent in one.agents:
            pieces.extend(_entries(one, agent, alone=len(agents) == 1))
    return "".join(pieces)


def weight_of(verb: str, *, alone: bool) -> int:
    """Return the default weight of a verb."""
    return WEIGHTS.get(verb) or (WEIGHTS_ALONE.get(verb, USUAL_WEIGHT) if alone else USUAL_WEIGHT)


def _head(scheduler_name: str, namespace: str) -> str:
    return f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{LEASE}leaderElection:
  leaderElect: true
  resourceName: {_text(scheduler_name)}
  resourceNamespace: {_text(namespace)}
"""


def _profile(scheduler_name: str, *, without_images: bool) -> str:
    text = f"- schedulerName: {_text(scheduler_name)}\n"
    if without_images:
        text += """\
  plugins:
    score:
      disabled:
      # Layers are more precise than whole images; both together would count the same bytes twice.
      - name: ImageLocality
"""
    return text


def _entries(served: ExtenderTarget, agent: SchedulingAgent, *, alone: bool) -> Iterator[str]:
    """Yield one entry for each verb; a verb that filters and scores has one entry for both."""
    for verb in dict.fromkeys((*agent.predicates, *agent.priorities)):
        entry = _entry(served, agent, verb, alone=alone)
        if INSTEAD.get(verb) in agent.priorities:
            entry = f"# An alternative to {INSTEAD[verb]}; use the priority of only one of them:\n" + "".join(
                f"# {line}" for line in entry.splitlines(keepends=True)
            )
        yield entry


def _entry(served: ExtenderTarget, agent: SchedulingAgent, verb: str, *, alone: bool) -> str:
    filters, scores = verb in agent.predicates, verb in agent.priorities
    scheme = "https" if served.https else "http"
    text = f"- urlPrefix: {_text(f'{scheme}://{served.address}/scheduler')}\n"
    if served.address.rpartition(":")[0].strip("[]") in ANYWHERE:
        text += NOWHERE
    if filters:
        text += f"  filterVerb: predicates/{verb}\n  preemptVerb: preemption/{verb}\n"
    if scores:
        text += f"  prioritizeVerb: priorities/{verb}\n  weight: {weight_of(verb, alone=alone)}\n"
    text += f"  nodeCacheCapable: true\n  httpTimeout: {FILTER_TIMEOUT if filters else SCORE_TIMEOUT}\n"
    text += GUARDED if filters else PASSED_OVER
    return text + (_tls(served.certificates) if served.https and served.certificates is not None else "")


def _tls(certificates: SchedulerTlsFiles) -> str:
    fields = {
        "serverName": certificates.server_name,
        "caFile": certificates.ca,
        "certFile": certificates.cert,
        "keyFile": certificates.key,
    }
    lines = "".join(f"    {name}: {_text(value)}\n" for name, value in fields.items() if value)
    return f"  enableHTTPS: true\n  tlsConfig:\n{lines}"


def _text(value: str) -> str:
    """Quote a value if YAML would not read it as the same text."""
    return value if _PLAIN.fullmatch(value) and isinstance(plain.scalar(value), str) else json.dumps(value)
