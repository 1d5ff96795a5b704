"""In ANSI mode a view fails over corrections only if Spark's batch over the rows of the epoch fails."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_bridge.engine.session.borrowed_session import borrow
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.view_graph import ViewGraph

MOST = (1 << 63) - 1
SCHEMA = pa.schema([("k", pa.string()), ("i", pa.int64()), ("n", pa.int32()), ("d", pa.decimal128(38, 0))])
VIEWS = {
    "total": "SELECT sum(i) AS s FROM t",
    "totals": "SELECT k, sum(i) AS s, count(*) AS n FROM t GROUP BY k",
    "exact": "SELECT k, sum(d) AS s FROM t GROUP BY k",
    "averages": "SELECT k, avg(d) AS a FROM t GROUP BY k",
    "narrow": "SELECT k, CAST(sum(n) AS int) AS s FROM t GROUP BY k",
    "product": "SELECT k, sum(i) * count(*) AS s FROM t GROUP BY k",
    "inverse": "SELECT 1 / (2 - count(*)) AS x FROM t",
    "distinct": "SELECT k, sum(DISTINCT i) AS s FROM t GROUP BY k",
    "having": "SELECT k, max(n) AS m FROM t GROUP BY k HAVING CAST(sum(n) AS int) <> 7",
    "reader": "SELECT s, count(*) AS n FROM totals GROUP BY s",
}


@pytest.fixture
def strict(local_spark: SparkSession) -> SparkSession:
    return borrow(local_spark, SparkSettings(ansi=True))


def graph_of(strict: SparkSession, place: Path, *names: str) -> ViewGraph:
    graph = ViewGraph(strict, place, [ViewDefinition(name, VIEWS[name]) for name in names], ("t",), SCHEMA)
    graph._oracle.conf.set("spark.sql.ansi.enabled", "true")
    return graph


def rows(*numbers: int, sign: int = 1) -> pa.Table:
    """The sums of a group have one sign: whether they overflow does not depend on the order of the rows."""
    return pa.table(
        {
            "k": ["a" if sign > 0 else "b"] * len(numbers),
            "i": [sign * each for each in numbers],
            "n": [sign * (each >> 32) for each in numbers],
            "d": [Decimal(sign * each) * 10**19 for each in numbers],
        },
        schema=SCHEMA,
    )


def fails(graph: ViewGraph, name: str) -> bool:
    try:
        graph.answers([name])
    except (PySparkException, Py4JJavaError):
        return True
    return False


@pytest.mark.more
@pytest.mark.parametrize("sign", [1, -1])
def test_new_rows_beside_a_replaced_file_overflow_only_in_between(
    strict: SparkSession, tmp_path: Path, sign: int
) -> None:
    graph = graph_of(strict, tmp_path, "totals", "narrow", "distinct", "having", "reader")
    graph.correct({("t", "a"): rows(MOST, sign=sign)})
    of_both_groups = pa.concat_tables([rows(10, 1 << 40, sign=sign), rows(3, sign=-sign)])
    done = graph.correct({("t", "b"): of_both_groups}, {("t", "a"): rows(1, sign=sign)})
    assert done.stopped == {}
    graph.check()
    done = graph.correct({("t", "c"): rows(MOST - 8, sign=sign)}, {("t", "b"): None})
    assert done.stopped == {}
    graph.check()
    done = graph.correct({("t", "d"): rows(MOST, sign=sign)})
    assert done.stopped.keys() == {"totals", "narrow", "distinct", "having", "reader"}
    assert all(fails(graph, name) for name in ("totals", "narrow", "distinct", "having"))
    graph.materializer.close()


@pytest.mark.more
def test_a_view_whose_first_epoch_fails_only_in_between_is_created(strict: SparkSession, tmp_path: Path) -> None:
    graph = graph_of(strict, tmp_path, "inverse", "total")
    done = graph.correct({("t", "a"): rows(MOST, 1), ("t", "b"): rows(5)}, {("t", "a"): rows(3, 4)})
    assert done.stopped == {}
    graph.check()
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("seed", few(range(12), 0, 1))
def test_random_corrections_near_the_limits_fail_as_sparks_batch_does(
    strict: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, graph, alive = random.Random(seed), graph_of(strict, tmp_path, *VIEWS), {*VIEWS}
    present = list[str]()
    for number in range(8):
        replaced: dict[tuple[str, str], pa.Table | None] = {
            ("t", name): chance.choice([None, _random(chance)])
            for name in chance.sample(present, min(len(present), chance.randint(0, 3)))
        }
        new = {("t", f"{number}.{each}"): _random(chance) for each in range(chance.randint(0, 2))}
        done = graph.correct(new, replaced)
        present = [name for _, name in graph.files]
        for name in done.stopped:
            assert fails(graph, name), f"{name} has failed at epoch {number}: {done.stopped[name].error}"
        alive -= done.stopped.keys()
        if alive:
            graph.check(*alive)
    graph.materializer.close()


def _random(chance: random.Random) -> pa.Table:
    share = chance.choice([2, 3, 3, 4, 9])
    return rows(
        *(MOST // share - chance.randint(0, 9) for _ in range(chance.randint(1, 2))), sign=chance.choice([1, -1])
    )
