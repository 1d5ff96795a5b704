"""A declared view, with the schemas, keys and event times of the sources that it may read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.plans.view_definition import ViewDefinition


@dataclass(frozen=True)
class DeclaredView:
    """A view before its analysis.

    Args:
        schemas: source → its schema, None while it is not known; all declared sources.
        materialized: the sources whose rows are stored.
        keys: the sources of which views see the last row of each key.
        event_times: source → the column with its event time, of the sources with one.
    """

    definition: ViewDefinition
    schemas: Mapping[str, pa.Schema | None]
    materialized: Collection[str]
    keys: RowKeys
    event_times: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the view."""
        return self.definition.name

    def columns_of(self, source: str) -> pa.Schema:
        """The columns of a source; none while they are not known."""
        return self.schemas[source] or pa.schema([])
