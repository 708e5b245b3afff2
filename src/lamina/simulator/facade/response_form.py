"""
Form of a response: whole objects, a table for people, or metadata only, as the client's Accept header asks.

    application/json                                         whole objects
    application/json;as=Table;v=v1;g=meta.k8s.io             rows and columns (kubectl get)
    application/json;as=PartialObjectMetadata(List);…        metadata (metadata informers)

A legacy version of a resource is the stored object under another ``apiVersion``.
"""

from collections.abc import Sequence

import msgspec

from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.api_messages import ApiRequest
from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.resource_type import ResourceType, join_group_version
from lamina.simulator.facade.tables import render_table


class ResponseForm(msgspec.Struct, frozen=True):
    """How one response shows objects."""

    type: ResourceType
    api_version: str
    shape: str = ""
    """``Table``, ``Metadata`` or empty: whole objects."""
    include_object: str = "Metadata"
    now: float = 0.0

    @property
    def plain(self) -> bool:
        """Whether stored objects are shown as they are."""
        return not self.shape and self.api_version == self.type.api_version

    def one(self, found: KubeObject) -> KubeObject:
        """Return one object in this form."""
        if self.shape == "Table":
            metadata = {"resourceVersion": found["metadata"].get("resourceVersion", "")}
            return render_table(self.type, [found], metadata, self.now, self.include_object)
        if self.shape == "Metadata":
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": found["metadata"]}
        return {**found, "apiVersion": self.api_version}

    def _item(self, shown: KubeObject) -> KubeObject:
        """Return an item of a list; items of built-in kinds have no kind and apiVersion, unless they are metadata."""
        if self.shape or self.type.custom:
            return shown
        return {name: value for name, value in shown.items() if name not in {"kind", "apiVersion"}}

    def many(self, found: Sequence[KubeObject], metadata: KubeObject) -> KubeObject:
        """Return a list of objects in this form."""
        if self.shape == "Table":
            return render_table(self.type, found, metadata, self.now, self.include_object)
        kind, api_version = self.type.list_kind, self.api_version
        if self.shape == "Metadata":
            kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        return {
            "kind": kind,
            "apiVersion": api_version,
            "metadata": metadata,
            "items": [self._item(self.one(one)) for one in found],
        }


def form_of(type_: ResourceType, group: str, version: str, request: ApiRequest, now: float) -> ResponseForm:
    """Return the first form of the Accept header that the façade knows. Raises StatusError 406 if it knows none."""
    api_version = join_group_version(group, version)
    accept = request.accept
    if not accept or accept == "application/json":
        return ResponseForm(type_, api_version)
    for offered in accept.split(","):
        media, *parameters = (word.strip() for word in offered.split(";"))
        if media not in {"application/json", "application/*", "*/*", "application/yaml", "text/html"}:
            continue
        options = dict(word.partition("=")[::2] for word in parameters)
        shape = options.get("as", "")
        if shape == "Table":
            include = request.parameters().get("includeObject", "Metadata")
            return ResponseForm(type_, api_version, "Table", include, now)
        if shape.startswith("PartialObjectMetadata"):
            return ResponseForm(type_, api_version, "Metadata")
        if not shape:
            return ResponseForm(type_, api_version)
    message = "only the following media types are accepted: application/json"
    raise StatusError(406, "NotAcceptable", message)
