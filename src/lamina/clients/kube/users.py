"""
Conversion of a kubeconfig's cluster and user entries to credentials, TLS settings and impersonation headers.

    token, tokenFile                        bearer header
    username, password                      basic header
    client-certificate[-data], client-key…  part of the TLS settings
    exec                                    a plugin; not used if one of the above is present, as in kubectl
    as, as-groups, as-uid, as-user-extra    impersonation headers
    auth-provider                           rejected: Kubernetes removed the providers in favour of exec plugins

If a value is given both inline and as a file, the inline value wins. Tokens are the exception: tokenFile wins, because
it is rotated. Over plain http:// no credentials are sent. Both are kubectl's rules.
"""

import base64
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

from lamina.clients.bounded_files import read_file
from lamina.clients.kube.credentials import CredentialSource, FixedCredential, TokenFile, basic, bearer, checked_token
from lamina.clients.kube.exec_command import VERSIONS, ExecCommand
from lamina.clients.kube.exec_plugin import ExecPlugin
from lamina.clients.kube.file_backed_value import ByteSource
from lamina.clients.kube.kubeconfig import KubeContext
from lamina.clients.kube.kubeconfig_fields import KubeconfigFields
from lamina.clients.kube.tls_contexts import TlsSettings
from lamina.model import plain
from lamina.model.plain import Plain

EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
REMEDIES: Final = {
    "gcp": "install gke-gcloud-auth-plugin and run `gcloud container clusters get-credentials`",
    "azure": "install kubelogin and run `kubelogin convert-kubeconfig`",
    "oidc": "use a plugin such as kubectl-oidc_login, as users[].user.exec",
}
_HEADER: Final = re.compile(r"[\x20-\x7e]+")


def credential_source_of(chosen: KubeContext) -> CredentialSource:
    """Return the credential source of a user entry. Raises InputError."""
    user = chosen.user
    if user.has("auth-provider"):
        name = user.inside("auth-provider").text("name")
        remedy = REMEDIES.get(name, "use its exec plugin, or a token or certificate")
        raise user.mistake("auth-provider", f"{plain.shown(name)} is not supported, as in kubectl; {remedy}")
    token, file, name = user.text("token"), user.file("tokenFile"), user.text("username")
    if token and (name or user.has("password")):
        raise user.mistake("token", "a username or password is given as well; remove one of them")
    where = f"{user.source}: {plain.written_path(user.path)}"
    if not chosen.server.startswith("https:"):
        return FixedCredential()
    if file is not None:
        return TokenFile(file)
    if token:
        return FixedCredential(bearer(checked_token(token, f"{where}.token")))
    if name or user.has("password"):
        return FixedCredential(basic(name, user.text("password")))
    if user.has("exec") and not (user.has("client-certificate") or user.has("client-certificate-data")):
        return ExecPlugin(_command(user.inside("exec"), chosen))
    return FixedCredential()


def tls_settings_of(chosen: KubeContext) -> TlsSettings:
    """Return the TLS settings of a cluster and user entry. Raises InputError."""
    cluster, user = chosen.cluster, chosen.user
    insecure, authority = cluster.flag("insecure-skip-tls-verify"), _either(cluster, "certificate-authority")
    if insecure and authority is not None:
        message = "a certificate authority is given as well; remove one of them, preferably this one"
        raise cluster.mistake("insecure-skip-tls-verify", message)
    certificate, key = _either(user, "client-certificate"), _either(user, "client-key")
    if certificate is not None and key is None:
        raise user.mistake("client-certificate", "its key is missing; add client-key or client-key-data")
    return TlsSettings(
        authority=authority,
        certificate=certificate,
        key=key if certificate is not None else None,
        insecure=insecure,
        server_name=cluster.text("tls-server-name"),
        place=f"{cluster.source}",
    )


def headers_of(chosen: KubeContext) -> dict[str, str]:
    """Return the impersonation headers. Raises InputError."""
    user = chosen.user
    name, uid = user.text("as"), user.text("as-uid")
    groups, extra = user.texts("as-groups"), user.lists("as-user-extra")
    if not name and (groups or uid or extra):
        raise user.mistake("as", "as-groups, as-uid and as-user-extra need a user name; add `as`")
    if len(groups) > 1:
        raise user.mistake("as-groups", "only one group is supported: bind the permissions you need to a user")
    found = {"Impersonate-User": name, "Impersonate-Group": "".join(groups), "Impersonate-Uid": uid}
    for key, values in extra.items():
        if len(values) > 1:
            raise user.mistake("as-user-extra", "only one value for each name is supported")
        found[f"Impersonate-Extra-{quote(key.lower(), safe='')}"] = "".join(values)
    found = {header: value for header, value in found.items() if value}
    if not all(_HEADER.fullmatch(value) for value in found.values()):
        raise user.mistake("as", "impersonation values must be printable ASCII on one line")
    return found


def _either(fields: KubeconfigFields, name: str) -> ByteSource:
    data = fields.data(f"{name}-data")
    return data if data is not None else fields.file(name)


def _command(fields: KubeconfigFields, chosen: KubeContext) -> ExecCommand:
    version = fields.text("apiVersion")
    if version not in VERSIONS:
        message = f"{plain.shown(version)} is not supported; use {' or '.join(VERSIONS)}, and update the plugin"
        raise fields.mistake("apiVersion", message)
    program = fields.text("command")
    if not program or "\0" in program:
        raise fields.mistake("command", "the plugin has no command")
    if fields.text("interactiveMode") == "Always":
        message = "the plugin needs a terminal, and there is none: log in another way, or use a token or certificate"
        raise fields.mistake("interactiveMode", message)
    if "/" in program:
        program = str(Path(fields.source).parent.absolute() / program)
    environment = {item.text("name"): item.text("value") for item in fields.items("env")}
    if "" in environment or any("=" in name or "\0" in name + value for name, value in environment.items()):
        raise fields.mistake("env", "every variable needs a name, without '='")
    return ExecCommand(
        version=version,
        program=program,
        arguments=tuple(fields.texts("args")),
        environment=environment,
        hint=fields.text("installHint"),
        cluster=_cluster(chosen) if fields.flag("provideClusterInfo") else None,
        place=f"{fields.source}: {plain.written_path(fields.path)}",
    )


def _cluster(chosen: KubeContext) -> dict[str, Plain]:
    """Return the cluster information for a plugin, in the fields of client.authentication.k8s.io."""
    cluster, authority = chosen.cluster, _either(chosen.cluster, "certificate-authority")
    described: dict[str, Plain] = {"server": chosen.server}
    if name := cluster.text("tls-server-name"):
        described["tls-server-name"] = name
    if cluster.flag("insecure-skip-tls-verify"):
        described["insecure-skip-tls-verify"] = True
    if authority is not None:
        data = read_file(authority) if isinstance(authority, Path) else authority
        described["certificate-authority-data"] = base64.b64encode(data).decode()
    for extension in cluster.items("extensions"):
        if extension.text("name") == EXEC_EXTENSION:
            described["config"] = extension.raw("extension")
    return described
