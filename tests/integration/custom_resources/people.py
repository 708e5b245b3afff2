"""Who talks to the API server in these tests, and what they say."""

import contextlib
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lamina.model.digest import Digest, digest_of
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.wire.custom_resources.api_group import object_name
from lamina.wire.custom_resources.image_layers import encode_image_layers
from lamina.wire.custom_resources.node_layers_status import encode_node_layers, encode_node_layers_status
from testbed import Testbed
from testbed.errors import RefusedError, TestbedError
from testbed.parts import KUBERNETES
from testbed.requests import Requests

USUAL: Final = KUBERNETES
DEPLOY: Final = Path(__file__).resolve().parents[3] / "deploy"
NODE_LAYERS: Final = "/apis/lamina.dev/v1alpha1/nodelayers"
IMAGE_LAYERS: Final = "/apis/lamina.dev/v1alpha1/imagelayers"
AGENTS: Final = "lamina-agents"
AGENT: Final = "lamina-agent"
NOON: Final = 1772366400.0
PATIENCE: Final = 30.0


class Bearer:
    """Whoever holds a token, and nothing else."""

    def __init__(self, bed: Testbed, token: str) -> None:
        self._requests = Requests(bed.url, ssl.create_default_context(cafile=str(bed.ca_file)))
        self._headers = {"Authorization": f"Bearer {token}"}

    def send(self, method: str, path: str, body: object | None = None) -> dict[str, Any]:
        """Ask for something; a refusal raises."""
        return self._requests.send(method, path, body, headers=self._headers)

    def refusal(self, method: str, path: str, body: object | None = None) -> tuple[int, str]:
        """What a request is refused with; (0, "") when it is not."""
        return refused(lambda: self.send(method, path, body))

    def close(self) -> None:
        """Hang up."""
        self._requests.close()


def refused(send: Callable[[], object]) -> tuple[int, str]:
    """What a request is refused with; (0, "") when it is not."""
    try:
        send()
    except RefusedError as error:
        return error.status, error.message
    return 0, ""


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what the API server only notices a little later: new kinds, roles, policies."""
    end = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(TestbedError):
            if holds():
                return
        assert time.monotonic() < end, "the API server did not come round"
        time.sleep(0.1)


def a_node_layers(name: str, uid: str = "uid") -> Any:
    return json.loads(encode_node_layers(name, uid))


def a_status(*images: HeldImage, **more: Any) -> Any:
    """The patch of a status, as an agent writes it."""
    return json.loads(encode_node_layers_status(LayerReport(node="n", observed_at=NOON, images=images, **more)))


def an_image(number: int, *names: str, size: int = 1) -> HeldImage:
    return HeldImage(digest_of(str(number).encode()), size, names)


def a_manifest(text: str) -> bytes:
    layer = {"digest": digest_of(text.encode()), "size": 5}
    return json.dumps({"schemaVersion": 2, "layers": [layer]}).encode()


def an_image_layers(text: str, **hints: Any) -> Any:
    return json.loads(encode_image_layers(a_manifest(text), **hints))


def named(text: str) -> str:
    return object_name(Digest(digest_of(a_manifest(text))))


def forget(bed: Testbed, path: str) -> None:
    """Delete an object if it is there."""
    with contextlib.suppress(RefusedError):
        bed.api("DELETE", path)
