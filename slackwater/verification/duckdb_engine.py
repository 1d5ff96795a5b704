"""DuckDB as an engine of verification: its own readers and its own SQL, no code shared with a run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from actors.objects.object_file import ObjectFile
from actors.schemas.metadata_columns import PATH, ROW
from actors.schemas.path_columns import path_values
from actors.sources.row_key import NUMBER, RowKey
from actors.telemetry.text import first_line
from slackwater.reading.recorded_source import RecordedSource
from slackwater.verification.duckdb_files import DuckDbFiles, literal, quoted
from slackwater.verification.engine import CannotComputeError, query_of, require_parents
from slackwater.verification.ingested_files import IngestedFiles
from spark_bridge.catalyst.epoch_timestamps import filters_by_time, uses_epoch_timestamps
from spark_bridge.views.recomputation import Followed
from state.tables.records import CatalogView

_COPY_BYTES = 1 << 20
_HEAD_BYTES = 4
_ALL_ROWS = "__sw_all_"
_LATE_ROWS = "__sw_late"


class DuckDbEngine:
    """See `Engine`.  Its tables are in a file, so that they may be larger than memory.

    Args:
        scratch: a directory for its tables and for copies of the files.
        queries: view → the query to run in place of its own text.
        views: the views of the catalog, by name.
        followed: view → what it has followed, of those that follow watermarks.

    Raises:
        CannotComputeError: DuckDB is not installed.
    """

    name = "duckdb"

    def __init__(
        self,
        scratch: Path,
        queries: Mapping[str, str],
        views: Mapping[str, CatalogView] = MappingProxyType({}),
        followed: Mapping[str, Followed] = MappingProxyType({}),
    ) -> None:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise CannotComputeError("it is not installed; pip install 'slackwater[verify]'") from None
        self._queries, self._views, self._followed = queries, views, followed
        self._error: type[Exception] = duckdb.Error
        self._duckdb: Any = duckdb.connect(str(scratch / "tables.duckdb"))
        # The query of a view comes from the root: it may read, write and load nothing but the tables.
        self._duckdb.execute(
            "SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false; SET python_enable_replacements = false; "
            f"SET allowed_directories = [{literal(str(scratch))}]; "
            "SET enable_external_access = false; SET lock_configuration = true"
        )

    def __enter__(self) -> DuckDbEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duckdb.close()

    def accept(self, view: CatalogView) -> None:
        if uses_epoch_timestamps(view.identity):
            raise CannotComputeError(
                "it uses the times of the epochs that ingested its rows, which are not in the files"
            )
        if filters_by_time(view.identity):
            raise CannotComputeError("it filters by the time of its epoch, which is not in its query")
        followed = self._followed.get(view.name, Followed())
        if followed.closes:
            raise CannotComputeError("it shows groups when their windows close, which its query does not tell")
        if followed.ttl_us is not None and view.name not in self._queries:
            raise CannotComputeError("it has a time to live, which its query does not tell")
        self._query(view)
        require_parents(self, view, self._views)

    def load(self, files: IngestedFiles, scratch: Path) -> None:
        self._duckdb.begin()
        try:
            self._insert(files, scratch)
            self._duckdb.commit()
        except self._error as error:
            self._duckdb.rollback()
            raise CannotComputeError(f"source {files.source.name}: {first_line(error)}") from error
        except BaseException:
            self._duckdb.rollback()
            raise

    def answer(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        try:
            with self._in_time(view):
                answer = self._answer(view).to_arrow_table()
        except self._error as error:
            raise CannotComputeError(first_line(error)) from error
        return _in_types_of(schema, answer)

    def answer_over(self, view: CatalogView, schema: pa.Schema, parents: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a view over these rows of the views that it reads, in an engine without tables of their names.

        Raises:
            CannotComputeError: it reads a source besides, or as `answer`.
        """
        try:
            for name, rows in parents.items():
                self._create(name, rows)
            answer = self._selected(view).to_arrow_table()
        except self._error as error:
            raise CannotComputeError(first_line(error)) from error
        return _in_types_of(schema, answer)

    def _answer(self, view: CatalogView) -> Any:
        """The lazy answer to the query of a view, over the views that it reads."""
        for name in view.views:
            # Each again: another view may know fewer columns of its sources.
            with self._in_time(self._views[name]) as lacks_rows:
                answer = self._answer(self._views[name])
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
        followed = self._followed.get(view.name, Followed())
        sources = [*followed.late, *followed.least_us]
        for source in sources:
            every, name = quoted(_ALL_ROWS + source), quoted(source)
            self._duckdb.execute(f"ALTER TABLE {name} RENAME TO {every}")
            if source in followed.late:
                self._create(_LATE_ROWS, followed.late[source])
                rows = f"{every} ANTI JOIN {_LATE_ROWS} USING ({quoted(PATH)}, {quoted(ROW)})"
            else:
                time = f"epoch_us(CAST({quoted(followed.event_times[source])} AS TIMESTAMP))"
                rows = f"{every} WHERE {time} >= {followed.least_us[source]}"
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
        if view.name in self._queries:
            # The line end closes a comment of the query.
            return self._duckdb.sql(f"SELECT * FROM ({query.strip().rstrip(';')}\n)")
        statements = self._duckdb.extract_statements(query)
        kinds = [statement.type.name for statement in statements]
        if kinds != ["SELECT"]:
            raise CannotComputeError(f"the view is not one SELECT; it is {', '.join(kinds) or 'empty'}")
        known = {name.casefold() for name in (*view.sources, *view.views)}
        tables = self._tables(query, known)
        if not tables or not tables <= known:
            others = ", ".join(sorted(tables - known)) or "no source"
            declared = ", ".join((*view.sources, *view.views))
            raise CannotComputeError(f"the view reads {others}; its sources are {declared}")
        return self._duckdb.sql(statements[0])

    def _tables(self, query: str, known: set[str]) -> set[str]:
        """The tables that a query names; the known ones where DuckDB cannot say: there are no others to read."""
        try:
            return {name.casefold() for name in self._duckdb.get_table_names(query)}
        except self._error:
            # DuckDB 1.4 fails here for JOIN ... USING, which it computes well.
            return known

    def _insert(self, files: IngestedFiles, scratch: Path) -> None:
        source, total = files.source, 0
        table = source.name if source.definition.key is None else _ALL_ROWS + source.name
        reader = DuckDbFiles(self._duckdb, source.definition, self._create(table, source.schema.empty_table()))
        for file, content in files:
            if not path_values(file.file.path).keys().isdisjoint(source.schema.names):
                raise CannotComputeError(f"source {source.name} has columns that are not in its files")
            # One row more than expected shows a bad record that DuckDB can read.
            spare = 1 if file.is_whole and file.bad else 0
            with _copied(content, scratch) as local:
                rows = reader.rows(local, content.head(_HEAD_BYTES), all_fit=not file.bad).limit(file.good + spare)
                rows.project(reader.values(rows.columns, file)).insert_into(table)
            total += file.good
            lacking = total - self._count(table)
            if lacking > 0:
                raise CannotComputeError(f"it cannot read {lacking:,} of the {file.good:,} rows of {file.file.path}")
            if lacking < 0:
                raise CannotComputeError(f"it can read a record of {file.file.path} that is quarantined")
        if source.definition.key is not None:
            self._create_current(source, source.definition.key, table)

    def _create_current(self, source: RecordedSource, key: RowKey, table: str) -> None:
        """Keeps the last rows of each key, under the name of the source, in place of all rows."""
        columns = ", ".join(map(quoted, source.schema.names))
        numbered = f"SELECT *, {key.number(quoted)} AS {quoted(NUMBER)} FROM {quoted(table)}"
        query = f"SELECT {columns} FROM ({numbered}) WHERE {key.is_current(quoted)}"
        statements = self._duckdb.extract_statements(query)
        # The condition for deletions comes from the root.
        if [each.type.name for each in statements] != ["SELECT"] or self._tables(query, {table}) != {table.casefold()}:
            raise CannotComputeError(f"source {source.name}: deleted={key.deleted!r} is no condition over its columns")
        self._duckdb.sql(statements[0]).create(source.name)
        self._duckdb.execute(f"DROP TABLE {quoted(table)}")

    def _query(self, view: CatalogView) -> str:
        query = self._queries.get(view.name) or query_of(view)
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
