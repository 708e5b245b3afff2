"""Whether registries answer: each that is configured or that nodes pulled from is asked for one image that it should have."""

from collections.abc import Mapping
from typing import Final

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.resolver import Found, NotFound, Resolver
from lamina.clients.oci.rules import Rules
from lamina.model.image import Platform
from lamina.services.doctor.finding import Finding, broken, fine, unseen

MOST: Final = 8
"""Registries that are asked."""


async def look(rules: Rules, keyring: Keyring | None, images: Mapping[str, str]) -> list[Finding]:
    """Ask; *images* has for each registry an image that nodes hold of it."""
    configured = {registry.host for registry in rules.registries}
    silent = [
        unseen(f"registry {host}", "no node holds an image of it, so there is nothing to ask for")
        for host in sorted(configured - set(images))
    ]
    resolver = Resolver(rules, keyring)
    resolver.seen_on_nodes(list(images))
    try:
        asked = [await _ask(resolver, host, images[host]) for host in sorted(images)[:MOST]]
    finally:
        await resolver.close()
    return [*asked, *silent]


async def _ask(resolver: Resolver, host: str, name: str) -> Finding:
    subject = f"registry {host}"
    match await resolver.find(name, [Platform()]):
        case Found(images):
            return fine(subject, f"told what {name} consists of ({sum(len(one.layers) for one in images)} layers)")
        case NotFound(reason, detail):
            told = f"{name}: {detail or reason}"
            return broken(subject, told, "pods are scheduled all the same; see docs/registries.md for the rules")
