"""
The verb patch: applies a patch of any of the four types and stores the result as an update.

    application/json-patch+json               RFC 6902
    application/merge-patch+json              RFC 7386
    application/strategic-merge-patch+json    lists of built-in types are merged by key
    application/apply-patch+yaml              server-side apply; creates the object if it does not exist
"""

from typing import Final

import msgspec

from lamina.simulator.facade.api_errors import (
    StatusError,
    bad_request,
    conflict,
    internal_error,
    invalid,
    not_found,
    unsupported_media_type,
)
from lamina.simulator.facade.api_messages import ApiRequest, decode_body, flag
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part
from lamina.simulator.facade.object_identity import identified_object, located_object, require_name, shaped_object
from lamina.simulator.facade.object_store import ObjectVersion
from lamina.simulator.facade.patches.json_patch import apply_json_patch
from lamina.simulator.facade.patches.merge_patch import apply_merge_patch
from lamina.simulator.facade.patches.patch_error import PatchError
from lamina.simulator.facade.patches.server_side_apply import apply_configuration
from lamina.simulator.facade.patches.strategic_merge import apply_strategic_merge, supports_strategic_merge
from lamina.simulator.facade.resource_type import ResourceType
from lamina.simulator.facade.typed_objects import typed_object, unknown_fields
from lamina.simulator.facade.write_options import WriteOptions, write_options
from lamina.simulator.facade.write_verbs import WriteVerbs

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
NO_KEY: Final = "does not contain declared merge key"
"""Words of a refusal that a real server answers with 500."""
TYPES: Final = (JSON_PATCH, MERGE, STRATEGIC, APPLY)


class PatchVerb:
    """Handles patch of any resource."""

    def __init__(self, state: ApiState, writes: WriteVerbs) -> None:
        """Patch objects of *state*; *writes* stores the results."""
        self._state = state
        self._writes = writes

    def patch(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> tuple[int, KubeObject]:
        """Patch one object; return the HTTP status and the stored object."""
        kind = request.content_type
        if kind not in TYPES:
            raise unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: " + ", ".join(TYPES)
            )
        old = self._state.table(type_).get(NamespacedName(path.namespace, path.name))
        options = write_options(path, request)
        try:
            if kind == APPLY:
                return self._apply(type_, path, request, old, options)
            if old is None:
                raise not_found(type_.resource, type_.group, path.name)
            new = located_object(type_, path, self._patched(type_, request, old.object, options))
        except PatchError as error:
            if kind == APPLY and error.status_code == 400 and error.message.startswith("."):
                raise _untyped(type_, path, error.message) from error
            if NO_KEY in error.message:
                raise internal_error(error.message) from error
            causes = [cause._asdict() for cause in error.causes]
            details = {"name": path.name, "kind": type_.resource, "causes": causes} if causes else None
            raise StatusError(error.status_code, error.reason, error.message, details) from error
        return 200, self._writes.replace(type_, path, old, new, options)

    def _patched(self, type_: ResourceType, request: ApiRequest, old: KubeObject, options: WriteOptions) -> KubeObject:
        patch = decode_body(request)
        if request.content_type == JSON_PATCH:
            new = apply_json_patch(old, patch)
        else:
            if not isinstance(patch, dict):
                raise bad_request("the patch must be a JSON object")
            if request.content_type == MERGE:
                new = apply_merge_patch(old, patch)
            elif not supports_strategic_merge(type_.api_version, type_.kind):
                raise unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types include: "
                    f"{JSON_PATCH}, {MERGE}, {APPLY}"
                )
            else:
                new = apply_strategic_merge(old, patch, type_.api_version, type_.kind)
        if not isinstance(new, dict):
            raise bad_request("the patched object is not a JSON object")
        return _shaped(new, type_, options)

    def _apply(
        self,
        type_: ResourceType,
        path: ResourcePath,
        request: ApiRequest,
        old: ObjectVersion | None,
        options: WriteOptions,
    ) -> tuple[int, KubeObject]:
        applied, parameters = decode_body(request), request.parameters()
        manager = parameters.get("fieldManager", "")
        if not isinstance(applied, dict):
            raise bad_request("the applied configuration must be an object")
        if not manager:
            raise bad_request("fieldManager is required for apply patch; add ?fieldManager=NAME")
        if applied.get("kind") != type_.kind or not applied.get("apiVersion"):
            raise bad_request(f"invalid object type: {applied.get('apiVersion', '/')}, Kind={applied.get('kind', '')}")
        if not type_.custom:
            _check_configuration(type_, applied)
        new = apply_configuration(
            None if old is None else old.object,
            applied,
            manager=manager,
            force=flag(parameters, "force"),
            now=self._state.timestamp(),
            subresource=path.subresource,
        )
        _check_applied(type_, path, applied, old)
        metadata, options = part(new, "metadata"), msgspec.structs.replace(options, applied=True)
        if old is None:
            new = {**new, "metadata": {**metadata, "resourceVersion": None}}
            return 201, self._writes.create_object(type_, path, new, options)
        # A configuration without a resource version applies to the newest version.
        revision = part(applied, "metadata").get("resourceVersion") or str(old.revision)
        new = {**new, "metadata": {**metadata, "resourceVersion": revision}}
        return 200, self._writes.replace(type_, path, old, identified_object(type_, path, new, options), options)


def _shaped(new: KubeObject, type_: ResourceType, options: WriteOptions) -> KubeObject:
    """Return a patched object as its type has it. Raises StatusError 422 if the patch set a value of the wrong type."""
    kind = new.get("kind")
    if kind != type_.kind:
        raise bad_request(f"invalid object type: {new.get('apiVersion')}, Kind={kind}")
    try:
        return shaped_object(type_, new, options)
    except StatusError as error:
        words = f"Invalid value: {error.message.rpartition(': json: ')[2] or error.message}"
        raise invalid("", "", "", [("FieldValueInvalid", words, "patch")]) from error


def _check_configuration(type_: ResourceType, applied: KubeObject) -> None:
    """Refuse an applied configuration with unknown fields or values of wrong types."""
    unknown = unknown_fields(applied, type_.api_version, type_.kind)
    if unknown:
        raise PatchError(400, f".{unknown[0]}: field not declared in schema")
    try:
        typed_object(applied, type_.api_version, type_.kind)
    except StatusError as error:
        raise PatchError(400, f".{error.message.partition(': ')[2]}") from error


def _check_applied(type_: ResourceType, path: ResourcePath, applied: KubeObject, old: ObjectVersion | None) -> None:
    """Refuse a configuration of another object than the path names."""
    metadata = part(applied, "metadata")
    if old is None:
        require_name(path, metadata)
    if old is None and metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
        raise conflict(type_.resource, type_.group, path.name, why)


def _untyped(type_: ResourceType, path: ResourcePath, words: str) -> StatusError:
    return internal_error(
        f"failed to create typed patch object (/{path.name}; {type_.api_version}, Kind={type_.kind}): {words}"
    )
