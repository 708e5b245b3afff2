"""Pull secrets: used where a namespace allows it and nowhere else, and never seen anywhere."""

import base64
import json
import signal

import pytest
import yaml

from tests.e2e._live import CUSTOM, until
from tests.integration.scheduler.live import ACCOUNT, DEPLOY, NAMESPACE, Lamina, configuration, install
from tests.integration.scheduler.tempting import NAMES, TOKEN, TemptingRegistry, docker_config, forms

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kubectl")]

PULL = "canary-pull-secret-77aa"
OLD = "canary-old-secret-88bb"
OURS = "canary-docker-config-99cc"
SECRETS = (PULL, OLD, OURS, TOKEN)


def a_namespace(bed, name, *, opted=False, bound=False):
    labels = {"lamina.dev/pull-secrets": "use"} if opted else {}
    bed.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest("v1", "Namespace", name, labels=labels)))
    if bound:
        words = ("--clusterrole=lamina-pull-secrets", f"--serviceaccount={NAMESPACE}:{ACCOUNT}")
        bed.kubectl("create", "rolebinding", "lamina-pull-secrets", "-n", name, *words)


def manifest(version, kind, name, *, namespace="", labels=None, **more):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def a_secret(bed, namespace, name, kind, key, text):
    data = {key: base64.b64encode(text.encode()).decode()}
    secret = manifest("v1", "Secret", name, namespace=namespace, type=kind, data=data)
    bed.api("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)


def a_pod(bed, namespace, name, image, *secrets):
    spec = {
        "schedulerName": "lamina",
        "imagePullSecrets": [{"name": secret} for secret in secrets],
        "containers": [{"name": "main", "image": image}],
    }
    bed.api("POST", f"/api/v1/namespaces/{namespace}/pods", manifest("v1", "Pod", name, spec=spec))


def bound(bed, namespace, name):
    found = lambda: bed.api("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")["spec"].get("nodeName")  # noqa: E731
    return until(f"{namespace}/{name} is bound", found)


@pytest.fixture
def shop(bed):
    """A registry that tempts, and a cluster with namespaces of all kinds."""
    install(bed)
    bed.kubectl("apply", "-f", str(DEPLOY / "rbac" / "optional" / "pull-secrets.yaml"))
    bed.add_node("n1", cpu="8")
    with TemptingRegistry(PULL, OLD, OURS) as registry:
        yield registry
    for pod in bed.api("GET", "/api/v1/pods")["items"]:
        where, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        bed.api("DELETE", f"/api/v1/namespaces/{where}/pods/{name}", {"gracePeriodSeconds": 0})


def scheduler(bed, registry, *words):
    rules, login = bed.folder / "rules.yaml", bed.folder / "login.json"
    entry = {"host": registry.host, "plainHttp": True, "private": True}
    rules.write_text(yaml.safe_dump({"registries": [entry]}), encoding="utf-8")
    login.write_text(docker_config(registry.host, OURS), encoding="utf-8")
    asked = ("--registries", str(rules), *(("--docker-config", str(login)) if "login" in words else ()))
    return Lamina(bed, config=configuration(), words=(*asked, "-v", "10"))


def everything_said(bed, lamina):
    """All that anybody can read of a scheduler: its log, its pages, and every object but the secrets themselves."""
    lamina.signal(signal.SIGUSR2)
    until("the dump is in the log", lambda: "state dump" in lamina.log.read_text(encoding="utf-8") or None)
    pages = ["/metrics", "/debug/dump", "/debug/cache", "/readyz"]
    pods = [one["metadata"] for one in bed.api("GET", "/api/v1/pods")["items"]]
    pages += [f"/debug/decisions/{one['namespace']}/{one['name']}" for one in pods]
    paths = ["/api/v1/pods", "/apis/events.k8s.io/v1/events", "/apis/coordination.k8s.io/v1/leases", "/api/v1/nodes"]
    paths += [f"{CUSTOM}/nodelayers", f"{CUSTOM}/imagelayers"]
    objects = [json.dumps(bed.api("GET", path)) for path in paths]
    return {"log": lamina.log.read_text(encoding="utf-8"), "objects": "\n".join(objects)} | {
        page: lamina.page(page)[1] for page in pages
    }


def test_no_secret_is_ever_seen(bed, shop):
    """Pods whose registry answers in every way, with credentials from three places, at the highest verbosity."""
    a_namespace(bed, "open", opted=True, bound=True)
    a_secret(bed, "open", "pull", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", docker_config(shop.host, PULL))
    old = json.dumps(json.loads(docker_config(shop.host, OLD))["auths"])
    a_secret(bed, "open", "old", "kubernetes.io/dockercfg", ".dockercfg", old)
    with scheduler(bed, shop, "login") as lamina:
        for name in NAMES:
            for secret in ("pull", "old"):
                a_pod(bed, "open", f"{name}-{secret}", f"{shop.host}/{name}/{secret}:1", secret)
            a_pod(bed, "open", f"{name}-ours", f"{shop.host}/{name}/ours:1")
        for name in NAMES:
            for how in ("pull", "old", "ours"):
                bound(bed, "open", f"{name}-{how}")
        said = everything_said(bed, lamina)
        assert [] == lamina.complaints()

    logins = {f"Basic {forms(secret)[-1]}" for secret in (PULL, OLD, OURS)}
    assert logins | {f"Bearer {TOKEN}"} == shop.credentials, "all of them were used, and nothing else"
    found = [
        (where, form) for where, text in said.items() for secret in SECRETS for form in forms(secret) if form in text
    ]
    assert [] == found


def test_secrets_are_read_only_where_the_namespace_says_so_and_binds_the_role(bed, shop):
    for name, opted, role in (("closed", False, True), ("unbound", True, False), ("open-too", True, True)):
        a_namespace(bed, name, opted=opted, bound=role)
        text = docker_config(shop.host, f"{PULL}-{name}")
        a_secret(bed, name, "pull", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", text)
        a_secret(bed, name, "opaque", "Opaque", ".dockerconfigjson", docker_config(shop.host, f"{OLD}-{name}"))
    with scheduler(bed, shop) as lamina:
        for name in ("closed", "unbound", "open-too"):
            a_pod(bed, name, "p1", f"{shop.host}/good/{name}:1", "pull", "opaque")
            bound(bed, name, "p1")
        said = [one for one in lamina.said() if "pull secret" in one["msg"]]

    assert {f"Basic {forms(f'{PULL}-open-too')[-1]}"} == shop.credentials
    assert {("unbound", "pull secret not readable: 403 Forbidden")} == {(one["namespace"], one["msg"]) for one in said}


def test_the_scheduler_may_read_no_secret_of_its_own_accord(bed):
    """Only where a namespace binds the role."""
    install(bed)
    bed.kubectl("apply", "-f", str(DEPLOY / "rbac" / "optional" / "pull-secrets.yaml"))
    for name, role in (("with-role", True), ("without-role", False)):
        a_namespace(bed, name, bound=role)
        spec = {
            "user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
            "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": name},
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}

        def allowed(review=review):
            return bed.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

        if role:
            until("the role takes effect", lambda: allowed() or None)
        assert role == allowed()
