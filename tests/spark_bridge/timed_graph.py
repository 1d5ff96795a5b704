"""Views over filters by the time of the epoch, and Spark's answers with that time written in their place."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.plans.view_definition import ViewDefinition
from tests.spark_bridge.view_graph import ViewGraph

BEGIN = datetime(2013, 1, 1, 12, tzinfo=UTC)
_NOW = re.compile(r"\b(now|current_timestamp|current_date|localtimestamp)\(\)")
_TYPES = {"current_date": "DATE", "localtimestamp": "TIMESTAMP_NTZ"}


class TimedGraph(ViewGraph):
    """Views over filters by the time.

    Attributes:
        now: the time of the last epoch.
    """

    now = BEGIN

    def at(self, now: datetime) -> None:
        """The next epoch has this time."""
        self.now, self.epoch = now, max(self.epoch, (int(now.timestamp() * 1000) << 16) - 1)

    def answers(self, wanted: Collection[str]) -> dict[str, pa.Table]:
        definitions = self.definitions
        self.definitions = [ViewDefinition(each.name, self._fixed(each.query or "")) for each in definitions]
        try:
            return super().answers(wanted)
        finally:
            self.definitions = definitions

    def _fixed(self, query: str) -> str:
        now = f"TIMESTAMP'{self.now:%Y-%m-%d %H:%M:%S.%f}Z'"
        return _NOW.sub(lambda found: f"CAST({now} AS {_TYPES.get(found[1], 'TIMESTAMP')})", query)


def timed_graph(spark: SparkSession, root: Path, *queries: str) -> TimedGraph:
    """A graph over `t` and `u` with these queries, the first of them as the view `v`."""
    views = [ViewDefinition("v" if not number else f"v{number}", query) for number, query in enumerate(queries)]
    return TimedGraph(spark, root, views, ("t", "u"))
