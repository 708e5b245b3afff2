"""
The configuration that the stock scheduler needs to ask an extender, written out with the reasons beside it.

``lamina extender --print-config`` prints it; the manifests under deploy/extender/ carry it word for word. The same choices
give the same text. What a person should decide has a comment that says what it costs.
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
"""What a verb weighs wherever it stands; for layers as in the profile lamina-balanced."""
WEIGHTS_ALONE: Final = {"safe-balance": 10, "pigeon-holing": 10, "congestion": 10, "foo": 10}
"""What a verb weighs if its agent is the only one, which then may outvote the scheduler's own plugins."""
USUAL_WEIGHT: Final = 1

INSTEAD: Final = {"low-risk-overcommitment": "safe-overload", "target-load-packing": "safe-balance"}
"""Verbs that are another answer to the same question: one of both is asked."""

FILTER_TIMEOUT: Final = "2s"
SCORE_TIMEOUT: Final = "1s"

BATCHING: Final = """\
# Asking any extender makes kube-scheduler place pods one by one: opportunistic batching is off for every profile.
"""
SAMPLED: Final = """\
# An extender is told of the nodes that kube-scheduler looks at, which is max(5, 50 - nodes/125) % of them and 100 at
# least: 420 of 1000, 500 of 5000.
"""
EVERY_NODE: Final = (
    SAMPLED
    + """\
# Layers on the others would not be seen, so all are looked at. That costs time for every pod: where there are thousands
# of nodes and many pods a second, take less than 100, or 0 for the share above.
percentageOfNodesToScore: 100
"""
)
SOME_NODES: Final = (
    SAMPLED
    + """\
# That is enough for what is asked here. To have every node looked at, at the price of time for every pod:
# percentageOfNodesToScore: 100
"""
)
NAMES_ONLY: Final = """\
# - nodeCacheCapable: names of nodes are sent, not whole nodes, which are some hundred times as long. From Kubernetes 1.33
#   on it must not be false beside a filterVerb either: nodes come back without their pods, and the scheduler's own
#   plugins then take every node for empty.
# - weight: an extender gives 0 to 10, which counts for 10 times that: at weight 1 for 100 points, as much as a plugin.
"""
NOWHERE: Final = """\
  # Where it listens is no address to ask at. Name that of its Service with --asked-at: by number if this scheduler is a
  # static pod, which does not know the cluster's names.
"""
GUARDED: Final = """\
  # Not to be passed over: while nobody answers, pods wait. An extender that has just started and not seen the cluster yet
  # does answer, and lets all nodes pass.
  ignorable: false
"""
LEASE: Final = """\
# A lease of its own: with the usual one it would wait for the cluster's own scheduler to end. It leads only where a Role of
# this namespace has the lease under `resourceNames`; that of deploy/extender/rbac.yaml has my-scheduler in lamina-system.
"""
PASSED_OVER: Final = """\
  # While nobody answers, pods are placed without it.
  ignorable: true
"""
_PLAIN: Final = re.compile(r"[A-Za-z/][-A-Za-z0-9._/]*(://[-A-Za-z0-9._/:]+)?")


class SchedulerTlsFiles(msgspec.Struct, frozen=True):
    """Who the scheduler is to the extender, and by whom the extender is known; files as the scheduler sees them."""

    ca: str
    cert: str = ""
    key: str = ""
    server_name: str = ""
    """What the extender's certificate says, if it is not the host in its address."""


class ExtenderTarget(msgspec.Struct, frozen=True):
    """One extender process: which agents it serves, and where."""

    agents: tuple[SchedulingAgent, ...]
    address: str = str(ListenAddress())
    """HOST:PORT, as the scheduler reaches it."""
    certificates: SchedulerTlsFiles | None = None
    https: bool = False


def kube_configuration(
    served: Sequence[ExtenderTarget], scheduler_names: Sequence[str] = SCHEDULER_NAMES, *, namespace: str = NAMESPACE
) -> str:
    """
    Write the configuration for a scheduler that asks these, with a profile for each of its names.

    Raises InputError for HTTPS without an authority, and where no port is named.
    """
    for one in served:
        if one.address.endswith(":0"):
            raise InputError.one(one.address, "port 0 is any that is free; name the one that is to be asked")
        if one.https and (one.certificates is None or not one.certificates.ca):
            message = "without an authority kube-scheduler would believe whoever answers; name the one that signed it"
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
    """Say what a verb weighs unless somebody decides otherwise."""
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
      # Layers tell more than whole images do; both together would count the same bytes twice.
      - name: ImageLocality
"""
    return text


def _entries(served: ExtenderTarget, agent: SchedulingAgent, *, alone: bool) -> Iterator[str]:
    """Write one entry for each verb; what a verb filters and what it scores is asked by one entry."""
    for verb in dict.fromkeys((*agent.predicates, *agent.priorities)):
        entry = _entry(served, agent, verb, alone=alone)
        if INSTEAD.get(verb) in agent.priorities:
            entry = f"# Another answer to what {INSTEAD[verb]} is asked; take the priority of one of them:\n" + "".join(
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
    """Write text so that YAML reads it as text and nothing else."""
    return value if _PLAIN.fullmatch(value) and isinstance(plain.scalar(value), str) else json.dumps(value)
