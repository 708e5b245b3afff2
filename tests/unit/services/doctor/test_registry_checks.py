"""What the doctor says of registries."""

import pytest

from lamina.clients.oci.lookup_results import NO_SUCH_IMAGE, NOT_ALLOWED, NOT_USABLE, ImageNotFound, ResolvedImages
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.model.image import Platform
from lamina.services.doctor import registry_checks
from lamina.services.doctor.registry_checks import MOST, RegistrySample
from lamina.testing import an_image

ARM = Platform("linux", "arm64")


TOLD = ResolvedImages((an_image("app:1", {"a": 1, "b": 2}, ARM),), 300.0)


class Scripted:
    """A resolver for which every image is for one platform only."""

    answer: ResolvedImages | ImageNotFound = TOLD

    def __init__(self, *_):
        self.asked = []

    def seen_on_nodes(self, hosts):
        self.hosts = hosts

    async def find(self, name, platforms):
        nothing = ImageNotFound(NOT_USABLE, "it has no image for linux/amd64")
        return self.answer if not isinstance(self.answer, ResolvedImages) or ARM in platforms else nothing

    async def close(self):
        pass


async def looked(monkeypatch, images, answer=TOLD, rules=None):
    monkeypatch.setattr(registry_checks, "RegistryResolver", type("Told", (Scripted,), {"answer": answer}))
    return await registry_checks.check_registries(rules or RegistryConfig(), None, images)


async def test_an_image_is_asked_for_as_the_node_that_holds_it_would(monkeypatch):
    found = await looked(monkeypatch, {"quay.example": RegistrySample("quay.example/app:1", ARM)})

    assert [("registry quay.example", "ok", "returned the manifest of quay.example/app:1 (2 layers)")] == [
        (one.subject, one.verdict, one.told) for one in found
    ]


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        pytest.param(NOT_ALLOWED, "fix", id="nobody may ask it"),
        pytest.param(NO_SUCH_IMAGE, "warn", id="it answers and does not have this image any more"),
    ],
)
async def test_a_registry_that_answers_is_not_broken(monkeypatch, reason, verdict):
    found = await looked(
        monkeypatch, {"quay.example": RegistrySample("quay.example/app:1")}, ImageNotFound(reason, "no")
    )

    assert [verdict] == [one.verdict for one in found]


async def test_configured_ones_are_asked_first_and_those_left_out_are_told(monkeypatch):
    images = {f"r{number}.example": RegistrySample(f"r{number}.example/app:1", ARM) for number in range(MOST + 2)}
    found = await looked(
        monkeypatch, images, rules=RegistryConfig((RegistrySettings("r9.example"), RegistrySettings("idle.example")))
    )

    assert "registry r9.example" == found[0].subject
    assert ["registry idle.example", "registries"] == [one.subject for one in found if one.verdict == "skip"]
    assert "2 more that nodes pulled from were not asked" == found[-1].told
