"""The actors of the flow, each a host of the executor that also runs on Ray."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa

from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.edge import Outlet
from actors.exchange.merge_executor import Deliver, Grant, MergeExecutor
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_queue import FileQueue
from actors.fetching.instructions import CloseFile, CloseFiles, EmitBlock, HandOver, InferSchema, ReadPiece, StagePiece
from actors.fetching.read_buffers import Piece
from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileKey, FileVersion, PathKey
from actors.listing.instructions import FindGone, ReadPage
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_pace import ListingPace
from actors.listing.listing_state import ListedState, wait_for_listing_s
from actors.listing.missing_files import find_gone
from actors.listing.request_budget import RequestBudget
from actors.listing.seen_index import SeenIndex
from actors.notifications.event_feed import EventFeed
from actors.notifications.event_watch import EventWatch
from actors.notifications.instructions import DeleteMessages, ExtendMessages, LookAt, Receive, ReleaseMessages
from actors.notifications.message_tracker import QueueMessage
from actors.objects.listing_page import ListingPage, microseconds_of
from actors.protocol.barrier import Barrier
from actors.protocol.blocks import Block, StoredBlock
from actors.protocol.instructions import Instruction, ProposeColumns, ProposeSchema
from actors.protocol.messages import Envelope, Message
from actors.protocol.reports import EpochBlocks, FetchProgress, ListProgress
from actors.protocol.vnode_mapping import VnodeMapping
from actors.rows import Offset
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition, appending, orders, replacing
from slackwater.testing.simulation.hosting.host import Host
from slackwater.testing.simulation.world.bucket import Content
from slackwater.testing.simulation.world.event_queue import BUCKET, VISIBILITY_S, EventQueue
from slackwater.testing.simulation.world.file_rows import ROW_BYTES, FileRows
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from state.errors import ProtocolError, RunFailedError, StorageUnavailableError

if TYPE_CHECKING:
    from slackwater.testing.simulation.hosting.attempt import SimulatedAttempt

_POLLERS, _MOST_MESSAGES = 2, 30
SCHEMA = pa.schema([("x", pa.int64())])


class ListHost(Host):
    """The list step of one source.

    Args:
        source: what to list.
        seen: what was handed on before the last commit.
        schema_known: whether the source's schema is decided.
        sampled: see `ListExecutor`.
        must_settle: whether the bucket is a directory.
        not_before: what was written earlier is left out; None for nothing.
        spent: see `RequestBudget`.
        listed: what the store knows of its last listing; None for nothing.
        queue: of events; None if there is none.
    """

    reports_progress = True

    def __init__(
        self,
        attempt: SimulatedAttempt,
        name: str,
        edges: Sequence[str],
        *,
        source: SourceDefinition,
        seen: SeenIndex,
        schema_known: bool,
        sampled: int,
        must_settle: bool,
        not_before: datetime | None,
        spent: Sequence[int],
        listed: ListedState,
        queue: EventQueue | None,
    ) -> None:
        super().__init__(attempt, name, edges)
        self._queue = queue
        self._source = source.name
        self._after: str | None = None
        self._root = SimulatedRoot(self._world.disk, self._world.clock, self._world.access(self))
        budget = RequestBudget(source.discovery.max_requests_per_hour, spent, self.now_s)
        path_filter = PathFilter(source.pattern)
        wait_s = None if queue is None else wait_for_listing_s(listed, source, queue.url, self._world.clock.now())
        first_s = self.now_s + (wait_s or 0.0)
        self.executor = ListExecutor(
            actor=name,
            source=source.name,
            path_filter=path_filter,
            pace=ListingPace(source.discovery.relist_s, budget, first_s),
            seen=seen,
            schema_known=schema_known,
            sampled=sampled,
            must_settle=must_settle,
            not_before_us=None if not_before is None else microseconds_of(not_before),
            events=None if queue is None else EventWatch(_feed(queue, path_filter), _POLLERS),
            must_list=wait_s is None,
            listed=listed,
            removes=source.policy.on_change == "replace",
            order=source.order,
        )

    def on_message(self, edge: str, message: Message) -> Sequence[Instruction]:
        assert isinstance(message, Barrier)
        return self.executor.on_barrier(message, self.now_s)

    def on_time(self) -> Sequence[Instruction]:
        return self.executor.on_time(self.now_s)

    def progress(self) -> ListProgress:
        return self.executor.progress()

    def schema(self, found: bool) -> None:
        """The files that were sent ahead have shown the source's schema, or none of them could be read."""
        self.do(self.executor.on_schema(found, self.now_s))

    def mark(self, mark: int) -> None:
        """Asks for word of when everything that is there now has been handed on."""
        self.do(self.executor.on_mark(mark, self.now_s))

    def committed(self, epoch: int) -> None:
        """All epochs up to this one are committed."""
        self.do(self.executor.on_committed(epoch, self.now_s))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, ReadPage):
            self.soon(self._read_page, instruction.first)
        elif isinstance(instruction, FindGone):
            self.soon(self._find_gone, instruction)
        elif isinstance(instruction, Receive):
            self.soon(self._receive, instruction)
        elif isinstance(instruction, LookAt):
            self.soon(self._look_at, instruction.paths, {})
        elif isinstance(instruction, DeleteMessages):
            self.soon(self._delete, instruction.messages)
        elif isinstance(instruction, ExtendMessages):
            self.soon(self._extend, instruction.messages, VISIBILITY_S)
        elif isinstance(instruction, ReleaseMessages):
            self.soon(self._extend, instruction.messages, 0.0)
        else:
            super().perform(instruction)

    def _receive(self, receive: Receive, until_s: float | None = None) -> None:
        assert self._queue is not None
        messages = self._queue.receive()
        until_s = self.now_s + receive.wait_s if until_s is None else until_s
        if not messages and self.now_s < until_s:
            again_s = min(until_s, max(self.now_s, self._queue.next_s))
            self._world.schedule.at(again_s, self, self.act, self._receive, receive, until_s)
            return
        depth = self._queue.depth if receive.is_extra else None
        self.do(self.executor.on_messages(receive, messages, depth, self.now_s))

    def _look_at(self, paths: Sequence[str], found: dict[str, FileVersion | None]) -> None:
        """One after the other, and the answer some time after the last."""
        if paths:
            found[paths[0]] = self._world.bucket.find(self._source, paths[0])
            self.soon(self._look_at, paths[1:], found)
        else:
            self.do(self.executor.on_looked(found, self.now_s))

    def _delete(self, messages: Sequence[QueueMessage]) -> None:
        assert self._queue is not None
        for message_id, change in self._queue.delete(messages):
            self._world.promises.on_deleted(self._queue.url, message_id, change)

    def _extend(self, messages: Sequence[QueueMessage], visibility_s: float) -> None:
        assert self._queue is not None
        self._queue.extend(messages, visibility_s)

    def _read_page(self, first: bool) -> None:
        page = self._world.bucket.page(self._source, None if first else self._after)
        if page is None:
            self.do(self.executor.on_listing_end(self.now_s, self._world.clock.now()))
            return
        self._after = page.paths[-1] if page.paths else ""
        if self._queue is None:
            self.do(self.executor.on_page(page, self.now_s))
        else:
            self.soon(self._take_page, page)

    def _take_page(self, page: ListingPage) -> None:
        """What a page shows may be over when it comes."""
        self.do(self.executor.on_page(page, self.now_s))

    def _find_gone(self, instruction: FindGone) -> None:
        found = find_gone(self._root.open(read_only=True), instruction.source, instruction.absent)
        self.do(self.executor.on_gone(found))


class DispatchHost(Host):
    """The dispatch step."""

    def __init__(self, attempt: SimulatedAttempt, name: str, edges: Sequence[str], *, mapping: VnodeMapping) -> None:
        super().__init__(attempt, name, edges)
        self.executor = DispatchExecutor(actor=name, edges=edges, mapping=mapping)

    def on_message(self, edge: str, message: Message) -> Sequence[Instruction]:
        return self.executor.on_message(edge, message)


class FetchHost(Host):
    """The fetch step of one share of the vnodes.  Each request is conditional, so a file may change between two.

    Args:
        num_fetchers: how many fetch actors there are.
        schemas: of the sources, as far as they are decided; of one that adds columns every file has one of three.
        unfinished, without_rows, held: see `FileQueue`.
        poisoned: see `FetchExecutor`.
        stored: see `FetchActor`.
    """

    reports_progress = True

    def __init__(
        self,
        attempt: SimulatedAttempt,
        name: str,
        edges: Sequence[str],
        *,
        num_fetchers: int,
        schemas: Mapping[str, pa.Schema],
        unfinished: Iterable[FileProgress] = (),
        without_rows: Iterable[FileKey] = (),
        held: Iterable[PathKey] = (),
        poisoned: Mapping[FileKey, str],
        stored: Mapping[str, str],
    ) -> None:
        super().__init__(attempt, name, edges)
        self._stored = stored
        self._root = SimulatedRoot(self._world.disk, self._world.clock, self._world.access(self))
        settings = attempt.definition.fetch
        self._edge = Outlet(name, settings.max_bytes_in_flight)
        self._piece_rows = max(1, settings.piece_bytes // ROW_BYTES)
        self._open: dict[FileVersion, int] = {}
        self._peers: dict[str, tuple[FetchHost, Outlet]] = {}
        self._schemas = dict(schemas)
        sources = attempt.definition.sources
        self._adding = {source.name for source in sources if source.schema_evolution == "add_columns"}
        self.executor = FetchExecutor(
            actor=name,
            settings=settings,
            num_fetchers=num_fetchers,
            outlet=self._edge,
            queue=FileQueue(unfinished, without_rows, appending(sources), replacing(sources), held, orders(sources)),
            known_schemas=schemas,
            poisoned=poisoned,
            policies={source.name: source.policy for source in attempt.definition.sources},
        )

    def outlet(self) -> Outlet:
        return self._edge

    def meet(self, peer: FetchHost) -> None:
        """Opens edges to and from another fetch actor, with which vnodes are exchanged."""
        self._peers.setdefault(peer.name, (peer, Outlet(self.name)))
        self._inlet.add(peer.name)

    def on_moving(self, number: int, vnodes: Set[int], rest: bool) -> None:
        """Vnodes of this fetch actor are about to move."""
        self.do(self.executor.on_moving(number, vnodes, self.now_s, rest=rest))

    def on_message(self, edge: str, message: Message) -> Sequence[Instruction]:
        return self.executor.on_message(message, self.now_s)

    def on_time(self) -> Sequence[Instruction]:
        return self.executor.on_time(self.now_s)

    def progress(self) -> FetchProgress:
        return self.executor.progress()

    def schema(self, source: str, schema: pa.Schema) -> None:
        """The schema of a source is decided, or has got columns."""
        self._schemas[source] = schema
        self.do(self.executor.on_schema(source, self.now_s))

    def grant(self, nbytes: int) -> None:
        """Spark has released bytes that came from here."""
        self.do(self.executor.on_grant(nbytes, self.now_s))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, ReadPiece):
            self.soon(self._read, instruction.file, instruction.offset)
        elif isinstance(instruction, InferSchema):
            self.soon(self._infer, instruction.file)
        elif isinstance(instruction, EmitBlock):
            rows = FileRows.joined(instruction.tables)
            block = Block(self.name, instruction.source, rows, instruction.rows, instruction.nbytes)
            if instruction.source in self._stored:
                self.soon_leaving(self._send_staged, self._edge.send(block), block)
            else:
                self.send(block)
        elif isinstance(instruction, StagePiece):
            self.soon(self._stage_piece, instruction.piece)
        elif isinstance(instruction, ProposeSchema):
            coordinator = self._attempt.coordinator
            coordinator.tell(coordinator.propose_schema, instruction)
        elif isinstance(instruction, ProposeColumns):
            coordinator = self._attempt.coordinator
            coordinator.tell(coordinator.propose_columns, instruction.source, instruction.columns)
        elif isinstance(instruction, HandOver):
            receiver, outlet = self._peers[instruction.to]
            # What travels is a copy.
            handover = copy.deepcopy(instruction.handover)
            self.soon_leaving(receiver.deliver, outlet.send(handover))
            self._world.interruptions.planned(f"{self.name} hands over")
        elif isinstance(instruction, CloseFile):
            self._open.pop(instruction.file, None)
        elif isinstance(instruction, CloseFiles):
            self._open.clear()
        else:
            super().perform(instruction)

    def deliver(self, envelope: Envelope) -> None:
        """Somebody else waits until a message is here."""
        self.tell_now(self.receive, envelope)

    def _send_staged(self, envelope: Envelope, block: Block) -> None:
        stored = self._stored_block(block.source, block.ref)
        [(receiver, _)] = self._outlets.values()
        receiver.tell(receiver.receive, replace(envelope, message=replace(block, stored=stored)))

    def _stage_piece(self, piece: Piece) -> None:
        file = piece.progress.file
        assert piece.rows is not None, "a piece that is stored has rows"
        self.do(self.executor.on_staged(file, self._stored_block(file.source, piece.rows.table), self.now_s))

    def _stored_block(self, source: str, rows: Any) -> StoredBlock:
        path = self._stored[source]
        return StoredBlock(path, SCHEMA, (self._root.stage_rows(path, rows.spans),))

    def _infer(self, file: FileVersion) -> None:
        content = self._requested(file)
        if content is None:
            return
        if content.rows == 0:
            self._end(file, Ending("done"))
        elif content.bad_row == 0:
            self._end(file, Ending("quarantined", "row 1: not a number"))
        else:
            self.do(self.executor.on_inferred(file, SCHEMA, self.now_s))

    def _read(self, file: FileVersion, offset: Offset) -> None:
        content = self._requested(file)
        if content is None:
            return
        column = f"c{crc32(file.path.encode()) % 3}"
        if file.source in self._adding and column not in self._schemas[file.source].names:
            columns = pa.schema([(column, pa.int64())])
            self.do(self.executor.on_new_columns(file, columns, requests=1, bytes_read=0, now_s=self.now_s))
            return
        start = self._open.get(file, offset.row)
        if content.bad_row is not None and start >= content.bad_row:
            self._end(file, Ending("quarantined", f"row {start + 1}: not a number"))
            return
        end = min(start + self._world.random.randint(1, self._piece_rows), content.readable_rows)
        rows = content.records((file.source, file.path, file.version), start, end)
        last = end == content.rows
        self._open[file] = end
        if last:
            del self._open[file]
        cost = {"requests": 1, "bytes_read": rows.table.nbytes}
        self.do(self.executor.on_piece(file, rows, last=last, **cost, now_s=self.now_s))

    def _requested(self, file: FileVersion) -> Content | None:
        """The content of a file; None if the executor was told what became of the request instead."""
        try:
            content = self._world.bucket.read(file)
        except StorageUnavailableError as error:
            self._open.pop(file, None)
            self.do(self.executor.on_unavailable(file, error, requests=1, bytes_read=0, now_s=self.now_s))
            return None
        except (ObjectVanished, ObjectChanged) as error:
            self._end(file, Ending("vanished", str(error), is_gone=isinstance(error, ObjectVanished)))
            return None
        if content.kills == "fetch":
            raise RunFailedError(f"the actor {self.name} died: out of memory")
        return content

    def _end(self, file: FileVersion, ending: Ending) -> None:
        self._open.pop(file, None)
        self.do(self.executor.on_ending(file, ending, requests=1, bytes_read=0, now_s=self.now_s))


class MergeHost(Host):
    """The merge step, with the epochs that wait for the materializer.

    Args:
        senders: edge → the fetch actor at its other end.
    """

    def __init__(
        self, attempt: SimulatedAttempt, name: str, edges: Sequence[str], *, senders: Mapping[str, FetchHost]
    ) -> None:
        super().__init__(attempt, name, edges)
        self._senders = dict(senders)
        self.executor = MergeExecutor(actor=name, edges=edges)
        self.epochs: list[EpochBlocks] = []

    def on_message(self, edge: str, message: Message) -> Sequence[Instruction]:
        return self.executor.on_message(edge, message)

    def add_sender(self, sender: FetchHost) -> None:
        """Opens a further edge in."""
        self._senders[sender.name] = sender
        self._inlet.add(sender.name)

    def release(self, epoch: int) -> None:
        """Spark has read the epoch's blocks: their bytes are free again."""
        self.do(self.executor.on_release(epoch))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, Deliver):
            self.epochs.append(instruction.epoch)
            self._attempt.materializer.look_soon()
        elif isinstance(instruction, Grant):
            sender = self._senders[instruction.edge]
            sender.tell(sender.grant, instruction.nbytes)
        else:
            raise ProtocolError(f"{self.name} cannot perform {type(instruction).__name__}")


def _feed(queue: EventQueue, path_filter: PathFilter) -> EventFeed:
    return EventFeed(
        queue=queue.url,
        bucket=BUCKET,
        prefix="",
        path_filter=path_filter,
        visibility_s=VISIBILITY_S,
        most_messages=_MOST_MESSAGES,
    )
