"""Two views whose identities are compared: a query, and a function with a UDF."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

QUERY = "SELECT k, count(*) AS n, avg(i) AS a FROM t WHERE g = 1 AND k <> '1' GROUP BY k HAVING count(*) > 1"


def _scaled(x: Any) -> Any:
    # A comment does not count.
    return x * FACTOR


FACTOR = 2.0


def with_udf() -> Callable[[DataFrame], DataFrame]:
    scaled = F.udf(_scaled, DoubleType())

    def v(t: DataFrame) -> DataFrame:
        return t.select(scaled("x").alias("s"))

    return v
