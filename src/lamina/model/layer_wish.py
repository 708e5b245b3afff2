"""The annotation with which pods and namespaces weigh layers: off, or a percentage."""

import re
from collections.abc import Mapping
from typing import Final

ANNOTATION: Final = "lamina.dev/layer-locality"
OFF: Final = "off"
FULL: Final = 100

_PERCENT: Final = re.compile(r"[0-9]{1,3}")


def wish(annotations: Mapping[str, str]) -> tuple[int | None, str]:
    """Parse the annotation: the weight of layers in percent (None if missing), and an error message."""
    said = annotations.get(ANNOTATION)
    if said is None:
        return None, ""
    if said == OFF:
        return 0, ""
    if _PERCENT.fullmatch(said) and int(said) <= FULL:
        return int(said), ""
    return None, f"annotation {ANNOTATION} is {said[:40]!r}; write off, or a percentage from 0 to 100; it was ignored"


def weight_of_layers(pod: Mapping[str, str], namespace: Mapping[str, str]) -> int:
    """Return the weight in percent, from the annotations of a pod, or else of its namespace, or else 100."""
    own = wish(pod)[0]
    if own is None:
        own = wish(namespace)[0]
    return FULL if own is None else own
