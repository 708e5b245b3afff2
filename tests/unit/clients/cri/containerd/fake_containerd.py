"""A containerd for faults: images, blobs, snapshots and events as a test puts them, on a socket of its own."""

import asyncio
import functools
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf import empty_pb2

from lamina.clients.cri.protos import (
    content_pb2,
    events_pb2,
    happenings_pb2,
    images_pb2,
    introspection_pb2,
    snapshots_pb2,
    types_pb2,
    version_pb2,
)
from testbed import made

KEEPS = "containerd.io/gc.ref.content.l.0"
CONFIG = "containerd.io/gc.ref.content.config"
UNPACKED_BY = "containerd.io/gc.ref.snapshot."
QUOTED = re.compile(r'(labels\.|digest==)"(.*)"')


@dataclass
class Blob:
    """One blob and its record."""

    data: bytes
    labels: dict[str, str] = field(default_factory=dict)
    created: float = 0.0


class FakeContainerd:
    """Answers as containerd does, unless *faults* has something else for a method."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.version = "v9.9.9"
        self.plugins = [introspection_pb2.Plugin(id="overlayfs", platforms=[types_pb2.Platform(architecture="amd64")])]
        self.names: dict[str, str] = {}
        self.blobs: dict[str, Blob] = {}
        self.snapshots: dict[str, dict[str, int]] = {"overlayfs": {}}
        self.statuses: list[content_pb2.Status] = []
        self.faults: dict[str, Callable[[Any], Any]] = {}
        self.garbled: set[str] = set()
        """Methods that answer with bytes that are no message."""
        self.asked: Counter[str] = Counter()
        self.listeners: list[asyncio.Queue[types_pb2.Envelope | None]] = []
        self._server: grpc.aio.Server | None = None

    # ------------------------------------------------------------------------------------------------- what a test does

    def blob(self, data: bytes, **labels: str) -> str:
        """Put a blob into the store."""
        digest = made.digest(data)
        self.blobs[digest] = Blob(data, dict(labels))
        return digest

    def store(self, image: made.MadeImage, *, keep: bool = True) -> None:
        """Put the documents of an image into the store, and its layers if they are kept."""
        self.blob(image.manifest, **{CONFIG: made.digest(image.config), **({KEEPS: "x"} if keep else {})})
        self.blob(image.config)
        for layer in image.layers if keep else ():
            self.blob(layer.blob)

    def unpack(self, image: made.MadeImage, snapshotter: str = "overlayfs", size: int = 4096) -> list[str]:
        """Have an image unpacked; the answer names its snapshots, bottom first."""
        chain: list[str] = []
        for layer in image.layers:
            chain.append(made.digest(f"{chain[-1]} {layer.diff_id}".encode()) if chain else layer.diff_id)
        self.snapshots.setdefault(snapshotter, {}).update(dict.fromkeys(chain, size))
        self.blobs[made.digest(image.config)].labels[UNPACKED_BY + snapshotter] = chain[-1]
        return chain

    def pulled(self, name: str, image: made.MadeImage, *, keep: bool = True, snapshotter: str = "overlayfs") -> None:
        """Have an image as after a pull through CRI: under its name, by its digest and by its configuration."""
        self.store(image, keep=keep)
        self.unpack(image, snapshotter)
        repository = name.rpartition(":")[0]
        called = (name, f"{repository}@{image.digest}", made.digest(image.config))
        self.names.update(dict.fromkeys(called, image.digest))

    def happen(self, topic: str, event: Any = None, *, at: float = 0.0) -> None:
        """Tell everybody who listens."""
        envelope = types_pb2.Envelope(namespace="k8s.io", topic=topic)
        envelope.timestamp.FromNanoseconds(int(at * 1e9))
        envelope.event.value = event.SerializeToString() if event is not None else b""
        for listener in self.listeners:
            listener.put_nowait(envelope)

    def break_streams(self) -> None:
        """End every stream of events as a server does that goes down."""
        for listener in self.listeners:
            listener.put_nowait(None)

    async def start(self) -> None:
        """Listen on the socket."""
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(tuple(self._services()))
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def stop(self) -> None:
        """Hang up on everybody."""
        if self._server is not None:
            await self._server.stop(None)

    # ---------------------------------------------------------------------------------------------------- what it answers

    def _services(self) -> list[Any]:
        many = grpc.unary_stream_rpc_method_handler
        return [
            self._service("images.v1.Images", List=(self._images, images_pb2.ListImagesRequest)),
            self._service("version.v1.Version", Version=(self._version, empty_pb2.Empty)),
            self._service("introspection.v1.Introspection", Plugins=(self._plugins, introspection_pb2.PluginsRequest)),
            self._service(
                "content.v1.Content",
                List=(self._contents, content_pb2.ListContentRequest, many),
                Read=(self._read, content_pb2.ReadContentRequest, many),
                ListStatuses=(self._statuses, content_pb2.ListStatusesRequest),
            ),
            self._service(
                "snapshots.v1.Snapshots",
                List=(self._snapshots, snapshots_pb2.ListSnapshotsRequest, many),
                Usage=(self._usage, snapshots_pb2.UsageRequest),
            ),
            self._service("events.v1.Events", Subscribe=(self._events, events_pb2.SubscribeRequest, many)),
        ]

    def _service(self, name: str, **methods: Any) -> Any:
        handlers = {}
        for method, (answer, request, *kind) in methods.items():
            called = f"{name.rpartition('.')[2]}/{method}"
            wrapped = self._faulty(called, answer, streams=bool(kind))
            make = kind[0] if kind else grpc.unary_unary_rpc_method_handler
            handlers[method] = make(wrapped, request.FromString, functools.partial(self._encode, called))
        return grpc.method_handlers_generic_handler(f"containerd.services.{name}", handlers)

    def _faulty(self, method: str, answer: Any, *, streams: bool) -> Any:
        async def one(request: Any, context: Any) -> Any:
            self.asked[method] += 1
            if method in self.faults:
                await self.faults[method](context)
            return await answer(request, context)

        async def many(request: Any, context: Any) -> AsyncIterator[Any]:
            self.asked[method] += 1
            if method in self.faults:
                await self.faults[method](context)
            async for item in answer(request, context):
                yield item

        return many if streams else one

    def _encode(self, method: str, message: Any) -> bytes:
        return b"\xff\xff\xff" if method in self.garbled else message.SerializeToString()

    async def _version(self, request: Any, context: Any) -> Any:
        return version_pb2.VersionResponse(version=self.version)

    async def _plugins(self, request: Any, context: Any) -> Any:
        return introspection_pb2.PluginsResponse(plugins=self.plugins)

    async def _images(self, request: Any, context: Any) -> Any:
        images = [
            images_pb2.Image(name=name, target=types_pb2.Descriptor(digest=digest))
            for name, digest in sorted(self.names.items())
        ]
        return images_pb2.ListImagesResponse(images=images)

    async def _contents(self, request: Any, context: Any) -> AsyncIterator[Any]:
        for digest, blob in sorted(self.blobs.items()):
            found = [QUOTED.fullmatch(text) for text in request.filters]
            if any(one and one[2] in (blob.labels if one[1] == "labels." else (digest,)) for one in found):
                info = content_pb2.Info(digest=digest, size=len(blob.data), labels=blob.labels)
                info.created_at.FromNanoseconds(int(blob.created * 1e9))
                yield content_pb2.ListContentResponse(info=[info])

    async def _read(self, request: Any, context: Any) -> AsyncIterator[Any]:
        if request.digest not in self.blobs:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"content {request.digest}: not found")
        data = self.blobs[request.digest].data
        for offset in range(0, len(data), 100_000):
            yield content_pb2.ReadContentResponse(offset=offset, data=data[offset : offset + 100_000])

    async def _statuses(self, request: Any, context: Any) -> Any:
        return content_pb2.ListStatusesResponse(statuses=self.statuses)

    async def _snapshots(self, request: Any, context: Any) -> AsyncIterator[Any]:
        assert list(request.filters) == ["kind==committed"]
        for name in self.snapshots.get(request.snapshotter, {}):
            yield snapshots_pb2.ListSnapshotsResponse(
                info=[snapshots_pb2.Info(name=name, kind=snapshots_pb2.COMMITTED)]
            )

    async def _usage(self, request: Any, context: Any) -> Any:
        size = self.snapshots.get(request.snapshotter, {}).get(request.key)
        if size is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "snapshot does not exist")
        return snapshots_pb2.UsageResponse(size=size)

    async def _events(self, request: Any, context: Any) -> AsyncIterator[Any]:
        queue: asyncio.Queue[types_pb2.Envelope | None] = asyncio.Queue()
        self.listeners.append(queue)
        try:
            while (envelope := await queue.get()) is not None:
                yield envelope
            await context.abort(grpc.StatusCode.UNAVAILABLE, "going down")
        finally:
            self.listeners.remove(queue)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[FakeContainerd]:
    """A fake that listens in *folder* for as long as the block lasts."""
    fake = FakeContainerd(folder / "c.sock")
    await fake.start()
    try:
        yield fake
    finally:
        await fake.stop()


def commit(name: str, snapshotter: str = "overlayfs") -> happenings_pb2.SnapshotCommit:
    """The event that a layer is unpacked."""
    return happenings_pb2.SnapshotCommit(key=f"extract-1-x {name}", name=name, snapshotter=snapshotter)


def downloading(digest: str, offset: int, total: int, *, now: float, started: float = 0.0) -> content_pb2.Status:
    """A layer on its way."""
    status = content_pb2.Status(ref=f"layer-{digest}", offset=offset, total=total)
    status.started_at.FromNanoseconds(int((started or now) * 1e9))
    status.updated_at.FromNanoseconds(int(now * 1e9))
    return status
