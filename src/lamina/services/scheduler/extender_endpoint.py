"""
One extender of another vendor: its rules, its client, and its verbs as functions.

`extender_calls` calls it. Every failure, of the connection or in the reply, is an `ExtenderError` of one line.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lamina.clients.kube.extender_client import ExtenderClient, ExtenderClientSettings, ExtenderError
from lamina.model.pod import Pod
from lamina.scheduling.config.extenders import timeout_of, unverified
from lamina.scheduling.config.schema import ExtenderTLS, ForeignExtender
from lamina.scheduling.contract.extender_chain import CalledExtender
from lamina.wire.errors import WireError
from lamina.wire.extender import calls
from lamina.wire.extender.body import SMALL
from lamina.wire.extender.preemption_arguments import ExtenderVictims

BINDING_LIMIT: Final = 64 * 1024
"""Largest reply to a bind request in bytes."""


def target_of(extender: ForeignExtender, place: str) -> ExtenderClientSettings:
    """Return how to reach an extender; *place* is where the configuration has it, for messages."""
    tls = extender.tls_config or ExtenderTLS()
    return ExtenderClientSettings(
        url=extender.url_prefix,
        timeout=timeout_of(extender),
        insecure=unverified(extender),
        server_name=tls.server_name,
        authority=_source(tls.ca_data, tls.ca_file),
        certificate=_source(tls.cert_data, tls.cert_file),
        key=_source(tls.key_data, tls.key_file),
        place=place,
    )


def _source(data: str, file: str) -> Path | bytes | None:
    """Return data, which takes precedence, or the file that contains it."""
    if data:
        return base64.b64decode(data)
    return Path(file) if file else None


class ExtenderEndpoint:
    """An extender that can be called."""

    def __init__(self, rules: CalledExtender, config: ForeignExtender, place: str) -> None:
        """Prepare the client; connect later. Raises InputError."""
        self.rules = rules
        self.names = config.node_cache_capable
        """Whether requests have only the names of nodes."""
        self._config = config
        self._client = ExtenderClient(target_of(config, place))

    async def filter(self, pod: bytes, names: Sequence[str], nodes: Sequence[bytes] | None) -> calls.FilterReply:
        """Return which of the nodes pass. Raises ExtenderError, also if the reply has an error."""
        body = calls.encode_arguments(pod, names, nodes)
        limit = calls.filter_limit(names=self.names)
        reply = await self._client.call(self._config.filter_verb, body, limit)
        try:
            found = calls.decode_filter_reply(reply, names=self.names, asked=frozenset(names))
        except WireError as error:
            raise self._unread(error) from None
        if found.error:
            raise ExtenderError(found.error)
        return found

    async def prioritize(self, pod: bytes, names: Sequence[str], nodes: Sequence[bytes] | None) -> dict[str, int]:
        """Return scores by node. Raises ExtenderError."""
        body = calls.encode_arguments(pod, names, nodes)
        reply = await self._client.call(self._config.prioritize_verb, body, SMALL)
        try:
            return calls.decode_priority_list(reply)
        except WireError as error:
            raise self._unread(error) from None

    async def preempt(
        self, pod: bytes, victims: Mapping[str, ExtenderVictims], whole: Mapping[str, bytes] | None
    ) -> dict[str, ExtenderVictims]:
        """Return the victims that may be evicted, by node; *whole* has each victim's JSON. Raises ExtenderError."""
        body = calls.encode_preemption_arguments(pod, victims, whole)
        reply = await self._client.call(self._config.preempt_verb, body, SMALL)
        try:
            return calls.decode_preemption_reply(reply)
        except WireError as error:
            raise self._unread(error) from None

    async def bind(self, pod: Pod, node: str) -> None:
        """Let the extender bind the pod. Raises ExtenderError; the pod may be bound nevertheless."""
        body = calls.encode_binding_arguments(pod, node)
        reply = await self._client.call(self._config.bind_verb, body, BINDING_LIMIT, repeatable=False)
        try:
            error = calls.decode_binding_error(reply)
        except WireError as unread:
            raise self._unread(unread) from None
        if error:
            raise ExtenderError(error)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _unread(self, error: WireError) -> ExtenderError:
        return ExtenderError(f"extender {self.rules.name!r}: {error}")
