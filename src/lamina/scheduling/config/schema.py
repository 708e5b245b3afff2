"""
Structs of ``KubeSchedulerConfiguration`` (``kubescheduler.config.k8s.io/v1``).

Every upstream field is defined, so that a valid upstream file loads here; fields without effect are documented as such.
Unknown fields are mistakes.
"""

import base64
import binascii
import re
from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model.duration import seconds
from lamina.model.pod import DEFAULT_SCHEDULER

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

FLOAT32: Final = 3.4028234663852886e38
"""The largest number that upstream's type of rates holds."""
EXAMPLE_URL: Final = "http://127.0.0.1:8888/scheduler"

Seconds = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class _Camel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all structs: camel-case field names."""


class PluginRef(_Camel, frozen=True, kw_only=True):
    """A plugin by name; ``*`` in a disabled list stands for all."""

    name: str
    weight: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """Weight of a score plugin; 0 or missing means 1."""


class PluginSet(_Camel, frozen=True, kw_only=True):
    """Plugins to enable and to disable at one extension point."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(_Camel, frozen=True, kw_only=True):
    """Plugin sets by extension point; ``multiPoint`` covers every point that a plugin implements."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    place: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    """Upstream's points for pod groups; no plugin here implements them."""
    placement_score: PluginSet = PluginSet()


class PluginConfig(_Camel, frozen=True, kw_only=True):
    """Arguments of one plugin; verified against the plugin's own struct."""

    name: str
    args: dict[str, Any] = {}  # Any: every plugin has its own arguments, verified in a second step


class ProfileConfig(_Camel, frozen=True, kw_only=True):
    """Plugins for pods with this scheduler name."""

    scheduler_name: Annotated[str, msgspec.Meta(min_length=1)] = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElection(_Camel, frozen=True, kw_only=True):
    """Leader election between several instances."""

    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "lamina-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(_Camel, frozen=True, kw_only=True):
    """Connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: Annotated[float, msgspec.Meta(ge=-FLOAT32, le=FLOAT32)] = 50.0
    """Requests a second; 0 or less: no limit."""
    burst: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 100


_URL: Final = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?(/[!-~]*)?", re.IGNORECASE)
_SHORT: Final = 2048


def _url(text: str) -> None:
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError("contains a password; use a client certificate (tlsConfig) instead")
    if "?" in text or "#" in text:
        raise ValueError(f"contains a query, and verbs are appended to it; write for example {EXAMPLE_URL}")
    found = _URL.fullmatch(text)
    if found is None or len(text) > _SHORT or not 0 < int((found[2] or ":80")[1:]) <= 65535:
        raise ValueError(f"is not a usable URL; write for example {EXAMPLE_URL}")


def _verb(text: str) -> None:
    if not text.isascii() or not text.isprintable() or " " in text or "#" in text:
        raise ValueError("is not part of a URL; write for example filter")


def _base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64; encode the PEM text with base64, or name a file") from None


def _duration(text: str) -> None:
    seconds(text)


Url = Annotated[str, msgspec.Meta(extra={"reads": _url})]
Verb = Annotated[str, msgspec.Meta(extra={"reads": _verb})]
Base64 = Annotated[str, msgspec.Meta(extra={"reads": _base64})]
Duration = Annotated[str, msgspec.Meta(extra={"reads": _duration})]


class ExtenderManagedResource(_Camel, frozen=True, kw_only=True):
    """A resource that an extender manages."""

    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLS(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """TLS settings of an extender."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = msgspec.field(default="", name="caFile")
    cert_data: Base64 = ""
    """Data takes precedence over a file."""
    key_data: Base64 = ""
    ca_data: Base64 = msgspec.field(default="", name="caData")


class ForeignExtender(_Camel, frozen=True, kw_only=True):
    """An extender of another vendor, which is called over HTTP."""

    url_prefix: Url
    filter_verb: Verb = ""
    """Appended to the URL; an empty verb is not called."""
    preempt_verb: Verb = ""
    """Asked which victims may be evicted."""
    prioritize_verb: Verb = ""
    bind_verb: Verb = ""
    weight: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    """Required with a prioritize verb."""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: Duration = msgspec.field(default="5s", name="httpTimeout")
    node_cache_capable: bool = False
    """Whether it knows the nodes, so that their names suffice."""
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(_Camel, frozen=True, kw_only=True):
    """The complete file."""

    api_version: Literal["kubescheduler.config.k8s.io/v1"]
    kind: Literal["KubeSchedulerConfiguration"]
    profiles: tuple[ProfileConfig, ...] = (ProfileConfig(),)
    pod_initial_backoff_seconds: Seconds = 1
    pod_max_backoff_seconds: Seconds = 10
    percentage_of_nodes_to_score: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """Accepted without effect: all nodes are scored, which costs less here than sampling."""
    parallelism: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 16
    """Accepted without effect: plugins evaluate all nodes at once."""
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = False
    enable_contention_profiling: bool = False
    delay_cache_until_active: bool = False
    extenders: tuple[ForeignExtender, ...] = ()
