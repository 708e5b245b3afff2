"""Requests to etcd through its JSON gateway, so that no etcdctl is needed."""

import base64
import contextlib

from testbed.requests import Requests


def compact(url: str) -> int:
    """Compact etcd to the newest revision, and return that revision."""
    with contextlib.closing(Requests(url)) as requests:
        # Every read has the revision in its header.
        key = base64.b64encode(b"\0").decode()
        header = requests.send("POST", "/v3/kv/range", {"key": key, "count_only": True})["header"]
        revision = int(header["revision"])
        requests.send("POST", "/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision


def shrink(url: str) -> int:
    """Compact and defragment etcd; return the size of its file in bytes."""
    compact(url)
    with contextlib.closing(Requests(url)) as requests:
        requests.send("POST", "/v3/maintenance/defragment", {})
        return int(requests.send("POST", "/v3/maintenance/status", {})["dbSize"])
