"""
Kubeconfig files, read and merged as kubectl does: for each name, the first file that has it wins.

    files --read--> Kubeconfig --choose(context)--> KubeContext: server, namespace, cluster and user entries

Only the entries that the chosen context names are checked, so a mistake in another cluster's entry does no harm.
Relative paths are resolved from the file that contains them. A missing file in $KUBECONFIG is skipped; a file named on
the command line must exist. `lamina.clients.kube.users` interprets the fields.
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
    """The cluster and user entries of one context."""

    server: str
    namespace: str
    cluster: KubeconfigFields
    user: KubeconfigFields


def files_to_read(flag: Path | None, environ: Mapping[str, str], home: Path | None) -> list[Path]:
    """List the existing kubeconfig files: the flag's, else those of $KUBECONFIG, else the one in *home*."""
    if flag is not None:
        return [flag]
    if named := [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        if there := [path for path in dict.fromkeys(named) if _is_there(path)]:
            return there
        names = ", ".join(str(path) for path in named)
        raise InputError.one("$KUBECONFIG", f"no such file: {names}; correct the variable or unset it")
    return [home / HOME_FILE] if home is not None and _is_there(home / HOME_FILE) else []


def _is_there(path: Path) -> bool:
    """Return whether the file exists; True also if stat fails otherwise, because reading reports the problem."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class Kubeconfig:
    """Several kubeconfig files, merged."""

    def __init__(self, documents: Sequence[YamlDocument]) -> None:
        """Merge *documents*; earlier ones take precedence."""
        self.source = ", ".join(document.source for document in documents)
        self._files = [KubeconfigFields(document) for document in documents]

    def choose(self, context: str = "") -> KubeContext:
        """Return a context, by default the current one. Raises InputError if an entry is missing or wrong."""
        name = context or next((text for file in self._files if (text := file.text("current-context"))), "")
        if not name:
            message = f"no current context; choose one with --context ({suggest('', self.names('contexts'))})"
            raise InputError.one(self.source, message)
        chosen = self._entry("contexts", name, "context").inside("context")
        cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
        if not cluster_name:
            raise chosen.mistake("cluster", "the context names no cluster")
        cluster = self._entry("clusters", cluster_name, "cluster").inside("cluster")
        # A context without a user means anonymous access, which plain http:// and some test servers allow.
        user = self._entry("users", user_name, "user").inside("user") if user_name else _anonymous_user(chosen)
        namespace = chosen.text("namespace") or "default"
        if not _NAMESPACE.fullmatch(namespace):
            raise chosen.mistake("namespace", f"{plain.shown(namespace)} is not a valid namespace name")
        return KubeContext(_server(cluster), namespace, cluster, user)

    def names(self, kind: str) -> list[str]:
        """List the names of a section, each once."""
        named = (item.text("name") for file in self._files for item in file.items(kind))
        return list(dict.fromkeys(name for name in named if name))

    def _entry(self, kind: str, name: str, word: str) -> KubeconfigFields:
        for file in self._files:
            found = [item for item in file.items(kind) if item.text("name") == name]
            if len(found) > 1:
                raise found[1].mistake("name", f"the {word} {plain.shown(name)} is defined twice; remove one")
            if found:
                return found[0]
        message = f"there is no {word} {plain.shown(name)}; {suggest(name, self.names(kind))}"
        raise InputError.one(self.source, message)


def read_kubeconfig(paths: Sequence[Path]) -> Kubeconfig:
    """Read and merge files; earlier ones take precedence. Raises InputError."""
    return Kubeconfig([_read(path) for path in paths])


def _read(path: Path) -> YamlDocument:
    source = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
        text = data.decode()
    except OSError as error:
        reason = (error.strerror or "input error").lower()
        raise InputError.one(source, f"the kubeconfig cannot be read: {reason}") from None
    except ValueError:
        raise InputError.one(source, "the kubeconfig is not UTF-8 text; is this the right file?") from None
    if len(data) > FILE_LIMIT:
        raise InputError.one(source, f"too large for a kubeconfig; at most {FILE_LIMIT // 1024} KiB are allowed")
    if not any(line.strip() and not line.lstrip().startswith(("#", "---")) for line in text.splitlines()):
        return YamlDocument(source, YamlNode(None, 0))  # as in kubectl, an empty file is valid
    document = read_yaml(text, source)
    if document.mistakes:
        raise InputError(document.mistakes)
    fields = KubeconfigFields(document)
    if (kind := fields.text("kind")) not in ("", "Config"):
        raise fields.mistake("kind", f"is {plain.shown(kind)}, expected Config")
    return document


def _anonymous_user(context: KubeconfigFields) -> KubeconfigFields:
    return KubeconfigFields(YamlDocument(context.source, YamlNode(None, context.document.line(context.path))))


def _server(cluster: KubeconfigFields) -> str:
    """Return the URL of the API server, without a trailing slash."""
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
        raise cluster.mistake("server", "contains a user, query or fragment; write https://HOST:PORT")
    if cluster.has("proxy-url"):
        message = "proxies are not supported; remove it, and make the server reachable directly or by a tunnel"
        raise cluster.mistake("proxy-url", message)
    return text.rstrip("/")
