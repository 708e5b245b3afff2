"""
Verbs that read: get, list and watch.

A list is served from the current state, in pages if the client asks for them. All pages show the state at the time of
the first one. Older states are computed from the log of the store; if that is too short, the answer is 410.
"""

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import islice, takewhile
from typing import Final

import msgspec

from lamina.simulator.facade.api_errors import StatusError, bad_request, gone, invalid, not_found
from lamina.simulator.facade.api_messages import (
    ApiRequest,
    FacadeResponse,
    WatchResponse,
    flag,
    json_response,
    number,
)
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName
from lamina.simulator.facade.object_store import ObjectVersion, ResourceTable
from lamina.simulator.facade.resource_type import ResourceType, join_group_version
from lamina.simulator.facade.response_form import ResponseForm, form_of
from lamina.simulator.facade.selectable_fields import custom_selectable_fields, selectable_fields
from lamina.simulator.facade.selectors import LabelQuery, SelectorError, parse_field_selector, parse_label_selector
from lamina.simulator.facade.watches import SelectionPredicate, Watch, selected

WATCH_SECONDS: Final = 1_800.0
"""Real seconds after which a watch ends if its client names no limit."""
INDEXED: Final = frozenset({"metadata.name", "spec.nodeName"})
"""Fields by which a real server finds objects without looking at the others."""
UNKNOWN_FIELD: Final = ("not supported", "not a known field")
"""Words of the refusal of a field selector that can be parsed."""
LONGEST_WATCH: Final = 24 * 3600.0


class PageToken(msgspec.Struct, frozen=True):
    """Where the next page of a list begins."""

    revision: int
    namespace: str
    name: str


class ReadVerbs:
    """Handles get, list and watch of any resource."""

    def __init__(self, state: ApiState) -> None:
        """Read from *state*."""
        self._state = state

    def get(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> FacadeResponse:
        """Return one object."""
        found = self._state.table(type_).get(NamespacedName(path.namespace, path.name))
        if found is None:
            raise not_found(type_.resource, type_.group, path.name)
        wanted = _newest(request.parameters(), self._state.store.revision)
        if wanted is not None:
            raise wanted
        form = self._form(type_, path, request)
        if form.plain:
            return FacadeResponse(200, found.encoded)
        return json_response(form.one(found.object))

    def list_all(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> FacadeResponse:
        """Return the selected objects, or one page of them."""
        parameters = request.parameters()
        table = self._state.table(type_)
        selection = _listed_selection(type_, path, parameters)
        token = _page_token(parameters.get("continue", ""))
        newest = self._state.store.revision
        wanted = _newest(parameters, newest)
        if wanted is not None:
            raise wanted
        revision = newest if token is None else token.revision
        if parameters.get("resourceVersionMatch") == "Exact":
            revision = number(parameters, "resourceVersion") or newest
        past = None if revision == newest else _state_at(table, revision)
        found = selected(table, selection) if past is None else filter(selection.matches, past)
        if token is not None:
            after = NamespacedName(token.namespace, token.name)
            found = (one for one in found if one.key > after)
        limit = number(parameters, "limit") or 0
        metadata: KubeObject = {"resourceVersion": str(revision)}
        if limit and parameters.get("resourceVersion") != "0":
            walk = iter(found)
            found = list(islice(walk, limit))
            if len(found) == limit:
                last = found[-1].key
                if INDEXED.isdisjoint(selection.fields.equals):
                    # As on a real server, more objects follow even if the selectors match none of them.
                    more = _count_after(
                        table.keys() if past is None else [one.key for one in past], last, path.namespace
                    )
                else:
                    more = sum(1 for _ in walk)
                if more:
                    metadata["continue"] = _page_text(PageToken(revision, last.namespace, last.name))
                if more and selection.labels.everything and selection.fields.everything:
                    metadata["remainingItemCount"] = more
        return self._listed(type_, path, request, list(found), metadata)

    def _listed(
        self,
        type_: ResourceType,
        path: ResourcePath,
        request: ApiRequest,
        found: list[ObjectVersion],
        metadata: KubeObject,
    ) -> FacadeResponse:
        form = self._form(type_, path, request)
        if not form.plain:
            return json_response(form.many([one.object for one in found], metadata))
        head = msgspec.json.encode(
            {
                "kind": type_.list_kind,
                "apiVersion": join_group_version(path.group, path.version),
                "metadata": metadata,
            }
        )
        items = [one.encoded for one in found] if type_.custom else [one.listed for one in found]
        return FacadeResponse(200, b'%b,"items":[%b]}' % (head[:-1], b",".join(items)))

    def watch(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> WatchResponse:
        """Return an open watch."""
        parameters = request.parameters()
        initial = flag(parameters, "sendInitialEvents") if "sendInitialEvents" in parameters else None
        _check_watch(parameters, initial)
        bookmarks = flag(parameters, "allowWatchBookmarks")
        table, selection = self._state.table(type_), selection_of(type_, path, parameters)
        wanted = _newest(parameters, self._state.store.revision)
        if wanted is not None:
            raise wanted
        revision = number(parameters, "resourceVersion") or 0
        everything = initial is True or (initial is None and revision == 0)
        if not everything and initial is None and table.since(revision) is None:
            raise gone(f"too old resource version: {revision} ({table.forgotten})")
        form = self._form(type_, path, request)
        api_version = join_group_version(path.group, path.version)
        store = self._state.store

        def open_(send: Callable[[bytes], object]) -> Watch:
            watch = Watch(table, selection, send, None if form.plain else form.one)
            if everything:
                bookmark = initial is True and bookmarks
                watch.begin_with_all(store.revision, type_.kind, api_version, bookmark=bookmark)
                return watch
            try:
                watch.begin(store.revision if initial is False and not revision else revision)
            except StatusError as error:
                watch.fail(error)
            return watch

        seconds = number(parameters, "timeoutSeconds")
        return WatchResponse(open_, min(float(seconds) if seconds else WATCH_SECONDS, LONGEST_WATCH))

    def _form(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> ResponseForm:
        return form_of(type_, path.group, path.version, request, self._state.now)


def selection_of(type_: ResourceType, path: ResourcePath, parameters: Mapping[str, str]) -> SelectionPredicate:
    """Return the objects that a request selects. Raises StatusError 400 for a selector that cannot be read."""
    try:
        labels = _labels(parameters)
        if type_.custom:
            allowed = custom_selectable_fields(type_.namespaced)
        else:
            allowed = selectable_fields(type_.group, type_.resource)
        fields = parse_field_selector(parameters.get("fieldSelector", ""), allowed)
        if path.name:
            # A watch of one object by its name is the older form of a field selector.
            fields = parse_field_selector(f"metadata.name={path.name}", allowed)
    except SelectorError as error:
        raise bad_request(str(error)) from error
    return SelectionPredicate(path.namespace, labels, fields)


def _listed_selection(type_: ResourceType, path: ResourcePath, parameters: Mapping[str, str]) -> SelectionPredicate:
    """Return the selection of a list, with the order of refusals that a real server has."""
    try:
        selection = selection_of(type_, path, parameters)
    except StatusError as error:
        if any(words in error.message for words in UNKNOWN_FIELD):
            _check_version_match(parameters)
        raise
    _check_version_match(parameters)
    return selection


def _labels(parameters: Mapping[str, str]) -> LabelQuery:
    try:
        return parse_label_selector(parameters.get("labelSelector", ""))
    except SelectorError as error:
        raise bad_request(str(error)) from error


def _newest(parameters: Mapping[str, str], revision: int) -> StatusError | None:
    """Return the error for a resource version that does not exist yet."""
    text = parameters.get("resourceVersion", "")
    if not text:
        return None
    try:
        asked = number(parameters, "resourceVersion") or 0
    except StatusError:
        return bad_request(f'invalid resource version "{text}": it must be a whole number')
    if asked <= revision:
        return None
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {revision}"
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def _check_version_match(parameters: Mapping[str, str]) -> None:
    match = parameters.get("resourceVersionMatch")
    if match is None:
        return
    problem = ""
    if match not in {"Exact", "NotOlderThan"}:
        raise _list_options(
            "FieldValueNotSupported",
            f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""',
        )
    if parameters.get("continue"):
        problem = "resourceVersionMatch is forbidden when continue is provided"
    elif not parameters.get("resourceVersion"):
        problem = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and parameters["resourceVersion"] == "0":
        problem = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if problem:
        raise _list_options("FieldValueForbidden", f"Forbidden: {problem}")


def _check_watch(parameters: Mapping[str, str], initial: bool | None) -> None:
    match = parameters.get("resourceVersionMatch")
    if initial is None:
        if match is not None:
            raise _list_options(
                "FieldValueForbidden",
                "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
    elif match != "NotOlderThan":
        field = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _list_options("FieldValueForbidden", field)


def _list_options(reason: str, message: str) -> StatusError:
    return invalid("ListOptions", "meta.k8s.io", "", [(reason, message, "resourceVersionMatch")])


def _state_at(table: ResourceTable, revision: int) -> list[ObjectVersion]:
    """Return the objects as they were at an older revision. Raises StatusError 410 if that is not known any more."""
    found = table.at(revision)
    if found is None:
        raise gone("The provided resource version or continue parameter is too old; list again without it")
    return found


def _count_after(keys: list[NamespacedName], key: NamespacedName, namespace: str) -> int:
    """Return how many of the sorted keys of a namespace (empty: of all) follow *key*."""
    first = bisect_right(keys, key)
    if not namespace:
        return len(keys) - first
    return sum(1 for _ in takewhile(lambda one: one.namespace == namespace, islice(keys, first, None)))


def _page_text(token: PageToken) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _page_token(text: str) -> PageToken | None:
    if not text:
        return None
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(data, type=PageToken)
    except (ValueError, binascii.Error) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
