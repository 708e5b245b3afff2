"""Image references: what is spelled out, what is refused and with which advice, and what upstream looks up by."""

import copy
import pickle

import pytest

from lamina.model.errors import LaminaError
from lamina.model.reference import (
    MAX_LENGTH,
    ImageReference,
    ReferenceFormatError,
    locality_name,
    parse_reference,
)

HEX = "0123456789abcdef" * 4
SHA = f"sha256:{HEX}"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("nginx", "docker.io/library/nginx:latest", id="one word"),
        pytest.param("nginx:1.27", "docker.io/library/nginx:1.27", id="one word and a tag"),
        pytest.param("nginx:5000", "docker.io/library/nginx:5000", id="a tag that looks like a port"),
        pytest.param("localhost", "docker.io/library/localhost:latest", id="a host alone is an image"),
        pytest.param("example.com", "docker.io/library/example.com:latest", id="a dotted host alone is an image"),
        pytest.param("grafana/loki", "docker.io/grafana/loki:latest", id="an owner"),
        pytest.param("library/nginx", "docker.io/library/nginx:latest", id="the official owner"),
        pytest.param("docker.io/nginx", "docker.io/library/nginx:latest", id="docker hub by name"),
        pytest.param("index.docker.io/nginx", "docker.io/library/nginx:latest", id="docker hub by its old name"),
        pytest.param("docker.io/a/b/c", "docker.io/a/b/c:latest", id="a deep path on docker hub"),
        pytest.param("localhost/app", "localhost/app:latest", id="localhost is a registry"),
        pytest.param("localhost:5000/app", "localhost:5000/app:latest", id="localhost with a port"),
        pytest.param("registry/app", "docker.io/registry/app:latest", id="a plain word is an owner, not a host"),
        pytest.param("registry:5000/app", "registry:5000/app:latest", id="a port makes it a host"),
        pytest.param("Registry/app", "Registry/app:latest", id="an upper-case letter makes it a host"),
        pytest.param("ghcr.io/o/app:V1_x.y-z", "ghcr.io/o/app:V1_x.y-z", id="a dot makes it a host"),
        pytest.param("10.0.0.1:80/a", "10.0.0.1:80/a:latest", id="IPv4"),
        pytest.param("[fe80::1]/a", "[fe80::1]/a:latest", id="IPv6"),
        pytest.param("[FE80::1]:443/a", "[FE80::1]:443/a:latest", id="IPv6 with a port"),
        pytest.param("a.b/c.d/e_f/g__h/i---j", "a.b/c.d/e_f/g__h/i---j:latest", id="every joint"),
        pytest.param(f"nginx@{SHA}", f"docker.io/library/nginx@{SHA}", id="a digest needs no tag"),
        pytest.param(f"nginx:1@{SHA}", f"docker.io/library/nginx:1@{SHA}", id="tag and digest"),
        pytest.param(f"{HEX}:1", f"docker.io/library/{HEX}:1", id="an id is a name once it has a tag"),
        pytest.param("x:_", "docker.io/library/x:_", id="a tag may begin with an underscore"),
    ],
)
def test_a_reference_is_spelled_out(text, want):
    """The same image has the same text, however it was written."""
    assert want == str(parse_reference(text))


def test_the_parts_of_a_reference_can_be_asked_for():
    """Registry, repository, tag and digest, and the name without the version."""
    got = parse_reference(f"ghcr.io/o/app:1@{SHA}")

    assert ImageReference("ghcr.io", "o/app", "1", parse_reference(f"x@{SHA}").digest) == got
    assert "ghcr.io/o/app" == got.name


def test_a_missing_tag_is_latest_unless_there_is_a_digest():
    """nginx and nginx:latest are equal; a digest alone keeps no tag."""
    assert parse_reference("nginx:latest") == parse_reference("nginx")
    assert parse_reference(f"nginx@{SHA}").tag is None
    assert "docker.io/library/x:latest" == str(ImageReference("docker.io", "library/x"))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("docker.io/library/nginx:1", "nginx:1", id="official image"),
        pytest.param("docker.io/grafana/loki", "grafana/loki:latest", id="a user's image"),
        pytest.param("docker.io/library/a/b", "library/a/b:latest", id="a deeper path below the official owner"),
        pytest.param("ghcr.io/o/app:1", "ghcr.io/o/app:1", id="another registry"),
        pytest.param(f"docker.io/library/nginx@{SHA}", f"nginx@{SHA}", id="digest"),
        pytest.param("docker.io/a.b/c", "docker.io/a.b/c:latest", id="an owner that would look like a registry"),
        pytest.param("docker.io/localhost/c", "docker.io/localhost/c:latest", id="an owner called localhost"),
    ],
)
def test_the_familiar_form_is_the_shortest_that_means_the_same(text, want):
    """What people write, and never something that would be read differently."""
    assert want == parse_reference(text).familiar
    assert parse_reference(text) == parse_reference(want)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        pytest.param("", "it is empty; write for example nginx:1.27", id="empty"),
        pytest.param("Nginx:1.27", "lower case; did you mean 'nginx:1.27'?", id="upper case"),
        pytest.param("ghcr.io/Org/App:V1", "lower case; did you mean 'ghcr.io/org/app:V1'?", id="upper case in a path"),
        pytest.param("https://ghcr.io/a", "leave out the protocol and write 'ghcr.io/a'", id="a web address"),
        pytest.param(HEX, f"image id; write its repository and @{SHA}", id="an image id"),
        pytest.param("nginx:", "nothing follows the colon", id="empty tag"),
        pytest.param("nginx:-1", "'-1' is not a tag", id="tag begins with a dash"),
        pytest.param("nginx:.1", "'.1' is not a tag", id="tag begins with a point"),
        pytest.param("nginx:1:2", "'1:2' is not a tag", id="two tags"),
        pytest.param("nginx:1\n", "is not a tag", id="line break after the tag"),
        pytest.param("nginx:ü", "is not a tag", id="letter of another script in the tag"),
        pytest.param("nginx@", "the algorithm is missing", id="empty digest"),
        pytest.param("nginx@sha256:abc", "has 64 digits, not 3", id="short digest"),
        pytest.param(f"nginx@{SHA}@{SHA}", "longer than", id="two digests"),
        pytest.param(f"nginx@{SHA}:1", "only 0-9", id="digest before tag"),
        pytest.param("a//b", "a part of the repository is empty", id="two slashes"),
        pytest.param("/a", "a part of the repository is empty", id="slash first"),
        pytest.param("a/", "a part of the repository is empty", id="slash last"),
        pytest.param("ghcr.io/", "a part of the repository is empty", id="registry only"),
        pytest.param(":1", "a part of the repository is empty", id="tag only"),
        pytest.param("-a", "'-a' cannot be part of a repository", id="joint first"),
        pytest.param("a-", "'a-' cannot be part of a repository", id="joint last"),
        pytest.param("a..b", "'a..b' cannot be part of a repository", id="two points"),
        pytest.param("a___b", "'a___b' cannot be part of a repository", id="three underscores"),
        pytest.param("a-_b", "'a-_b' cannot be part of a repository", id="mixed joints"),
        pytest.param("a b", "'a b' cannot be part of a repository", id="space"),
        pytest.param("é", "cannot be part of a repository", id="letter of another script"),
        pytest.param("a.b:x/c", "'a.b:x' is not a registry", id="a port that is no number"),
        pytest.param("a.b:/c", "'a.b:' is not a registry", id="empty port"),
        pytest.param("-a.b/c", "'-a.b' is not a registry", id="host begins with a dash"),
        pytest.param("a-.b/c", "'a-.b' is not a registry", id="host label ends with a dash"),
        pytest.param("a..b/c", "'a..b' is not a registry", id="empty host label"),
        pytest.param("a_b.c/d", "'a_b.c' is not a registry", id="underscore in a host"),
        pytest.param("[::1/c", r"'\[::1' is not a registry", id="bracket left open"),
        pytest.param("[::g]/c", r"'\[::g\]' is not a registry", id="not an address"),
        pytest.param("[::1]x/c", r"'\[::1\]x' is not a registry", id="text after the bracket"),
        pytest.param("::1/c", "'::1' is not a registry", id="IPv6 without brackets"),
    ],
)
def test_what_cannot_name_an_image_is_refused_with_advice(text, advice):
    """The author of the pod can act on the message."""
    with pytest.raises(ReferenceFormatError, match=advice.replace("?", r"\?")):
        parse_reference(text)


@pytest.mark.parametrize(
    ("longest", "too_long", "cap"),
    [
        pytest.param("a.b/" + "c" * 255, "a.b/" + "c" * 256, "longer than 255 characters", id="repository"),
        pytest.param("c" * 247, "c" * 248, "longer than 255 characters", id="repository with what is added to it"),
        pytest.param("a:" + "t" * 128, "a:" + "t" * 129, "longer than 128 characters", id="tag"),
        pytest.param(
            "h" * (MAX_LENGTH - 4) + ":1/a", "h" * (MAX_LENGTH - 3) + ":1/a", "longer than 4096 characters", id="whole"
        ),
    ],
)
def test_lengths_are_capped(longest, too_long, cap):
    """Work is bounded by caps on the text, not by hope."""
    parse_reference(longest)
    with pytest.raises(ReferenceFormatError, match=cap):
        parse_reference(too_long)


def test_a_message_shows_only_a_piece_of_a_long_text():
    """One bad field cannot fill a log."""
    with pytest.raises(ReferenceFormatError) as caught:
        parse_reference("A" * MAX_LENGTH)

    assert len(str(caught.value)) < 400


def test_the_error_is_a_value_error_and_one_of_ours_and_can_be_copied():
    """Callers may catch either kind; workers may send it home."""
    error = ReferenceFormatError("A", "repository names are lower case; did you mean 'a'?")

    assert isinstance(error, ValueError)
    assert isinstance(error, LaminaError)
    assert str(error) == str(copy.copy(error)) == str(pickle.loads(pickle.dumps(error)))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("nginx", "nginx:latest", id="no tag"),
        pytest.param("nginx:1.27", "nginx:1.27", id="tag"),
        pytest.param("host:5000/app", "host:5000/app:latest", id="the colon is the port's"),
        pytest.param("host:5000/app:1", "host:5000/app:1", id="port and tag"),
        pytest.param(f"nginx@{SHA}", f"nginx@{SHA}", id="the colon is the digest's"),
        pytest.param("docker.io/library/nginx", "docker.io/library/nginx:latest", id="nothing is shortened"),
        pytest.param("", ":latest", id="empty, as upstream has it"),
        pytest.param("a:b/", "a:b/:latest", id="slash last, as upstream has it"),
    ],
)
def test_upstream_looks_images_up_by_text_with_a_tag(name, want):
    """Only a missing tag is added; docker hub's short names stay short."""
    assert want == locality_name(name)
