"""A simulated bucket as a list actor lists it, and the queue of its events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from actors.files import FileVersion
from actors.notifications.event_feed import EventFeed
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import Receive
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.objects.listing_page import ListingPage
from actors.sources.path_filter import PathFilter
from tests.simulation.hosting.simulated_runtime import SimulatedRuntime
from tests.simulation.world.bucket import Bucket, Gap
from tests.simulation.world.event_queue import BUCKET, POLLERS, VISIBILITY_S, EventQueue

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World

_MOST_MESSAGES = 30


class SimulatedPages:
    """See `Pages`.

    Args:
        bucket: the bucket.
        source: name of the source that is listed.
    """

    def __init__(self, bucket: Bucket, source: str) -> None:
        self._bucket, self._source = bucket, source
        self._after: str | None = None
        self._gap: Gap | None = None
        self._repeats = False

    def begin(self) -> None:
        self._after, self._gap = None, self._bucket.begin_listing(self._source)
        self._repeats = self._bucket.is_faulty("repeat")

    def read(self, most: int) -> ListingPage | None:
        page = self._bucket.page(self._source, self._after, self._gap, repeats=self._repeats)
        if page is not None:
            self._after = page.paths[-1] if page.paths else ""
        return page


class SimulatedEvents:
    """See `Events`.

    Args:
        source: name of the source.
        queue: its queue.
        world: everything else.
        runtime: the list actor's.
    """

    def __init__(self, source: str, queue: EventQueue, world: World, runtime: SimulatedRuntime) -> None:
        self._source, self._queue, self._world, self._runtime = source, queue, world, runtime

    @property
    def queue_url(self) -> str:
        return self._queue.url

    def watch(self, path_filter: PathFilter) -> EventWatch:
        feed = EventFeed(
            queue=self._queue.url,
            bucket=BUCKET,
            prefix="",
            path_filter=path_filter,
            visibility_s=VISIBILITY_S,
            most_messages=_MOST_MESSAGES,
        )
        return EventWatch(feed, POLLERS)

    async def claim(self) -> str | None:
        return None

    async def receive(self, receive: Receive) -> tuple[list[QueueMessage], QueueDepth | None]:
        clock = self._runtime.clock
        until_s = clock.monotonic() + receive.wait_s
        while not (messages := await self._runtime.in_thread(self._queue.receive)) and clock.monotonic() < until_s:
            await self._runtime.sleep_until(min(until_s, max(clock.monotonic(), self._queue.next_s)))
        return messages, self._queue.depth if receive.is_extra else None

    async def look_at(self, paths: Sequence[str]) -> dict[str, FileVersion | None]:
        """One path after the other."""
        find = self._world.bucket.find
        return {path: await self._runtime.in_thread(partial(find, self._source, path)) for path in paths}

    async def delete(self, messages: Sequence[QueueMessage]) -> None:
        await self._runtime.in_thread(partial(self._delete, messages))

    async def extend(self, messages: Sequence[QueueMessage]) -> None:
        await self._runtime.in_thread(partial(self._queue.extend, messages, VISIBILITY_S))

    async def release(self, messages: Sequence[QueueMessage]) -> None:
        await self._runtime.in_thread(partial(self._queue.extend, messages, 0.0))

    def _delete(self, messages: Sequence[QueueMessage]) -> None:
        for message_id, change in self._queue.delete(messages):
            self._world.promises.on_message_deleted(self._queue.url, message_id, change)
