"""The few words the testbed has with etcd itself, through its JSON gateway: no etcdctl is needed."""

import base64
import contextlib

from testbed.requests import Requests


def compact(url: str) -> int:
    """Make etcd forget every revision but the newest, which is the answer."""
    with contextlib.closing(Requests(url)) as requests:
        # Any read tells the revision in its header.
        key = base64.b64encode(b"\0").decode()
        header = requests.send("POST", "/v3/kv/range", {"key": key, "count_only": True})["header"]
        revision = int(header["revision"])
        requests.send("POST", "/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision


def shrink(url: str) -> int:
    """Make etcd forget old revisions and give back their room; the answer is how large its file is then, in bytes."""
    compact(url)
    with contextlib.closing(Requests(url)) as requests:
        requests.send("POST", "/v3/maintenance/defragment", {})
        return int(requests.send("POST", "/v3/maintenance/status", {})["dbSize"])
