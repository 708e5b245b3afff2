"""Where registries are asked, and where they may send us."""

import pytest

from lamina.clients.oci.lookup_results import NOT_ALLOWED, RegistryError
from lamina.clients.oci.registry_config import RegistryConfig, RegistrySettings
from lamina.clients.oci.registry_endpoints import CheckedUrl, EndpointPolicy

RULES = RegistryConfig(
    (
        RegistrySettings("registry.example:5000", private=True, mirrors=("mirror.example", "plain.example:5001")),
        RegistrySettings("plain.example:5001", plain_http=True, private=True, realms=("auth.plain.example:81",)),
        RegistrySettings("gitlab.example", realms=("login.elsewhere.example", "sso.example:8443")),
        RegistrySettings("blobs.example", private=True),
        RegistrySettings("docker.io"),
    )
)


@pytest.fixture
def places():
    made = EndpointPolicy(RULES)
    made.seen_on_nodes({"ghcr.io", "Registry.Seen.example:8443"})
    return made


def refusal(call, *words):
    with pytest.raises(RegistryError) as caught:
        call(*words)
    assert caught.value.reason == NOT_ALLOWED
    return caught.value.detail


@pytest.mark.parametrize(
    ("registry", "bases"),
    [
        pytest.param("docker.io", ["https://registry-1.docker.io"], id="Docker Hub answers elsewhere"),
        pytest.param("ghcr.io", ["https://ghcr.io"], id="seen on nodes"),
        pytest.param("registry.seen.example:8443", ["https://registry.seen.example:8443"], id="its port"),
        pytest.param("plain.example:5001", ["http://plain.example:5001"], id="plain, as configured"),
        pytest.param(
            "registry.example:5000",
            ["https://mirror.example", "http://plain.example:5001", "https://registry.example:5000"],
            id="mirrors first, as their own entries say",
        ),
    ],
)
def test_a_registry_is_asked_where_its_name_and_the_rules_say(places, registry, bases):
    assert bases == [place.base for place in places.endpoints_for(registry)]


@pytest.mark.parametrize(
    "registry",
    [
        pytest.param("evil.example", id="nobody knows it"),
        pytest.param("registry.example", id="another port of one that is known"),
        pytest.param("registry.example:443", id="a port that is written out is another name"),
        pytest.param("ghcr.io:8080", id="another port of one that was seen"),
        pytest.param("169.254.169.254", id="an address"),
        pytest.param("mirror.example", id="a mirror is no registry"),
        pytest.param("127.1:5000", id="an address in disguise"),
        pytest.param("a:0", id="no port"),
    ],
)
def test_what_no_rule_names_is_not_asked(places, registry):
    refusal(places.endpoints_for, registry)


@pytest.mark.parametrize("host", ["127.1:5000", "a:0", "a_b.example"])
def test_a_registry_that_is_no_host_is_not_asked_even_if_it_is_configured(host):
    refusal(EndpointPolicy(RegistryConfig((RegistrySettings(host, private=True),))).endpoints_for, host)


@pytest.mark.parametrize(
    ("registry", "asked"),
    [
        pytest.param("seen.example:443", True, id="the usual port"),
        pytest.param("seen.example:1024", True, id="the first that anybody may use"),
        pytest.param("seen.example:22", False, id="remote shells"),
        pytest.param("seen.example:80", False, id="plain HTTP, which is not spoken there"),
        pytest.param("[2001:4860:4860::8888]:25", False, id="mail, on an address"),
    ],
)
def test_a_node_cannot_make_us_knock_at_the_doors_of_system_services(registry, asked):
    named = EndpointPolicy(RegistryConfig())
    named.seen_on_nodes({registry})
    configured = EndpointPolicy(RegistryConfig((RegistrySettings(registry),)))

    if asked:
        assert 1 == len(named.endpoints_for(registry))
    else:
        assert "named only by nodes" in refusal(named.endpoints_for, registry)
    assert 1 == len(configured.endpoints_for(registry))


def test_what_nodes_have_pulled_from_counts_only_if_the_rules_say_so():
    strict = EndpointPolicy(RegistryConfig(from_nodes=False))
    strict.seen_on_nodes({"ghcr.io"})

    assert "only configured registries are queried" in refusal(strict.endpoints_for, "ghcr.io")


def test_a_registry_that_no_node_has_any_longer_is_not_asked(places):
    places.seen_on_nodes(())

    assert "no node has pulled from it" in refusal(places.endpoints_for, "ghcr.io")


def test_what_nodes_have_pulled_from_is_never_private_or_plain(places):
    (place,) = places.endpoints_for("registry.seen.example:8443")

    assert (False, False) == (place.private, place.plain)


@pytest.mark.parametrize(
    ("registry", "realm"),
    [
        pytest.param("docker.io", "https://auth.docker.io/token", id="Docker Hub's own"),
        pytest.param("ghcr.io", "https://ghcr.io/token?a=b", id="the same host"),
        pytest.param("registry.seen.example:8443", "https://registry.seen.example:8443/token", id="the same port"),
        pytest.param("registry.seen.example:8443", "https://registry.seen.example/token", id="the usual port"),
        pytest.param("registry.seen.example:8443", "https://seen.example/jwt/auth", id="the house above"),
        pytest.param("ghcr.io", "https://auth.ghcr.io/token", id="below"),
        pytest.param("gitlab.example", "https://login.elsewhere.example/", id="configured"),
        pytest.param("gitlab.example", "https://sso.example:8443/", id="configured with a port"),
        pytest.param("plain.example:5001", "http://plain.example:5001/token", id="plain at a plain registry"),
        pytest.param("plain.example:5001", "http://auth.plain.example:81/token", id="plain, configured"),
    ],
)
def test_a_realm_of_the_same_house_or_configured_is_accepted(places, registry, realm):
    place = places.endpoints_for(registry)[-1]

    assert realm == places.realm(place, realm).url


@pytest.mark.parametrize(
    ("registry", "realm"),
    [
        pytest.param("ghcr.io", "http://ghcr.io/token", id="without TLS"),
        pytest.param("ghcr.io", "https://evil.example/token", id="in another domain"),
        pytest.param("ghcr.io", "https://ghcr.io.evil.example/token", id="begins alike"),
        pytest.param("ghcr.io", "https://evilghcr.io/token", id="ends alike"),
        pytest.param("ghcr.io", "https://ghcr.io@evil.example/token", id="a user that looks like a host"),
        pytest.param("ghcr.io", "https://user:pw@ghcr.io/token", id="a user"),
        pytest.param("ghcr.io", "https://ghcr.io:8080/token", id="another port"),
        pytest.param("ghcr.io", "https://io/token", id="a top-level domain"),
        pytest.param("ghcr.io", "https://169.254.169.254/latest", id="instance metadata"),
        pytest.param("ghcr.io", "http://169.254.169.254/latest", id="instance metadata, plain"),
        pytest.param("ghcr.io", "https://auth.docker.io/token", id="Docker Hub's is for Docker Hub"),
        pytest.param("gitlab.example", "https://login.elsewhere.example:444/", id="configured, another port"),
        pytest.param("gitlab.example", "http://login.elsewhere.example/", id="configured, without TLS"),
        pytest.param("plain.example:5001", "http://example/token", id="plain, above"),
        pytest.param("plain.example:5001", "http://plain.example/token", id="plain, another port"),
        pytest.param("ghcr.io", "file:///etc/passwd", id="a file"),
        pytest.param("ghcr.io", "gopher://ghcr.io/", id="another protocol"),
        pytest.param("ghcr.io", "//ghcr.io/token", id="no protocol"),
        pytest.param("ghcr.io", "token", id="a word"),
        pytest.param("ghcr.io", "", id="nothing"),
        pytest.param("ghcr.io", "https://", id="no host"),
        pytest.param("ghcr.io", "https://ghcr.io/\r\nX: y", id="line breaks"),
        pytest.param("ghcr.io", "https://evil.example\\@ghcr.io/", id="a backslash"),
        pytest.param("ghcr.io", "https://ghcr.io /token", id="a space"),
        pytest.param("ghcr.io", "https://ghcr。io/token", id="another dot"),
        pytest.param("ghcr.io", "https://ghcr.io/" + "a" * 10_000, id="too long"),
        pytest.param("ghcr.io", "https://ghcr.io:99999/token", id="no port"),
        pytest.param("ghcr.io", "https://[::1/token", id="half a bracket"),
    ],
)
def test_any_other_realm_is_told_nothing(places, registry, realm):
    refusal(places.realm, places.endpoints_for(registry)[-1], realm)


def test_only_what_is_configured_makes_a_realm_private(places):
    private = places.endpoints_for("registry.example:5000")[-1]

    assert places.realm(private, "https://registry.example:5000/token").endpoint.private
    assert places.realm(private, "https://registry.example/token").endpoint.private
    assert not places.realm(private, "https://auth.registry.example/token").endpoint.private


@pytest.mark.parametrize(
    ("registry", "url", "private"),
    [
        pytest.param("ghcr.io", "https://cdn.example/blob?signature=x", False, id="somewhere public"),
        pytest.param("ghcr.io", "https://ghcr.io/other", False, id="the same host"),
        pytest.param("ghcr.io", "/other", False, id="the same host, in short"),
        pytest.param("registry.example:5000", "https://registry.example:5000/other", True, id="a private one, itself"),
        pytest.param("registry.example:5000", "https://cdn.example/blob", False, id="a private one, elsewhere"),
        pytest.param("ghcr.io", "https://blobs.example/x", True, id="a host that is configured"),
        pytest.param("plain.example:5001", "http://plain.example:5001/other", True, id="plain, the same host"),
    ],
)
def test_a_redirect_is_followed_with_what_the_rules_say_about_its_target(places, registry, url, private):
    place = places.endpoints_for(registry)[-1]

    target = places.redirect(place, CheckedUrl(place, place.base), url)

    assert target.url.endswith(url)
    assert private == target.endpoint.private


@pytest.mark.parametrize(
    ("registry", "url"),
    [
        pytest.param("ghcr.io", "http://ghcr.io/other", id="without TLS"),
        pytest.param("plain.example:5001", "http://cdn.example/blob", id="plain, elsewhere"),
        pytest.param("ghcr.io", "https://cdn.example:8443/blob", id="another port"),
        pytest.param("ghcr.io", "https://plain.example:5001/blob", id="TLS at a plain one"),
        pytest.param("ghcr.io", "ftp://cdn.example/blob", id="another protocol"),
        pytest.param("ghcr.io", "https://user:pw@cdn.example/blob", id="a user"),
        pytest.param("ghcr.io", "https://127.1/blob", id="an address in disguise"),
        pytest.param("ghcr.io", "https://[::1/blob", id="half a bracket"),
    ],
)
def test_any_other_redirect_is_not_followed(places, registry, url):
    place = places.endpoints_for(registry)[-1]

    refusal(places.redirect, place, CheckedUrl(place, place.base), url)


def test_a_refusal_shows_no_query_and_no_user(places):
    place = places.endpoints_for("ghcr.io")[-1]
    here = CheckedUrl(place, f"{place.base}/v2/")
    told = [
        refusal(places.realm, place, "https://user:canary@ghcr.io/?token=canary"),
        refusal(places.realm, place, "https://evil.example/?token=canary"),
        refusal(places.redirect, place, here, "http://evil.example/?token=canary"),
        repr(places.redirect(place, here, "https://cdn.example/?token=canary")),
    ]

    assert "canary" not in "".join(told)
