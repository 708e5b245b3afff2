"""A runtime that says over CRI what a test wants it to say."""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from lamina.clients.cri.protos import cri_pb2

SERVICES: dict[str, dict[str, Any]] = {
    "runtime.v1.RuntimeService": {"Version": cri_pb2.VersionRequest},
    "runtime.v1.ImageService": {
        "ListImages": cri_pb2.ListImagesRequest,
        "ImageStatus": cri_pb2.ImageStatusRequest,
        "ImageFsInfo": cri_pb2.ImageFsInfoRequest,
    },
}


class Spoken:
    """Answers for as long as an `async with` block lasts."""

    def __init__(self) -> None:
        self.name, self.version, self.mountpoint = "spoken", "1.0", ""
        self.images: list[cri_pb2.Image] = []
        self.info: dict[str, dict[str, str]] = {}
        """What is told of an image beyond its fields, by its id."""
        self.gone: set[str] = set()
        """Images that are listed and not there any longer when they are asked for."""
        self.failing: dict[str, grpc.StatusCode] = {}
        self.garbled: set[str] = set()
        """Methods that answer with bytes that are no message."""
        self.delay = 0.0
        self.calls: Counter[str] = Counter()
        self.socket = Path()

    async def __aenter__(self) -> "Spoken":
        self._folder = tempfile.TemporaryDirectory(prefix="cri-")
        self.socket = Path(self._folder.name) / "cri.sock"
        self._server = grpc.aio.server(options=[("grpc.max_send_message_length", 64 * 1024 * 1024)])
        for service, methods in SERVICES.items():
            handlers: dict[str, Any] = {
                name: grpc.unary_unary_rpc_method_handler(
                    self._handler(name),
                    request_deserializer=request.FromString,
                    response_serializer=self._encoder(name),
                )
                for name, request in methods.items()
            }
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)
        self._folder.cleanup()

    def _encoder(self, name: str) -> Any:
        return lambda answer: b"\xff\xff\xff" if name in self.garbled else answer.SerializeToString()

    def _handler(self, name: str) -> Any:
        async def handle(request: Any, context: Any) -> Any:
            self.calls[name] += 1
            await asyncio.sleep(self.delay)
            if name in self.failing:
                await context.abort(self.failing[name], "as told")
            return getattr(self, f"_{name}")(request)

        return handle

    def _Version(self, _: Any) -> Any:  # noqa: N802 - CRI's name
        return cri_pb2.VersionResponse(runtime_name=self.name, runtime_version=self.version)

    def _ListImages(self, _: Any) -> Any:  # noqa: N802 - CRI's name
        return cri_pb2.ListImagesResponse(images=self.images)

    def _ImageStatus(self, request: Any) -> Any:  # noqa: N802 - CRI's name
        name = request.image.image
        image = next((one for one in self.images if one.id == name and name not in self.gone), None)
        info = self.info.get(name, {}) if request.verbose and image is not None else {}
        return cri_pb2.ImageStatusResponse(image=image, info=info)

    def _ImageFsInfo(self, _: Any) -> Any:  # noqa: N802 - CRI's name
        usage = cri_pb2.FilesystemUsage(fs_id=cri_pb2.FilesystemIdentifier(mountpoint=self.mountpoint))
        return cri_pb2.ImageFsInfoResponse(image_filesystems=[usage])
