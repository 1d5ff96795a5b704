"""DuckDB, which shares no code with what made the views: its own readers and its own SQL."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from actors.object_file import ObjectFile
from actors.source import Csv, Parquet, SourceDefinition
from slackwater.verification.engine import CannotComputeError, query_of
from slackwater.verification.ingested_files import IngestedFiles
from state.records import CatalogView

_COPY_BYTES = 1 << 20
_SIGNATURES = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


class DuckDbEngine:
    """See `Engine`.  Its tables are in a file, so that they may be larger than memory.

    Args:
        scratch: a directory for its tables, and for what it may read.
        queries: what to ask in place of the text of a view, by the view's name.

    Raises:
        CannotComputeError: DuckDB is not installed.
    """

    name = "duckdb"

    def __init__(self, scratch: Path, queries: Mapping[str, str]) -> None:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise CannotComputeError("it is not installed; pip install 'slackwater[verify]'") from None
        self._queries = queries
        self._error: type[Exception] = duckdb.Error
        self._duckdb: Any = duckdb.connect(str(scratch / "tables.duckdb"))
        place = str(scratch).replace("'", "''")
        # A view's query is text out of the root: beside its tables it gets nothing to read, to write or to load.
        self._duckdb.execute(
            "SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false; "
            f"SET allowed_directories = ['{place}']; SET enable_external_access = false; SET lock_configuration = true"
        )

    def __enter__(self) -> DuckDbEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duckdb.close()

    def accept(self, view: CatalogView) -> None:
        self._query(view)

    def load(self, files: IngestedFiles, scratch: Path) -> None:
        self._duckdb.begin()
        try:
            self._insert(files, scratch / "file")
            self._duckdb.commit()
        except self._error as error:
            self._duckdb.rollback()
            raise CannotComputeError(f"source {files.source.name}: {_first_line(error)}") from error
        except BaseException:
            self._duckdb.rollback()
            raise

    def answer(self, view: CatalogView, schema: pa.Schema) -> pa.Table:
        query = self._query(view)
        try:
            # The line end closes a comment.
            answer = self._duckdb.sql(f"SELECT * FROM ({query.strip().rstrip(';')}\n)").to_arrow_table()
        except self._error as error:
            raise CannotComputeError(_first_line(error)) from error
        return _in_types_of(schema, answer)

    def _insert(self, files: IngestedFiles, local: Path) -> None:
        source, total = files.source, 0
        types = self._create(source.name, source.schema)
        for file, content in files:
            codec = _copy(content, local)
            rows = self._read(source.definition, str(local), codec, types).limit(file.rows)
            rows.project(_columns(source.definition, rows.columns, types)).insert_into(source.name)
            total += file.rows
            lacking = total - self._count(source.name)
            if lacking:
                raise CannotComputeError(f"it misses {lacking:,} of the {file.rows:,} rows of {file.file.path}")

    def _query(self, view: CatalogView) -> str:
        query = self._queries.get(view.name) or query_of(view)
        if query is None:
            raise CannotComputeError("the view is a function")
        return query

    def _create(self, table: str, schema: pa.Schema) -> dict[str, str]:
        """An empty table; returns what DuckDB calls the type of each column."""
        self._duckdb.register("__sw_empty", schema.empty_table())
        self._duckdb.table("__sw_empty").create(table)
        self._duckdb.unregister("__sw_empty")
        return {name: str(kind) for name, kind in zip(schema.names, self._duckdb.table(table).types, strict=True)}

    def _count(self, table: str) -> int:
        ((count,),) = self._duckdb.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchall()
        return int(count)

    def _read(self, source: SourceDefinition, path: str, codec: str, types: dict[str, str]) -> Any:
        """The rows of a file, lazily; those after the ingested ones may be bad."""
        if isinstance(source.format, Parquet):
            return self._duckdb.read_parquet(path)
        if not isinstance(source.format, Csv):
            declared = {name: "VARCHAR" if kind == "BLOB" else kind for name, kind in types.items()}
            return self._duckdb.read_json(
                path, columns=declared, format="newline_delimited", compression=codec, ignore_errors=True
            )
        if not source.format.null_values:
            raise CannotComputeError(f"source {source.name}: DuckDB's CSV reader always takes some text for null")
        return self._duckdb.read_csv(
            path,
            header=source.format.header,
            delimiter=source.format.delimiter,
            quotechar=source.format.quote,
            escapechar=source.format.quote,
            na_values=list(source.format.null_values),
            all_varchar=True,
            compression=codec,
            ignore_errors=True,
        )


def _copy(content: ObjectFile, local: Path) -> str:
    """Copies an object to a local file; returns how it is compressed."""
    with content.stream() as stream, local.open("wb") as file:
        shutil.copyfileobj(stream, file, _COPY_BYTES)
    start = content.head(4)
    return next((codec for signature, codec in _SIGNATURES if start.startswith(signature)), "none")


def _columns(source: SourceDefinition, found: list[str], types: dict[str, str]) -> str:
    """The columns of the source out of those of a file: in their order and types, null where the file has none."""
    names = dict(zip(found, found, strict=True))
    is_text = not isinstance(source.format, Parquet)
    if isinstance(source.format, Csv) and not source.format.header:
        if len(found) != len(types):
            raise CannotComputeError(
                f"source {source.name}: DuckDB finds {len(found)} columns in a file, not {len(types)}"
            )
        names = dict(zip(types, found, strict=True))
    columns = []
    for name, kind in types.items():
        value = _quoted(names[name]) if name in names else "NULL"
        # Text in a column of bytes is those bytes; a cast would look for escapes in it.
        converted = f"encode({value})" if kind == "BLOB" and is_text and name in names else f"CAST({value} AS {kind})"
        columns.append(f"{converted} AS {_quoted(name)}")
    return ", ".join(columns)


def _in_types_of(schema: pa.Schema, answer: pa.Table) -> pa.Table:
    """The answer with the names and types of the view, if it means the same kinds of values."""
    if answer.num_columns != len(schema):
        raise CannotComputeError(f"{answer.num_columns} columns where the view has {len(schema)}")
    for field, found in zip(schema, answer.schema, strict=True):
        if not _same_kind(found.type, field.type):
            raise CannotComputeError(f"column {field.name} is {found.type} here and {field.type} in the view")
    try:
        return answer.rename_columns(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise CannotComputeError(_first_line(error)) from error


def _same_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    if kinds.is_integer(wanted):
        return bool(kinds.is_integer(found) or (kinds.is_decimal(found) and found.scale == 0))
    for is_kind in (kinds.is_floating, kinds.is_decimal, kinds.is_nested):
        if is_kind(wanted):
            return bool(is_kind(found))
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(found) and bool(found.tz) == bool(wanted.tz))
    return bool(found == wanted)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()
