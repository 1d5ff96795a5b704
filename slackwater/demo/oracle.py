"""What DuckDB, which shares no code with us, computes from exactly the rows that a ledger says were ingested."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from state.errors import UsageError

_RELATIVE = 1e-9  # sums of floating-point numbers depend on their order in the last digits

_READERS = {
    "parquet": "read_parquet(?)",
    "csv": "read_csv(?, header=true, columns={columns}, nullstr=['', 'NA', 'NULL', 'null', 'NaN', 'nan'])",
    "json": "read_json(?, format='newline_delimited', columns={columns})",
}


@dataclass(frozen=True)
class Comparison:
    """A view beside what DuckDB computes.

    Args:
        rows: of the view.
        expected_rows: of DuckDB's result.
        difference: the first difference, for people; None when they are equal.
    """

    view: str
    rows: int
    expected_rows: int
    difference: str | None

    @property
    def equal(self) -> bool:
        return self.difference is None


class Oracle:
    """DuckDB over the ingested rows of a pipeline's files.  A context manager.

    Args:
        read: the content of a file, by its path in the ledger.
    """

    def __init__(self, read: Callable[[str], bytes]) -> None:
        try:
            import duckdb
        except ModuleNotFoundError:
            raise UsageError("the comparison needs the package duckdb: pip install 'slackwater[demo]'") from None
        self._read = read
        self._duckdb: Any = duckdb.connect()
        self._duckdb.execute("SET TimeZone = 'UTC'")
        self._directory = tempfile.TemporaryDirectory(prefix="slackwater-oracle-")
        self._files = 0

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duckdb.close()
        self._directory.cleanup()

    def load(self, source: str, format: str, schema: pa.Schema, ledger: pa.Table) -> int:
        """Makes the table `source` from the first `rows_read` rows of each file of a ledger.

        Args:
            source: the name of the table.
            format: "parquet", "csv" or "json".
            schema: of the source.
            ledger: with the columns `path` and `rows_read`.

        Returns:
            how many rows it has.

        Raises:
            AssertionError: a file has fewer rows than the ledger says were read from it.
        """
        self._create(source, schema)
        types = {name: kind for name, kind, *_ in self._duckdb.execute(f'DESCRIBE "{source}"').fetchall()}
        reader = _READERS[format].format(columns="{" + ", ".join(f"'{n}': '{t}'" for n, t in types.items()) + "}")
        columns = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in types.items())
        total = 0
        for path, rows in zip(ledger["path"].to_pylist(), ledger["rows_read"].to_pylist(), strict=True):
            if not rows:
                continue
            # DuckDB keeps the order of a file, so that LIMIT takes its first rows.
            statement = f'INSERT INTO "{source}" SELECT {columns} FROM {reader} LIMIT {rows}'
            (inserted,) = self._duckdb.execute(statement, [str(self._fetched(path))]).fetchone()
            if inserted != rows:
                raise AssertionError(f"{path}: the ledger says {rows} rows were read, but the file has {inserted}")
            total += inserted
        return total

    def compare(self, view: str, actual: pa.Table, query: str) -> Comparison:
        """Compares a view's rows with those of a query over the loaded tables, in any order.

        Args:
            view: its name, for the result.
            actual: its rows.
            query: SQL as DuckDB understands it.
        """
        self._create("__actual", actual.schema)
        types = {name: kind for name, kind, *_ in self._duckdb.execute("DESCRIBE __actual").fetchall()}
        columns = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in types.items())
        expected = self._duckdb.sql(f"SELECT {columns} FROM ({query})").to_arrow_table()
        mine, theirs = _sorted_rows(actual), _sorted_rows(expected)
        return Comparison(view, len(mine), len(theirs), _difference(mine, theirs))

    def _create(self, table: str, schema: pa.Schema) -> None:
        self._duckdb.register("__empty", schema.empty_table())
        self._duckdb.execute(f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM __empty')
        self._duckdb.unregister("__empty")

    def _fetched(self, path: str) -> Path:
        self._files += 1
        local = Path(self._directory.name) / f"{self._files}{Path(path).suffix}"
        local.write_bytes(self._read(path))
        return local


def _sorted_rows(table: pa.Table) -> list[Mapping[str, Any]]:
    """Exact columns decide the order first: the same rows of both sides meet even when floats differ a little."""
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    order = sorted(table.column_names, key=lambda name: name in floats)

    def key(row: Mapping[str, Any]) -> list[tuple[bool, Any]]:
        return [(row[name] is None, "" if row[name] is None else _comparable(row[name])) for name in order]

    return sorted(table.to_pylist(), key=key)


def _comparable(value: Any) -> Any:
    return repr(value) if isinstance(value, (dict, list)) else value


def _difference(mine: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> str | None:
    for ours, other in zip(mine, theirs, strict=False):
        for name, value in ours.items():
            if not _same(value, other[name]):
                return f"{name!r} is {value!r} where DuckDB has {other[name]!r}, in {dict(ours)} against {dict(other)}"
    if len(mine) != len(theirs):
        longer, who = (mine, "the view") if len(mine) > len(theirs) else (theirs, "DuckDB")
        example = dict(longer[min(len(mine), len(theirs))])
        return f"{len(mine):,} rows where DuckDB has {len(theirs):,}; {who} also has {example}"
    return None


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_RELATIVE)
    return bool(a == b)
