"""Pushes images to a registry on the loopback interface: each blob in one piece, then the manifest."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Final

from testbed.errors import TestbedError

TIMEOUT: Final = 60


def blob(place: str, digest: str, data: bytes) -> None:
    """Push one blob to *place*, a repository's URL, unless the registry has it."""
    if is_there(f"{place}/blobs/{digest}"):
        return
    location = exchange("POST", f"{place}/blobs/uploads/")["Location"]
    joint = "&" if "?" in location else "?"
    exchange("PUT", f"{location}{joint}digest={digest}", data, "application/octet-stream")


def manifest(place: str, name: str, data: bytes, media_type: str) -> None:
    """Push a manifest or an index under a tag or a digest; its blobs must exist."""
    exchange("PUT", f"{place}/manifests/{name}", data, media_type)


def is_there(url: str) -> bool:
    """Return whether the registry has *url*."""
    try:
        exchange("HEAD", url)
    except TestbedError:
        return False
    return True


def exchange(method: str, url: str, body: bytes = b"", content_type: str = "") -> Mapping[str, str]:
    """Send a request to the registry; return the headers of the response."""
    headers = {"Content-Type": content_type} if content_type else {}
    data = body if method in {"POST", "PUT"} else None
    request = urllib.request.Request(url, data=data, method=method, headers=headers)  # noqa: S310 - http, from `made`
    # Requests to the loopback interface must not use the user's proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            return dict(answer.headers.items())
    except urllib.error.HTTPError as error:
        with error:
            told = error.read(500).decode(errors="replace")
        raise TestbedError(f"the registry refused {method} {url}: {error.code} {told}") from error
