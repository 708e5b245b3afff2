"""The story with kubectl: what people type into a terminal, one check for each command."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.e2e._client_server import ApiserverProcess
from tests.e2e._client_steps import BINDING, CUSTOM_OBJECT, CUSTOM_TYPE, DEPLOYMENT, NAMESPACE, NODE, POD, POD_OBJECT
from tests.e2e._live import until

SECONDS: Final = 120
"""Longest time of one command; commands that wait have a limit of their own, which is shorter."""
WAIT: Final = "--timeout=60s"


class KubectlStory:
    """Runs the commands of one kubectl, and collects what differs."""

    def __init__(self, program: Path, server: ApiserverProcess) -> None:
        """Run *program* against *server*."""
        self._program = program
        self._server = server
        # kubectl keeps discovery documents below HOME.
        self._environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(server.folder), "KUBECTL_KYAML": "false"}
        self._environment["KUBECONFIG"] = str(server.kubeconfig)
        self.wrong: list[str] = []
        self.commands = 0

    def play(self) -> list[str]:
        """Play the story; return what differed."""
        for part in (self._looks, self._pod, self._patches, self._deletes, self._applies, self._custom, self._nodes):
            part()
        self._check("delete namespace", f"delete namespace {NAMESPACE} {WAIT}", ["deleted"])
        self._check("it is gone", f"get namespace {NAMESPACE}", ["NotFound"], code=1)
        return self.wrong

    def _looks(self) -> None:
        """Ask about the cluster."""
        self._check("version", "version", [r"Server Version: v1\.\d+"])
        self._check("api-resources", "api-resources", ["pods +po +v1 +true +Pod", "deployments +deploy +apps/v1"])
        self._check("api-versions", "api-versions", ["^v1$", "^apps/v1$"])
        self._check("explain", "explain pod", ["KIND: +Pod", "VERSION: +v1"])
        self._check("cluster-info", "cluster-info", ["is running at"])
        self._check("auth can-i", "auth can-i create pods", ["^yes$"])
        self._check("auth can-i --list", "auth can-i --list", [r"\*\.\* +\[\] +\[\] +\[\*\]"])
        self._check("auth whoami", "auth whoami", ["Username +lamina"])
        self._check("get", "get nodes", ["NAME +STATUS +ROLES +AGE +VERSION", "node-0 +Ready"])
        self._check("get -o wide", "get nodes -o wide", ["CONTAINER-RUNTIME", "containerd://"])
        self._check("get -o name", "get nodes -o name", ["^node/node-0$", "^node/node-2$"])
        found = json.loads(self._check("get -o json", "get nodes -o json") or "{}")
        self._same("get -o json", (found.get("kind"), len(found.get("items", []))), ("List", 3))
        self._check("get in pages", "get nodes --chunk-size=1", ["node-0", "node-1", "node-2"])
        self._check("get of nothing", "get pods", ["No resources found"])
        self._check("get of an unknown resource", "get gadgets", ["doesn't have a resource type"], code=1)

    def _pod(self) -> None:
        """Create, bind and look at a pod."""
        self._check("create namespace", f"create namespace {NAMESPACE}", ["created"])
        pod = self._file("pod", POD_OBJECT)
        self._check("create", f"create -f {pod}", ["pod/web created"])
        self._check("create again", f"create -f {pod}", ["AlreadyExists"], code=1)
        self._check("get of a waiting pod", f"get pod {POD}", ["web +0/1 +Pending"])
        binding = self._file("binding", BINDING)
        with self._watch(f"get pods {POD} --watch --output-watch-events", first="Pending") as watch:
            self._check("bind", f"create --raw {self._path}/pods/{POD}/binding -f {binding}", ["Success"])
            self._check("wait", f"wait --for=condition=Ready pod/{POD} {WAIT}", ["condition met"])
            self._reads("get --watch", watch, ["ADDED +web +0/1 +Pending", "MODIFIED +web +1/1 +Running"])
        self._check("get -o wide", f"get pod {POD} -o wide", [f"web +1/1 +Running +0 .*{NODE}"])
        self._check("get -o yaml", f"get pod {POD} -o yaml", ["^kind: Pod", "phase: Running", f"nodeName: {NODE}"])
        self._check("get -l", "get pods -A -l app=web", [f"{NAMESPACE} +web +1/1"])
        self._check("get -l of none", "get pods -A -l app!=web,app", ["No resources found"])
        fields = f"spec.nodeName={NODE},status.phase=Running"
        self._check("get --field-selector", f"get pods -A --field-selector {fields} -o name", ["^pod/web$"])
        self._check("get --sort-by", "get pods --sort-by=.metadata.creationTimestamp", ["web"])
        self._check("get --show-labels", f"get pod {POD} --show-labels", ["app=web"])
        self._check("get jsonpath", f"get pod {POD} -o jsonpath={{.status.phase}}", ["^Running$"])
        self._check(
            "get custom-columns", "get pods -o custom-columns=N:.metadata.name,P:.status.phase", ["web +Running"]
        )
        self._check("describe pod", f"describe pod {POD}", [f"Node: +{NODE}", "State: +Running", "Events:"])
        self._check(
            "describe node",
            f"describe node {NODE}",
            [f"{NAMESPACE} +web +100m", "Allocated resources", "InternalIP: +172.16", f"HolderIdentity: +{NODE}"],
        )
        self._check("get all", "get all", ["pod/web"])

    def _patches(self) -> None:
        """Change a pod in every form."""
        self._check("label", f"label pod {POD} tier=front", ["labeled"])
        self._check("label again", f"label pod {POD} tier=back", ["already has a value"], code=1)
        self._check("annotate", f"annotate pod {POD} note=hello", ["annotated"])
        for number, kind in enumerate(("strategic", "merge")):
            body = json.dumps({"metadata": {"labels": {f"b{number}": "1"}}})
            self._run_checked(f"patch {kind}", ["patch", "pod", POD, f"--type={kind}", "-p", body], ["patched"])
        body = json.dumps([{"op": "replace", "path": "/metadata/labels/b0", "value": "2"}])
        self._run_checked("patch json", ["patch", "pod", POD, "--type=json", "-p", body], ["patched"])
        found = self._check("labels", f"get pod {POD} -o jsonpath={{.metadata.labels}}")
        self._same("labels", json.loads(found or "{}"), {"app": "web", "tier": "front", "b0": "2", "b1": "1"})
        body = json.dumps({"spec": {"nodeName": "node-0"}})
        self._run_checked("patch of a fixed field", ["patch", "pod", POD, "-p", body], ["Forbidden|invalid"], code=1)

    def _deletes(self) -> None:
        """Delete pods with and without grace, and run one."""
        columns = "jsonpath=;{.metadata.deletionGracePeriodSeconds};"
        with self._watch(f"get pods {POD} --watch -o {columns}", first=";") as watch:
            self._check("delete --grace-period", f"delete pod {POD} --grace-period=7", ['pod "web" deleted'])
            self._reads("the grace period", watch, [";7;"])
        self._check("wait for delete", f"wait --for=delete pod/{POD} {WAIT}")
        self._check("it is gone", f"get pod {POD}", ["NotFound"], code=1)
        self._check("run", "run one --image=busybox --restart=Never", ["pod/one created"])
        self._check("wait for a field", f"wait --for=jsonpath={{.status.phase}}=Running pod/one {WAIT}", ["met"])
        with self._watch("get pods one --watch --output-watch-events", first="ADDED") as watch:
            self._check("delete --force", "delete pod one --force", ["force deleted"])
            self._reads("get --watch of a deletion", watch, ["ADDED +one", "DELETED +one"])
        self._check("delete of nothing", "delete pod one --ignore-not-found", [])

    def _applies(self) -> None:
        """Apply, scale and roll out a deployment."""
        two, three = self._file("two", DEPLOYMENT), self._file("three", _scaled(3))
        self._check("apply creates", f"apply -f {two}", ["deployment.apps/shop created"])
        self._check("rollout status", f"rollout status deployment/shop {WAIT}", ["successfully rolled out"])
        self._check("apply again", f"apply -f {two}", ["unchanged"])
        self._check("diff", f"diff -f {three}", [r"\+ +replicas: 3"], code=1)
        self._check("apply --dry-run", f"apply -f {three} --dry-run=server", ["configured .server dry run"])
        self._check("apply changes", f"apply -f {three}", ["configured"])
        self._check("wait", f"wait --for=jsonpath={{.status.readyReplicas}}=3 deployment/shop {WAIT}", ["met"])
        self._check("scale", "scale deployment shop --replicas=4", ["scaled"])
        self._check("rollout status", f"rollout status deployment/shop {WAIT}", ["successfully rolled out"])
        self._check("get deployments", "get deployments", ["shop +4/4 +4 +4"])
        self._check("set image", "set image deployment/shop main=nginx:1.28", ["image updated"])
        self._check("rollout status", f"rollout status deployment/shop {WAIT}", ["successfully rolled out"])
        images = "{.items[*].spec.containers[0].image}"
        found = self._check(
            "images", f"get pods -l app=shop --field-selector status.phase=Running -o jsonpath={images}"
        )
        self._same("images", set(found.split()), {"nginx:1.28"})
        self._rolls_back()
        self._check("delete deployment", "delete deployment shop --cascade=foreground", ["deleted"])
        self._check("wait for its pods", f"wait --for=delete pods -l app=shop {WAIT}")
        one, other = self._file("one", _data("1")), self._file("other", _data("2"))
        self._check("apply --server-side", f"apply --server-side -f {one}", ["serverside-applied"])
        self._check("a second manager", f"apply --server-side --field-manager=b -f {other}", ["conflict"], code=1)
        self._check("by force", f"apply --server-side --field-manager=b --force-conflicts -f {other}", ["applied"])
        self._check("the value", "get configmap c -o jsonpath={.data.a}", ["^2$"])
        self._check("managed fields", "get configmap c -o yaml --show-managed-fields", ["manager: b", "f:a"])
        self._check("unknown field", f"apply -f {self._file('bad', _unknown())}", ["unknown field"], code=1)
        self._check("create deployment", "create deployment d --image=nginx --replicas=1", ["created"])
        self._check("wait", f"wait --for=condition=Available deployment/d {WAIT}", ["met"])

    def _rolls_back(self) -> None:
        """Undo a rollout, and restart a deployment."""
        self._check("get rs", "get replicasets -l app=shop", ["shop-[a-z0-9]+ +4 +4 +4", "shop-[a-z0-9]+ +0 +0 +0"])
        self._check("rollout history", "rollout history deployment/shop", ["^1 +<none>", "^2 +<none>"])
        self._check("one revision", "rollout history deployment/shop --revision=1", ["Image:.*nginx"])
        self._check("rollout undo", "rollout undo deployment/shop", ["rolled back"])
        self._check("rollout status", f"rollout status deployment/shop {WAIT}", ["successfully rolled out"])
        self._check("rollout history", "rollout history deployment/shop", ["^2 +<none>", "^3 +<none>"])
        self._check("rollout restart", "rollout restart deployment/shop", ["restarted"])
        self._check("rollout status", f"rollout status deployment/shop {WAIT}", ["successfully rolled out"])
        self._check("describe deployment", "describe deployment shop", ["NewReplicaSet: +shop-", "revision: 4"])

    def _custom(self) -> None:
        """Define a resource, and use it."""
        self._check("apply of a definition", f"apply -f {self._file('type', CUSTOM_TYPE)}", ["created"])
        self._check("wait", f"wait --for=condition=Established crd/widgets.story.example {WAIT}", ["met"])
        self._check("apply", f"apply -f {self._file('widget', CUSTOM_OBJECT)}", ["widget.story.example/w created"])
        self._check("get", "get widgets", ["NAME +AGE", "^w "])
        self._check("describe", "describe widget w", ["Size: +1"])
        self._run_checked("patch", ["patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":2}}'], ["patched"])
        self._check("delete", "delete widget w", ["deleted"])
        self._check("delete of the definition", "delete crd widgets.story.example", ["deleted"])

    def _nodes(self) -> None:
        """Taint, cordon and drain a node."""
        self._check("taint", "taint node node-2 dedicated=x:NoSchedule", ["tainted"])
        self._check("the taint", "describe node node-2", ["Taints: +dedicated=x:NoSchedule"])
        self._check("untaint", "taint node node-2 dedicated-", ["untainted"])
        node = self._check("the node", "get pods -l app=d -o jsonpath={.items[0].spec.nodeName}") or NODE
        self._check("cordon", f"cordon {node}", ["cordoned"])
        self._check("get nodes", "get nodes", [f"{node} +Ready,SchedulingDisabled"])
        budget = "create pdb d --selector=app=d --min-available=1"
        self._check("create pdb", budget, ["created"])
        blocked = f"drain {node} --force --ignore-daemonsets --timeout=1s"
        self._check("drain against a budget", blocked, ["would violate the pod's disruption budget"], code=1)
        self._check("delete pdb", "delete pdb d", ["deleted"])
        self._check("drain", f"drain {node} --force --ignore-daemonsets {WAIT}", ["evicted|drained"])
        self._check("a new pod runs", f"wait --for=condition=Available deployment/d {WAIT}", ["met"])
        found = self._check("elsewhere", "get pods -l app=d -o jsonpath={.items[*].spec.nodeName}")
        self._same("the drained node is not used", node in found.split(), False)
        self._check("uncordon", f"uncordon {node}", ["uncordoned"])

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{NAMESPACE}"

    def _check(self, name: str, line: str, has: Sequence[str] = (), code: int = 0) -> str:
        return self._run_checked(name, line.split(), has, code)

    def _run_checked(self, name: str, arguments: Sequence[str], has: Sequence[str], code: int = 0) -> str:
        """Run a command; its output must match each expression of *has*. Return its standard output."""
        self.commands += 1
        command = self._command(arguments)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, env=self._environment, check=False
            )
        except subprocess.TimeoutExpired:
            self._differs(name, arguments, f"does not end within {SECONDS} s")
            return ""
        told = done.stdout + done.stderr
        if done.returncode != code:
            self._differs(name, arguments, f"exit code {done.returncode}, not {code}: {told[-600:]}")
        else:
            for one in has:
                if not re.search(one, told, re.MULTILINE):
                    self._differs(name, arguments, f"no {one!r} in {told[-600:]!r}")
        return done.stdout

    def _command(self, arguments: Sequence[str]) -> list[str]:
        # The cluster's own objects are the same in every namespace.
        return [str(self._program), "--namespace", self._namespace(arguments), *arguments]

    def _namespace(self, arguments: Sequence[str]) -> str:
        return "default" if list(arguments) == ["get", "pods"] else NAMESPACE

    @contextmanager
    def _watch(self, line: str, *, first: str) -> Iterator[Path]:
        """Run a command that watches, and return the file with its output once that has matched *first*."""
        self.commands += 1
        path = self._server.folder / f"watch-{self.commands}"
        with path.open("w") as output:
            process = subprocess.Popen(self._command(line.split()), stdout=output, stderr=output, env=self._environment)
        try:
            self._reads(line, path, [first])
            yield path
        finally:
            process.terminate()
            process.wait(SECONDS)

    def _reads(self, name: str, path: Path, has: Sequence[str]) -> None:
        """Wait until the output of a watch matches each expression."""
        try:
            until(name, lambda: all(re.search(one, path.read_text(), re.MULTILINE) for one in has) or None)
        except AssertionError:
            self.wrong.append(f"{name}: no {list(has)} in {path.read_text()[-600:]!r}")

    def _file(self, name: str, body: dict[str, Any]) -> Path:
        path = self._server.folder / f"{name}.json"
        path.write_text(json.dumps(body))
        return path

    def _same(self, name: str, found: object, wanted: object) -> None:
        if found != wanted:
            self.wrong.append(f"{name}: {found!r}, not {wanted!r}")

    def _differs(self, name: str, arguments: Sequence[str], told: str) -> None:
        self.wrong.append(f"{name}: kubectl {' '.join(arguments)}: {told}")


def _scaled(replicas: int) -> dict[str, Any]:
    return {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": replicas}}


def _data(value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": value}}


def _unknown() -> dict[str, Any]:
    return {**POD_OBJECT, "metadata": {"name": "bad"}, "spec": {**POD_OBJECT["spec"], "colour": "red"}}
