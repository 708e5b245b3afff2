"""
Render the plain manifests of deploy/ from the chart, so that both say the same: `make manifests`.

    render_manifests.py           needs helm: the testbed builds it, or the one on the PATH
    render_manifests.py --check   renders nothing: fails unless chart and manifests are those of the last rendering

A template deploy/chart/templates/X becomes deploy/X, with everything on (`PLAIN`). Templates with variants become one file
for each variant (`VARIANTS`); what only a chart can have (`CHART_ONLY`) has no plain manifest. The check compares a digest of
the chart and of the manifests with deploy/chart/rendered.sha256, so that it needs no helm.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
DEPLOY: Final = ROOT / "deploy"
CHART: Final = DEPLOY / "chart"
RECORD: Final = CHART / "rendered.sha256"
NAMESPACE: Final = "lamina-system"

ON: Final = {"enabled": True}
PLAIN: Final[dict[str, Any]] = {
    "image": {"repository": "registry.example/lamina", "tag": "set-me"},
    "namespaces": {"release": True},
    "scheduler": {"preemption": ON, "qos": ON, "gangs": ON, "restartOnChange": False},
    "pullSecrets": ON,
    "annotators": {"usage": ON, "allocation": ON, "congestion": ON, "metricsServer": True},
    "extender": {
        **ON,
        "restartOnChange": False,
        "metricsServer": True,
        "kubeScheduler": {"image": "registry.example/kube-scheduler:set-me"},
    },
}
"""Values of the plain manifests: every optional part is on, because each is a file that an operator applies or not."""

VARIANTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "node-agent/daemonset-crio.yaml": ("node-agent/daemonset-crio.yaml", {"nodeAgent": {"runtime": "crio"}}),
    "extender/one-process.yaml": ("extender/extender.yaml", {"extender": {"mode": "one-process"}}),
    "extender/two-processes.yaml": ("extender/extender.yaml", {"extender": {"mode": "process-per-agent"}}),
    "extender/separate.yaml": ("extender/extender.yaml", {"extender": {"mode": "separate"}}),
}
"""Plain manifests with values of their own: their template, and these values."""

CHART_ONLY: Final = ("monitoring/", "tests/", "scheduler/network-policy.yaml")
# Helm sorts by kind; a reader wants the configuration before the pods that read it.
LAST: Final = ("ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy")
SOURCE: Final = re.compile(r"^# Source: lamina/templates/(\S+)\n", re.MULTILINE)
KIND: Final = re.compile(r"^kind: (\w+)$", re.MULTILINE)


def main(words: list[str]) -> int:
    """Render, or check."""
    if words == ["--check"]:
        return check()
    helm = find_helm()
    if helm is None:
        print("lamina: there is no helm here; try `python -m testbed build helm`", file=sys.stderr)
        return 1
    rendered = render(helm)
    for name, text in rendered.items():
        path = DEPLOY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    RECORD.write_text(digest(sorted(rendered)), encoding="utf-8")
    print(json.dumps({"manifests": len(rendered)}))
    return 0


def check() -> int:
    """Fail unless nothing has changed since the last rendering."""
    recorded = RECORD.read_text(encoding="utf-8")
    if recorded == digest(recorded.splitlines()[1:]):
        return 0
    print("lamina: deploy/chart and the manifests of deploy/ differ from the last rendering; run `make manifests`")
    return 1


def find_helm() -> str | None:
    """Return helm's path: the testbed's, or the one on the PATH."""
    sys.path.insert(0, str(ROOT))
    from testbed import building, parts

    part = parts.find("helm")
    return str(building.place(part) / "helm") if building.is_built(part) else shutil.which("helm")


def render(helm: str) -> dict[str, str]:
    """Return the text of every plain manifest, by its path below deploy/."""
    found = {
        name: text
        for name, text in templates(helm, PLAIN).items()
        if not name.startswith(CHART_ONLY) and name not in {template for template, _ in VARIANTS.values()}
    }
    for name, (template, values) in VARIANTS.items():
        found[name] = templates(helm, merged(PLAIN, values))[template]
    return found


def templates(helm: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return what each template becomes with these values, by its path below templates/."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        command = [helm, "template", "lamina", str(CHART), f"--namespace={NAMESPACE}", f"--values={file.name}"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"lamina: helm template failed\n{run.stderr}")
    documents: dict[str, list[str]] = {}
    for document in re.split(r"^---\n", run.stdout, flags=re.MULTILINE):
        source = SOURCE.match(document)
        if source and KIND.search(document):
            documents.setdefault(source[1], []).append(document[source.end() :].strip("\n") + "\n")
    return {name: "---\n".join(sorted(found, key=place)) for name, found in documents.items()}


def place(document: str) -> int:
    """Return where a document stands in its file."""
    kind = KIND.search(document)
    assert kind is not None
    return LAST.index(kind[1]) if kind[1] in LAST else -1


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return *one* with the values of *other*, mapping by mapping."""
    result = dict(one)
    for key, value in other.items():
        nested = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if nested else value
    return result


def digest(manifests: list[str]) -> str:
    """Return a digest of the chart and of these manifests, then their names, as the record has it."""
    found = hashlib.sha256()
    chart = (path for path in CHART.rglob("*") if path.is_file() and path != RECORD)
    for path in [*sorted(chart), *(DEPLOY / name for name in manifests)]:
        data = path.read_bytes() if path.exists() else b""
        found.update(f"{path.relative_to(DEPLOY)}\0{len(data)}\0".encode() + data)
    return "\n".join([found.hexdigest(), *manifests]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
