"""A root with one view that has a column of every type, and one whose groups are looked up."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_view
from state.tables.group_key import group_keys
from state.tables.records import CatalogView
from tests.slackwater.reading.written_root import RootWriter

_NOON, _FIRST = datetime(2026, 1, 31, 12, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "tiny": (pa.int8(), [-128, 127, None]),
    "small": (pa.int16(), [-(2**15), 2**15 - 1, None]),
    "whole": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "large": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "above": (pa.uint64(), [0, 2**64 - 1, None]),
    "single": (pa.float32(), [1.5, -math.inf, None]),
    "real": (pa.float64(), [0.1, 1e300, None]),
    "text": (pa.string(), ["", "é'\\ \"x\"", None]),
    "raw": (pa.binary(), [b"", b"\x00\xff'", None]),
    "money": (pa.decimal128(20, 4), [Decimal("-1234567.8900"), Decimal("0.0001"), None]),
    "huge": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-10000), None]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "moment": (pa.timestamp("us"), [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2026, 1, 31), None]),  # noqa: DTZ001
    "instant": (pa.timestamp("us", "UTC"), [_NOON, _FIRST, None]),
    "clock": (pa.time64("us"), [time(0, 0, 0, 1), time(23, 59, 59, 999999), None]),
    "numbers": (pa.list_(pa.int64()), [[1, None, 3], [], None]),
    "words": (pa.list_(pa.string()), [["a,b", "NULL", '"\\', "", None], ["{}"], None]),
    "days": (pa.list_(pa.date32()), [[date(2026, 1, 31), None], [], None]),
    "part": (pa.struct([("x", pa.int64()), ("y", pa.string())]), [{"x": 1, "y": "é"}, {"x": None, "y": None}, None]),
}  # fmt: skip


def values() -> pa.Table:
    return pa.table({name: pa.array(column, kind) for name, (kind, column) in COLUMNS.items()})


def write_values(place: Path) -> str:
    """A root with the views `every_type` and `totals`; the second has the key (shop, number)."""
    writer = RootWriter(Location(str(place)), Location("/nowhere"))
    put_pipeline(writer.delta, CatalogPipeline("values", ansi=False))
    put_view(writer.delta, CatalogView("every_type", "append", "q", "plan", (), (), writer.epoch))
    put_view(writer.delta, CatalogView("totals", "aggregate", "q", "plan", (), ("shop", "number"), writer.epoch))
    writer.view("every_type", values())
    shops, numbers = pa.array(["a", "o'hare", None]), pa.array([1, 2, 3], pa.int32())
    keys = group_keys([shops, numbers])
    writer.view("totals", pa.table({"shop": shops, "number": numbers, "n": [10, 20, 30], "__sw_key": keys}))
    writer.commit()
    return str(place)
