"""The list step of a pipeline on an event loop instead of Ray, with a store that commits its files.

What comes after the list step is left out: a file that is handed on is looked for in the bucket, and has one row if it
is there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa

import slackwater as sw
from actors.coordination.instructions import Commit
from actors.coordination.ledger_corrections import corrected_delta
from actors.exchange.edge import Outlet
from actors.fetching.file_progress import Ending
from actors.fetching.file_versions import FileVersions
from actors.files import Vanished
from actors.hosting.event_source import EventSource
from actors.hosting.list_actor import ListActor
from actors.hosting.ray_runtime import RayRuntime
from actors.listing.listing_state import NEVER_LISTED
from actors.notifications.message_queue import MessageQueue
from actors.notifications.message_tracker import QueueMessage
from actors.objects.object_store import ObjectStore
from actors.protocol.barrier import Barrier, BarrierKind, Mutation, Stop
from actors.protocol.messages import ChangedFiles, DeletedFiles, Envelope, Message, NewFiles
from actors.protocol.reports import CollectReport, ListProgress, MessageProgress
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import recover
from actors.rows import Rows
from actors.shells.list_shell import ListStart
from actors.shells.runtime import Actor
from state.clock import SystemClock
from state.epoch import EpochPair
from state.lance.lance_root import LanceRoot
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds
from tests import waiting

# Above twice the 30 s for which a queue of the tests hides a message: if the answer to a receive is lost, its messages
# come only after that.
LIMIT_S = 120.0
_Answer = TypeVar("_Answer")


eventually = partial(waiting.eventually, limit_s=LIMIT_S)


class ListRun:
    """One life of a list actor, for the length of a `with` block, which ends as a killed process does.

    Args:
        pipeline: of one source.
        reads: whether files are finished in the epoch in which they are handed on; see `read`.
    """

    def __init__(self, pipeline: sw.Pipeline, *, reads: bool = True) -> None:
        self._definition = pipeline._definition()
        (self._source,) = self._definition.sources
        self.reads = reads
        self.budget = 1_000
        self.handed_on: list[str] = []
        self.log: list[str] = []
        self._bucket = ObjectStore(self._source.location)
        self._reports: list[CollectReport] = []
        self._vanished: tuple[Vanished, ...] = ()
        self._marks = 1

    def __enter__(self) -> ListRun:
        root = LanceRoot(self._definition.root, SystemClock())
        recovered = recover(self._definition, AttemptPlan("run"), root)
        self._store = recovered.store
        policy, name = self._source.policy.on_change, self._source.name
        self._files = FileVersions(
            recovered.unfinished,
            recovered.without_rows,
            [name] if policy == "append" else [],
            [name] if policy == "replace" else [],
            recovered.held,
        )
        self._catalog = recovered.catalog.take_delta([])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="list run")
        self._thread.start()
        self._epoch = head = recovered.head.epoch
        self._open = max(head, 1 << 40) + recovered.head.term

        async def begin() -> None:
            self._actor = ListActor(
                name="list",
                edges=["coordinator"],
                coordinator=_Handle(collect=self._reports.append, progress=lambda *_: None),
                root=self._definition.root,
                start=ListStart(
                    source=self._source,
                    schema_known=True,
                    sampled=0,
                    spent=(),
                    not_before=recovered.catalog.not_before[name],
                    listed=recovered.listed.get(name, NEVER_LISTED),
                ),
            )
            self._actor._log = _Log(self.log)
            self._edge = Outlet("coordinator")
            for piece in recovered.seen.pieces():
                await self._actor.take_seen(piece)
            await self._actor.connect({"dispatcher": _Handle(receive=self._take)})

        self._call(begin())
        self._inject(BarrierKind.INITIAL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    @property
    def failure(self) -> Exception | None:
        """What the actor has failed with."""
        return self._actor._failure

    @property
    def progress(self) -> ListProgress:
        """What the actor says of itself."""
        return self._actor.progress()

    @property
    def messages(self) -> MessageProgress:
        """What it says of its queue."""
        assert self.progress.messages is not None
        return self.progress.messages

    @property
    def is_busy(self) -> bool:
        """Whether anything is asked of the bucket or the queue."""
        assert isinstance(self._actor._runtime, RayRuntime)
        return self._actor._runtime.is_busy

    @property
    def queue(self) -> MessageQueue:
        """As the actor asks it."""
        assert isinstance(self._actor._events, EventSource)
        return self._actor._events._queue

    @property
    def tracked(self) -> list[QueueMessage]:
        """The messages that are not done with, by their last receipts."""
        assert self._actor._executor._events is not None
        return [each.message for each in self._actor._executor._events._feed.tracker._tracked.values()]

    @property
    def files(self) -> dict[str, list[str]]:
        """Path → the statuses of its versions, as committed."""
        statuses: dict[str, list[str]] = {}
        for row in self.rows("ledger"):
            statuses.setdefault(row["path"], []).append(row["status"])
        return statuses

    @property
    def gone(self) -> set[str]:
        """The paths that the ledger says are gone, in all of their versions."""
        there = {row["path"] for row in self.rows("ledger") if row["deleted_epoch"] is None}
        return {row["path"] for row in self.rows("ledger")} - there

    def rows(self, table: str) -> list[dict[str, Any]]:
        """What is committed."""
        rows: list[dict[str, Any]] = self._store.scan(table).to_pylist()
        return rows

    def commit(self, mutation: Mutation | None = None, *, tells: bool = True) -> None:
        """Ends an epoch, commits it, and tells the actor of it."""
        epoch = self._open
        self._inject(BarrierKind.CHECKPOINT, mutation)
        eventually(lambda: bool(self._reports) or self.failure is not None, what="the barrier did not pass")
        if self.failure is not None:
            raise self.failure
        report = self._reports.pop()
        assert report.epoch == epoch
        self._complete_mark = report.complete_mark
        if self.reads:
            self._read(epoch)
        delta = Delta.merge([report.delta, self._files.state.seal(), self._catalog])
        corrected = self._files.state.take_corrected()
        self._vanished = self._files.state.take_vanished()
        if not delta.is_empty:
            self._catalog = Delta()
            counts, seconds = EpochCounts(), EpochSeconds()
            commit = Commit(epoch, delta, {}, counts, seconds, corrected)
            self._store.commit(
                epoch=epoch, delta=corrected_delta(self._store, commit), views={}, counts=counts, seconds=seconds
            )
        if tells:
            self.tell_committed()

    def tell_committed(self) -> None:
        """Tells the actor of the last commit."""
        self._call(self._actor.committed(self._epoch))

    def catch_up(self) -> None:
        """Commits until all is handed on, and committed, that there was when this was called."""
        self._marks += 1
        self._call(self._actor.mark(self._marks, True))
        eventually(self._has_caught_up, what="it did not catch up")
        self.commit()

    def until(self, condition: Callable[[], bool]) -> None:
        """Commits until a condition holds."""

        def holds() -> bool:
            self.commit()
            return condition()

        eventually(holds)

    def stop(self) -> None:
        """The graceful end; polls that were under way go on."""
        self.commit(Stop())
        self._call(self._actor.join())

    def finish(self) -> None:
        """The graceful end, and that of the polls."""
        self.stop()
        eventually(lambda: not self.is_busy)

    def _has_caught_up(self) -> bool:
        self.commit()
        return self._complete_mark >= self._marks

    def _inject(self, kind: BarrierKind, mutation: Mutation | None = None) -> None:
        if kind is BarrierKind.CHECKPOINT:
            self._epoch, self._open = self._open, self._open + 1
        budget = {self._source.name: self.budget}
        pair = EpochPair(self._epoch, self._open)
        barrier = Barrier(pair, kind, mutation, list_budget=budget, vanished=self._vanished)
        self._call(self._actor.receive(self._edge.send(barrier)))
        if kind is BarrierKind.INITIAL:
            eventually(lambda: bool(self._reports))
            self._reports.clear()

    def _take(self, envelope: Envelope) -> None:
        """What the actor sends on."""
        message: Message = envelope.message
        if isinstance(message, NewFiles):
            for file in message.files:
                self.handed_on.append(file.path)
                self._files.add(file, self._open)
        elif isinstance(message, ChangedFiles):
            for changed in message.files:
                self.handed_on.append(changed.path)
                self._files.change(changed, self._open)
        elif isinstance(message, DeletedFiles):
            self._files.forget(self._files.note_deleted(message.files, self._open), self._open)

    def _read(self, epoch: int) -> None:
        while (progress := self._files.queue.pending.pop((), None)) is not None:
            found = self._bucket.find(self._source.name, progress.file.path)
            if found is None or found.version != progress.file.version:
                self._files.finish(
                    progress, Ending("vanished", "it has another version", is_deleted=found is None), epoch
                )
                continue
            row = Rows(pa.table({"x": [1]}), 0)
            progress.read_to = replace(row.anchor, row=1)
            if progress.replaces:
                self._files.queue.advance_whole(progress, epoch)
            else:
                self._files.queue.advance(progress, row, epoch)
            self._files.finish(progress, Ending("done"), epoch)

    def _call(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)


class _Handle(Actor[Any]):
    """An actor's handle, whose calls are plain ones."""

    def __init__(self, **methods: Callable[..., None]) -> None:
        for name, call in methods.items():
            setattr(self, name, _Method(call))


class _Method:
    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def remote(self, *arguments: Any) -> Coroutine[None, None, None]:
        self._call(*arguments)
        return _answer()


async def _answer() -> None:
    pass


class _Log:
    """Keeps what the actor warns of."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def bind(self, **_: object) -> _Log:
        return self

    def debug(self, event: str, **_: object) -> None:
        pass

    info = debug

    def warning(self, event: str, **fields: object) -> None:
        self._lines.append(str(fields.get("error") or event))

    error = warning
