"""
Kubeconfig files as kubectl reads them: several make one, and of each name the first counts.

    files --read--> Kubeconfig --choose(context)--> Chosen: cluster, user, namespace

Only what the chosen context names is looked at closely, so that a mistake in another cluster's entry does no harm.
Relative paths begin at the file they stand in. A file in $KUBECONFIG that does not exist is left out; one that was
named on the command line must exist. What the fields mean is told by `lamina.clients.kube.users`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from lamina.clients.bounded_files import FILE_LIMIT
from lamina.clients.kube.kubeconfig_fields import KubeconfigFields
from lamina.model import plain
from lamina.model.conversion import suggest
from lamina.model.errors import InputError
from lamina.model.yaml_document import YamlDocument, YamlNode, read_yaml

HOME_FILE: Final = ".kube/config"
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class KubeContext(msgspec.Struct, frozen=True):
    """What one context stands for."""

    server: str
    namespace: str
    cluster: KubeconfigFields
    user: KubeconfigFields


def files_to_read(flag: Path | None, environ: Mapping[str, str], home: Path | None) -> list[Path]:
    """List the kubeconfig files there are: the one of the flag, or those of $KUBECONFIG, or the one at home."""
    if flag is not None:
        return [flag]
    if named := [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        if there := [path for path in dict.fromkeys(named) if _is_there(path)]:
            return there
        names = ", ".join(str(path) for path in named)
        raise InputError.one("$KUBECONFIG", f"no such file: {names}; correct the variable or unset it")
    return [home / HOME_FILE] if home is not None and _is_there(home / HOME_FILE) else []


def _is_there(path: Path) -> bool:
    """Whether there is such a file, or something that keeps us from knowing: reading it will tell."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class Kubeconfig:
    """Several files as one."""

    def __init__(self, documents: Sequence[YamlDocument]) -> None:
        """Join documents, the most important first."""
        self.source = ", ".join(document.source for document in documents)
        self._files = [KubeconfigFields(document) for document in documents]

    def choose(self, context: str = "") -> KubeContext:
        """Take a context, or the current one. Raises InputError if something it needs is missing or wrong."""
        name = context or next((text for file in self._files if (text := file.text("current-context"))), "")
        if not name:
            message = f"no current context; choose one with --context ({suggest('', self.names('contexts'))})"
            raise InputError.one(self.source, message)
        chosen = self._entry("contexts", name, "context").inside("context")
        cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
        if not cluster_name:
            raise chosen.mistake("cluster", "the context names no cluster")
        cluster = self._entry("clusters", cluster_name, "cluster").inside("cluster")
        # A context without a user is nobody's, which plain http:// and some test servers take.
        user = self._entry("users", user_name, "user").inside("user") if user_name else _nobody(chosen)
        namespace = chosen.text("namespace") or "default"
        if not _NAMESPACE.fullmatch(namespace):
            raise chosen.mistake("namespace", f"{plain.shown(namespace)} is no name of a namespace")
        return KubeContext(_server(cluster), namespace, cluster, user)

    def names(self, kind: str) -> list[str]:
        """List what can be chosen, each name once."""
        named = (item.text("name") for file in self._files for item in file.items(kind))
        return list(dict.fromkeys(name for name in named if name))

    def _entry(self, kind: str, name: str, word: str) -> KubeconfigFields:
        for file in self._files:
            found = [item for item in file.items(kind) if item.text("name") == name]
            if len(found) > 1:
                raise found[1].mistake("name", f"the {word} {plain.shown(name)} is there twice; remove one")
            if found:
                return found[0]
        message = f"there is no {word} {plain.shown(name)}; {suggest(name, self.names(kind))}"
        raise InputError.one(self.source, message)


def read_kubeconfig(paths: Sequence[Path]) -> Kubeconfig:
    """Read files, the most important first. Raises InputError."""
    return Kubeconfig([_read(path) for path in paths])


def _read(path: Path) -> YamlDocument:
    source = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
        text = data.decode()
    except OSError as error:
        said = (error.strerror or "input error").lower()
        raise InputError.one(source, f"the kubeconfig cannot be read: {said}") from None
    except ValueError:
        raise InputError.one(source, "the kubeconfig is not UTF-8 text; is this the right file?") from None
    if len(data) > FILE_LIMIT:
        raise InputError.one(source, f"too large for a kubeconfig; at most {FILE_LIMIT // 1024} KiB are read")
    if not any(line.strip() and not line.lstrip().startswith(("#", "---")) for line in text.splitlines()):
        return YamlDocument(source, YamlNode(None, 0))  # as kubectl: nothing in it is nothing wrong
    document = read_yaml(text, source)
    if document.mistakes:
        raise InputError(document.mistakes)
    fields = KubeconfigFields(document)
    if (kind := fields.text("kind")) not in ("", "Config"):
        raise fields.mistake("kind", f"is {plain.shown(kind)}, and a kubeconfig's is Config")
    return document


def _nobody(context: KubeconfigFields) -> KubeconfigFields:
    return KubeconfigFields(YamlDocument(context.source, YamlNode(None, context.document.line(context.path))))


def _server(cluster: KubeconfigFields) -> str:
    """Take the address of the API server, as a prefix for paths."""
    text = cluster.text("server")
    if not text:
        raise cluster.mistake("server", "the cluster has no server; write https://HOST:PORT")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or not text.isprintable() or " " in text:
        raise cluster.mistake("server", "cannot be used as an address; write https://HOST:PORT")
    if parts.username is not None or parts.query or parts.fragment:
        raise cluster.mistake("server", "may hold no user, query or fragment; write https://HOST:PORT")
    if cluster.has("proxy-url"):
        message = "proxies are not supported; remove it, and make the server reachable directly or by a tunnel"
        raise cluster.mistake("proxy-url", message)
    return text.rstrip("/")
