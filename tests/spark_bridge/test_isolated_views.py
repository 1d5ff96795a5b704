"""Every class of error in the work on one view stops that view alone, and what reads it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.datasets import dataset_writer, result_rows
from spark_bridge.maintenance.weighted_rows import WeightedRows
from spark_bridge.materializer import Materializer
from spark_bridge.operators.group.aggregate_plan import AggregatePlan
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import CommitUnknownError, RunFailedError, ViewError, ViewFailedError
from tests.cases import few
from tests.spark_bridge.committed_root import GOOD, TOTAL, Root
from tests.spark_bridge.view_graph import ViewGraph
from tests.waiting import eventually

BAD = pa.table({"k": ["a"], "i": [3], "s": ["x"]})
HEALTHY = ViewDefinition("healthy", "SELECT k, max(i) AS m FROM t GROUP BY k")
SHOP = {
    "customers": pa.schema([("cust", pa.int64())]),
    "orders": pa.schema([("order_id", pa.int64()), ("cust", pa.int64()), ("item", pa.string())]),
    "returns": pa.schema([("order_id", pa.int64()), ("reason", pa.string())]),
}
IN_WITHIN_IN = (
    "SELECT c.cust FROM customers c WHERE c.cust IN (SELECT o.cust FROM orders o WHERE o.order_id IN "
    "(SELECT r.order_id FROM returns r WHERE r.reason = o.item))"
)


def exits(x: int) -> int:
    if x == 3:
        os._exit(3)
    return x


def segmentation_fault(x: int) -> int:
    if x == 3:
        ctypes.string_at(0)
    return x


def killed(x: int) -> int:
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def leaves(x: int) -> int:
    if x == 3:
        sys.exit("by itself")
    return x


def recurses(x: int) -> int:
    return recurses(x) if x == 3 else x


def no_memory(x: int) -> int:
    if x == 3:
        raise MemoryError("800 GB")
    return x


CRASHES = {each.__name__: each for each in (exits, segmentation_fault, killed, leaves, recurses, no_memory)}


def _of_function(function: Callable[[int], int]) -> ViewDefinition:
    def crashing(t: DataFrame) -> DataFrame:
        return t.select(F.udf("bigint")(function)("i").alias("x"))

    return ViewDefinition("v", function=crashing)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", few(CRASHES, "exits", "leaves"))
def test_a_function_that_ends_its_process_stops_only_its_view(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    root = Root(local_spark, tmp_path, [_of_function(CRASHES[name]), TOTAL])
    root.run(GOOD)
    done = root.run(BAD)
    assert done.stopped.keys() == {"v"}
    error = root.known["v"].error
    assert error is not None
    expected = {"no_memory": "MemoryError: 800 GB", "leaves": "SystemExit: by itself", "recurses": "RecursionError: "}
    assert error.startswith(expected.get(name, "a Python function of the view ended its process")), error
    root.run(GOOD)
    assert root.rows("v") == [{"x": 1}, {"x": 2}]
    assert root.rows("total") == [{"k": "a", "n": 5}, {"k": "b", "n": 4}]
    root.close()


def test_a_query_that_spark_cannot_evaluate_stops_only_itself_and_its_readers(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    """The inner IN refers to the middle query: the plan is accepted, and its evaluation is an internal error."""
    definitions = [
        ViewDefinition("healthy", "SELECT cust, count(*) AS n FROM orders GROUP BY cust"),
        ViewDefinition("nested", IN_WITHIN_IN),
        ViewDefinition("reader", "SELECT cust, count(*) AS n FROM nested GROUP BY cust"),
        ViewDefinition("joined", "SELECT c.cust FROM customers c JOIN orders o ON o.cust = c.cust"),
    ]
    graph = ViewGraph(local_spark, tmp_path, definitions, tuple(SHOP), SHOP)

    def epoch(number: int) -> dict[str, str | None]:
        done = graph.correct(
            {
                ("customers", f"{number}"): pa.table({"cust": [number]}, schema=SHOP["customers"]),
                ("orders", f"{number}"): pa.table(
                    {"order_id": [number], "cust": [number], "item": ["a"]}, schema=SHOP["orders"]
                ),
                ("returns", f"{number}"): pa.table({"order_id": [number], "reason": ["a"]}, schema=SHOP["returns"]),
            }
        )
        return {name: each.error for name, each in done.stopped.items()}

    stopped = epoch(1)
    if stopped:
        assert stopped.keys() == {"nested", "reader"}
        assert "[INTERNAL_ERROR]" in str(stopped["nested"])
        assert stopped["reader"] == "view 'nested', which it reads, has failed"
    for number in (2, 3):
        assert epoch(number) == {}, "an error is recorded once"
        graph.check("healthy", "joined")
    graph.reopen()
    epoch(4)
    graph.check("healthy", "joined")
    graph.materializer.close()


ERRORS: dict[str, Callable[[], BaseException]] = {
    "exit": lambda: SystemExit("by itself"),
    "interrupt": KeyboardInterrupt,
    "recursion": lambda: RecursionError("maximum recursion depth exceeded"),
    "arrow": lambda: pa.ArrowInvalid("offset overflow while concatenating arrays"),
    "overflow": lambda: OverflowError("int too big to convert"),
    "assertion": lambda: AssertionError("it is open"),
    "missing key": lambda: KeyError("__sw_0_sum"),
    "gateway": lambda: Py4JError("Method next([]) does not exist"),
    "cut off": lambda: Py4JNetworkError("Answer from Java side is empty"),
    "analysis": lambda: AnalysisException("Resolved attribute(s) missing"),
    "usage": lambda: ViewError("view 'v' has no plan"),
}


@pytest.mark.more
@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_in_the_work_on_a_view_is_one_of_the_view(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    root = Root(local_spark, tmp_path, [HEALTHY, TOTAL])
    root.run(GOOD)
    merge, error = AggregatePlan.merge, ERRORS[kind]()

    def failing(self: AggregatePlan, *arguments: Any) -> Any:
        if self._view.name == "total":
            raise error
        return merge(self, *arguments)

    monkeypatch.setattr(AggregatePlan, "merge", failing)
    done = root.run(GOOD)
    assert done.stopped.keys() == {"total"}
    assert str(error.args[0] if error.args else error) in str(root.known["total"].error)
    assert root.rows("total") == [{"k": "a", "n": 1}, {"k": "b", "n": 2}]
    assert root.rows("healthy") == [{"k": "a", "m": 1}, {"k": "b", "m": 2}]
    root.close()


@pytest.mark.more
@pytest.mark.parametrize("is_of_store", [False, True])
def test_rows_that_cannot_be_written_stop_their_view_and_a_store_that_fails_ends_the_epoch(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_of_store: bool
) -> None:
    """The rows are written while other views already read them."""
    reader = ViewDefinition("reader", "SELECT n, count(*) AS groups FROM total GROUP BY n")
    root = Root(local_spark, tmp_path, [TOTAL, reader, HEALTHY])
    root.run(GOOD)
    before = root.rows("reader")
    write = write_fragments

    def failing(rows: Any, dataset: lance.LanceDataset, **options: Any) -> Any:
        if Path(dataset.uri).name.startswith("total-"):
            raise OSError("LanceError(IO): connection reset") if is_of_store else pa.ArrowInvalid("no such encoding")
        return write(rows, dataset, **options)

    monkeypatch.setattr(dataset_writer, "write_fragments", failing)
    if is_of_store:
        with pytest.raises(CommitUnknownError):
            root.run(GOOD)
        root.close()
        return
    root.run(GOOD)
    assert root.known["total"].error == "ArrowInvalid: no such encoding"
    assert root.known["reader"].error == "view 'total', which it reads, has failed"
    monkeypatch.undo()
    root.run(GOOD)
    assert root.rows("total") == [{"k": "a", "n": 1}, {"k": "b", "n": 2}], "the rows of its own last epoch"
    assert root.rows("reader") == before
    assert root.rows("healthy") == [{"k": "a", "m": 1}, {"k": "b", "m": 2}]
    root.close()


@pytest.mark.more
@pytest.mark.parametrize("depth", [200, 2_000])
def test_a_view_of_very_many_nested_expressions_stops_no_other_view(
    local_spark: SparkSession, tmp_path: Path, depth: int
) -> None:
    """Catalyst is recursive: such a view works, is refused when it is declared, or fails in its first epoch."""
    deep = ViewDefinition("deep", f"SELECT {'(1 + ' * depth}i{')' * depth} AS x FROM t")
    root = Root(local_spark, tmp_path, [TOTAL])
    root.run(GOOD)
    root.definitions = [TOTAL, deep]
    try:
        root.declare()
    except ViewError as error:
        assert "deep" in str(error)
        root.definitions = [TOTAL]
        root.declare()
    done = root.run(GOOD)
    assert done.stopped.keys() <= {"deep"}
    assert root.rows("total") == [{"k": "a", "n": 2}, {"k": "b", "n": 4}]
    root.close()


@pytest.mark.more
def test_cancelled_jobs_are_no_failure_of_a_view(local_spark: SparkSession, tmp_path: Path) -> None:
    """The end of an attempt cancels the jobs of the session."""
    begun = tmp_path / "begun"

    def waiting(x: int) -> int:
        import time

        begun.touch()
        while x == 3:
            time.sleep(0.1)
        return x

    root = Root(local_spark, tmp_path / "root", [_of_function(waiting), TOTAL])
    root.run(GOOD)
    begun.unlink()

    def cancel() -> None:
        eventually(begun.exists)
        local_spark.sparkContext.cancelAllJobs()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    with pytest.raises(RunFailedError, match="Spark failed") as failed:
        root.run(BAD)
    assert not isinstance(failed.value, ViewFailedError)
    cancelling.join()
    root.close()


def test_a_task_that_cannot_reach_the_store_is_no_failure_of_the_view(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is a Python function in a task, too."""
    monkeypatch.setattr(result_rows, "_STAGED_FROM_BYTES", 0)
    root = Root(local_spark, tmp_path, [ViewDefinition("v", "SELECT i AS x FROM t")])
    data = tmp_path / root.run(GOOD).views["v"].path / "data"
    data.rename(tmp_path / "moved")
    data.touch()
    with pytest.raises(RunFailedError) as failed:
        root.run(GOOD)
    assert not isinstance(failed.value, ViewFailedError)
    root.close()


@pytest.mark.more
def test_a_view_that_ended_attempts_is_stopped_before_it_is_computed_again(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    root = Root(local_spark, tmp_path, [_of_function(exits), TOTAL])
    root.run(GOOD)
    before = root.rows("v")
    root.close()
    suspended = {"v": "it ended 3 attempts", "dropped": "it ended 3 attempts"}
    root.materializer = Materializer(local_spark, root.location, suspended=suspended, alone_s=600)
    assert root.done is not None
    root.materializer.open(root.done.views, root.epoch, {"t"})
    root.declare()
    assert root.materializer.has_news(), "the next epoch records the failure, even without rows"
    assert root.run(BAD).stopped.keys() == {"v"}, "its function, which would fail, is not called"
    assert root.known["v"].error == "it ended 3 attempts"
    assert root.rows("v") == before
    assert root.rows("total") == [{"k": "a", "n": 4}, {"k": "b", "n": 2}]
    root.known["v"] = replace(root.known["v"], error=None)
    root.declare()
    assert [*root.materializer.backfilling] == ["v"], "a retried view is computed"
    root.close()


def test_a_view_that_ended_attempts_in_its_first_epoch_is_there_without_rows(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    root = Root(local_spark, tmp_path, [TOTAL])
    root.close()
    root.definitions = [_of_function(exits), TOTAL]
    root.materializer = Materializer(local_spark, root.location, suspended={"v": "it ended 3 attempts"})
    root.declare()
    assert root.run(BAD).stopped.keys() == {"v"}
    assert (root.known["v"].error, root.rows("v")) == ("it ended 3 attempts", [])
    assert root.rows("total") == [{"k": "a", "n": 3}]
    root.close()


@pytest.mark.more
@pytest.mark.parametrize("error", [ConnectionError, SystemExit])
def test_an_accepted_view_that_can_no_longer_be_analysed_stops_only_itself_and_its_readers(
    local_spark: SparkSession, tmp_path: Path, error: type[BaseException]
) -> None:
    is_reachable = True

    def v(t: DataFrame) -> DataFrame:
        if not is_reachable:
            raise error("the list of regions does not answer")
        return t.select("k", "i")

    reader = ViewDefinition("reader", "SELECT k, sum(i) AS n FROM v GROUP BY k")
    root = Root(local_spark, tmp_path, [ViewDefinition("v", function=v), reader, TOTAL])
    done = root.run(GOOD)
    before = root.rows("v"), root.rows("reader")
    root.close()

    is_reachable = False
    root.materializer = Materializer(local_spark, root.location)
    root.materializer.open(done.views, root.epoch, {"t"})
    root.declare()
    assert root.materializer.has_news(), "the next epoch records the failures, even without rows"
    root.run(GOOD)
    assert root.known["v"].error == f"its function raised {error.__name__}: the list of regions does not answer"
    assert root.known["reader"].error == "view 'v', which it reads, has failed"
    root.declare()
    root.run(GOOD)
    assert (root.rows("v"), root.rows("reader")) == before
    assert root.rows("total") == [{"k": "a", "n": 3}, {"k": "b", "n": 6}]
    new = ViewDefinition("w", function=v)
    root.definitions = [*root.definitions, new]
    with pytest.raises(ViewError, match=f"its function raised {error.__name__}"):
        root.declare()
    root.close()


@pytest.mark.more
def test_a_view_whose_maintenance_cannot_be_made_stops_only_itself(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = ViewDefinition("joined", "SELECT t.k, u.i FROM t JOIN t u ON t.k = u.k")
    make = WeightedRows.__init__

    def failing(self: WeightedRows, *arguments: Any) -> None:
        if arguments[2].name == "joined":
            raise Py4JError("Method normalized([]) does not exist")
        make(self, *arguments)

    monkeypatch.setattr(WeightedRows, "__init__", failing)
    root = Root(local_spark, tmp_path, [joined, TOTAL])
    root.run(GOOD)
    assert "Method normalized" in str(root.known["joined"].error)
    root.declare()
    root.run(GOOD)
    assert root.rows("total") == [{"k": "a", "n": 2}, {"k": "b", "n": 4}]
    root.close()


@pytest.mark.more
@pytest.mark.parametrize("name", ["total", "reader"])
def test_changes_that_cannot_be_followed_stop_their_view(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The changes of a view over a source, and of one over a view."""
    reader = ViewDefinition("reader", "SELECT n, count(*) AS groups FROM total GROUP BY n")
    root = Root(local_spark, tmp_path, [TOTAL, reader, HEALTHY])
    root.run(GOOD)
    views = root.materializer._incremental._open if name == "total" else root.materializer._derived._shown

    def failing() -> None:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    views[name].changes.take = failing  # type: ignore[method-assign]
    root.run(GOOD)
    assert str(root.known[name].error).startswith("ArrowInvalid: offset overflow")
    assert (root.known["reader"].error is not None) and (root.known["total"].error is None) == (name == "reader")
    root.run(GOOD)
    assert root.rows("healthy") == [{"k": "a", "m": 1}, {"k": "b", "m": 2}]
    root.close()
