"""Objects that exist before a scheduler starts, such as PodGroups and queues: created as a client would."""

from collections.abc import Iterable

import msgspec

from lamina.model.errors import InputError
from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_messages import ApiRequest, FacadeResponse
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.resource_types import ResourceTypes


def create_objects(handler: ApiHandler, types: ResourceTypes, objects: Iterable[KubeObject]) -> None:
    """Create *objects* in order. Raises InputError for one that the API rejects."""
    for one in objects:
        name = f"{one.get('kind')} {text(part(one, 'metadata'), 'name')}"
        path = collection_path(types, one)
        if not path:
            raise InputError.one(name, f"has an unknown kind in {one.get('apiVersion')}; check apiVersion and kind")
        response = handler.handle(ApiRequest("POST", path, body=msgspec.json.encode(one)))
        assert isinstance(response, FacadeResponse), "only watches are streams"
        if response.status >= 300:
            raise InputError.one(name, f"was rejected: {response.body.decode()[:500]}")


def collection_path(types: ResourceTypes, found: KubeObject) -> str:
    """Return the path to which an object of this kind is posted; empty if the kind is unknown."""
    version = text(found, "apiVersion")
    type_ = types.by_kind(version, text(found, "kind"))
    if type_ is None:
        return ""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if not type_.namespaced:
        return f"{root}/{type_.resource}"
    return f"{root}/namespaces/{text(part(found, 'metadata'), 'namespace') or 'default'}/{type_.resource}"
