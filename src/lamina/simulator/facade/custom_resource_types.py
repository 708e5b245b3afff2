"""
Resource types from CustomResourceDefinitions, in the form of apiextensions v1 and of v1beta1.

Only names, scope, versions, subresources and printer columns are read. Schemas are kept in the stored definition and
not enforced.
"""

from typing import Any, Final

from lamina.simulator.facade.api_errors import StatusError, invalid
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.resource_type import PrinterColumn, ResourceType, ScalePaths, version_priority

MAX_VERSIONS: Final = 32
"""Versions of one definition."""
MAX_COLUMNS: Final = 64
"""Printer columns of one version."""
MAX_NAMES: Final = 32
"""Short names and categories of one definition, each."""

# Fields of a v1beta1 spec that belong to each version in v1.
_V1BETA1_FIELDS: Final = ("version", "validation", "subresources", "additionalPrinterColumns")
_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "CustomResourceDefinition"


def custom_resource_type(crd: KubeObject) -> ResourceType:
    """Return the type that *crd* defines; raise `StatusError` 422 if the definition is incomplete."""
    spec = part(crd, "spec")
    names = part(spec, "names")
    group, plural, kind = text(spec, "group"), text(names, "plural"), text(names, "kind")
    versions = _versions(spec)
    _check(crd, versions)
    served = sorted(
        (text(version, "name") for version in versions if version.get("served", True)),
        key=version_priority,
        reverse=True,
    )
    subresources = [part(version, "subresources") for version in versions]
    scale = next((part(found, "scale") for found in subresources if isinstance(found.get("scale"), dict)), None)
    return ResourceType(
        group=group,
        version=next(text(version, "name") for version in versions if version.get("storage")),
        resource=plural,
        kind=kind,
        namespaced=spec.get("scope") == "Namespaced",
        singular=text(names, "singular") or kind.lower(),
        list_kind=text(names, "listKind") or f"{kind}List",
        versions=tuple(served),
        short_names=_words(names, "shortNames"),
        categories=_words(names, "categories"),
        subresources=tuple(sorted({name for found in subresources for name in ("scale", "status") if name in found})),
        custom=True,
        columns=tuple((text(version, "name"), _columns(version)) for version in versions),
        scale=_scale_paths(scale),
    )


def _versions(spec: KubeObject) -> list[KubeObject]:
    """Return the versions in the form of v1; in v1beta1 a part of them stands beside the list."""
    listed = spec.get("versions")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if not found and text(spec, "version"):
        found = [{"name": text(spec, "version"), "served": True, "storage": True}]
    shared: KubeObject = {name: spec[name] for name in ("subresources", "additionalPrinterColumns") if name in spec}
    return [{**shared, **each} for each in found[: MAX_VERSIONS + 1]]


def _check(crd: KubeObject, versions: list[KubeObject]) -> None:
    spec = part(crd, "spec")
    names = part(spec, "names")
    name = text(part(crd, "metadata"), "name")
    required = (
        ("spec.group", text(spec, "group")),
        ("spec.names.plural", text(names, "plural")),
        ("spec.names.kind", text(names, "kind")),
        ("spec.versions", versions),
    )
    problems = [("FieldValueRequired", "Required value", field) for field, value in required if not value]
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        words = f'Unsupported value: "{text(spec, "scope")}": supported values: "Cluster", "Namespaced"'
        problems.append(("FieldValueNotSupported", words, "spec.scope"))
    if len(versions) > MAX_VERSIONS:
        words = f"Too many: must have at most {MAX_VERSIONS} items"
        problems.append(("FieldValueTooMany", words, "spec.versions"))
    if versions and sum(1 for version in versions if version.get("storage")) != 1:
        words = "Invalid value: must have exactly one version marked as storage version"
        problems.append(("FieldValueInvalid", words, "spec.versions"))
    if name != f"{text(names, 'plural')}.{text(spec, 'group')}":
        words = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        problems.append(("FieldValueInvalid", words, "metadata.name"))
    if problems:
        raise invalid(_KIND, _GROUP, name, problems)


def admit_definition(crd: KubeObject) -> KubeObject:
    """
    Return a new CustomResourceDefinition in the form of v1, with names and a status that reports it as served.

    Raises StatusError 422 if the definition is incomplete.
    """
    found = custom_resource_type(crd)
    spec = {name: value for name, value in part(crd, "spec").items() if name not in _V1BETA1_FIELDS}
    validation = part(crd, "spec").get("validation")
    versions = [_as_v1(version, validation) for version in _versions(part(crd, "spec"))]
    names = {**part(spec, "names"), "singular": found.singular, "listKind": found.list_kind}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": created, "reason": reason, "message": message}
        for created in [part(crd, "metadata").get("creationTimestamp")]
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    return {
        **crd,
        "spec": {"conversion": {"strategy": "None"}, **spec, "names": names, "versions": versions},
        "status": {"conditions": conditions, "acceptedNames": names, "storedVersions": [found.version]},
    }


def _as_v1(version: KubeObject, validation: Any) -> KubeObject:
    converted = dict(version)
    if validation is not None:
        converted.setdefault("schema", validation)
    columns = converted.get("additionalPrinterColumns")
    if isinstance(columns, list):
        converted["additionalPrinterColumns"] = [
            {("jsonPath" if name == "JSONPath" else name): value for name, value in column.items()}
            for column in columns
            if isinstance(column, dict)
        ]
    return converted


def name_conflict(crd_name: str, problem: str) -> StatusError:
    """Return the error for a definition whose names another resource already has."""
    return invalid(_KIND, _GROUP, crd_name, [("FieldValueInvalid", f"Invalid value: {problem}", "spec.names")])


def _words(found: KubeObject, name: str) -> tuple[str, ...]:
    value = found.get(name)
    return tuple(each for each in value[:MAX_NAMES] if isinstance(each, str)) if isinstance(value, list) else ()


def _columns(version: KubeObject) -> tuple[PrinterColumn, ...]:
    listed: Any = version.get("additionalPrinterColumns")
    if not isinstance(listed, list):
        return ()
    return tuple(
        PrinterColumn(
            name=text(column, "name"),
            type=text(column, "type"),
            json_path=text(column, "jsonPath") or text(column, "JSONPath"),
            format=text(column, "format"),
            description=text(column, "description"),
            priority=column["priority"] if isinstance(column.get("priority"), int) else 0,
        )
        for column in listed[:MAX_COLUMNS]
        if isinstance(column, dict)
    )


def _scale_paths(scale: KubeObject | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        spec_replicas=text(scale, "specReplicasPath") or ".spec.replicas",
        status_replicas=text(scale, "statusReplicasPath") or ".status.replicas",
        label_selector=text(scale, "labelSelectorPath"),
    )
