"""DuckDB's answers to queries of random graphs: a second engine, which shares no code with Spark."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import duckdb
import pyarrow as pa

from state.tables.lance_layout import with_schema

# Spark truncates where it casts to whole numbers; DuckDB rounds, and its `count_if` is null without a value.
_OTHERWISE = {
    "count_if(b)": "count(*) FILTER (WHERE b)",
    "CAST(sum(p) AS bigint)": "CAST(trunc(sum(p)) AS bigint)",
    "CAST(avg(i) AS bigint)": "CAST(trunc(avg(i)) AS bigint)",
    "CAST(avg(s) AS bigint)": "CAST(trunc(avg(s)) AS bigint)",
    "CAST(percentile(i, 0.5) AS bigint)": "CAST(trunc(quantile_cont(i, 0.5)) AS bigint)",
    "CAST(percentile(n, 0.5) AS bigint)": "CAST(trunc(quantile_cont(n, 0.5)) AS bigint)",
    "count(DISTINCT k, n)": "count(DISTINCT CASE WHEN k IS NOT NULL AND n IS NOT NULL THEN (k, n) END)",
    "<=>": "IS NOT DISTINCT FROM",
    "LATERAL VIEW explode(array(n, c)) e AS w": "CROSS JOIN LATERAL (SELECT unnest([n, c]) AS w)",
}
# The text of a double is another one; rows that compare as equal have no order; there are no sessions.
_NOT_COMPARED = (
    "CAST(x AS string)",
    "row_number()",
    "lag(",
    "ROWS BETWEEN",
    "first_value(",
    "session_window(",
    "LIMIT",
    "OFFSET",
)


class DuckDbAnswers:
    """A database in memory, of the rows that queries read."""

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self._database.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")

    def __enter__(self) -> DuckDbAnswers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def answer(self, query: str, read: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table | None:
        """The answer to a query of Spark's dialect; None if the dialects differ in it.

        Args:
            query: the query.
            read: name → rows of what it reads.
            schema: the types of the answer, which must hold its values.
        """
        if any(each in query for each in _NOT_COMPARED):
            return None
        for ours, theirs in _OTHERWISE.items():
            query = query.replace(ours, theirs)
        for name, rows in read.items():
            self._database.register(name, rows)
        answer = self._database.sql(query).to_arrow_table()
        return with_schema(answer, schema)
