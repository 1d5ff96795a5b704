"""Rows with the hard cases of aggregates and keys."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa

from actors.schemas.ddl import parse_schema

SCHEMA = parse_schema(
    "k string, g int, x double, f float, i bigint, p decimal(12,2), wide decimal(38,4), b boolean, "
    "day date, at timestamp, wall timestamp_ntz, raw binary, tags array<string>, place struct<city:string,code:int>"
)
_KEYS = ["AA", "aa", "a|b", "a\\", "\\N", "", "é", None, "UA", "UA"]
_DOUBLES = [0.0, -0.0, float("nan"), None, 1.5, -2.25, 1e9, 0.1]
_UTC = datetime.UTC


def random_rows(chance: random.Random, rows: int) -> pa.Table:
    """A table of `SCHEMA`."""
    return pa.Table.from_pylist([_row(chance) for _ in range(rows)], schema=SCHEMA)


def _row(chance: random.Random) -> dict[str, Any]:
    moment = datetime.datetime(2013, 1, 1, tzinfo=_UTC) + datetime.timedelta(hours=chance.randrange(50))
    row = {
        "k": chance.choice(_KEYS),
        "g": chance.choice([1, 2, 3, None]),
        "x": chance.choice([*_DOUBLES, chance.gauss(0, 100)]),
        "f": chance.choice([0.5, -0.0, 0.0, float("nan"), None]),
        "i": chance.randrange(-1000, 1000),
        "p": decimal.Decimal(chance.randrange(-10_000, 10_000)).scaleb(-2),
        "wide": decimal.Decimal(chance.randrange(10**30)).scaleb(-4),
        "b": chance.random() < 0.5,
        "day": moment.date(),
        "at": moment,
        "wall": moment.replace(tzinfo=None),
        "raw": chance.choice([b"", b"\x00", b"\xff|"]),
        "tags": chance.choice([None, [], ["a"], ["a", "b", None]]),
        "place": {"city": chance.choice(["Oslo", None]), "code": chance.randrange(3)},
    }
    return {name: None if name != "k" and chance.random() < 0.1 else value for name, value in row.items()}
