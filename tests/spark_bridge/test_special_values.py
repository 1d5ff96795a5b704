"""Special values of every type as groups, keys and rows, with corrections: each view equals Spark's batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from actors.sources.row_key import Key
from spark_bridge.plans.view_definition import ViewDefinition
from state.equality.row_identity import kinds_of
from state.tables.group_key import group_keys
from tests.cases import few
from tests.spark_bridge.keyed_graph import ORIGIN, with_origin
from tests.spark_bridge.view_graph import ViewGraph
from tests.spark_bridge.ways_of_rows import as_if_many
from tests.special_values import MAPS, SPECIAL

FEW = ("double", "timestamp", "string", "array<double>")
"""The types of `make test`; `make test-more` has them all."""
MANY = tuple(each for each in SPECIAL if each not in FEW)
TYPES = {**SPECIAL, **MAPS}


def views_of(types: Sequence[str]) -> Mapping[str, str]:
    """Queries over `l` and `r`, which have a column for each type: its name with a number."""
    columns = [name for name, kind in named(types).items() if kind in SPECIAL]
    listed, every = ", ".join(columns), ", ".join(named(types))
    counts = ", ".join(f"count(DISTINCT {each}) AS {each}" for each in columns)
    same = " AND ".join(["l.kind = r.kind", *(f"l.{name} <=> r.{name}" for name in columns)])
    third = "r.id % 3 = 0"
    return {
        "rows": f"SELECT id, kind, {every} FROM l WHERE id >= 0",
        "groups": f"SELECT kind, {listed}, count(*) AS n, max(id) AS i FROM l GROUP BY kind, {listed}",
        "distinct": f"SELECT DISTINCT kind, {listed} FROM l",
        "counted": f"SELECT kind, {counts} FROM l GROUP BY kind",
        "window": f"SELECT id, {listed}, row_number() OVER (PARTITION BY kind, {listed} ORDER BY id DESC) AS n FROM l",
        "ranked": f"SELECT id, {listed}, rank() OVER (ORDER BY kind, {listed}) AS n FROM l",
        "first": f"SELECT id, {every} FROM l ORDER BY kind, {listed}, id LIMIT 100",
        "last": f"SELECT id, {every} FROM l ORDER BY id DESC LIMIT 100",
        "join": f"SELECT l.id, r.id AS other, {', '.join(f'l.{each}' for each in columns)} FROM l JOIN r ON {same}",
        "semi": f"SELECT id, {listed} FROM l WHERE EXISTS (SELECT 1 FROM r WHERE {third} AND {same})",
        "anti": f"SELECT id, {listed} FROM l LEFT ANTI JOIN r ON {third} AND {same}",
        "except": f"SELECT kind, {listed} FROM l EXCEPT SELECT kind, {listed} FROM r WHERE {third}",
        "intersect": f"SELECT kind, {listed} FROM l INTERSECT SELECT kind, {listed} FROM r WHERE {third}",
        "beside": f"SELECT id, {every} FROM l WHERE id < (SELECT max(id) - 2 FROM r)",
    }


def named(types: Sequence[str]) -> Mapping[str, str]:
    """Column → its type."""
    return {f"c{[*TYPES].index(each)}": each for each in types}


def shifted(types: Sequence[str], shift: int) -> pa.Table:
    """A row for each value of each type, with the value `shift` places further, and null for other types."""
    fields = [pa.field(name, TYPES[kind].values.type) for name, kind in named(types).items()]
    schema = pa.schema([("id", pa.int64()), ("kind", pa.int64()), *fields])
    tables = []
    for number, (name, kind) in enumerate(named(types).items()):
        count = len(TYPES[kind].values)
        values = TYPES[kind].values.take(pa.array((np.arange(count) + shift) % count))
        given = {"id": pa.array(1_000 * number + np.arange(count)), "kind": pa.array(np.full(count, number))}
        given[name] = values
        tables.append(pa.table([given.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema))
    return pa.concat_tables(tables)


class ExactGraph(ViewGraph):
    """Views whose rows must be identical to the rows of Spark's answer, also in the sign of each zero."""

    def check(self, *names: str) -> None:
        names = names or tuple(each.name for each in self.definitions)
        answers = self.answers(names)
        for name in names:
            ours, sparks = self.shown(name), answers[name]
            assert ours.schema == sparks.schema
            kinds = kinds_of(pa.concat_tables([ours, sparks]))
            count = int(kinds.max(initial=-1)) + 1
            more = np.bincount(kinds[: len(ours)], minlength=count) - np.bincount(kinds[len(ours) :], minlength=count)
            wrong = np.flatnonzero(more[kinds])[:4]
            rows = pa.concat_tables([ours, sparks]).take(pa.array(wrong))
            assert not len(wrong), f"{name} at epoch {self.epoch}: {more[kinds][wrong]} times {rows}"


def follow(spark: SparkSession, root: Path, query: str, types: Sequence[str], shifts: Sequence[int]) -> None:
    """Epochs that replace each value: one epoch for each shift, with the value `shift` places further."""
    rows = shifted(types, 0)
    graph = ExactGraph(spark, root, [ViewDefinition("v", query)], ("l", "r"), rows.schema)
    graph.correct({("l", "f"): rows, ("r", "f"): rows})
    graph.check()
    for shift in shifts:
        graph.correct({}, {("l", "f"): shifted(types, shift)})
        graph.check()
    graph.reopen()
    with as_if_many():
        graph.correct({}, {("l", "f"): rows, ("r", "f"): shifted(types, 1)})
        graph.check()
    graph.correct({}, {("l", "f"): None})
    graph.check()
    graph.materializer.close()


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", few(views_of(FEW), "groups", "first", "anti"))
def test_values_are_the_same_rows_as_in_spark(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    follow(local_spark, tmp_path, views_of(FEW)[name], FEW, [1])


# A view with a map below a limit or beside a single value is refused.
_WITHOUT_MAPS = ("first", "last", "beside")


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "types"),
    [
        pytest.param(name, types, id=f"{name}-{group}")
        for name in views_of(FEW)
        for group, types in {"plain": MANY[:9], "nested": MANY[9:], "maps": [*FEW, *MAPS]}.items()
        if group != "maps" or name not in _WITHOUT_MAPS
    ],
)
def test_values_of_all_types_are_the_same_rows_as_in_spark(
    local_spark: SparkSession, tmp_path: Path, name: str, types: Sequence[str]
) -> None:
    follow(local_spark, tmp_path, views_of(types)[name], types, [1, 0, 2, 5])


@pytest.mark.more
def test_rows_that_differ_only_in_the_sign_of_a_zero_have_an_order(local_spark: SparkSession, tmp_path: Path) -> None:
    """After a restart a limit would choose another row, and would retract a row that no view has stored."""
    schema = pa.schema([("g", pa.int64()), ("k", pa.float64()), ("a", pa.list_(pa.float64()))])
    views = {
        "first": "SELECT k, a FROM t ORDER BY g LIMIT 3",
        "numbered": "SELECT k, a, row_number() OVER (PARTITION BY g ORDER BY k) AS n FROM t",
        "whole": "SELECT k, a, row_number() OVER (ORDER BY g, k) AS n FROM t",
    }
    graph = ExactGraph(local_spark, tmp_path, [ViewDefinition(*each) for each in views.items()], ("t",), schema)

    def rows(*zeros: float) -> pa.Table:
        return pa.Table.from_pylist([{"g": 1, "k": k, "a": [a]} for k in zeros for a in zeros[:2]], schema)

    def texts(table: pa.Table) -> list[tuple[str, str]]:
        return sorted((str(row["k"]), str(row["a"])) for row in table.to_pylist())

    def check() -> None:
        graph.check()
        assert texts(graph.shown("first")) == texts(graph.rows["t"])[:3]

    graph.correct({("t", "f"): rows(0.0, -0.0), ("t", "g"): rows(-0.0, 0.0)})
    check()
    graph.correct({}, {("t", "f"): rows(-0.0, 0.0, -0.0)})
    check()
    graph.reopen()
    with as_if_many():
        graph.correct({("t", "h"): rows(0.0)}, {("t", "g"): rows(0.0)})
        check()
    graph.correct({}, {("t", "f"): None})
    check()
    graph.materializer.close()


class KeyedSpecialValues(ExactGraph):
    """A source `t` with the key `v`, whose last rows Spark gets."""

    def seen(self) -> Mapping[str, pa.Table]:
        rows = self.rows["t"]
        last: dict[str, tuple[int, str, int, int]] = {}
        order = zip(*(rows[name].to_pylist() for name in ("id", "_path", "_row")), range(len(rows)), strict=True)
        for key, place in zip(group_keys([rows["v"]]).to_pylist() if len(rows) else [], order, strict=True):
            last[key] = max(last.get(key, place), place)
        return {"t": rows.take(pa.array([place[-1] for place in last.values()], pa.int64()))}


@pytest.mark.more
@pytest.mark.parametrize("kind", few(SPECIAL, "double"))
def test_records_with_equal_keys_are_one(local_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    values = SPECIAL[kind].values.drop_null()
    numbers = np.arange(len(values))
    schema = pa.schema([("id", pa.int64()), ("v", values.type), *ORIGIN])

    def rows(path: str, shift: int) -> pa.Table:
        table = pa.table(
            {"id": pa.array((numbers * 7 + shift) % 5), "v": values.take(pa.array(np.roll(numbers, shift)))}
        )
        return with_origin(table, path).cast(schema)

    key = Key("v", order_by="id")
    views = [ViewDefinition("v", "SELECT id, v, _path FROM t")]
    graph = KeyedSpecialValues(local_spark, tmp_path, views, ("t",), schema, {"t": key})
    graph.correct({("t", path): rows(path, shift) for shift, path in enumerate("fg")})
    graph.check()
    graph.correct({("t", "h"): rows("h", 3)}, {("t", "f"): rows("f", 2)})
    graph.check()
    graph.correct({}, {("t", "h"): None})
    graph.check()
    graph.materializer.close()
