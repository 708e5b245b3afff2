"""
Client for the read-only methods of containerd.

Each call has a deadline, a size limit and a rate limit: one state query a second, and 200 reads a second of documents,
which are immutable and read once. Failures raise `RuntimeSourceError`. If only one call failed it is
`RuntimeAnswerError`, and `AbsentError` if the object does not exist.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf import empty_pb2
from google.protobuf.message import DecodeError

from lamina.clients.cri.channel import ASKED_PER_SECOND, DEADLINE, READ_PER_SECOND, ProtoMessage, open_channel
from lamina.clients.cri.protos import (
    content_pb2,
    events_pb2,
    images_pb2,
    introspection_pb2,
    snapshots_pb2,
    types_pb2,
    version_pb2,
)
from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.clients.rate_limit import RateLimit
from lamina.model.errors import LaminaError

NAME: Final = "containerd"
LIST_LIMIT: Final = 200_000
"""Entries of a streamed list."""
ASKED_AT_ONCE: Final = 6
READ_AT_ONCE: Final = 20
"""Burst of document reads: a tenth of a second's worth, so that a delayed read on a busy machine can catch up."""

SERVICES: Final = "/containerd.services"


class AbsentError(LaminaError):
    """Containerd does not have the object."""


class RuntimeAnswerError(RuntimeSourceError):
    """One call failed or returned an undecodable response; other calls may succeed."""


class OversizeError(LaminaError):
    """A document exceeds its size limit."""


class ContainerdClient:
    """A connection to one containerd, in one of its namespaces."""

    def __init__(self, socket: Path, namespace: str) -> None:
        self.socket, self.namespace = socket, namespace
        self.counts: Counter[str] = Counter()
        """Number of calls of each method."""
        self._metadata = (("containerd-namespace", namespace),)
        self._channel: grpc.aio.Channel | None = None
        self._rate_limit = RateLimit(ASKED_PER_SECOND, ASKED_AT_ONCE)
        self._reading = RateLimit(READ_PER_SECOND, READ_AT_ONCE)

    async def close(self) -> None:
        """Close the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def version(self) -> str:
        """Return the version of containerd."""
        await self._rate_limit.turn()
        answer = await self._one("version.v1.Version/Version", empty_pb2.Empty(), version_pb2.VersionResponse)
        return str(answer.version)

    async def snapshotters(self) -> list[introspection_pb2.Plugin]:
        """Return the available snapshotters."""
        await self._rate_limit.turn()
        request = introspection_pb2.PluginsRequest(filters=['type=="io.containerd.snapshotter.v1"'])
        answer = await self._one("introspection.v1.Introspection/Plugins", request, introspection_pb2.PluginsResponse)
        return list(answer.plugins)

    async def images(self) -> list[images_pb2.Image]:
        """Return every image name with its target."""
        await self._rate_limit.turn()
        request = images_pb2.ListImagesRequest()
        answer = await self._one("images.v1.Images/List", request, images_pb2.ListImagesResponse)
        return list(answer.images)

    async def statuses(self) -> list[content_pb2.Status]:
        """Return the active downloads."""
        await self._rate_limit.turn()
        request = content_pb2.ListStatusesRequest()
        answer = await self._one("content.v1.Content/ListStatuses", request, content_pb2.ListStatusesResponse)
        return list(answer.statuses)

    async def contents(self, filters: list[str]) -> AsyncGenerator[content_pb2.Info, None]:
        """Yield the blobs that match one of *filters*."""
        await self._rate_limit.turn()
        request = content_pb2.ListContentRequest(filters=filters)
        blocks = self._many("content.v1.Content/List", request, content_pb2.ListContentResponse)
        async with aclosing(self._entries(blocks)) as entries:
            async for entry in entries:
                yield entry

    async def unpacked(self, snapshotter: str) -> AsyncGenerator[snapshots_pb2.Info, None]:
        """Yield the committed snapshots."""
        await self._rate_limit.turn()
        request = snapshots_pb2.ListSnapshotsRequest(snapshotter=snapshotter, filters=["kind==committed"])
        blocks = self._many("snapshots.v1.Snapshots/List", request, snapshots_pb2.ListSnapshotsResponse)
        async with aclosing(self._entries(blocks)) as entries:
            async for entry in entries:
                yield entry

    async def usage(self, snapshotter: str, name: str) -> int:
        """Return the bytes of a committed snapshot, without its parents."""
        await self._reading.turn()
        request = snapshots_pb2.UsageRequest(snapshotter=snapshotter, key=name)
        answer = await self._one("snapshots.v1.Snapshots/Usage", request, snapshots_pb2.UsageResponse)
        return int(answer.size)

    async def read(self, digest: str, limit: int) -> bytes:
        """Return a document; its digest is not verified."""
        await self._reading.turn()
        request = content_pb2.ReadContentRequest(digest=digest)
        parts = []
        size = 0
        blocks = self._many("content.v1.Content/Read", request, content_pb2.ReadContentResponse)
        async with aclosing(blocks) as answers:
            async for answer in answers:
                if answer.offset not in (0, size):  # old versions omit the offset
                    raise self._failure("Content/Read", f"a part of {digest} begins at {answer.offset}, not at {size}")
                size += len(answer.data)
                if size > limit:
                    raise OversizeError(f"{digest} has more than {limit} bytes")
                parts.append(answer.data)
        return b"".join(parts)

    async def events(self, topics: str) -> AsyncGenerator[types_pb2.Envelope, None]:
        """Yield events from now on, without end; *topics* is a regular expression."""
        request = events_pb2.SubscribeRequest(filters=[f'namespace=="{self.namespace}",topic~="{topics}"'])
        envelopes = self._many("events.v1.Events/Subscribe", request, types_pb2.Envelope, endless=True)
        async with aclosing(envelopes) as answers:
            async for answer in answers:
                yield answer

    async def _entries(self, blocks: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        count = 0
        async with aclosing(blocks) as answers:
            async for block in answers:
                count += len(block.info)
                if count > LIST_LIMIT:
                    raise self._failure("List", f"the list has more than {LIST_LIMIT} entries")
                for entry in block.info:
                    yield entry

    async def _one(self, method: str, request: ProtoMessage, answer: Any) -> Any:
        self.counts[method] += 1
        call: Any = self._open().unary_unary(
            f"{SERVICES}.{method}",
            request_serializer=type(request).SerializeToString,
        )
        try:
            data = await call(request, timeout=DEADLINE, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise self._error_of(method, error) from error
        return self._decode(method, data, answer)

    async def _many(
        self, method: str, request: ProtoMessage, answer: Any, *, endless: bool = False
    ) -> AsyncGenerator[Any, None]:
        self.counts[method] += 1
        opened: Any = self._open().unary_stream(
            f"{SERVICES}.{method}",
            request_serializer=type(request).SerializeToString,
        )
        call = opened(request, timeout=None if endless else DEADLINE, metadata=self._metadata)
        try:
            async for data in call:
                yield self._decode(method, data, answer)
        except grpc.aio.AioRpcError as error:
            raise self._error_of(method, error) from error
        finally:
            call.cancel()

    def _decode(self, method: str, data: bytes, answer: Any) -> Any:
        # Not by gRPC's own deserializer, which logs an undecodable message and returns None.
        try:
            return answer.FromString(data)
        except DecodeError as error:
            raise self._failure(method, "the response cannot be decoded") from error

    def _open(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = open_channel(self.socket)
        return self._channel

    def _error_of(self, method: str, error: grpc.aio.AioRpcError) -> LaminaError:
        code = error.code()
        if code is grpc.StatusCode.NOT_FOUND:
            return AbsentError(f"{error.details() or method:.200}")
        if code is grpc.StatusCode.UNAVAILABLE:
            problem = f"no response at {self.socket} ({error.details() or '':.200})"
            return RuntimeSourceError(NAME, f"{problem}; check that it runs, and that this is its socket")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            called = method.rpartition(".")[2]
            return RuntimeSourceError(NAME, f"{called}: no response in {DEADLINE:g} s at {self.socket}: see its log")
        return self._failure(method, f"{code.name} ({error.details() or '':.200})")

    def _failure(self, method: str, problem: str) -> RuntimeAnswerError:
        return RuntimeAnswerError(NAME, f"{method.rpartition('.')[2]}: {problem}: see its log")
