"""Rows that differ in one number, and what the work on a view over them has cost."""

from __future__ import annotations

import random

import pyarrow as pa

from spark_bridge.ingest.epoch_rows import EpochViews
from state.tables.epoch_trace import WorkCost
from tests.spark_bridge.random_rows import SCHEMA, random_rows


def with_numbers(*numbers: int) -> pa.Table:
    """A row for each of these values of `i`, otherwise alike."""
    row = random_rows(random.Random(1), 1).to_pylist()[0]
    return pa.Table.from_pylist([row | {"i": number} for number in numbers], schema=SCHEMA)


def cost(done: EpochViews, name: str = "v") -> WorkCost:
    """What the work on a view has cost in an epoch."""
    [found] = [each.cost for each in done.work if each.name == name and each.cost is not None]
    return found
