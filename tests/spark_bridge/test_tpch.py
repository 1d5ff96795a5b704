"""TPC-H, epoch by epoch: orders and line items arrive as files, customers and suppliers change, files are forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from benchmarks.tpch import Tables, read_tables
from benchmarks.tpch_queries import QUERIES, TABLES
from spark_bridge.plans.view_definition import ViewDefinition
from tests.spark_bridge.corrected_view import Files
from tests.spark_bridge.view_graph import ViewGraph

pytestmark = pytest.mark.more

SCALE = 0.1
EPOCHS = 20
IN_PARTS = 4
PARTS = 12
"""Epochs that bring orders, and their line items."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return read_tables(tmp_path_factory.mktemp("tpch"), SCALE)


def slices(tables: Tables, name: str, key: str) -> list[pa.Table]:
    """The rows of a table in parts, by ranges of the key of orders."""
    keys = pc.sort_indices(tables["orders"]["o_orderkey"])
    sorted_keys = tables["orders"]["o_orderkey"].take(keys)
    bounds = [sorted_keys[len(sorted_keys) * part // PARTS].as_py() for part in range(PARTS)]
    found = []
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        inside = pc.greater_equal(tables[name][key], low)
        found.append(tables[name].filter(inside if high is None else pc.and_(inside, pc.less(tables[name][key], high))))
    return found


def moved(table: pa.Table, column: str, epoch: int) -> pa.Table:
    """The table with another nation in a twentieth of its rows."""
    numbers = pa.array(range(table.num_rows))
    is_moved = pc.equal(pc.bit_wise_and(numbers, 15), epoch % 16)
    at = table.schema.get_field_index(column)
    values = pc.if_else(is_moved, pc.bit_wise_and(pc.add(table[column], epoch), 15), table[column])
    return table.set_column(at, table.schema.field(at), values.cast(table.schema.field(at).type))


def story(tables: Tables) -> list[tuple[Files, Mapping[tuple[str, str], pa.Table | None]]]:
    """New files and corrected files of each epoch."""
    orders, items = slices(tables, "orders", "o_orderkey"), slices(tables, "lineitem", "l_orderkey")
    half = tables["customer"].num_rows // 2
    customers = {"1": tables["customer"].slice(0, half), "2": tables["customer"].slice(half)}
    epochs: list[tuple[Files, Mapping[tuple[str, str], pa.Table | None]]] = []
    small = {(name, "all"): tables[name] for name in ("region", "nation", "supplier", "part", "partsupp")}
    epochs.append((small, {}))
    for part in range(PARTS):
        new = {("orders", f"{part}"): orders[part]}
        if part:
            new[("lineitem", f"{part - 1}")] = items[part - 1]
        if part < 2:
            new |= {("customer", name): rows for name, rows in customers.items() if part == int(name) - 1}
        changed = {}
        if part > 2 and part % 3 == 0:
            changed = {("customer", "1"): moved(customers["1"], "c_nationkey", part)}
        epochs.append((new, changed))
    last = {("lineitem", f"{PARTS - 1}"): items[-1]}
    epochs.append((last, {("supplier", "all"): moved(tables["supplier"], "s_nationkey", 3)}))
    epochs.append(({}, {("lineitem", "2"): None}))
    epochs.append(({}, {("orders", "3"): None, ("lineitem", "4"): items[4].slice(0, 500)}))
    epochs.append(({("lineitem", "again"): items[2]}, {("part", "all"): tables["part"].slice(0, 3000)}))
    epochs.append(({}, {("partsupp", "all"): tables["partsupp"].slice(500)}))
    epochs.append(({("orders", "again"): orders[3]}, {("nation", "all"): tables["nation"].slice(0, 20)}))
    epochs.append(({}, {("nation", "all"): tables["nation"], ("part", "all"): tables["part"]}))
    assert len(epochs) == EPOCHS
    return epochs


@pytest.mark.parametrize("part", range(IN_PARTS))
def test_every_query_is_sparks_answer_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, tables: Tables, part: int
) -> None:
    definitions = [ViewDefinition(name, query) for name, query in list(QUERIES.items())[part::IN_PARTS]]
    schemas = {name: table.schema for name, table in tables.items()}
    graph = ViewGraph(local_spark, tmp_path, definitions, TABLES, schemas, has_many_rows=True)
    assert "full" not in {plan.view_class for plan in graph.plans.values()}
    for new, changed in story(tables):
        graph.correct(new, changed)
        graph.check()
    graph.materializer.close()
