"""Rows with the hard cases of aggregates, keys and merges; every answer over them is determined."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from actors.schemas.ddl import parse_schema

SCHEMA = parse_schema(
    "id bigint, k string, g int, i bigint, big bigint, x double, y double, f float, p decimal(12,2), w decimal(38,4), "
    "b boolean, day date, at timestamp, raw binary, tags array<string>"
)
_KEYS = ["AA", "aa", "a|b", "a\\", "\\N", "", "é", "日本", None, "UA", "UA"]
_SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), None]
_TAGS = [None, [], ["a"], ["a", "b", None], ["b", "b"]]
_UTC = datetime.UTC


def random_table(chance: random.Random, rows: int, first_id: int) -> pa.Table:
    """A table of `SCHEMA`.

    `id` orders all rows, for what takes the value of one of them.  Values of which sums overflow are positive, since
    otherwise it depends on the order of the rows whether an overflow is met.  `y` is finite and exact in binary, so
    that moments differ in the last digits only.
    """
    return pa.Table.from_pylist([_row(chance, first_id + index) for index in range(rows)], schema=SCHEMA)


def _row(chance: random.Random, number: int) -> dict[str, Any]:
    moment = datetime.datetime(1969, 12, 30, tzinfo=_UTC) + datetime.timedelta(hours=chance.randrange(80))
    row = {
        "k": chance.choice(_KEYS),
        "g": chance.choice([1, 2, 3, -4]),
        "i": chance.choice([0, 1, -1, chance.randrange(-1000, 1000)]),
        "big": chance.choice([1, 2**62, 2**63 - 1]),
        "x": chance.choice([*_SPECIAL, 0.1, chance.uniform(-100, 100)]),
        "y": chance.randrange(-400, 400) / 4,
        "f": chance.choice([0.5, -0.0, 0.0, float("nan"), 1e-3]),
        "p": Decimal(chance.choice([0, 1, 999_999_999_999, chance.randrange(-10_000, 10_000)])).scaleb(-2),
        "w": Decimal(chance.choice([1, 10**20, 4 * 10**37])).scaleb(-4),
        "b": chance.random() < 0.5,
        "day": moment.date(),
        "at": moment,
        "raw": chance.choice([b"", b"\x00", b"\xff|"]),
        "tags": chance.choice(_TAGS),
    }
    return {"id": number, **{name: None if chance.random() < 0.1 else value for name, value in row.items()}}
