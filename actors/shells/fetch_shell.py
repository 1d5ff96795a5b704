"""The shell of the fetch step of one share of the vnodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypedDict

import pyarrow as pa

from actors.exchange.edge import Outlet
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_versions import FileVersions
from actors.fetching.instructions import (
    CloseFile,
    CloseFiles,
    EmitBlock,
    FetchInstruction,
    HandOver,
    InferSchema,
    ReadFiles,
    ReadPiece,
    StagePiece,
)
from actors.fetching.read_buffers import Piece
from actors.fetching.read_outcomes import (
    ColumnsFound,
    FileEnded,
    PieceRead,
    ReadOutcome,
    SourceRefused,
    StoreUnavailable,
)
from actors.fetching.version_set import VersionSet
from actors.file_errors import REFUSALS, EmptyFile, ObjectChanged, ObjectVanished, ReaderFailed, UnreadableFile
from actors.files import FileKey, FileVersion, PathKey
from actors.protocol.barrier import Barrier, Update
from actors.protocol.blocks import Block, StoredBlock
from actors.protocol.instructions import ProposeColumns, ProposeSchema
from actors.protocol.messages import Envelope, Message
from actors.protocol.reports import FetchProgress
from actors.reading.open_file import NewColumns
from actors.rows import Offset, Rows
from actors.settings import FetchSettings
from actors.shells.actor_shell import ActorShell, Coordinating, Receiver, times_slower
from actors.shells.runtime import Actor, Runtime
from actors.sources.source import SourceDefinition, appending, orders, replacing
from state.errors import AccessDeniedError, BucketNotFoundError, StorageUnavailableError
from state.store.root import Root

READ, READ_SMALL, STAGE = "read", "read small", "stage"
"""Pools of threads: reading may take all of one for as long as the store likes.

Small files are decoded in one thread: several would spend their time on taking turns, as most of it is Python's.
"""


@dataclass(frozen=True)
class FetchStart:
    """The sources of a fetch actor, and where its work begins.

    Args:
        sources: every source of the pipeline.
        schemas: source → schema, as far as they are decided.
        poisoned: see `FetchExecutor`.
        stored: materialized source → the dataset of its rows, relative to the root.
        without_rows, unfinished, held: see `FileVersions`.
    """

    settings: FetchSettings
    num_fetchers: int
    sources: Sequence[SourceDefinition]
    schemas: Mapping[str, pa.Schema]
    poisoned: Mapping[FileKey, str]
    stored: Mapping[str, str]
    without_rows: VersionSet
    unfinished: Sequence[FileProgress] = ()
    held: Sequence[PathKey] = ()


class ReadableFile(Protocol):
    """A file between its first piece and its last.  See `OpenFile`."""

    def infer_schema(self) -> pa.Schema: ...

    def next_piece(
        self, schema: pa.Schema, offset: Offset, columns: Collection[str] | None = None
    ) -> tuple[Rows, bool]: ...

    def ask(self) -> None: ...

    def settle(self) -> None: ...

    def take_cost(self) -> tuple[int, int]: ...


class Files(Protocol):
    """The files of one source.  See `SourceReader`."""

    schema: pa.Schema | None
    columns: frozenset[str] | None

    def open(self, file: FileVersion) -> ReadableFile: ...

    def check(self) -> None: ...


class Blocks(Protocol):
    """Rows on their way out of a fetch actor."""

    def put(self, block: EmitBlock, columns: frozenset[str] | None) -> tuple[Block, Callable[[], StoredBlock] | None]:
        """Makes a block that Spark can read.

        Args:
            columns: the columns that views use; None for all.

        Returns:
            The block; and for a materialized source the call, which blocks, that stores all of its rows.
        """
        ...

    def store(self, piece: Piece, epoch: int) -> StoredBlock:
        """Stores the rows of a piece of a materialized source.  Blocks."""
        ...


class Cache(Protocol):
    """The actor's part of the cache of this machine."""

    def resize(self, max_bytes: int) -> None: ...


class FetchShell(ActorShell[FetchInstruction]):
    """Hosts a `FetchExecutor` and reads its files in threads.

    Args:
        open_root: opens the root of the pipeline.
        start: the sources, and where the work begins.
        files: source → its files.
        blocks: rows on their way out.
        cache: see `Cache`; None without one.
    """

    reports_progress = True

    def __init__(
        self,
        *,
        name: str,
        edges: Sequence[str],
        coordinator: Actor[Coordinating],
        runtime: Runtime,
        open_root: Callable[[], Root],
        start: FetchStart,
        files: Mapping[str, Files],
        blocks: Blocks,
        cache: Cache | None = None,
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, runtime=runtime, open_root=open_root)
        self._settings, self._files, self._blocks, self._cache = start.settings, files, blocks, cache
        self._stored = frozenset(start.stored)
        self._pace(start.num_fetchers)
        self._peers: dict[str, tuple[Actor[Receiver], Outlet]] = {}
        self._open: dict[FileVersion, ReadableFile] = {}
        self._used: dict[str, frozenset[str]] = {}
        self._edge = Outlet(name, start.settings.max_bytes_in_flight)
        sources = start.sources
        self._executor = FetchExecutor(
            actor=name,
            settings=start.settings,
            num_fetchers=start.num_fetchers,
            outlet=self._edge,
            files=FileVersions(
                start.unfinished,
                start.without_rows,
                appending(sources),
                replacing(sources),
                start.held,
                orders(sources),
            ),
            known_schemas=start.schemas,
            poisoned=start.poisoned,
            policies={source.name: source.policy for source in sources},
        )

    # -- calls of other actors ------------------------------------------------------------------------------------

    async def meet(self, peers: Mapping[str, Actor[Receiver]]) -> None:
        """Opens edges to and from other fetch actors, with which vnodes are exchanged."""
        for name, peer in peers.items():
            self._peers.setdefault(name, (peer, Outlet(self.name)))
            self._inlet.add(name)

    async def on_moving(self, number: int, vnodes: Set[int], rest: bool) -> None:
        """Vnodes of this fetch actor are about to move, see `FetchExecutor.on_moving`."""
        with self.guard():
            self.do(self._executor.on_moving(number, vnodes, self.now_s(), rest=rest))

    async def schema(self, source: str, schema: pa.Schema) -> None:
        """The schema of a source is decided, or has got columns."""
        with self.guard():
            self._files[source].schema = schema
            self.do(self._executor.on_schema(source, self.now_s()))

    async def read_columns(self, columns: Mapping[str, Sequence[str]]) -> None:
        """The views use only these columns of a source.

        Files that are opened from now on are read without the others.  Of a materialized source all columns are read
        and stored, and the others are kept from Spark.  Files that are being read
        are opened again when a view needs more than before.
        """
        with self.guard():
            for source, names in columns.items():
                if source in self._stored:
                    self._used[source] = frozenset(names)
                    continue
                before, self._files[source].columns = self._files[source].columns, frozenset(names)
                if before is not None and not before.issuperset(names):
                    self._open = {file: each for file, each in self._open.items() if file.source != source}

    async def grant(self, nbytes: int) -> None:
        """Spark has released bytes that came from here."""
        with self.guard():
            self.do(self._executor.on_grant(nbytes, self.now_s()))

    # -- the executor ---------------------------------------------------------------------------------------------

    def outlet(self) -> Outlet:
        return self._edge

    def on_message(self, edge: str, message: Message) -> list[FetchInstruction]:
        if isinstance(message, Barrier) and isinstance(message.mutation, Update):
            owners = message.mutation.after.owners
            self._pace(len(owners))
            self._share_cache(owners)
        return self._executor.on_message(message, self.now_s())

    def on_time(self) -> list[FetchInstruction]:
        return self._executor.on_time(self.now_s())

    def progress(self) -> FetchProgress:
        return self._executor.progress()

    # -- instructions ---------------------------------------------------------------------------------------------

    def perform(self, instruction: FetchInstruction) -> None:
        match instruction:
            case ReadPiece():
                self.beside(self._read, [self._next_piece(instruction)], READ)
            case ReadFiles():
                self._read_together([self._next_piece(each) for each in instruction.reads])
            case EmitBlock():
                self._emit(instruction)
            case InferSchema():
                self.beside(self._infer, instruction.file)
            case StagePiece():
                self.beside(self._stage_piece, instruction.piece, instruction.epoch)
            case ProposeSchema():
                self._runtime.notify(self._coordinator, Coordinating.propose_schema, instruction)
            case ProposeColumns():
                self._runtime.notify(
                    self._coordinator, Coordinating.propose_columns, instruction.source, instruction.columns
                )
            case HandOver():
                receiver, outlet = self._peers[instruction.to]
                # Called now, before the rest takes the time of this actor; a call is lost with its sender, so it is
                # waited for.
                envelope = outlet.send(instruction.handover)
                self.beside_leaving(_arrived, self._runtime.call(receiver, Receiver.receive, envelope))
            case CloseFile():
                self._open.pop(instruction.file, None)
            case CloseFiles():
                self._open.clear()
            case _:
                self.perform_flow(instruction)

    def _pace(self, num_fetchers: int) -> None:
        self._report_every_s = self._runtime.report_every_s * times_slower(num_fetchers)

    def _share_cache(self, owners: Collection[str]) -> None:
        """A fetch actor that leaves keeps nothing."""
        if self._cache is not None and self._settings.cache is not None:
            share = self._settings.cache.max_bytes // len(owners)
            self._cache.resize(share if self.name in owners else 0)

    def _emit(self, instruction: EmitBlock) -> None:
        block, store = self._blocks.put(instruction, self._used.get(instruction.source))
        if store is None:
            self.send(block)
        else:
            # It has its number now, so that later messages come behind it.
            self.beside_leaving(self._send_stored, self._edge.send(block), block, store)

    async def _send_stored(self, envelope: Envelope, block: Block, store: Callable[[], StoredBlock]) -> None:
        stored = await self._runtime.in_thread(store, STAGE)
        [(receiver, _)] = self._outlets.values()
        message = replace(envelope, message=replace(block, stored=stored))
        self._runtime.notify(receiver, Receiver.receive, message)

    async def _stage_piece(self, piece: Piece, epoch: int) -> None:
        stored = await self._runtime.in_thread(partial(self._blocks.store, piece, epoch), STAGE)
        self.do(self._executor.on_staged(piece.progress.file, stored, self.now_s()))

    def _read_together(self, pieces: Sequence[_NextPiece]) -> None:
        """Asks for small files side by side, and reads them as they come."""
        for each in pieces:
            each.file.ask()
        self.beside(self._read, pieces, READ_SMALL)

    async def _read(self, pieces: Sequence[_NextPiece], threads: str) -> None:
        """Reads pieces, all in one thread; a file that fails does so alone."""
        answers = await self._runtime.in_thread(lambda: [_answer(each) for each in pieces], threads)
        outcomes: list[ReadOutcome] = []
        for piece, answer in zip(pieces, answers, strict=True):
            if isinstance(answer, NewColumns):
                outcomes.append(ColumnsFound(piece.version, answer.columns, **_cost(piece.file)))
            elif isinstance(answer, Exception):
                outcomes.append(await self._outcome_of(answer, piece.version, piece.file))
            else:
                rows, last = answer
                if last:
                    self._open.pop(piece.version, None)
                outcomes.append(PieceRead(piece.version, rows, last=last, **_cost(piece.file)))
        self.do(self._executor.on_read(outcomes, self.now_s()))

    def _next_piece(self, read: ReadPiece) -> _NextPiece:
        files = self._files[read.file.source]
        file = self._open.get(read.file) or files.open(read.file)
        self._open[read.file] = file
        assert files.schema is not None, "files are read when the schema of their source is decided"
        return _NextPiece(read.file, file, partial(file.next_piece, files.schema, read.offset, files.columns))

    async def _infer(self, file: FileVersion) -> None:
        open_file = self._open[file] = self._files[file.source].open(file)
        try:
            schema = await self._runtime.in_thread(open_file.infer_schema, READ)
        except Exception as error:
            outcome = await self._outcome_of(error, file, open_file)
            self.do(self._executor.on_read([outcome], self.now_s()))
            return
        self.do(self._executor.on_inferred(file, schema, self.now_s()))

    async def _outcome_of(self, error: Exception, file: FileVersion, open_file: ReadableFile) -> ReadOutcome:
        """The outcome of a read that has failed; an error that is not the file's ends the actor."""
        self._open.pop(file, None)
        await self._runtime.in_thread(open_file.settle)
        is_refused = isinstance(error, BucketNotFoundError)
        if isinstance(error, AccessDeniedError):
            # Refused for this file alone, or for all of them: then no file is marked.
            is_refused = await self._runtime.in_thread(partial(_is_refused, self._files[file.source]))
        cost = _cost(open_file)
        if is_refused:
            return SourceRefused(file, **cost)
        if isinstance(error, StorageUnavailableError):
            return StoreUnavailable(file, error, **cost)
        if isinstance(error, (ObjectVanished, ObjectChanged)):
            ending = Ending("vanished", str(error), is_deleted=isinstance(error, ObjectVanished))
            return FileEnded(file, ending, **cost)
        if isinstance(error, EmptyFile):
            return FileEnded(file, Ending("done"), **cost)
        if isinstance(error, ReaderFailed):
            self._log.error(
                "a reader failed; the file is quarantined",
                source=file.source, path=file.path, exc_info=error.__cause__,
            )  # fmt: skip
        if isinstance(error, (UnreadableFile, AccessDeniedError)):
            return FileEnded(file, Ending("quarantined", str(error)), **cost)
        raise error


@dataclass(frozen=True)
class _NextPiece:
    """A piece that is about to be read; `read` blocks."""

    version: FileVersion
    file: ReadableFile
    read: Callable[[], tuple[Rows, bool]]


class _Cost(TypedDict):
    requests: int
    bytes_read: int


def _cost(file: ReadableFile) -> _Cost:
    requests, bytes_read = file.take_cost()
    return {"requests": requests, "bytes_read": bytes_read}


def _is_refused(files: Files) -> bool:
    """True if the store refuses a whole source."""
    try:
        files.check()
    except REFUSALS:
        return True
    return False


def _answer(piece: _NextPiece) -> tuple[Rows, bool] | Exception:
    """The piece, or the error in its place."""
    try:
        return piece.read()
    except Exception as error:
        return error


async def _arrived(call: Any) -> None:
    await call
