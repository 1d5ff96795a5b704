"""DuckDB's readers of files, without the records that do not fit the schema of the source."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from actors.formats.json_layout import JsonLayout, json_layout
from actors.formats.options import Csv, Json, Parquet, Text
from actors.schemas.column_names import source_names
from actors.schemas.metadata_columns import PATH, ROW
from actors.schemas.safe_types import is_open
from actors.sources.source import SourceDefinition
from slackwater.reading.recorded_source import IngestedFile
from slackwater.verification.engine import CannotComputeError

_SIGNATURES = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\x00", "xz"),
)
_DECOMPRESSED = ("none", "gzip", "zstd")
_UTF8 = ("utf-8", "utf-8-sig", "ascii")
_WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_NO_TEXT = ("FLOAT", "DOUBLE", "BOOLEAN")
_ROW = "__sw_row"
_TEXTUAL = ("VARCHAR", "BLOB")
_NOT_OF_DUCKDB = (
    "escape",
    "comment",
    "true_values",
    "false_values",
    "decimal",
    "thousands",
    "date_format",
    "timestamp_format",
)
_HEAD_BYTES = 64 * 1024
_LAYOUTS: Mapping[JsonLayout, str] = {"lines": "newline_delimited", "array": "array", "objects": "unstructured"}


class DuckDbFiles:
    """Reads the files of one source.  A relation is lazy: records behind the wanted rows may be bad.

    Args:
        source: the source of the files.
        types: column → DuckDB's name of its type, in the order of the columns.
    """

    def __init__(self, duckdb: Any, source: SourceDefinition, types: Mapping[str, str]) -> None:
        self._duckdb, self._source, self._types = duckdb, source, types
        of_metadata = {f"_{name}" for name in source.metadata}
        self._content = {name: kind for name, kind in types.items() if name not in of_metadata}

    def rows(self, path: str, head: bytes, *, all_fit: bool) -> Any:
        """The rows of a file in file order, with the columns of the file; `values` makes the columns of the source.

        Args:
            path: the path of a local copy.
            head: the first bytes of the file, which show its compression.
            all_fit: True if the ledger has no bad record of the file; a record that does not fit is then an error.

        Raises:
            CannotComputeError: DuckDB has no counterpart to the reader of the source.
        """
        format = self._source.format
        if self._source.timestamps != "exact":
            raise self._cannot("DuckDB rounds the digits of times below microseconds, and the source leaves them out")
        if isinstance(format, Parquet):
            if self._source.schema is not None and any(map(is_open, self._source.schema)):
                raise self._cannot("DuckDB writes numbers and times as other texts")
            rows = self._duckdb.read_parquet(path)
            return rows if all_fit else rows.filter(self._fits(rows.columns))
        codec = self._codec(head)
        if isinstance(format, Text):
            return self._lines(path, codec)
        if isinstance(format, Json):
            return self._objects(format, path, codec, all_fit)
        if not isinstance(format, Csv):
            raise self._cannot(f"DuckDB does not read the format {format.name}")
        rows = self._records(format, path, codec)
        return rows if all_fit else rows.filter(self._fits(rows.columns))

    def values(self, found: Sequence[str], file: IngestedFile) -> str:
        """SQL for the columns of the source from the columns of a file: cast and in order, null for a missing one.

        Args:
            found: the columns of the file.

        Raises:
            CannotComputeError: a column is made of something that DuckDB does not see.
        """
        names, metadata = self._names(found), self._metadata(file)
        is_text = not isinstance(self._source.format, Parquet)
        columns = []
        for name, kind in self._types.items():
            value = metadata.get(name) or (self._value(names[name], kind) if name in names else "NULL")
            # Text for a column of bytes is taken as bytes; a cast would interpret escapes.
            is_bytes = kind == "BLOB" and is_text and name in names
            columns.append(f"{f'encode({value})' if is_bytes else f'CAST({value} AS {kind})'} AS {quoted(name)}")
        return ", ".join(columns)

    def _metadata(self, file: IngestedFile) -> Mapping[str, str]:
        """Metadata column → SQL for its values."""
        wanted = {f"_{name}" for name in self._source.metadata}
        if not wanted <= {PATH, ROW}:
            raise self._cannot("it has columns that are not in its files")
        if ROW in wanted and file.bad:
            raise self._cannot(f"DuckDB does not see the places of the bad records of {file.file.path}")
        path = literal(f"{self._source.location.url}/{file.file.path}")
        values = {PATH: path, ROW: "(row_number() OVER () - 1)"}
        return {name: values[name] for name in wanted}

    def _codec(self, head: bytes) -> str:
        codec = next((codec for signature, codec in _SIGNATURES if head.startswith(signature)), "none")
        if codec not in _DECOMPRESSED:
            raise self._cannot(f"DuckDB does not decompress {codec}")
        encoding = getattr(self._source.format, "encoding", "utf-8")
        if codecs.lookup(encoding).name not in _UTF8:
            raise self._cannot(f"DuckDB cannot read the encoding {encoding}")
        return codec

    def _lines(self, path: str, codec: str) -> Any:
        if codec != "none":
            raise self._cannot("DuckDB cannot read compressed text by lines")
        (name,) = self._content
        line = f"SELECT unnest(string_split(content, chr(10))) AS line FROM read_text({literal(path)})"
        return self._duckdb.sql(f"SELECT rtrim(line, chr(13)) AS {quoted(name)} FROM ({line})")

    def _records(self, format: Csv, path: str, codec: str) -> Any:
        if format.null_values == ():
            raise self._cannot("DuckDB's CSV reader always reads some text as null")
        for option in _NOT_OF_DUCKDB:
            if getattr(format, option) != getattr(Csv(), option):
                raise self._cannot(f"DuckDB does not read CSV with the option {option} as the source does")
        return self._duckdb.read_csv(
            path,
            header=format.header,
            delimiter=format.delimiter,
            quotechar=format.quote or "",
            escapechar=format.quote or "",
            skiprows=format.skip_rows,
            na_values=list(self._nulls(format)),
            allow_quoted_nulls=self._source.names == "exact",
            all_varchar=True,
            compression=codec,
            ignore_errors=True,
        )

    def _nulls(self, format: Csv) -> tuple[str, ...]:
        """The texts that the format reads as null."""
        return ("",) if format.null_values is None else format.null_values

    def _value(self, name: str, kind: str) -> str:
        """SQL for a value as text: in a column of another type than text, a quoted null marker is null, too."""
        format = self._source.format
        if not isinstance(format, Csv) or kind in _TEXTUAL:
            return quoted(name)
        nulls = ", ".join(map(literal, self._nulls(format)))
        return f"CASE WHEN {quoted(name)} IN ({nulls}) THEN NULL ELSE {quoted(name)} END"

    def _objects(self, format: Json, path: str, codec: str, all_fit: bool) -> Any:
        layout = _layout(path, codec)
        if not all_fit and layout != "newline_delimited":
            raise self._cannot("DuckDB skips bad records of JSON only if each is a line")
        content = {name: kind for name, kind in self._content.items() if name != format.raw}
        fields = ", ".join(f"{quoted(name)} {'VARCHAR' if kind == 'BLOB' else kind}" for name, kind in content.items())
        ignored = "ignore_errors = true, " if layout == "newline_delimited" else ""
        # A value that does not fit its field, or is not an object, becomes null without an error.
        value = f"TRY_CAST(json AS STRUCT({fields}))" if content else "NULL"
        rows = self._duckdb.sql(
            f"SELECT json, {value} AS {_ROW} FROM read_json_objects({literal(path)}, "
            f"format = '{layout}', {ignored}compression = '{codec}')"
        )
        if not all_fit:
            rows = rows.filter(
                " AND ".join(
                    ["json_type(json) = 'OBJECT'", *(_is_json_of(name, kind) for name, kind in content.items())]
                )
            )
        texts = [name for name, kind in content.items() if kind == "VARCHAR"]
        if texts and rows.filter(" OR ".join(_has_other_json(name) for name in texts)).limit(1).fetchall():
            raise self._cannot("DuckDB does not keep the JSON text of numbers, lists and objects as it is in the file")
        columns = {name: f"{_ROW}.{quoted(name)}" for name in content}
        if format.raw is not None:
            columns[format.raw] = "json::VARCHAR"
        return rows.project(", ".join(f"{columns[name]} AS {quoted(name)}" for name in self._content))

    def _fits(self, found: Sequence[str]) -> str:
        """SQL condition: every value can be cast to the type of its column."""
        names = self._names(found)
        is_text = not isinstance(self._source.format, Parquet)
        tests = ["true"]
        for name, kind in self._content.items():
            if name in names and not (is_text and kind in _TEXTUAL):
                value = self._value(names[name], kind)
                test = f"TRY_CAST({value} AS {kind}) IS NOT NULL"
                if is_text and kind in _WHOLE_NUMBERS:
                    # A cast would round 1.5.
                    test += f" AND NOT regexp_matches({value}, '[^-+0-9 ]')"
                tests.append(f"({value} IS NULL OR ({test}))")
        return " AND ".join(tests)

    def _names(self, found: Sequence[str]) -> Mapping[str, str]:
        """Column of the source → its name in a file with the columns `found`."""
        if not isinstance(self._source.format, Csv) or self._source.format.header:
            return self._matched(found)
        if len(found) != len(self._content):
            raise self._cannot(f"DuckDB finds {len(found)} columns in a file, not {len(self._content)}")
        return dict(zip(self._content, found, strict=True))

    def _matched(self, found: Sequence[str]) -> Mapping[str, str]:
        """Refuses a column that may have another name in DuckDB, which has its own names for unusable ones."""
        names = source_names(found, [*self._content], self._source.names)
        if set(names) - {*self._content} and {*self._content} - set(names):
            raise self._cannot(f"a file lacks columns of it and has others: {', '.join(found)}")
        return dict(zip(names, found, strict=True))

    def _cannot(self, reason: str) -> CannotComputeError:
        return CannotComputeError(f"source {self._source.name}: {reason}")


def _is_json_of(name: str, kind: str) -> str:
    """SQL condition: a JSON value is of the kind of its column; a cast alone reads "1" as 1, and 1.5 as 2."""
    value = f"json_type(json, {literal('/' + name.replace('~', '~0').replace('/', '~1'))})"
    became = f"{_ROW}.{quoted(name)} IS NOT NULL"
    if kind in _WHOLE_NUMBERS:
        became += f" AND {value} IN ('BIGINT', 'UBIGINT')"
    elif kind in _NO_TEXT:
        became += f" AND {value} <> 'VARCHAR'"
    return f"(coalesce({value}, 'NULL') = 'NULL' OR ({became}))"


def _has_other_json(name: str) -> str:
    """SQL condition: a field has a value whose JSON text DuckDB may write otherwise."""
    value = f"json_type(json, {literal('/' + name.replace('~', '~0').replace('/', '~1'))})"
    return f"coalesce({value}, 'NULL') IN ('DOUBLE', 'OBJECT', 'ARRAY')"


def _layout(path: str, codec: str) -> str:
    """The layout of a JSON file, as DuckDB names it."""
    with pa.input_stream(path, compression=None if codec == "none" else codec) as stream:
        return _LAYOUTS[json_layout(stream.read(_HEAD_BYTES))]


def quoted(name: str) -> str:
    """A name as part of an SQL text."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a value in an SQL text."""
    return "'" + text.replace("'", "''") + "'"
