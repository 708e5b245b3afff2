"""
Recogniser of prioritize requests in the form that kube-scheduler writes, without decoding them.

    {"Pod":{"metadata":{"name":…,"namespace":…,"uid":…,"resourceVersion":…, … }},"Nodes":null,"NodeNames":["…","…"]}

The watch has already decoded this version of the pod, so what identifies it is enough. The pod's JSON is checked, but
not decoded. Everything else is left to the ordinary decoder: other spellings, spaces between fields, whole nodes,
letters beyond ASCII, pods that are too large.
"""

import re
from typing import Final

import msgspec
from msgspec import Raw

from lamina.wire.extender.body import SMALL, Body
from lamina.wire.extender.pod_argument import COUNTED_FROM

BEGINNING: Final = re.compile(
    rb'\{"Pod":(\{)"metadata":\{"name":"([^"\\]+)",(?:"generateName":"[^"\\]*",)?"namespace":"([^"\\]+)",'
    rb'"uid":"([^"\\]+)","resourceVersion":"([^"\\]+)"[,}]'
)
MIDDLE: Final = b'},"Nodes":null,"NodeNames":["'
ENDINGS: Final = (b'"]}', b'"]}\n')

_ANY: Final = msgspec.json.Decoder(Raw)


class PlainRequest(msgspec.Struct, frozen=True):
    """A recognised request."""

    pod: str
    """Namespace and name, as the watch names objects."""
    uid: str
    version: str
    names: bytes
    """The names as they were sent: quoted, with commas between them."""


def recognize_request(body: Body) -> PlainRequest | None:
    """Return the parts of a request; None if it has another form."""
    if len(body) > SMALL:
        return None
    text = bytes(body)
    found = BEGINNING.match(text)
    # The names cannot contain these bytes: a quote in a name would be escaped.
    middle = text.rfind(MIDDLE)
    if found is None or middle < found.end() - 1 or not text.endswith(ENDINGS) or not text.isascii():
        return None
    pod = text[found.start(1) : middle + 1]
    if len(pod) > COUNTED_FROM:
        return None
    try:
        _ANY.decode(pod)
    except (ValueError, RecursionError):
        return None
    _, name, namespace, uid, version = (part.decode() for part in found.groups())
    return PlainRequest(f"{namespace}/{name}", uid, version, text[middle + len(MIDDLE) - 1 : text.rindex(b'"') + 1])
