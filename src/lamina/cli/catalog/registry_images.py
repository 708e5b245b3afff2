"""
Images looked up in their registries, for commands that a person runs.

Naming a registry on the command line permits querying it, so `rules` adds it to the permitted hosts. Private addresses
and plain HTTP need an option of their own.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lamina.clients.oci.hosts import HUB
from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.lookup_results import ImageNotFound, ResolvedImages
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings, load_registry_config
from lamina.clients.oci.registry_endpoints import spelled
from lamina.clients.oci.resolver import RegistryResolver
from lamina.model.image import Platform
from lamina.model.reference import ReferenceFormatError, parse_reference

AT_A_TIME: Final = 4

RegistryAnswer = tuple[str, ResolvedImages | ImageNotFound]


class RegistryQueryOptions(msgspec.Struct, frozen=True):
    """How to query registries: rules, credentials, and whether private addresses and plain HTTP are permitted."""

    registries: Path | None = None
    docker_config: Path | None = None
    plain_http: bool = False
    private: bool = False

    def rules(self, named: Iterable[str], *, from_nodes: bool = False) -> RegistryConfig:
        """Return the rules of the file plus the registries of these references. Raises InputError."""
        rules = RegistryConfig() if self.registries is None else load_registry_config(self.registries)
        # Normalise first: an entry for Registry.Example also matches registry.example.
        entries = {spelled(one.host): one for one in rules.registries}
        for host in sorted({spelled(parse_reference(reference).registry) for reference in named}):
            entry = entries.get(host, RegistrySettings(host))
            entries[host] = msgspec.structs.replace(
                entry,
                plain_http=entry.plain_http or (self.plain_http and host != HUB),
                private=entry.private or self.private,
            )
        return msgspec.structs.replace(
            rules, registries=tuple(entries.values()), from_nodes=rules.from_nodes and from_nodes
        )

    def keyring(self) -> Keyring | None:
        """Read the credentials; None without a file. Raises InputError."""
        return None if self.docker_config is None else Keyring.from_file(self.docker_config)


def query_registries(
    references: Sequence[str],
    platforms: Collection[Platform],
    rules: RegistryConfig,
    keyring: Keyring | None,
    on_nodes: Collection[str] = (),
) -> Iterator[RegistryAnswer]:
    """Yield the answer for each reference, in the order in which answers arrive."""
    with asyncio.Runner() as runner:
        questions = runner.run(_begin(references, platforms, rules, keyring, on_nodes))
        try:
            for _ in references:
                yield runner.run(questions.next())
        finally:
            runner.run(questions.close())


async def _begin(
    references: Sequence[str],
    platforms: Collection[Platform],
    rules: RegistryConfig,
    keyring: Keyring | None,
    on_nodes: Collection[str],
) -> "_PendingQueries":
    resolver = RegistryResolver(rules, keyring)
    resolver.seen_on_nodes(on_nodes)
    return _PendingQueries(resolver, references, platforms)


class _PendingQueries:
    """The open queries; their event loop runs only while the caller waits for the next answer."""

    def __init__(self, resolver: RegistryResolver, references: Sequence[str], platforms: Collection[Platform]) -> None:
        self._resolver = resolver
        self._platforms = platforms
        self._answers: asyncio.Queue[RegistryAnswer] = asyncio.Queue()
        self._turns = asyncio.Semaphore(AT_A_TIME)
        self._tasks = [asyncio.create_task(self._ask(reference)) for reference in references]

    async def next(self) -> RegistryAnswer:
        return await self._answers.get()

    async def _ask(self, reference: str) -> None:
        async with self._turns:
            answer = await self._resolver.find(reference, self._platforms)
        self._answers.put_nowait((reference, answer))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._resolver.close()


def reference_problem(reference: str) -> str:
    """Return why *reference* is not an image reference, or an empty string."""
    try:
        parse_reference(reference)
    except ReferenceFormatError as error:
        return str(error)
    return ""
