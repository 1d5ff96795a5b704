"""Spark as an engine of verification: exact semantics of every view, over rows read again by the readers of a run."""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from actors.file_errors import UnreadableFile
from actors.formats.reader import FileReader
from actors.formats.registry import reader_for
from actors.objects.object_file import ObjectFile
from actors.reading.file_columns import FileColumns
from actors.rows import Offset
from actors.schemas.metadata_columns import EPOCH
from actors.settings import MIB, FetchSettings
from actors.sources.row_key import Key
from actors.sources.source import SourceDefinition, event_columns, row_keys
from slackwater.reading.recorded_source import IngestedFile
from slackwater.verification.engine import (
    CannotComputeError,
    TimeLimitError,
    WrongLedgerError,
    query_of,
    require_parents,
)
from slackwater.verification.ingested_files import IngestedFiles
from spark_bridge.engine.catalyst.epoch_timestamps import uses_epoch_timestamps
from spark_bridge.engine.session.borrowed_session import confined_session
from spark_bridge.engine.session.local_session import session_at_hand
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.maintenance.recomputation import Followed, recompute
from spark_bridge.plans.columns import visible_schemas
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import RunFailedError, SchemaError, ViewError
from state.tables.records import CatalogView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_PIECE_BYTES = 64
# The identity of a view lists the columns that it reads, each with a number.
_USES_EPOCH = re.compile(rf"\b{EPOCH}#\d")
_PART_BYTES = 64 * MIB
_CANCEL_AGAIN_S = 1.0
_TAGS = itertools.count()


class SparkEngine:
    """See `Engine`.  Keeps the rows as Parquet files.

    Args:
        ansi: the ANSI mode of the root.
        functions: name → definition of a function view.
        views: the views of the catalog, by name.
        settings: the settings of reading, as in a run.
        spark: the session to use; None takes the session of the process, or a local one, started on demand and ended.
        time_us: the time in filters by it, in microseconds since 1970; None without a view with one.
        followed: view → the watermarks that it has followed, if it follows watermarks.
        timeout_s: seconds for the jobs of each view, which are then cancelled; None for no limit.
    """

    name = "spark"

    def __init__(
        self,
        ansi: bool,
        functions: Mapping[str, ViewDefinition],
        views: Mapping[str, CatalogView],
        settings: FetchSettings,
        spark: SparkSession | None,
        time_us: int | None = None,
        followed: Mapping[str, Followed] = MappingProxyType({}),
        timeout_s: float | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._time_us, self._followed = time_us, followed
        self._ansi, self._functions, self._views, self._settings = ansi, functions, views, settings
        self._spark = spark
        self._confined_session: SparkSession | None = None
        self._resources = ExitStack()
        self._schemas: dict[str, pa.Schema] = {}
        self._keys: dict[str, Key] = {}
        self._event_times: dict[str, str] = {}
        self._directories: dict[str, Path] = {}

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def accept(self, view: CatalogView) -> None:
        if _USES_EPOCH.search(view.identity):
            raise CannotComputeError("it uses _epoch, which is not in the files")
        if uses_epoch_timestamps(view.identity):
            raise CannotComputeError(
                "it uses the times of the epochs that ingested its rows, which are not in the files"
            )
        if query_of(view) is None and view.name not in self._functions:
            raise CannotComputeError("the view is a function: give its application, as in --app app.py:pipeline")
        require_parents(self, view, self._views)

    def load(self, files: IngestedFiles, scratch: Path) -> None:
        source = files.source
        # The run applied the limit of bad records already.
        limits = replace(self._settings.limits, max_bad_records=sys.maxsize)
        definition = source.definition
        reader = reader_for(definition.format, limits, definition.timestamps, definition.names)
        part, nbytes, number = [source.schema.empty_table()], 0, 0
        for file, content in files:
            for piece in _ingested(reader, file, content, source.definition, self._settings.piece_bytes):
                part.append(piece)
                nbytes += piece.nbytes
                if nbytes >= _PART_BYTES:
                    pq.write_table(pa.concat_tables(part), scratch / f"{number}.parquet")
                    part, nbytes, number = [], 0, number + 1
        if part:
            pq.write_table(pa.concat_tables(part), scratch / f"{number}.parquet")
        self._schemas[source.name], self._directories[source.name] = source.schema, scratch
        self._keys |= row_keys([source.definition])
        self._event_times |= event_columns([source.definition])

    def answer(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        try:
            planned = self._planned(view)
            session = self._session() if _has_function(planned) else self._confined()
            with _ended_after(session, self._timeout_s):
                return recompute(
                    session,
                    planned.definition,
                    planned.known_schemas,
                    self._directories,
                    schema,
                    planned.views,
                    self._keys,
                    self._time_us,
                    self._followed,
                )
        except ViewError as error:
            raise CannotComputeError(str(error)) from error

    def _session(self) -> SparkSession:
        if self._spark is None:
            at_hand = session_at_hand(SparkSettings(ansi=self._ansi), "slackwater-verify")
            self._spark = self._resources.enter_context(at_hand)
        return self._spark

    def _confined(self) -> SparkSession:
        """The session for texts out of the root."""
        if self._confined_session is None:
            self._confined_session = confined_session(self._session(), SparkSettings(ansi=self._ansi))
        return self._confined_session

    def _planned(self, view: CatalogView) -> PlannedView:
        """A view with the views that it reads, each analysed as a declared view is: `recompute` runs any text.

        Raises:
            ViewError: the text of the root is not a view over its sources.
            CannotComputeError: a function differs from the function in the root.
        """
        schemas = visible_schemas({name: self._schemas[name] for name in view.sources}, view)
        views = {name: self._planned(self._views[name]) for name in view.views}
        query = query_of(view)
        if query is not None:
            # A schedule keeps a view full that could be maintained.
            interval_s = 1.0 if view.view_class == "full" else 0.0
            definition = ViewDefinition(view.name, query=query, on_full="allow", refresh_interval_s=interval_s)
            plan = analyse(self._confined(), definition, schemas, materialized=schemas, views=views, keys=self._keys)
            return PlannedView(definition, plan, schemas, views)
        definition = self._functions[view.name]
        times = self._event_times
        plan = analyse(self._session(), definition, schemas, views=views, keys=self._keys, event_times=times)
        if plan.identity != view.identity:
            raise CannotComputeError(f"{view.name} of the application is not the function that the view was made by")
        return PlannedView(definition, plan, schemas, views)


@contextmanager
def _ended_after(session: SparkSession, timeout_s: float | None) -> Iterator[None]:
    """Cancels the jobs of this thread after a time.

    Raises:
        TimeLimitError: they failed after that time.
    """
    if timeout_s is None:
        yield
        return
    context, tag, is_over = session.sparkContext, f"slackwater-verify-{os.getpid()}-{next(_TAGS)}", threading.Event()
    is_late = False

    def cancel() -> None:
        nonlocal is_late
        wait_s = timeout_s
        # Again and again: a view may have several jobs, one after the other.
        while not is_over.wait(wait_s):
            is_late, wait_s = True, _CANCEL_AGAIN_S
            context.cancelJobsWithTag(tag)

    thread = threading.Thread(target=cancel, name="verify-timeout", daemon=True)
    context.addJobTag(tag)
    context.setInterruptOnCancel(True)
    thread.start()
    try:
        yield
    except (ViewError, RunFailedError):
        if is_late:
            raise TimeLimitError(timeout_s) from None
        raise
    finally:
        is_over.set()
        thread.join()
        context.setInterruptOnCancel(False)
        context.removeJobTag(tag)


def _has_function(view: PlannedView) -> bool:
    return view.definition.function is not None or any(map(_has_function, view.views.values()))


def _ingested(
    reader: FileReader, file: IngestedFile, content: ObjectFile, source: SourceDefinition, piece_bytes: int
) -> Iterator[pa.Table]:
    """Yields the good rows of the ingested records; records behind them may be bad."""
    row, bad = 0, list[int]()
    while row < file.rows:
        try:
            columns = FileColumns(source, source.schema, file.file, bad=file.bad if source.event_time else ())
            for piece in reader.read(content, columns.content, Offset(row), piece_bytes):
                wanted = columns.complete(piece).between(row, file.rows)
                yield wanted.table
                row = wanted.end_row
                bad += [record.row for record in wanted.bad]
                if row == file.rows:
                    break
        except UnreadableFile as error:
            # The run may have read smaller pieces, one of which ended before the bad row.
            is_later = error.row is not None and error.row > file.rows
            if not is_later or piece_bytes <= _LEAST_PIECE_BYTES:
                raise CannotComputeError(f"{file.file.path}: {error}") from error
            piece_bytes //= 2
            continue
        except SchemaError as error:
            raise CannotComputeError(str(error)) from error
        if row < file.rows:
            raise WrongLedgerError(
                f"the ledger says that {file.rows:,} rows of {file.file.path} were ingested; it has {row:,}"
            )
    if tuple(bad) != file.bad:
        row = min(set(bad) ^ set(file.bad))
        said, found = ("bad", "good") if row in file.bad else ("good", "bad")
        raise WrongLedgerError(
            f"the ledger says that row {row:,} (from 0) of {file.file.path} is {said}; read again it is {found}"
        )
