"""A source's queue of events and the bucket that they are about, asked in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from actors.files import FileVersion
from actors.notifications.event_feed import EventFeed
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import Receive
from actors.notifications.message_queue import BATCH, MessageQueue
from actors.notifications.message_tracker import QueueDepth, QueueMessage
from actors.objects.object_store import ObjectStore
from actors.sources.discovery import Notifications
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from state.capabilities.store_record import root_identity
from state.location import Location

_MOST_MESSAGES = 10_000
_LOOKS_SIDE_BY_SIDE = 32
_CHANGES_SIDE_BY_SIDE = 4
_Answer = TypeVar("_Answer")


class EventSource:
    """The queue of a list actor, and the bucket behind it.  See `Events`.

    Args:
        source: the source of the events.
        store: the store of its objects.
        root: the root of the pipeline, which claims the queue.
    """

    def __init__(self, source: SourceDefinition, discovery: Notifications, store: ObjectStore, root: Location) -> None:
        self._source, self._discovery, self._store, self._root = source, discovery, store, root
        self._queue = MessageQueue(discovery, source.location)
        # A poll keeps its thread for as long as no message comes.
        self._polls = ThreadPoolExecutor(discovery.pollers + 1, thread_name_prefix="poll")
        self._changes = ThreadPoolExecutor(_CHANGES_SIDE_BY_SIDE, thread_name_prefix="queue")
        self._looks = ThreadPoolExecutor(_LOOKS_SIDE_BY_SIDE, thread_name_prefix="look")

    @property
    def queue_url(self) -> str:
        return self._discovery.queue_url

    def watch(self, path_filter: PathFilter) -> EventWatch:
        """The decisions about when the queue is asked."""
        bucket = self._source.location
        feed = EventFeed(
            queue=self._discovery.queue_url,
            bucket=bucket.host.url.removeprefix("s3://"),
            prefix=bucket.below_host,
            path_filter=path_filter,
            visibility_s=self._discovery.visibility_s,
            most_messages=_MOST_MESSAGES,
        )
        return EventWatch(feed, self._discovery.pollers)

    async def claim(self) -> str | None:
        """Writes the pipeline's root onto the queue.  Answer and errors as `MessageQueue.claim`."""
        return await _in(self._changes, self._claimed)

    def _claimed(self) -> str | None:
        return self._queue.claim(self._root.url, root_identity(self._root))

    async def receive(self, receive: Receive) -> tuple[list[QueueMessage], QueueDepth | None]:
        """The messages, and with an extra request the depth of the queue behind them."""
        messages = await _in(self._polls, partial(self._queue.receive, BATCH, receive.wait_s))
        return messages, await _in(self._changes, self._queue.depth) if receive.is_extra else None

    async def look_at(self, paths: Sequence[str]) -> dict[str, FileVersion | None]:
        """Path → the object there now; None without one."""
        find = partial(self._store.find, self._source.name, exact_time=self._source.uses_times)
        finds = [_in(self._looks, partial(find, path)) for path in paths]
        return dict(zip(paths, await asyncio.gather(*finds), strict=True))

    async def delete(self, messages: Sequence[QueueMessage]) -> None:
        """Takes messages out of the queue."""
        await self._in_batches(self._queue.delete, messages)

    async def extend(self, messages: Sequence[QueueMessage]) -> None:
        """Keeps messages invisible for another while."""
        await self._in_batches(self._queue.extend, messages)

    async def release(self, messages: Sequence[QueueMessage]) -> None:
        """Lets the next reader receive messages at once."""
        await self._in_batches(self._queue.release, messages)

    async def _in_batches(
        self, change: Callable[[Sequence[QueueMessage]], int], messages: Sequence[QueueMessage]
    ) -> None:
        batches = [messages[start : start + BATCH] for start in range(0, len(messages), BATCH)]
        await asyncio.gather(*(_in(self._changes, partial(change, batch)) for batch in batches))


async def _in(threads: ThreadPoolExecutor, call: Callable[[], _Answer]) -> _Answer:
    return await asyncio.get_running_loop().run_in_executor(threads, call)
