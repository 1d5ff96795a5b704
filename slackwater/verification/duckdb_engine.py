"""DuckDB as an engine of verification: its own readers and its own SQL, in a worker process."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, TracebackType

import psutil
import pyarrow as pa
import pyarrow.types as kinds

from actors.objects.object_file import ObjectFile
from actors.telemetry.text import first_line
from slackwater.confinement.errors import WorkerEndedError
from slackwater.confinement.program import Program
from slackwater.confinement.received_rows import received_table
from slackwater.confinement.worker_client import MemoryExceededError, TimeExceededError, WorkerClient
from slackwater.status.quantities import human_bytes
from slackwater.verification.duckdb_tables import Answer, Begin, CountedRows, End, Insert, Open, Request
from slackwater.verification.engine import CannotComputeError, TimeLimitError, query_of, require_parents
from slackwater.verification.ingested_files import IngestedFiles
from spark_bridge.engine.catalyst.epoch_timestamps import filters_by_time, uses_epoch_timestamps
from spark_bridge.maintenance.recomputation import Followed
from state.errors import SlackwaterError
from state.location import Location
from state.tables.records import CatalogView
from state.visible import visible

# Its tables can be larger than any file of another worker.
_TABLES = Program("slackwater.verification.duckdb_worker", limits_files=False)
_COPY_BYTES = 1 << 20
_HEAD_BYTES = 4
_MEMORY_BYTES = psutil.virtual_memory().total // 2
_LONGEST_REASON = 2_000


class DuckDbEngine:
    """See `Engine`.  Its worker has no credentials, and reads only the copies of the files.

    Args:
        scratch: a directory for its tables and for copies of the files.
        queries: view → the query to run in place of its own text.
        views: the views of the catalog, by name.
        followed: view that follows watermarks → its watermarks and late rows.
        timeout_s: seconds for each file and each view; None for no limit.

    Raises:
        CannotComputeError: DuckDB is not installed, or its worker does not start.
    """

    name = "duckdb"

    def __init__(
        self,
        scratch: Path,
        queries: Mapping[str, str],
        views: Mapping[str, CatalogView] = MappingProxyType({}),
        followed: Mapping[str, Followed] = MappingProxyType({}),
        timeout_s: float | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        if find_spec("duckdb") is None:
            raise CannotComputeError("it is not installed; pip install 'slackwater[verify]'")
        self._scratch, self._queries, self._views, self._followed = scratch, queries, views, followed
        try:
            self._worker = WorkerClient(_TABLES, "file")
        except WorkerEndedError as error:
            raise CannotComputeError(str(error)) from None
        counted = {
            view: CountedRows(
                {source: self._written(rows) for source, rows in each.late.items()}, each.event_times, each.least_us
            )
            for view, each in followed.items()
        }
        try:
            self._request(Open(str(scratch), _MEMORY_BYTES, dict(queries), dict(views), counted))
        except BaseException:
            self._worker.close()
            raise

    @property
    def worker_pid(self) -> int:
        """The process that computes."""
        return self._worker.pid

    def __enter__(self) -> DuckDbEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.close()

    def accept(self, view: CatalogView) -> None:
        if uses_epoch_timestamps(view.identity):
            raise CannotComputeError(
                "it uses the times of the epochs that ingested its rows, which are not in the files"
            )
        if filters_by_time(view.identity):
            raise CannotComputeError("it filters by the time of its epoch, which is not in its query")
        followed = self._followed.get(view.name, Followed())
        if followed.closes:
            raise CannotComputeError("it shows groups when their windows close, which its query does not show")
        if followed.ttl_us is not None and view.name not in self._queries:
            raise CannotComputeError("it has a time to live, which its query does not show")
        self._query(view)
        require_parents(self, view, self._views)

    def load(self, files: IngestedFiles, scratch: Path) -> None:
        definition = files.source.definition
        # The worker needs the URL for a column, but no access to it.
        self._request(Begin(replace(definition, location=Location(definition.location.url))))
        try:
            for file, content in files:
                with _copied(content, self._scratch) as local:
                    self._request(Insert(local, content.head(_HEAD_BYTES), file))
        except BaseException:
            if self._worker.is_open:
                self._request(End(is_complete=False))
            raise
        self._request(End(is_complete=True))

    def answer(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        return _in_types_of(schema, self._rows(Answer(view)))

    def answer_over(self, view: CatalogView, schema: pa.Schema, parents: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a view over these rows of the views that it reads, in an engine without tables of their names.

        Raises:
            CannotComputeError: it reads a source besides, or as `answer`.
        """
        files = {name: self._written(rows) for name, rows in parents.items()}
        return _in_types_of(schema, self._rows(Answer(view, files)))

    def _rows(self, request: Request) -> pa.Table:
        answer = self._request(request)
        try:
            return received_table(answer)
        except WorkerEndedError as error:
            raise CannotComputeError(str(error)) from None

    def _request(self, request: Request) -> bytes:
        """The answer of the worker.

        Raises:
            CannotComputeError: the worker has a reason, has ended, or exceeds its memory.
            TimeLimitError: the request exceeds its time.
        """
        if not self._worker.is_open:
            raise CannotComputeError("its worker process has ended")
        try:
            answer = self._worker.answer(
                pickle.dumps(request), timeout_s=self._timeout_s, max_memory_bytes=_MEMORY_BYTES
            )
        except TimeExceededError:
            raise TimeLimitError(self._timeout_s) from None
        except MemoryExceededError:
            raise CannotComputeError(f"it needs more than {human_bytes(_MEMORY_BYTES)} of memory") from None
        except SlackwaterError as error:
            raise CannotComputeError(first_line(error)) from None
        # The worker begins its answer with 1, or has a reason why it cannot compute.
        if answer[:1] != b"\1":
            raise CannotComputeError(visible(answer[1:_LONGEST_REASON].decode("utf-8", "replace")))
        return answer[1:]

    def _query(self, view: CatalogView) -> str:
        query = self._queries.get(view.name) or query_of(view)
        if query is None:
            raise CannotComputeError("the view is a function")
        return query

    def _written(self, rows: pa.Table) -> str:
        """A file of Arrow IPC in the scratch directory."""
        with tempfile.NamedTemporaryFile(dir=self._scratch, suffix=".arrow", delete=False) as file:
            with pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows)
            return file.name


@contextmanager
def _copied(content: ObjectFile, scratch: Path) -> Iterator[str]:
    """A local copy of a file, which is deleted afterwards."""
    with tempfile.NamedTemporaryFile(dir=scratch) as file:
        with content.stream() as stream:
            shutil.copyfileobj(stream, file, _COPY_BYTES)
        file.flush()
        yield file.name


def _in_types_of(schema: pa.Schema, answer: pa.Table) -> pa.Table:
    """The answer with the names and types of the view; CannotComputeError for other kinds of values."""
    if answer.num_columns != len(schema):
        raise CannotComputeError(f"{answer.num_columns} columns where the view has {len(schema)}")
    for field, found in zip(schema, answer.schema, strict=True):
        if not _same_kind(found.type, field.type):
            raise CannotComputeError(f"column {field.name} is {found.type} here and {field.type} in the view")
    try:
        return answer.rename_columns(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise CannotComputeError(first_line(error)) from error


def _same_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    if kinds.is_integer(wanted):
        return bool(kinds.is_integer(found) or (kinds.is_decimal(found) and found.scale == 0))
    for is_kind in (kinds.is_floating, kinds.is_decimal, kinds.is_nested):
        if is_kind(wanted):
            return bool(is_kind(found))
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(found) and bool(found.tz) == bool(wanted.tz))
    return bool(found == wanted)
