"""
Encoder of a pod's placement constraints: affinity, tolerations, spread constraints, volumes.

It is the inverse of `constraints`. Most pods have none of them, and pods with the same constraints share one result.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from lamina.model.pod import HONOR, IGNORE, Pod, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Toleration
from lamina.wire.kube.constraints import PREFERRED, REQUIRED
from lamina.wire.kube.encoded_values import ENTRIES
from lamina.wire.kube.pod_containers_encoder import EncodedObject
from lamina.wire.kube.pod_volumes_encoder import encode_volumes


def encode_placement(pod: Pod) -> EncodedObject:
    """Return the fields of ``spec`` that constrain where a pod runs; callers must not change the values."""
    written: EncodedObject = {}
    if pod.node_selector:
        written["nodeSelector"] = dict(pod.node_selector)
    if pod.required_nodes is not None or pod.preferred_nodes or pod.has_pod_terms:
        written["affinity"] = {
            **_node_affinity(pod.required_nodes, pod.preferred_nodes),
            **_pod_affinity("podAffinity", pod.required_pods, pod.preferred_pods),
            **_pod_affinity("podAntiAffinity", pod.repels, pod.avoided_pods),
        }
    if pod.tolerations:
        written["tolerations"] = _tolerations(pod.tolerations)
    if pod.spread:
        written["topologySpreadConstraints"] = _spread(pod.spread)
    if pod.gates:
        written["schedulingGates"] = [{"name": gate} for gate in pod.gates]
    if pod.group:
        name, *parts = pod.group.split("/")
        if parts:
            written["workloadRef"] = dict(zip(("name", "podGroup", "podGroupReplicaKey"), (name, *parts), strict=False))
        else:
            written["schedulingGroup"] = {"podGroupName": name}
    if pod.image_volumes or pod.volumes:
        written["volumes"] = encode_volumes(pod.image_volumes, pod.volumes)
    if pod.pull_secrets:
        written["imagePullSecrets"] = [{"name": secret} for secret in pod.pull_secrets]
    return written


@lru_cache(ENTRIES)
def _node_affinity(required: NodeSelector | None, preferred: tuple[PreferredNodes, ...]) -> EncodedObject:
    nodes: EncodedObject = {}
    if required is not None:
        nodes[REQUIRED] = {"nodeSelectorTerms": [_node_term(one) for one in required.terms]}
    if preferred:
        nodes[PREFERRED] = [{"weight": one.weight, "preference": _node_term(one.term)} for one in preferred]
    return {"nodeAffinity": nodes} if nodes else {}


@lru_cache(ENTRIES)
def _pod_affinity(kind: str, required: tuple[PodTerm, ...], preferred: tuple[PreferredPods, ...]) -> EncodedObject:
    pods: EncodedObject = {}
    if required:
        pods[REQUIRED] = [_pod_term(one) for one in required]
    if preferred:
        pods[PREFERRED] = [{"weight": one.weight, "podAffinityTerm": _pod_term(one.term)} for one in preferred]
    return {kind: pods} if pods else {}


def _node_term(term: NodeSelectorTerm) -> EncodedObject:
    written: EncodedObject = {}
    if term.expressions:
        written["matchExpressions"] = _requirements(term.expressions)
    if term.fields:
        written["matchFields"] = _requirements(term.fields)
    return written


def _pod_term(term: PodTerm) -> EncodedObject:
    written: EncodedObject = {"topologyKey": term.topology_key}
    if term.selector is not None:
        written["labelSelector"] = _label_selector(term.selector)
    if term.namespaces:
        written["namespaces"] = list(term.namespaces)
    if term.namespace_selector is not None:
        written["namespaceSelector"] = _label_selector(term.namespace_selector)
    return written


def _requirements(expressions: Iterable[Requirement]) -> list[EncodedObject]:
    written: list[EncodedObject] = []
    for one in expressions:
        values: dict[str, Any] = {"values": list(one.values)} if one.values else {}
        written.append({"key": one.key, "operator": one.operator, **values})
    return written


def _label_selector(selector: LabelSelector) -> EncodedObject:
    """Return a selector; an empty one selects every pod and stays an empty object."""
    written: EncodedObject = {}
    if selector.match_labels:
        written["matchLabels"] = dict(selector.match_labels)
    if selector.expressions:
        written["matchExpressions"] = _requirements(selector.expressions)
    return written


@lru_cache(ENTRIES)
def _tolerations(tolerations: tuple[Toleration, ...]) -> list[EncodedObject]:
    return [
        # The operator is written even if it is empty: a missing one means Equal.
        {"operator": one.operator, **_present(key=one.key, value=one.value, effect=one.effect)}
        for one in tolerations
    ]


def _present(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


@lru_cache(ENTRIES)
def _spread(constraints: tuple[SpreadConstraint, ...]) -> list[EncodedObject]:
    return [_spread_constraint(one) for one in constraints]


def _spread_constraint(one: SpreadConstraint) -> EncodedObject:
    written: EncodedObject = {
        "maxSkew": one.max_skew,
        "topologyKey": one.topology_key,
        "whenUnsatisfiable": one.when_unsatisfiable,
    }
    if one.selector is not None:
        written["labelSelector"] = _label_selector(one.selector)
    if one.min_domains is not None:
        written["minDomains"] = one.min_domains
    if one.node_affinity_policy != HONOR:
        written["nodeAffinityPolicy"] = one.node_affinity_policy
    if one.node_taints_policy != IGNORE:
        written["nodeTaintsPolicy"] = one.node_taints_policy
    if one.match_label_keys:
        written["matchLabelKeys"] = list(one.match_label_keys)
    return written
