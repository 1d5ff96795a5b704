"""The fetch step of one share of the vnodes on Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray

from actors.exchange.edge import Outlet
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_queue import FileQueue
from actors.fetching.instructions import (
    CloseFile,
    CloseFiles,
    EmitBlock,
    FetchInstruction,
    HandOver,
    InferSchema,
    ReadPiece,
    StagePiece,
)
from actors.fetching.read_buffers import Piece
from actors.fetching.row_stager import RowStager, with_files
from actors.file_errors import EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileKey, FileVersion, PathKey
from actors.hosting.shell import ActorShell, report_every_s
from actors.objects.range_cache import RangeCache
from actors.protocol.barrier import Barrier, Update
from actors.protocol.blocks import Block
from actors.protocol.instructions import ProposeColumns, ProposeSchema
from actors.protocol.messages import Envelope, Message
from actors.protocol.reports import FetchProgress
from actors.protocol.vnode_mapping import VnodeMapping
from actors.reading.open_file import NewColumns, OpenFile
from actors.reading.source_reader import SourceReader
from actors.rows import Offset
from actors.schemas.metadata_columns import with_epoch
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition, appending, orders, replacing
from state.errors import AccessDeniedError, SchemaError, StorageFullError, StorageUnavailableError
from state.location import Location

_STAGED_AT_ONCE = 2


class FetchActor(ActorShell[FetchInstruction]):
    """Hosts a `FetchExecutor` and reads its files in threads.

    Args:
        settings: how much is read at once.
        num_fetchers: how many fetch actors there are.
        sources: every source of the pipeline.
        schemas: source → schema, as far as they are decided.
        unfinished, without_rows, held: see `FileQueue`.
        poisoned: see `FetchExecutor`.
        stored: materialized source → where its rows are kept, relative to the root.
    """

    def __init__(
        self,
        *,
        name: str,
        edges: Sequence[str],
        coordinator: Any,
        root: Location,
        settings: FetchSettings,
        num_fetchers: int,
        sources: Sequence[SourceDefinition],
        schemas: Mapping[str, pa.Schema],
        unfinished: Iterable[FileProgress],
        without_rows: Iterable[FileKey],
        held: Iterable[PathKey],
        poisoned: Mapping[FileKey, str],
        stored: Mapping[str, str],
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, root=root)
        self._settings, self._cache = settings, _cache(settings, num_fetchers, root, name)
        self._report_every_s = report_every_s(num_fetchers)
        self._peers: dict[str, tuple[Any, Outlet]] = {}
        self._readers = {
            source.name: SourceReader(source, schemas.get(source.name), settings, self._cache) for source in sources
        }
        self._open: dict[FileVersion, OpenFile] = {}
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="read")
        # Reading may take all threads of the other pool for as long as the store likes.
        self._stage_threads = ThreadPoolExecutor(_STAGED_AT_ONCE, thread_name_prefix="stage")
        self._stagers = {source: RowStager(root, path) for source, path in stored.items()}
        self._used: dict[str, frozenset[str]] = {}
        self._edge = Outlet(name, settings.max_bytes_in_flight)
        self._executor = FetchExecutor(
            actor=name,
            settings=settings,
            num_fetchers=num_fetchers,
            outlet=self._edge,
            queue=FileQueue(unfinished, without_rows, appending(sources), replacing(sources), held, orders(sources)),
            known_schemas=schemas,
            poisoned=poisoned,
            policies={source.name: source.policy for source in sources},
        )

    def outlet(self) -> Outlet:
        return self._edge

    async def meet(self, peers: Mapping[str, Any]) -> None:
        """Opens edges to and from other fetch actors, with which vnodes are exchanged."""
        for name, peer in peers.items():
            self._peers.setdefault(name, (peer, Outlet(self._name)))
            self._inlet.add(name)

    async def on_moving(self, number: int, vnodes: Set[int], rest: bool) -> None:
        """Vnodes of this fetch actor are about to move, see `FetchExecutor.on_moving`."""
        with self._guard():
            self.do(self._executor.on_moving(number, vnodes, self.now_s(), rest=rest))

    def on_message(self, edge: str, message: Message) -> list[FetchInstruction]:
        if isinstance(message, Barrier) and isinstance(message.mutation, Update):
            self._share_cache(message.mutation.after)
            self._report_every_s = report_every_s(len(message.mutation.after.owners))
        return self._executor.on_message(message, self.now_s())

    def on_time(self) -> list[FetchInstruction]:
        return self._executor.on_time(self.now_s())

    def progress(self) -> FetchProgress:
        return self._executor.progress()

    async def schema(self, source: str, schema: pa.Schema) -> None:
        """The schema of a source is decided."""
        with self._guard():
            self._readers[source].schema = schema
            self.do(self._executor.on_schema(source, self.now_s()))

    async def read_columns(self, columns: Mapping[str, Sequence[str]]) -> None:
        """The views use only these columns of a source.

        The others are not read of what is opened from now on; of a materialized source they are read and stored, and
        kept from Spark.  When a view needs more than before, files that are being read are opened again.
        """
        with self._guard():
            for source, names in columns.items():
                if source in self._stagers:
                    self._used[source] = frozenset(names)
                    continue
                before, self._readers[source].columns = self._readers[source].columns, frozenset(names)
                if before is not None and not before.issuperset(names):
                    self._open = {file: each for file, each in self._open.items() if file.source != source}

    async def grant(self, nbytes: int) -> None:
        """Spark has released bytes that came from here."""
        with self._guard():
            self.do(self._executor.on_grant(nbytes, self.now_s()))

    def perform(self, instruction: FetchInstruction) -> None:
        match instruction:
            case ReadPiece():
                self.run_guarded(self._read(instruction.file, instruction.offset))
            case EmitBlock():
                self._emit(instruction)
            case InferSchema():
                self.run_guarded(self._infer(instruction.file))
            case StagePiece():
                self.run_guarded(self._stage_piece(instruction.piece, instruction.epoch))
            case ProposeSchema():
                self._coordinator.propose_schema.options(num_returns=0).remote(instruction)
            case ProposeColumns():
                self._coordinator.propose_columns.options(num_returns=0).remote(instruction.source, instruction.columns)
            case HandOver():
                receiver, outlet = self._peers[instruction.to]
                # Now, before what follows takes the time of this actor; it is lost with its sender, and so waited for.
                self.run_leaving(_arrived(receiver.receive.remote(outlet.send(instruction.handover))))
            case CloseFile():
                self._open.pop(instruction.file, None)
            case CloseFiles():
                self._open.clear()
            case _:
                self.perform_flow(instruction)

    def _share_cache(self, mapping: VnodeMapping) -> None:
        """Who leaves keeps nothing."""
        if self._cache is not None and self._settings.cache is not None:
            leaves = self._name not in mapping.owners
            self._cache.resize(0 if leaves else self._settings.cache.max_bytes // len(mapping.owners))

    def _emit(self, block: EmitBlock) -> None:
        rows = with_epoch(pa.concat_tables(block.tables).combine_chunks(), block.epoch)
        used = self._used.get(block.source)
        seen = with_files(rows, block.pieces) if block.source in self._stagers else rows
        table = seen if used is None else seen.select([name for name in seen.column_names if name in used])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        try:
            reference = ray.put(sink.getvalue().to_pybytes())
        except ray.exceptions.OutOfDiskError:
            raise StorageFullError(
                f"{self._name}: Ray's object store is full, and so is the disk that it spills to (95 % by default): "
                "make room there, or start Ray with another spill directory; the run goes on from the last epoch"
            ) from None
        columns = tuple(table.column_names)
        message = Block(self._name, block.source, reference, block.rows, block.nbytes, columns)
        if block.source not in self._stagers:
            self.send(message)
            return
        # It has its number now, so that whatever follows it comes behind it.
        self.run_leaving(self._send_staged(self._edge.send(message), message, rows, block.pieces))

    async def _send_staged(self, envelope: Envelope, block: Block, rows: pa.Table, pieces: Sequence[Piece]) -> None:
        stager = self._stagers[block.source]
        stored = await asyncio.get_running_loop().run_in_executor(self._stage_threads, stager.stage, rows, pieces)
        [(receiver, _)] = self._outlets.values()
        receiver.receive.options(num_returns=0).remote(replace(envelope, message=replace(block, stored=stored)))

    async def _stage_piece(self, piece: Piece, epoch: int) -> None:
        file, table = piece.progress.file, piece.table
        assert table is not None, "a piece that is stored has rows"
        rows, stager = with_epoch(table, epoch), self._stagers[file.source]
        stored = await asyncio.get_running_loop().run_in_executor(self._stage_threads, stager.stage, rows, [piece])
        self.do(self._executor.on_staged(file, stored, self.now_s()))

    async def _read(self, file: FileVersion, offset: Offset) -> None:
        reader = self._readers[file.source]
        open_file = self._open.get(file) or reader.open(file)
        self._open[file] = open_file
        try:
            rows, last = await asyncio.get_running_loop().run_in_executor(
                self._threads, open_file.next_piece, reader.schema, offset, reader.columns
            )
        except NewColumns as found:
            requests, bytes_read = open_file.take_cost()
            cost = {"requests": requests, "bytes_read": bytes_read}
            self.do(self._executor.on_new_columns(file, found.columns, **cost, now_s=self.now_s()))
            return
        except Exception as error:
            await self._on_read_error(file, open_file, error)
            return
        if last:
            self._open.pop(file, None)
        requests, bytes_read = open_file.take_cost()
        self.do(
            self._executor.on_piece(file, rows, last=last, requests=requests, bytes_read=bytes_read, now_s=self.now_s())
        )

    async def _infer(self, file: FileVersion) -> None:
        open_file = self._open[file] = self._readers[file.source].open(file)
        try:
            schema = await asyncio.get_running_loop().run_in_executor(self._threads, open_file.infer_schema)
        except SchemaError as error:
            schema = error
        except Exception as error:
            await self._on_read_error(file, open_file, error)
            return
        self.do(self._executor.on_inferred(file, schema, self.now_s()))

    async def _on_read_error(self, file: FileVersion, open_file: OpenFile, error: Exception) -> None:
        """What the file gets for an error; one that no file is to blame for ends the actor."""
        self._open.pop(file, None)
        await asyncio.to_thread(open_file.settle)
        if isinstance(error, AccessDeniedError):
            # Refused for this file alone, or for all of them: then this raises, and no file is marked.
            await asyncio.to_thread(self._readers[file.source].check)
        requests, bytes_read = open_file.take_cost()
        cost = {"requests": requests, "bytes_read": bytes_read}
        if isinstance(error, StorageUnavailableError):
            self.do(self._executor.on_unavailable(file, error, **cost, now_s=self.now_s()))
        elif isinstance(error, (ObjectVanished, ObjectChanged)):
            ending = Ending("vanished", str(error), is_gone=isinstance(error, ObjectVanished))
            self.do(self._executor.on_ending(file, ending, **cost, now_s=self.now_s()))
        elif isinstance(error, EmptyFile):
            self.do(self._executor.on_ending(file, Ending("done"), **cost, now_s=self.now_s()))
        elif isinstance(error, (UnreadableFile, AccessDeniedError)):
            self.do(self._executor.on_ending(file, Ending("quarantined", str(error)), **cost, now_s=self.now_s()))
        else:
            raise error


async def _arrived(call: Any) -> None:
    await call


def _cache(settings: FetchSettings, num_fetchers: int, root: Location, name: str) -> RangeCache | None:
    """This actor's part of the cache on this machine, if there is to be one."""
    if settings.cache is None:
        return None
    place = blake2b(str(root).encode(), digest_size=8).hexdigest()
    return RangeCache(Path(settings.cache.directory) / place / name, settings.cache.max_bytes // num_fetchers)
