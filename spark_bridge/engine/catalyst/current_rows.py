"""The rows that views see of a source with a key: the last row of each key, as a window over all of its rows."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from actors.sources.row_key import NUMBER, Key

RowKeys = Mapping[str, Key]
"""Source → the key of its rows, for the sources with one."""


def current_rows(frame: DataFrame, key: Key) -> DataFrame:
    """The current rows, lazily, with the same columns.

    Args:
        frame: all rows of the source.

    Raises:
        AnalysisException: the condition for deletions is not a condition over the columns.
    """
    columns = [F.col(quoted_name(name)) for name in frame.columns]
    # The order is made total by all columns, though no rows tie: so all views of the source keep the same rows, once.
    numbered = frame.select(*columns, F.expr(key.number(quoted_name)).alias(NUMBER))
    return numbered.where(F.expr(key.is_current(quoted_name))).select(*columns)
