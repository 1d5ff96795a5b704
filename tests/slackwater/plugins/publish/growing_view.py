"""A root with one view that is written as the materializer does it, and the rows that a published table must have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from slackwater.reading.store import Store
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.view_table import ViewTable
from state.location import Location
from state.tables.catalog import put_view
from state.tables.group_key import KEY_COLUMN, group_keys
from state.tables.records import CatalogView, ViewClass, ViewVersion
from tests.slackwater.reading.written_root import RootWriter

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class GrowingView:
    """The view `v` of a root, one call of `commit` an epoch.

    Args:
        root: the root.
        key: the columns of its groups; empty for a view of single rows.
    """

    def __init__(self, root: Location, *key: str) -> None:
        self.writer = RootWriter(root, Location("/nowhere"))
        self._key = key
        self._path = ""
        self._table: ViewTable | None = None

    @property
    def table(self) -> ViewTable:
        assert self._table is not None
        return self._table

    @property
    def store(self) -> Store:
        return Store(self.writer.root, self.writer.clock)

    def create(self, rows: pa.Table) -> int:
        """The view, or another one in its place, and the epoch that has it."""
        self._path = view_path("v", self.writer.epoch)
        self._table = ViewTable.create(self.writer.root.child(self._path), rows)
        kind: ViewClass = "aggregate" if self._key else "append"
        put_view(self.writer.delta, CatalogView("v", kind, "SELECT", "plan", ("s",), self._key, self.writer.epoch))
        return self.commit()

    def correct(self, condition: str, rows: pa.Table) -> int:
        """An epoch in which a file is replaced: some rows go, others come."""
        dataset = self.table._dataset
        dataset.delete(condition)
        self._table = ViewTable.open(self.table.location, dataset.version)
        self.table.append(rows)
        return self.commit()

    def commit(self) -> int:
        self.writer.views["v"] = ViewVersion("v", self._path, self.table.version)
        self.writer.commit()
        return self.writer.records[-1].epoch


def groups(counts: Mapping[int, int]) -> pa.Table:
    """Groups by two columns, one of them with nulls and NaN, and a partial that is not in the result."""
    carriers = pa.array([None if number % 10 == 0 else f"c{number % 10}|`'" for number in counts], pa.string())
    days = pa.array([math.nan if number < 10 else float(number // 10) for number in counts], pa.float64())
    values = list(counts.values())
    columns = {
        "carrier": carriers,
        "day of it": days,
        "n": pa.array(values, pa.int64()),
        "mean": pa.array([None if value == 0 else value / 3 for value in values], pa.float64()),
    }
    key = group_keys([carriers, days])
    return pa.table({**columns, "__sw_partial_0": pa.array(values, pa.int64()), KEY_COLUMN: key})


def events(*numbers: int) -> pa.Table:
    """Rows of every type that Spark gives a view; equal numbers are equal rows."""
    schema = pa.schema(
        [
            ("n", pa.int32()),
            ("tiny", pa.int8()),
            ("is_even", pa.bool_()),
            ("delay", pa.float64()),
            ("price", pa.decimal128(12, 2)),
            ("name", pa.string()),
            ("raw", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("seen", pa.list_(pa.float64())),
            ("place", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ]
    )
    return pa.Table.from_pylist([_event(number) for number in numbers], schema)


def _event(number: int) -> dict[str, Any]:
    if number % 7 == 0:
        return {"n": number}
    return {
        "n": number,
        "tiny": number % 100,
        "is_even": number % 2 == 0,
        "delay": math.nan if number % 3 == 0 else number / 4,
        "price": Decimal(number) / 100,
        "name": f"é {number}\n",
        "raw": bytes([number % 256, 0]),
        "day": NOON.date(),
        "at": NOON,
        "local": NOON.replace(tzinfo=None),
        "seen": [math.nan, None, float(number)],
        "place": {"x": number, "y": None},
    }


def bag(table: pa.Table, columns: list[str]) -> list[str]:
    """The rows as sorted texts: equal bags have equal lists."""
    return sorted(map(repr, zip(*(table[name].to_pylist() for name in columns), strict=True)))
