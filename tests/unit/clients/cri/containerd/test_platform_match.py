"""Which manifest of an index a node takes, by containerd's rules."""

import pytest

from lamina.clients.cri.containerd import platform_match
from lamina.model.image import Platform
from lamina.wire.oci.documents import IndexEntry, IndexPlatform

ATTESTED = IndexEntry(
    "attested", IndexPlatform("linux", "amd64"), {"vnd.docker.reference.type": "attestation-manifest"}
)


def entries(*names):
    """Entries whose digests say what they are for; ``?`` has no platform."""
    made = []
    for name in names:
        if name == "?":
            made.append(IndexEntry(name))
            continue
        system, architecture, *variant = name.split("/")
        made.append(IndexEntry(name, IndexPlatform(system, architecture, "".join(variant))))
    return made


def chosen(node, *names):
    return [entry.digest for entry in platform_match.choose(entries(*names), node)]


@pytest.mark.parametrize(
    ("node", "offered", "expected"),
    [
        pytest.param(
            Platform("linux", "amd64"), ["linux/arm64", "linux/amd64"], ["linux/amd64"], id="the same architecture"
        ),
        pytest.param(Platform("linux", "amd64"), ["linux/386"], ["linux/386"], id="amd64 runs 386"),
        pytest.param(
            Platform("linux", "amd64"),
            ["linux/386", "linux/amd64"],
            ["linux/amd64", "linux/386"],
            id="but likes it less",
        ),
        pytest.param(Platform("linux", "amd64"), ["linux/amd64/v1"], ["linux/amd64/v1"], id="v1 is plain amd64"),
        pytest.param(Platform("linux", "amd64"), ["linux/amd64/v3"], [], id="a newer amd64"),
        pytest.param(
            Platform("linux", "amd64", "v3"),
            ["linux/amd64", "linux/amd64/v2", "linux/amd64/v3", "linux/amd64/v4"],
            ["linux/amd64/v3", "linux/amd64/v2", "linux/amd64"],
            id="the newest that runs",
        ),
        pytest.param(Platform("linux", "arm64"), ["linux/arm64/v8"], ["linux/arm64/v8"], id="v8 is plain arm64"),
        pytest.param(
            Platform("linux", "arm64", "v8"),
            ["linux/arm/v7", "linux/arm64"],
            ["linux/arm64", "linux/arm/v7"],
            id="arm64 runs 32-bit arm",
        ),
        pytest.param(
            Platform("linux", "arm64", "v9"),
            ["linux/arm64", "linux/arm64/v8.5", "linux/arm64/v8.6", "linux/arm64/v9"],
            ["linux/arm64/v9", "linux/arm64/v8.5", "linux/arm64"],
            id="v9 has v8.5 and not v8.6",
        ),
        pytest.param(
            Platform("linux", "arm", "v7"),
            ["linux/arm/v5", "linux/arm/v6", "linux/arm/v8", "linux/arm"],
            ["linux/arm", "linux/arm/v6", "linux/arm/v5"],
            id="arm without a variant is v7",
        ),
        pytest.param(Platform("linux", "arm", "v6"), ["linux/arm/v7"], [], id="an older arm"),
        pytest.param(Platform("linux", "amd64"), ["windows/amd64"], [], id="another system"),
        pytest.param(Platform("linux", "s390x"), ["linux/s390x", "linux/amd64"], ["linux/s390x"], id="a rarer one"),
        pytest.param(Platform("linux", "amd64"), ["?", "linux/amd64"], ["linux/amd64", "?"], id="untold comes last"),
        pytest.param(Platform("linux", "amd64"), ["unknown/unknown"], [], id="what is for nothing"),
        pytest.param(Platform("linux", "arm64", "strange"), ["linux/arm64/strange"], ["linux/arm64/strange"], id="odd"),
    ],
)
def test_a_node_takes_the_best_it_runs(node, offered, expected):
    assert expected == chosen(node, *offered)


def test_of_equals_the_first_is_taken():
    twins = [IndexEntry("one", IndexPlatform("linux", "amd64")), IndexEntry("two", IndexPlatform("linux", "x86_64"))]

    assert ["one", "two"] == [entry.digest for entry in platform_match.choose(twins, Platform("linux", "amd64"))]


def test_an_attestation_is_no_image():
    assert [] == platform_match.choose([ATTESTED], Platform("linux", "amd64"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(Platform("Linux", "x86_64"), Platform("linux", "amd64"), id="x86_64"),
        pytest.param(Platform("linux", "aarch64", "8"), Platform("linux", "arm64"), id="aarch64/8"),
        pytest.param(Platform("linux", "armhf"), Platform("linux", "arm", "v7"), id="armhf"),
        pytest.param(Platform("linux", "arm", "6"), Platform("linux", "arm", "v6"), id="arm/6"),
        pytest.param(Platform("", "i386", "x"), Platform("linux", "386"), id="i386"),
        pytest.param(Platform("linux", "arm64", "v9.0"), Platform("linux", "arm64", "v9"), id="v9.0"),
    ],
)
def test_one_platform_has_one_spelling(written, expected):
    assert expected == platform_match.normalize(written)


def test_this_machine_is_something_linux_runs_on():
    assert "linux" == platform_match.this_machine().os
