"""The rows of a file as DuckDB reads them, without those that DuckDB itself finds do not fit their source."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Any

from actors.formats.options import Csv, Json, Parquet, Text
from actors.sources.source import SourceDefinition
from slackwater.verification.engine import CannotComputeError

_SIGNATURES = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
_DECOMPRESSED = ("none", "gzip", "zstd")
_UTF8 = ("utf-8", "utf-8-sig", "ascii")
_WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_NO_TEXT = ("FLOAT", "DOUBLE", "BOOLEAN")
_ROW = "__sw_row"


class DuckDbFiles:
    """Reads the files of one source.  A relation is lazy: what follows the rows that are asked for may be bad.

    Args:
        duckdb: the connection.
        source: whose files they are.
        types: its columns, in order, with what DuckDB calls their types.
    """

    def __init__(self, duckdb: Any, source: SourceDefinition, types: Mapping[str, str]) -> None:
        self._duckdb, self._source, self._types = duckdb, source, types

    def rows(self, path: str, head: bytes, *, all_fit: bool) -> Any:
        """The rows of a file in file order, with the columns of the file; `values` makes those of the source.

        Args:
            path: a local copy.
            head: its first bytes, which tell how it is compressed.
            all_fit: whether the ledger knows of no bad record in it: then one that does not fit is an error.

        Raises:
            CannotComputeError: DuckDB has no counterpart to how the source is read.
        """
        format = self._source.format
        if isinstance(format, Parquet):
            rows = self._duckdb.read_parquet(path)
            return rows if all_fit else rows.filter(self._fits(rows.columns))
        codec = self._codec(head)
        if isinstance(format, Text):
            return self._lines(path, codec)
        if isinstance(format, Json):
            return self._objects(path, codec, all_fit)
        if not isinstance(format, Csv):
            raise self._cannot(f"DuckDB does not read the format {format.name}")
        rows = self._records(format, path, codec)
        return rows if all_fit else rows.filter(self._fits(rows.columns))

    def values(self, found: Sequence[str]) -> str:
        """The columns of the source out of those of a file: in their order and types, null where the file has none."""
        names = self._names(found)
        is_text = not isinstance(self._source.format, Parquet)
        columns = []
        for name, kind in self._types.items():
            value = quoted(names[name]) if name in names else "NULL"
            # Text in a column of bytes is those bytes; a cast would look for escapes in it.
            is_bytes = kind == "BLOB" and is_text and name in names
            columns.append(f"{f'encode({value})' if is_bytes else f'CAST({value} AS {kind})'} AS {quoted(name)}")
        return ", ".join(columns)

    def _codec(self, head: bytes) -> str:
        codec = next((codec for signature, codec in _SIGNATURES if head.startswith(signature)), "none")
        if codec not in _DECOMPRESSED:
            raise self._cannot(f"DuckDB does not decompress {codec}")
        encoding = getattr(self._source.format, "encoding", "utf-8")
        if codecs.lookup(encoding).name not in _UTF8:
            raise self._cannot(f"DuckDB is not asked to read {encoding}")
        return codec

    def _lines(self, path: str, codec: str) -> Any:
        if codec != "none":
            raise self._cannot("DuckDB reads no compressed text by lines")
        (name,) = self._types
        line = f"SELECT unnest(string_split(content, chr(10))) AS line FROM read_text({_literal(path)})"
        return self._duckdb.sql(f"SELECT rtrim(line, chr(13)) AS {quoted(name)} FROM ({line})")

    def _records(self, format: Csv, path: str, codec: str) -> Any:
        if not format.null_values:
            raise self._cannot("DuckDB's CSV reader always takes some text for null")
        return self._duckdb.read_csv(
            path,
            header=format.header,
            delimiter=format.delimiter,
            quotechar=format.quote,
            escapechar=format.quote,
            na_values=list(format.null_values),
            all_varchar=True,
            compression=codec,
            ignore_errors=True,
        )

    def _objects(self, path: str, codec: str, all_fit: bool) -> Any:
        fields = ", ".join(
            f"{quoted(name)} {'VARCHAR' if kind == 'BLOB' else kind}" for name, kind in self._types.items()
        )
        # What does not fit a field, or is no object, becomes null without an error.
        rows = self._duckdb.sql(
            f"SELECT json, TRY_CAST(json AS STRUCT({fields})) AS {_ROW} FROM read_json_objects({_literal(path)}, "
            f"format = 'newline_delimited', ignore_errors = true, compression = '{codec}')"
        )
        if not all_fit:
            tests = ["json_type(json) = 'OBJECT'", *(_is_json_of(name, kind) for name, kind in self._types.items())]
            rows = rows.filter(" AND ".join(tests))
        return rows.project(", ".join(f"{_ROW}.{quoted(name)} AS {quoted(name)}" for name in self._types))

    def _fits(self, found: Sequence[str]) -> str:
        """Whether every value can become one of its column."""
        names = self._names(found)
        is_text = not isinstance(self._source.format, Parquet)
        tests = ["true"]
        for name, kind in self._types.items():
            if name in names and not (is_text and kind in ("VARCHAR", "BLOB")):
                value = quoted(names[name])
                test = f"TRY_CAST({value} AS {kind}) IS NOT NULL"
                if is_text and kind in _WHOLE_NUMBERS:
                    # A cast would round 1.5.
                    test += f" AND NOT regexp_matches({value}, '[^-+0-9 ]')"
                tests.append(f"({value} IS NULL OR ({test}))")
        return " AND ".join(tests)

    def _names(self, found: Sequence[str]) -> Mapping[str, str]:
        """What the source's columns are called in a file that has `found`."""
        if not isinstance(self._source.format, Csv) or self._source.format.header:
            return dict(zip(found, found, strict=True))
        if len(found) != len(self._types):
            raise self._cannot(f"DuckDB finds {len(found)} columns in a file, not {len(self._types)}")
        return dict(zip(self._types, found, strict=True))

    def _cannot(self, reason: str) -> CannotComputeError:
        return CannotComputeError(f"source {self._source.name}: {reason}")


def _is_json_of(name: str, kind: str) -> str:
    """Whether a JSON value became one of its column, and is of its kind: a cast takes "1" for 1, and 1.5 for 2."""
    value = f"json_type(json, {_literal('/' + name.replace('~', '~0').replace('/', '~1'))})"
    became = f"{_ROW}.{quoted(name)} IS NOT NULL"
    if kind == "VARCHAR":
        became += f" AND {value} = 'VARCHAR'"
    elif kind in _WHOLE_NUMBERS:
        became += f" AND {value} IN ('BIGINT', 'UBIGINT')"
    elif kind in _NO_TEXT:
        became += f" AND {value} <> 'VARCHAR'"
    return f"(coalesce({value}, 'NULL') = 'NULL' OR ({became}))"


def quoted(name: str) -> str:
    """A name as part of an SQL text."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
