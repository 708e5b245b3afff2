"""
Client for the CRI methods that Lamina uses.

    Version, ListImages, ImageFsInfo   state queries: one a second
    ImageStatus                        once for each image, whose id is the digest of its configuration

StreamImages, the newer list method, is not used: it is for lists of more than 4 MiB, and this client accepts messages
of 16 MiB, far more than the reported images need.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from lamina.clients.cri.channel import ASKED_PER_SECOND, DEADLINE, READ_PER_SECOND, ProtoMessage, open_channel
from lamina.clients.cri.protos import cri_pb2
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.rate_limit import RateLimit

ASKED_AT_ONCE: Final = 4

IMAGES: Final = "/runtime.v1.ImageService"
RUNTIME: Final = "/runtime.v1.RuntimeService"


class CriClient:
    """A connection to one runtime."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.name = "cri"
        """The runtime's own name, after the first `version` call."""
        self._channel: grpc.aio.Channel | None = None
        self._rate_limit = RateLimit(ASKED_PER_SECOND, ASKED_AT_ONCE)
        self._reading = RateLimit(READ_PER_SECOND)

    async def close(self) -> None:
        """Close the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def version(self) -> cri_pb2.VersionResponse:
        """Return the runtime's name and version."""
        await self._rate_limit.turn()
        answer = await self._ask(f"{RUNTIME}/Version", cri_pb2.VersionRequest(), cri_pb2.VersionResponse)
        self.name = answer.runtime_name[:100] or self.name
        found: cri_pb2.VersionResponse = answer
        return found

    async def images(self) -> Sequence[cri_pb2.Image]:
        """Return all images, without their layers."""
        await self._rate_limit.turn()
        answer = await self._ask(f"{IMAGES}/ListImages", cri_pb2.ListImagesRequest(), cri_pb2.ListImagesResponse)
        return list(answer.images)

    async def status(self, image: str) -> cri_pb2.ImageStatusResponse:
        """Return the verbose status of one image; empty if it is gone."""
        await self._reading.turn()
        request = cri_pb2.ImageStatusRequest(image=cri_pb2.ImageSpec(image=image), verbose=True)
        found: cri_pb2.ImageStatusResponse
        found = await self._ask(f"{IMAGES}/ImageStatus", request, cri_pb2.ImageStatusResponse)
        return found

    async def mountpoint(self) -> str:
        """Return the folder that holds images; "" if the runtime does not report it."""
        await self._rate_limit.turn()
        answer = await self._ask(f"{IMAGES}/ImageFsInfo", cri_pb2.ImageFsInfoRequest(), cri_pb2.ImageFsInfoResponse)
        return next((one.fs_id.mountpoint for one in answer.image_filesystems if one.fs_id.mountpoint), "")

    async def _ask(self, method: str, request: ProtoMessage, answer: Any) -> Any:
        if self._channel is None:
            self._channel = open_channel(self.socket)
        call: Any = self._channel.unary_unary(method, request_serializer=type(request).SerializeToString)
        try:
            # Not by gRPC's own deserializer, which logs an undecodable message and returns None.
            return answer.FromString(await call(request, timeout=DEADLINE))
        except grpc.aio.AioRpcError as error:
            raise RuntimeSourceError(self.name, self._message(method.rpartition("/")[2], error)) from error
        except DecodeError as error:
            problem = (
                f"{method.rpartition('/')[2]}: response of {self.socket} cannot be decoded; check that it speaks CRI"
            )
            raise RuntimeSourceError(self.name, problem) from error

    def _message(self, method: str, error: grpc.aio.AioRpcError) -> str:
        match error.code():
            case grpc.StatusCode.UNAVAILABLE:
                return f"no response at {self.socket}; check that the runtime runs, and that this is its socket"
            case grpc.StatusCode.UNIMPLEMENTED:
                return f"{self.socket} does not support {method} of CRI v1; check that this is the runtime's socket"
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return f"no response to {method} within {DEADLINE:g} s at {self.socket}: see the log of the runtime"
            case code:
                return f"{method}: {code.name} ({error.details() or '':.200}): see the log of the runtime"
