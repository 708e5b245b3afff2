"""Routes: health, discovery, removed groups, methods, bodies."""

import msgspec
import pytest

from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_messages import LARGEST_BODY, FacadeResponse
from tests.unit.simulator.facade.api_client import CONFIG_MAPS, PODS, ApiClient, NotedFacade, a_config_map, a_pod_object


@pytest.fixture
def facade() -> NotedFacade:
    return NotedFacade()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping", "/readyz?verbose"])
def test_probes_are_answered(facade, path):
    answer = facade.answer("GET", path)

    assert isinstance(answer, FacadeResponse)
    assert (200, b"ok") == (answer.status, answer.body)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/api", "APIVersions", id="core"),
        pytest.param("/apis", "APIGroupList", id="groups"),
        pytest.param("/api/v1", "APIResourceList", id="core/v1"),
        pytest.param("/apis/apps", "APIGroup", id="one group"),
        pytest.param("/apis/events.k8s.io/v1", "APIResourceList", id="events"),
        pytest.param("/apis/apps/v1/", "APIResourceList", id="trailing slash"),
    ],
)
def test_discovery(facade, path, kind):
    assert kind == facade.get(path)["kind"]


def test_the_version_is_that_of_a_real_server(facade):
    assert "1" == facade.get("/version")["major"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/nope", 404, id="no such path"),
        pytest.param("GET", "/apis/nope.example/v1/things", 404, id="no such group"),
        pytest.param("GET", "/apis/batch/v2alpha1/cronjobs", 404, id="removed version"),
        pytest.param("GET", "/api/v1/things", 404, id="no such resource"),
        pytest.param("GET", "/api/v1/namespaces/default/nodes", 404, id="nodes have no namespace"),
        pytest.param("GET", f"{PODS}/p/nope", 404, id="no such subresource"),
        pytest.param("GET", f"{PODS}/p/binding", 405, id="bindings cannot be read"),
        pytest.param("PUT", PODS, 405, id="put of a collection"),
        pytest.param("PATCH", PODS, 405, id="patch of a collection"),
        pytest.param("OPTIONS", PODS, 405, id="options"),
        pytest.param("GET", "/api/v1/namespaces/default/bindings", 405, id="bindings cannot be listed"),
        pytest.param("GET", "/" + "a/" * 40, 404, id="deep path"),
        pytest.param("GET", "/" + "a" * 5000, 404, id="long path"),
    ],
)
def test_what_is_not_served_is_refused_with_a_status(facade, method, path, status):
    found = facade.send(method, path)

    assert (status, "Status") == (found[0], found[1]["kind"])


def test_a_trailing_slash_changes_nothing(facade):
    assert 201 == facade.post(f"{PODS}/", a_pod_object("p"))[0]
    assert ["p"] == facade.names(f"{PODS}/")


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        pytest.param(b"x" * (LARGEST_BODY + 1), "application/json", 413, id="large"),
        pytest.param(b"[" * 5000, "application/json", 400, id="deep and broken"),
        pytest.param(b'{"a":' * 200 + b"1" + b"}" * 200, "application/json", 400, id="deep"),
        pytest.param(b"{}", "text/plain", 415, id="type"),
        pytest.param(b"a: 1\n---\nb: 2\n", "application/yaml", 400, id="two documents"),
        pytest.param(b"k8s\x00nonsense", "application/vnd.kubernetes.protobuf", 400, id="broken protobuf"),
        pytest.param(b"", "application/json", 400, id="nothing"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(facade, body, content_type, status):
    assert status == facade.send("POST", CONFIG_MAPS, body, content_type=content_type)[0]


def test_a_body_can_be_yaml(facade):
    body = b"metadata:\n  name: a\ndata:\n  k: v\n"
    status, found = facade.send("POST", CONFIG_MAPS, body, content_type="application/yaml")

    assert (201, {"k": "v"}) == (status, found["data"])


def test_a_written_object_can_be_answered_as_a_table(facade):
    answer = facade.answer(
        "POST", CONFIG_MAPS, a_config_map("a"), accept="application/json;as=Table;v=v1;g=meta.k8s.io"
    )

    assert isinstance(answer, FacadeResponse)
    assert (201, "Table") == (answer.status, msgspec.json.decode(answer.body)["kind"])


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        pytest.param(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}, "allowed", id="permissions"
        ),
        pytest.param("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}}, "authenticated", id="tokens"),
    ],
)
def test_every_question_about_permissions_is_answered_with_yes(facade, path, body, key):
    status, found = facade.post(path, body)

    assert (201, True) == (status, found["status"][key])


def test_metrics_are_those_of_the_caller():
    client = ApiClient(ApiHandler(NotedFacade().state, lambda: b"up 1\n"))
    answer = client.answer("GET", "/metrics")

    assert isinstance(answer, FacadeResponse)
    assert b"up 1\n" == answer.body
