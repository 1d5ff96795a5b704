"""The fetch step of one share of the vnodes on Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import ray

from actors.actor_shell import ActorShell
from actors.edge import Outlet
from actors.fetch_executor import FetchExecutor
from actors.file_progress import Ending, FileProgress
from actors.file_queue import FileQueue
from actors.instructions import CloseFiles, EmitBlock, InferSchema, Instruction, ProposeSchema, ReadPiece
from actors.messages import Block, FileKey, FileVersion, Message, PathKey
from actors.open_file import OpenFile
from actors.read_errors import EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile
from actors.reports import FetchProgress
from actors.settings import FetchSettings
from actors.source import SourceDefinition
from actors.source_reader import SourceReader
from state.errors import AccessDeniedError, StorageFullError, StorageUnavailableError
from state.location import Location


class FetchActor(ActorShell):
    """Hosts a `FetchExecutor` and reads its files in threads.

    Args:
        settings: how much is read at once.
        sources: every source of the pipeline.
        schemas: source → schema, as far as they are decided.
        unfinished, without_rows: see `FileQueue`.
        poisoned: see `FetchExecutor`.
    """

    def __init__(
        self,
        *,
        name: str,
        edges: Sequence[str],
        coordinator: Any,
        root: Location,
        settings: FetchSettings,
        sources: Sequence[SourceDefinition],
        schemas: Mapping[str, pa.Schema],
        unfinished: Iterable[FileProgress],
        without_rows: Iterable[FileKey],
        poisoned: Mapping[PathKey, str],
    ) -> None:
        super().__init__(name=name, edges=edges, coordinator=coordinator, root=root)
        self._readers = {source.name: SourceReader(source, schemas.get(source.name), settings) for source in sources}
        self._open: dict[FileVersion, OpenFile] = {}
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="read")
        self._edge = Outlet(name, settings.max_bytes_in_flight)
        self._executor = FetchExecutor(
            actor=name,
            settings=settings,
            outlet=self._edge,
            queue=FileQueue(unfinished, without_rows),
            known_schemas=schemas,
            poisoned=poisoned,
        )

    def outlet(self) -> Outlet:
        return self._edge

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        return self._executor.on_message(message, self.now_s())

    def on_time(self) -> list[Instruction]:
        return self._executor.on_time(self.now_s())

    def progress(self) -> FetchProgress:
        return self._executor.progress()

    async def schema(self, source: str, schema: pa.Schema) -> None:
        """The schema of a source is decided."""
        with self._guard():
            self._readers[source].schema = schema
            self.do(self._executor.on_schema(source, self.now_s()))

    async def grant(self, nbytes: int) -> None:
        """Spark has released bytes that came from here."""
        with self._guard():
            self.do(self._executor.on_grant(nbytes, self.now_s()))

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, ReadPiece):
            self.run_guarded(self._read(instruction.file, instruction.offset_rows))
        elif isinstance(instruction, InferSchema):
            self.run_guarded(self._infer(instruction.file))
        elif isinstance(instruction, EmitBlock):
            self._emit(instruction)
        elif isinstance(instruction, ProposeSchema):
            self._coordinator.propose_schema.options(num_returns=0).remote(instruction.source, instruction.schema)
        elif isinstance(instruction, CloseFiles):
            self._open.clear()
        else:
            super().perform(instruction)

    def _emit(self, block: EmitBlock) -> None:
        table = pa.concat_tables(block.tables).combine_chunks()
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
        self.send(Block(self._name, block.source, reference, block.rows, block.nbytes))

    async def _read(self, file: FileVersion, offset_rows: int) -> None:
        reader = self._readers[file.source]
        open_file = self._open.get(file) or reader.open(file)
        self._open[file] = open_file
        try:
            table, last = await asyncio.get_running_loop().run_in_executor(
                self._threads, open_file.next_piece, reader.schema, offset_rows
            )
        except Exception as error:
            await self._on_read_error(file, open_file, error)
            return
        if last:
            self._open.pop(file, None)
        requests, bytes_read = open_file.take_cost()
        self.do(
            self._executor.on_piece(
                file, table, last=last, requests=requests, bytes_read=bytes_read, now_s=self.now_s()
            )
        )

    async def _infer(self, file: FileVersion) -> None:
        open_file = self._open[file] = self._readers[file.source].open(file)
        try:
            schema = await asyncio.get_running_loop().run_in_executor(self._threads, open_file.infer_schema)
        except Exception as error:
            await self._on_read_error(file, open_file, error)
            return
        self.do(self._executor.on_inferred(file, schema, self.now_s()))

    async def _on_read_error(self, file: FileVersion, open_file: OpenFile, error: Exception) -> None:
        """What the file gets for an error; one that no file is to blame for ends the actor."""
        self._open.pop(file, None)
        if isinstance(error, AccessDeniedError):
            # Refused for this file alone, or for all of them: then this raises, and no file is marked.
            await asyncio.to_thread(self._readers[file.source].check)
        requests, bytes_read = open_file.take_cost()
        cost = {"requests": requests, "bytes_read": bytes_read}
        if isinstance(error, StorageUnavailableError):
            self.do(self._executor.on_unavailable(file, error, **cost, now_s=self.now_s()))
        elif isinstance(error, (ObjectVanished, ObjectChanged)):
            self.do(self._executor.on_ending(file, Ending("vanished", str(error)), **cost, now_s=self.now_s()))
        elif isinstance(error, EmptyFile):
            self.do(self._executor.on_ending(file, Ending("done"), **cost, now_s=self.now_s()))
        elif isinstance(error, (UnreadableFile, AccessDeniedError)):
            self.do(self._executor.on_ending(file, Ending("quarantined", str(error)), **cost, now_s=self.now_s()))
        else:
            raise error
