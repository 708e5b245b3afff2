"""
Extenders in a configuration: their rules, and what the loop and the host need to know about them.

The rules are kube-scheduler's (`validateExtenders`), and some that it checks only when it connects.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from lamina.model.duration import seconds
from lamina.model.errors import Mistake
from lamina.model.plain import Path, written_path
from lamina.model.selectors import is_label_key
from lamina.model.yaml_document import YamlDocument
from lamina.scheduling.config.schema import ForeignExtender, KubeSchedulerConfiguration, PluginConfig, ProfileConfig
from lamina.scheduling.contract.extender_chain import CalledExtender

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds; also if the configured timeout is 0."""
FIT: Final = "NodeResourcesFit"
QUOTA_PREFIX: Final = "requests."
UNVERIFIED: Final = "without tlsConfig.caFile or caData, the server's certificate is not verified, as in kube-scheduler"

MistakeHandler = Callable[[Path, str], None]
"""Takes the path of a field, and what is wrong with it."""


def timeout_of(extender: ForeignExtender) -> float:
    """Return the timeout of a call in seconds."""
    return seconds(extender.http_timeout) or DEFAULT_TIMEOUT


def unverified(extender: ForeignExtender) -> bool:
    """Return whether the server's certificate is not verified."""
    tls = extender.tls_config
    known = tls is not None and bool(tls.ca_file or tls.ca_data)
    return (tls is not None and tls.insecure) or (extender.enable_https and not known)


def named(extenders: Sequence[ForeignExtender]) -> dict[str, ForeignExtender]:
    """Return the extenders by name: the URL, with a number where several have the same one."""
    found: dict[str, ForeignExtender] = {}
    for one in extenders:
        url = one.url_prefix.rstrip("/")
        alike = sum(other.url_prefix.rstrip("/") == url for other in found.values())
        found[f"{url} ({alike + 1})" if alike else url] = one
    return found


def called(extenders: Sequence[ForeignExtender]) -> tuple[CalledExtender, ...]:
    """Return what the loop needs to know about the extenders."""
    return tuple(
        CalledExtender(
            name=name,
            filters=bool(one.filter_verb),
            prioritizes=bool(one.prioritize_verb),
            preempts=bool(one.preempt_verb),
            binds=bool(one.bind_verb),
            weight=one.weight,
            ignorable=one.ignorable,
            managed=frozenset(resource.name for resource in one.managed_resources),
            timeout=timeout_of(one),
        )
        for name, one in named(extenders).items()
    )


def with_ignored_resources(profile: ProfileConfig, extenders: Sequence[ForeignExtender]) -> ProfileConfig:
    """
    Return the profile with the resources that only extenders check.

    As upstream, they replace `ignoredResources` of NodeResourcesFit.
    """
    ignored = [
        resource.name for one in extenders for resource in one.managed_resources if resource.ignored_by_scheduler
    ]
    if not ignored:
        return profile
    configured: dict[str, Any] = next((one.args for one in profile.plugin_config if one.name == FIT), {})
    others = tuple(one for one in profile.plugin_config if one.name != FIT)
    fit = PluginConfig(name=FIT, args={**configured, "ignoredResources": ignored})
    return msgspec.structs.replace(profile, plugin_config=(*others, fit))


def check_extenders(extenders: Sequence[ForeignExtender], mistake: MistakeHandler) -> None:
    """Report what the types alone do not express."""
    managed: set[str] = set()
    binders = sum(bool(one.bind_verb) for one in extenders)
    if binders > 1:
        mistake(("extenders",), f"only one extender can bind pods, found {binders} with a bindVerb")
    for index, one in enumerate(extenders):
        path: Path = ("extenders", index)
        if one.prioritize_verb and one.weight <= 0:
            mistake((*path, "weight"), f"must be at least 1 with a prioritizeVerb, found {one.weight}")
        for number, resource in enumerate(one.managed_resources):
            here = (*path, "managedResources", number, "name")
            if not _is_extended(resource.name):
                mistake(here, f"{resource.name!r:.80} is not an extended resource; write for example example.com/gpu")
            elif resource.name in managed:
                mistake(here, f"{resource.name!r} is managed by two extenders; remove one of the entries")
            managed.add(resource.name)
        for field, message in _tls_mistakes(one):
            mistake((*path, "tlsConfig", field), message)


def _tls_mistakes(extender: ForeignExtender) -> Iterator[tuple[str, str]]:
    tls = extender.tls_config
    if tls is None:
        return
    if tls.insecure and (tls.ca_file or tls.ca_data):
        yield "insecure", "does not verify the server, so that a CA has no use; remove one of them"
    certificate, key = bool(tls.cert_file or tls.cert_data), bool(tls.key_file or tls.key_data)
    if certificate and not key:
        yield "keyFile", "a client certificate needs its key; set keyFile or keyData"
    if key and not certificate:
        yield "certFile", "a client key needs its certificate; set certFile or certData"


def _is_extended(name: str) -> bool:
    """Return whether a name is that of an extended resource, by upstream's rule."""
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith(QUOTA_PREFIX) and is_label_key(name) and is_label_key(QUOTA_PREFIX + name)


def warnings(document: YamlDocument, config: KubeSchedulerConfiguration) -> Iterator[Mistake]:
    """Yield what the author of the extenders should know."""
    for index, one in enumerate(config.extenders):
        if one.enable_https and unverified(one):
            path = ("extenders", index, "enableHTTPS")
            yield Mistake(document.source, UNVERIFIED, written_path(path), document.line(path))
