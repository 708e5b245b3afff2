"""Checks of registries: request one image from each registry that is configured or that nodes pulled from."""

from collections.abc import Mapping
from typing import Final

import msgspec

from lamina.clients.oci.keyring import Keyring
from lamina.clients.oci.registry_config import RegistryConfig
from lamina.clients.oci.resolver import NO_SUCH_IMAGE, ImageNotFound, RegistryResolver, ResolvedImages
from lamina.model.image import Platform
from lamina.model.plain import plural
from lamina.services.doctor.finding import Finding, broken, fine, unseen, warned

MOST: Final = 8
"""Most registries that are queried."""


class RegistrySample(msgspec.Struct, frozen=True):
    """An image that some node holds."""

    name: str
    platform: Platform = Platform()
    """Platform of that node."""


async def check_registries(
    rules: RegistryConfig, keyring: Keyring | None, images: Mapping[str, RegistrySample]
) -> list[Finding]:
    """Query registries; *images* maps each registry to an image of it that nodes hold."""
    configured = {registry.host for registry in rules.registries}
    silent = [
        unseen(f"registry {host}", "no node holds an image of it, so there is nothing to ask for")
        for host in sorted(configured - set(images))
    ]
    # Configured registries first: the operator cares about these.
    hosts = sorted(images, key=lambda host: (host not in configured, host))
    resolver = RegistryResolver(rules, keyring)
    resolver.seen_on_nodes(list(images))
    try:
        asked = [await _ask(resolver, host, images[host]) for host in hosts[:MOST]]
    finally:
        await resolver.close()
    if len(hosts) > MOST:
        silent.append(unseen("registries", f"{len(hosts) - MOST} more that nodes pulled from were not asked"))
    return [*asked, *silent]


async def _ask(resolver: RegistryResolver, host: str, image: RegistrySample) -> Finding:
    subject = f"registry {host}"
    match await resolver.find(image.name, [image.platform]):
        case ResolvedImages(images):
            layers = sum(len(one.layers) for one in images)
            return fine(subject, f"returned the manifest of {image.name} ({plural(layers, 'layer')})")
        case ImageNotFound(reason, detail):
            told = f"{image.name}: {detail or reason}"
            if reason == NO_SUCH_IMAGE:
                # The registry answers. Nodes may keep an image for longer than its registry does.
                return warned(subject, told, "try another image of it, or check whether this one needs a login")
            return broken(subject, told, "pods are still scheduled; see docs/registries.md for the rules")
