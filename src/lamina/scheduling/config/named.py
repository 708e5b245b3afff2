"""The profiles that come with Lamina, by name. Each is an ordinary configuration: print one and change it."""

from typing import Final

from lamina.model.errors import InputError
from lamina.model.schema import suggest
from lamina.scheduling.config.load import Configuration, load
from lamina.scheduling.framework.registry import Registry

_HEAD: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

NAMED: Final[dict[str, tuple[str, str]]] = {
    "layers": (
        "default scores, with layers in place of whole images",
        _HEAD
        + """\
profiles:
- plugins:
    multiPoint:
      disabled:
      - name: ImageLocality
      enabled:
      - name: LayerLocality
        weight: 5
  pluginConfig:
  - name: LayerLocality
    args:
      mode: bytes
""",
    ),
    "kube-default": (
        "kube-scheduler's defaults, as far as they are in tree",
        _HEAD,
    ),
    "image-locality": (
        "ImageLocality alone, at weight 1000",
        _HEAD
        + """\
profiles:
- plugins:
    score:
      disabled:
      - name: "*"
      enabled:
      - name: ImageLocality
        weight: 1000
""",
    ),
    "least-allocated": (
        "the emptiest node, whatever it holds",
        _HEAD
        + """\
profiles:
- plugins:
    score:
      disabled:
      - name: "*"
      enabled:
      - name: NodeResourcesFit
""",
    ),
}

DEFAULT: Final = "layers"


def named(name: str, registry: Registry) -> Configuration:
    """Return the configuration of that name; an InputError names the nearest one there is."""
    if name not in NAMED:
        raise InputError.one("--profile", f"there is no profile {name!r} and no such file: {suggest(name, NAMED)}")
    return load(NAMED[name][1], f"profile {name}", registry)
