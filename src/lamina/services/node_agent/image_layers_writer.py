"""
Writer of ImageLayers objects: one for each image, once in the life of a cluster.

    offered --GET--> exists                                             nothing to do, for a day
               |
               +---> missing --sizes known, or waited--> POST --> exists
                                                           |
                                                           +----> rejected    not retried for an hour

An object is never changed, so a newly unpacked image waits a little until the sizes of its layers are known. At most
one request is sent in `BETWEEN_WRITES` seconds, and none while the API server asks to wait or rejects the credentials.
`AT_ONCE` images are processed at first, and `PER_HOUR` more every hour; no node gets more new images. The waiting
images are bounded in bytes. The reader offers rejected ones again.
"""

import asyncio
import logging
import random
from collections.abc import Collection
from typing import Final

import msgspec

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.digest import Digest, digest_of
from lamina.model.token_bucket import TokenBucket
from lamina.services.node_agent import logs
from lamina.services.node_agent.node_layers_client import NodeLayersApi
from lamina.services.node_agent.report_backoff import ReportBackoff
from lamina.wire.custom_resources.api_group import API_VERSION, object_name
from lamina.wire.custom_resources.image_layers import PLURAL, encode_image_layers
from lamina.wire.errors import WireError
from lamina.wire.node_agent_frames import ImageFrame, platform

PATH: Final = f"/apis/{API_VERSION}/{PLURAL}"
BETWEEN_WRITES: Final = 0.2
"""Seconds between two requests."""
SIZES_WITHIN: Final = 60.0
"""Seconds that an image waits for the sizes of its layers."""
THERE_FOR: Final = 24 * 3600.0
"""Seconds until the writer checks again that an object exists, plus or minus a tenth."""
REFUSED_FOR: Final = 3600.0
AT_ONCE: Final = 1000
PER_HOUR: Final = 200
WAITING_BYTES: Final = 4 * 1024**2
"""Most memory of waiting images."""
DIFF_ID_BYTES: Final = 150
SIZE_BYTES: Final = 40
KNOWN_LIMIT: Final = 10_000
"""Most images whose outcome is remembered."""
ANSWER_LIMIT: Final = 256 * 1024
TIMEOUT: Final = 20.0

log = logging.getLogger(__name__)


class _PendingImage(msgspec.Struct):
    describe: ImageFrame
    since: float
    missing: bool = False
    """Whether the API server has reported that the object does not exist."""


class ImageLayersWriter:
    """Creates the ImageLayers objects that are missing."""

    def __init__(self, api: NodeLayersApi, rng: random.Random) -> None:
        """Send requests to *api*; *rng* gives jitter."""
        self._api, self._rng = api, rng
        self._backoff = ReportBackoff(rng)
        self._waiting: dict[Digest, _PendingImage] = {}
        self._bytes = 0
        self._questions = TokenBucket(PER_HOUR / 3600, AT_ONCE)
        self._settled: dict[Digest, float] = {}
        """Until when no request about an image is needed."""
        self._held: frozenset[Digest] | None = None
        self._wake = asyncio.Event()
        self._problem = ""

    def hold(self, held: Collection[Digest]) -> None:
        """Set the images that the node holds; drop the others."""
        self._held = frozenset(held)
        for digest in [digest for digest in self._waiting if digest not in self._held]:
            self._drop(digest)

    def offer(self, describe: ImageFrame) -> None:
        """Accept the layers of an image, or the same with sizes."""
        digest = digest_of(describe.manifest)
        now = asyncio.get_running_loop().time()
        if self._held is None or digest not in self._held or self._settled.get(digest, 0.0) > now:
            return
        waiting = self._waiting.get(digest)
        if waiting is not None and describe.unpacked:
            self._bytes += _weight(describe) - _weight(waiting.describe)
            waiting.describe = describe
        elif waiting is None and self._bytes + _weight(describe) <= WAITING_BYTES:
            self._waiting[digest] = _PendingImage(describe, now)
            self._bytes += _weight(describe)
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            digest = self._next(loop.time())
            if digest is None:
                try:
                    async with asyncio.timeout(1.0 if self._waiting else None):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                continue
            await asyncio.sleep(await self._go_on(digest))

    def _next(self, now: float) -> Digest | None:
        """Return the first image that can be processed, in the order in which they were offered."""
        may_ask = self._questions.has(now)
        for digest, waiting in self._waiting.items():
            known = waiting.describe.unpacked or now - waiting.since >= SIZES_WITHIN
            if known if waiting.missing else may_ask:
                return digest
        return None

    async def _go_on(self, digest: Digest) -> float:
        """Process one step of an image; return the seconds to wait."""
        waiting = self._waiting[digest]
        try:
            await (self._post(digest, waiting) if waiting.missing else self._ask(digest, waiting))
        except WireError as error:
            self._settle(digest, REFUSED_FOR, f"refused: {error.problem}")
        except ApiError as error:
            # A 403 to a GET means that permissions are not set up yet; it does not concern this image.
            unknown = error.status == 401 or (error.status == 403 and not waiting.missing)
            if unknown or error.status == 429 or error.status >= 500:
                return self._rest(error, error.retry_after)
            self._settle(digest, REFUSED_FOR, f"refused: {error.status} {error.message}")
        except UnreachableError as error:
            return self._rest(error, None)
        self._backoff.went_well()
        if self._problem:
            log.info("ImageLayers writes recovered")
            self._problem = ""
        return BETWEEN_WRITES

    async def _ask(self, digest: Digest, waiting: _PendingImage) -> None:
        try:
            await self._api.request("GET", f"{PATH}/{object_name(digest)}", timeout=TIMEOUT, limit=ANSWER_LIMIT)
        except ApiError as error:
            if error.status != 404:
                raise
            waiting.missing = True
        else:
            self._settle(digest, self._a_day(), "there already")
        self._questions.reserve(asyncio.get_running_loop().time())

    async def _post(self, digest: Digest, waiting: _PendingImage) -> None:
        told = waiting.describe
        body = encode_image_layers(
            told.manifest,
            media_type=told.media_type,
            platform=platform(told.platform),
            diff_ids=[Digest(one) for one in told.diff_ids],
            unpacked_sizes=told.unpacked,
        )
        words = "written"
        try:
            await self._api.request("POST", PATH, body=body, timeout=TIMEOUT, limit=ANSWER_LIMIT)
        except ApiError as error:
            if error.status != 409:
                raise
            words = "there already"
        self._settle(digest, self._a_day(), words)

    def _rest(self, error: ApiError | UnreachableError, asked: float | None) -> float:
        wait = self._backoff.after_failure(asked)
        if str(error) != self._problem:
            log.warning("ImageLayers write failed, retrying", extra={"problem": str(error), "again_in": round(wait, 1)})
        self._problem = str(error)
        return wait

    def _settle(self, digest: Digest, seconds: float, words: str) -> None:
        self._drop(digest)
        while len(self._settled) >= KNOWN_LIMIT:
            del self._settled[next(iter(self._settled))]
        self._settled[digest] = asyncio.get_running_loop().time() + seconds
        if words.startswith("refused"):
            log.warning("ImageLayers rejected", extra={"digest": digest, "problem": words})
        elif logs.verbose(logs.IMAGES):
            log.info("ImageLayers exists", extra={"digest": digest, "how": words})

    def _drop(self, digest: Digest) -> None:
        waiting = self._waiting.pop(digest, None)
        if waiting is not None:
            self._bytes -= _weight(waiting.describe)

    def _a_day(self) -> float:
        return THERE_FOR * (0.9 + 0.2 * self._rng.random())


def _weight(describe: ImageFrame) -> int:
    """Return the approximate memory of a waiting image in bytes."""
    return len(describe.manifest) + DIFF_ID_BYTES * len(describe.diff_ids) + SIZE_BYTES * len(describe.unpacked)
