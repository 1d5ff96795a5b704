"""Conditions over rows without Spark: SQL of DuckDB, for conditions that mean the same in both."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa


class DuckDBConditions:
    """See `spark_bridge.plans.row_conditions.RowConditions`; it counts the rows that it was given."""

    def __init__(self, view: str, schema: pa.Schema, conditions: Mapping[str, str]) -> None:
        self._conditions = conditions
        self.rows = 0

    def unfulfilled(self, rows: pa.Table) -> tuple[dict[str, pa.Array], dict[str, str]]:
        self.rows += rows.num_rows
        found, errors = dict[str, pa.Array](), dict[str, str]()
        for name, condition in self._conditions.items():
            query = f"SELECT NOT coalesce(({condition}), false) AS c FROM rows"
            try:
                table = duckdb.connect().sql(query).to_arrow_table()
            except duckdb.Error as error:
                errors[name] = str(error)
            else:
                found[name] = table.column("c").combine_chunks()
        return found, errors
