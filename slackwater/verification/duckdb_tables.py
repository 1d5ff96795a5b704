"""Tables of a verification in DuckDB, in a worker process: files that a front has copied, and queries over them.

The queries come from a root, and DuckDB parses files of others, so nothing of this runs in the process of `verify`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from actors.schemas.metadata_columns import PATH, ROW
from actors.schemas.path_columns import path_scalars
from actors.sources.row_key import NUMBER, Key
from actors.sources.source import SourceDefinition
from actors.telemetry.text import first_line
from slackwater.confinement.confined_duckdb import confine_to, unconfined_duckdb
from slackwater.confinement.query_parser import QueryParser, RefusedQueryError
from slackwater.reading.recorded_source import IngestedFile
from slackwater.verification.duckdb_files import DuckDbFiles, literal, quoted
from slackwater.verification.engine import CannotComputeError, query_of
from state.tables.records import CatalogView

_ALL_ROWS = "__sw_all_"
_LATE_ROWS = "__sw_late"


@dataclass(frozen=True)
class CountedRows:
    """The rows that count for a view that follows watermarks.

    Args:
        late: source → the file, as Arrow IPC, with the path and number of each row that came too late.
        event_times: source → the column with its event time.
        least_us: source → the event time before which its rows do not count.
    """

    late: Mapping[str, str] = field(default_factory=dict)
    event_times: Mapping[str, str] = field(default_factory=dict)
    least_us: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Open:
    """The first request.

    Args:
        scratch: a directory for the tables, and for copies of the files.
        max_memory_bytes: the largest memory of DuckDB; more is spilled into `scratch`.
        queries: view → the user's query in place of its own text.
        views: the views of the catalog, by name.
        counted: view that follows watermarks → the rows that count.
    """

    scratch: str
    max_memory_bytes: int
    queries: Mapping[str, str]
    views: Mapping[str, CatalogView]
    counted: Mapping[str, CountedRows]


@dataclass(frozen=True)
class Begin:
    """The files of a source follow; its definition has no storage options."""

    source: SourceDefinition


@dataclass(frozen=True)
class Insert:
    """A file of the source.

    Args:
        path: its copy in the scratch directory.
        head: its first bytes.
        file: its row of the ledger.
    """

    path: str
    head: bytes
    file: IngestedFile


@dataclass(frozen=True)
class End:
    """All files of the source were inserted, or none of them counts."""

    is_complete: bool


@dataclass(frozen=True)
class Answer:
    """The rows of a view are wanted.

    Args:
        parents: for a view over given rows: the view that it reads → a file with its rows, as Arrow IPC.
    """

    view: CatalogView
    parents: Mapping[str, str] | None = None


Request: TypeAlias = Open | Begin | Insert | End | Answer


class DuckDbTables:
    """The tables.  They are in a file, so that they may be larger than memory.

    Args:
        start: the first request.
    """

    def __init__(self, start: Open) -> None:
        import duckdb

        self._start = start
        self._error: type[Exception] = duckdb.Error
        self._duckdb: Any = unconfined_duckdb(
            start.max_memory_bytes, database=str(Path(start.scratch) / "tables.duckdb")
        )
        # The root contains the query of a view, so the query may read, write and load nothing but the tables.
        spill = str(Path(start.scratch) / "spilled")
        confine_to(self._duckdb, f"[{literal(start.scratch)}]", temp_directory=literal(spill))
        self._parser = QueryParser(self._duckdb)
        self._source: SourceDefinition | None = None
        self._table, self._total = "", 0
        self._reader: DuckDbFiles | None = None

    def interrupt(self) -> None:
        """Ends the running computation; called from another thread."""
        self._duckdb.interrupt()

    def begin(self, source: SourceDefinition) -> None:
        """Begins with a source, in a transaction."""
        assert source.schema is not None
        self._duckdb.begin()
        self._source, self._total = source, 0
        self._table = source.name if source.key is None else _ALL_ROWS + source.name
        types = self._create(self._table, source.schema.empty_table())
        self._reader = DuckDbFiles(self._duckdb, source, types)

    def insert(self, insert: Insert) -> None:
        """Reads one file.

        Raises:
            CannotComputeError: DuckDB cannot read it as the source does.
        """
        file, source, reader = insert.file, self._source, self._reader
        assert source is not None and reader is not None and source.schema is not None
        if path_scalars(file.file.path, source.schema, source.names):
            raise CannotComputeError(f"source {source.name} has columns that are not in its files")
        with self._source_errors():
            # One row more than expected shows a bad record that DuckDB can read.
            spare = 1 if file.is_whole and file.bad else 0
            rows = reader.rows(insert.path, insert.head, all_fit=not file.bad).limit(file.good + spare)
            rows.project(reader.values(rows.columns, file)).insert_into(self._table)
            self._total += file.good
            lacking = self._total - self._count(self._table)
        if lacking > 0:
            raise CannotComputeError(f"it cannot read {lacking:,} of the {file.good:,} rows of {file.file.path}")
        if lacking < 0:
            raise CannotComputeError(f"it can read a record of {file.file.path} that is quarantined")

    def end(self, *, is_complete: bool) -> None:
        """Ends the transaction of a source."""
        source = self._source
        assert source is not None
        if not is_complete:
            self._duckdb.rollback()
            return
        with self._source_errors():
            if source.key is not None:
                self._create_current(source, source.key, self._table)
            self._duckdb.commit()

    @contextmanager
    def _source_errors(self) -> Iterator[None]:
        assert self._source is not None
        try:
            yield
        except self._error as error:
            raise CannotComputeError(f"source {self._source.name}: {first_line(error)}") from error

    def answer(self, answer: Answer) -> pa.Table:
        """The rows of a view.

        Raises:
            CannotComputeError: DuckDB does not understand it, or it is not one SELECT over its sources.
        """
        try:
            if answer.parents is not None:
                for name, file in answer.parents.items():
                    self._create(name, _kept(file))
                return self._selected(answer.view).to_arrow_table()
            with self._in_time(answer.view):
                return self._answer(answer.view).to_arrow_table()
        except self._error as error:
            raise CannotComputeError(first_line(error)) from error

    def _answer(self, view: CatalogView) -> Any:
        """The lazy answer to the query of a view, over the views that it reads."""
        for name in view.views:
            # Once more for each view, since views may be declared over fewer columns of a source.
            with self._in_time(self._start.views[name]) as lacks_rows:
                answer = self._answer(self._start.views[name])
                if lacks_rows:
                    self._duckdb.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
                    answer.create(name)
                else:
                    answer.create_view(name, replace=True)
        return self._selected(view)

    @contextmanager
    def _in_time(self, view: CatalogView) -> Iterator[bool]:
        """Leaves the rows that do not count for a view out of its sources; yields whether some may lack rows.

        Its answer is computed inside.
        """
        counted = self._start.counted.get(view.name, CountedRows())
        sources = [*counted.late, *counted.least_us]
        for source in sources:
            every, name = quoted(_ALL_ROWS + source), quoted(source)
            self._duckdb.execute(f"ALTER TABLE {name} RENAME TO {every}")
            if source in counted.late:
                self._create(_LATE_ROWS, _kept(counted.late[source]))
                rows = f"{every} ANTI JOIN {_LATE_ROWS} USING ({quoted(PATH)}, {quoted(ROW)})"
            else:
                time = f"epoch_us(CAST({quoted(counted.event_times[source])} AS TIMESTAMP))"
                rows = f"{every} WHERE {time} >= {counted.least_us[source]}"
            self._duckdb.execute(f"CREATE TABLE {name} AS SELECT * FROM {rows}; DROP TABLE IF EXISTS {_LATE_ROWS}")
        try:
            yield bool(sources)
        finally:
            for source in sources:
                every, name = quoted(_ALL_ROWS + source), quoted(source)
                self._duckdb.execute(f"DROP TABLE {name}; ALTER TABLE {every} RENAME TO {name}")

    def _selected(self, view: CatalogView) -> Any:
        """The lazy answer to the user's query, or to the text of the root, once that is one SELECT over its sources."""
        query = self._query(view)
        if view.name in self._start.queries:
            # The line end closes a comment of the query.
            return self._duckdb.sql(f"SELECT * FROM ({query.strip().rstrip(';')}\n)")
        self._require_query(query, "the view is not one SELECT that reads")
        known = {name.casefold() for name in (*view.sources, *view.views)}
        tables = self._tables(query, known)
        if not tables or not tables <= known:
            others = ", ".join(sorted(tables - known)) or "no source"
            declared = ", ".join((*view.sources, *view.views))
            raise CannotComputeError(f"the view reads {others}; its sources are {declared}")
        return self._duckdb.sql(query)

    def _require_query(self, query: str, what: str) -> None:
        try:
            self._parser.query(query)
        except RefusedQueryError as error:
            raise CannotComputeError(f"{what}: {error}") from None

    def _tables(self, query: str, known: set[str]) -> set[str]:
        """The tables that a query names; if DuckDB cannot find them, all known tables: a query can read no others."""
        try:
            return {name.casefold() for name in self._duckdb.get_table_names(query)}
        except self._error:
            # DuckDB 1.4 fails here for JOIN ... USING, which it computes well.
            return known

    def _create_current(self, source: SourceDefinition, key: Key, table: str) -> None:
        """Keeps the last rows of each key, under the name of the source, in place of all rows."""
        assert source.schema is not None
        columns = ", ".join(map(quoted, source.schema.names))
        numbered = f"SELECT *, {key.number(quoted)} AS {quoted(NUMBER)} FROM {quoted(table)}"
        query = f"SELECT {columns} FROM ({numbered}) WHERE {key.is_current(quoted)}"
        # The condition for deletions comes from the root.
        refusal = f"source {source.name}: Key(deleted={key.deleted!r}) must be a condition over its columns"
        self._require_query(query, refusal)
        if self._tables(query, {table}) != {table.casefold()}:
            raise CannotComputeError(refusal)
        self._duckdb.sql(query).create(source.name)
        self._duckdb.execute(f"DROP TABLE {quoted(table)}")

    def _query(self, view: CatalogView) -> str:
        query = self._start.queries.get(view.name) or query_of(view)
        if query is None:
            raise CannotComputeError("the view is a function")
        return query

    def _create(self, table: str, rows: pa.Table) -> dict[str, str]:
        """Creates a table; returns column → DuckDB's name of its type."""
        self._duckdb.register("__sw_rows", rows)
        self._duckdb.table("__sw_rows").create(table)
        self._duckdb.unregister("__sw_rows")
        types = self._duckdb.table(table).types
        return {name: str(kind) for name, kind in zip(rows.schema.names, types, strict=True)}

    def _count(self, table: str) -> int:
        ((count,),) = self._duckdb.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()
        return int(count)


def _kept(file: str) -> pa.Table:
    """The rows in a file of Arrow IPC."""
    with pa.memory_map(os.fspath(file)) as mapped:
        return pa.ipc.open_file(mapped).read_all()
