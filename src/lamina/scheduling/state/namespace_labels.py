"""
Labels of namespaces, and whether a pod affinity term means a pod.

A term names namespaces, selects them by label, or does both; without either it means the namespace of the pod that has
the term. The host reports labels (`NamespaceSeen`). The name of a namespace is always known as a label. Only
`NodeColumns` writes.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from lamina.model.pod import Pod, PodTerm

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label of every namespace; the API server sets it to the namespace's name."""

ANYWHERE: Final = ""
"""Stands for all namespaces; no namespace has an empty name."""


class NamespaceLabels:
    """Labels by namespace."""

    __slots__ = ("_known", "edition")

    def __init__(self) -> None:
        """Start without namespaces."""
        self.edition = 0
        """Increases whenever a term can mean other namespaces than before."""
        self._known: dict[str, dict[str, str]] = {}

    def put(self, namespace: str, labels: dict[str, str]) -> bool:
        """Set the labels of a namespace; return whether a term can mean other namespaces now."""
        labels = {key: value for key, value in labels.items() if key != NAME_LABEL}
        if not labels:
            return self.forget(namespace)
        if self._known.get(namespace) == labels:
            return False
        self._known[namespace] = labels
        self.edition += 1
        return True

    def forget(self, namespace: str) -> bool:
        """Remove a namespace; return whether a term can mean other namespaces now."""
        if self._known.pop(namespace, None) is None:
            return False
        self.edition += 1
        return True

    def snapshot(self) -> dict[str, dict[str, str]]:
        """Return the labels as data."""
        return dict(self._known)

    def restore(self, known: Mapping[str, dict[str, str]]) -> None:
        """Restore a snapshot."""
        self._known = dict(known)

    def within(self, term: PodTerm, namespace: str) -> bool:
        """Return whether a term, with explicit namespaces, means pods of a namespace."""
        if namespace in term.namespaces:
            return True
        chosen = term.namespace_selector
        return chosen is not None and chosen.matches({**self._known.get(namespace, {}), NAME_LABEL: namespace})

    def applies(self, term: PodTerm, pod: Pod) -> bool:
        """Return whether a term, with explicit namespaces, matches a pod."""
        return term.selector is not None and term.selector.matches(pod.labels) and self.within(term, pod.namespace)


def explicit(term: PodTerm, pod: Pod) -> PodTerm:
    """Return a term of *pod* with explicit namespaces."""
    if term.namespaces or term.namespace_selector is not None:
        return term
    return msgspec.structs.replace(term, namespaces=(pod.namespace,))
