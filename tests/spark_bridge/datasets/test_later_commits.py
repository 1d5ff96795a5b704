"""Commits of an epoch go on beside its other work, and are over, or have failed, when it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Timer
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from pyspark.sql import SparkSession

from spark_bridge.datasets import dataset_writer, later_commits
from spark_bridge.datasets.later_commits import LaterCommits
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.work_cost import counted
from state.errors import CommitRefusedError
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from tests.spark_bridge.followed_view import FollowedView

SCHEMA = pa.schema([pa.field(KEY_COLUMN, pa.string(), nullable=False), ("n", pa.int64())])


class Written:
    """A table whose next commit waits for `go_on`."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        self.location, self.go_on = Location(str(place / "v.lance")), Event()
        self.table = ViewTable.create(self.location, rows(1))
        write = write_fragments

        def waiting(*arguments: Any, **options: Any) -> Any:
            assert self.go_on.wait(60)
            return write(*arguments, **options)

        patch.setattr(dataset_writer, "write_fragments", waiting)

    def append(self) -> int:
        """The work of a view: tells its next version."""
        self.table.append(rows(2))
        return self.table.version

    @property
    def last(self) -> int:
        return int(lance.dataset(self.location.lance_uri).version)


def rows(number: int) -> pa.Table:
    return pa.table({KEY_COLUMN: [str(number)], "n": [number]}, schema=SCHEMA)


def test_work_is_over_before_its_commit_and_readers_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, commits = Written(tmp_path, monkeypatch), LaterCommits()
    with commits.ended():
        with counted() as counter:
            assert commits.of({"v": written.append})["v"]() == 2
        assert (written.last, counter.cost.written) == (1, 0)
        written.go_on.set()
        commits.wait(written.location)
        assert written.last == 2
        assert written.table.num_rows == 2
    assert counter.cost.written == 1, "the commit counts for the work that has begun it"
    commits.close()


def test_a_commit_outside_of_an_epoch_is_made_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, commits = Written(tmp_path, monkeypatch), LaterCommits()
    written.go_on.set()
    commits.of({"nothing": lambda: None})["nothing"]()
    assert written.append() == written.last == 2
    commits.close()


def test_many_rows_do_not_wait_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_commits, "_MOST_BYTES", 1)
    written, commits = Written(tmp_path, monkeypatch), LaterCommits()
    written.go_on.set()
    assert commits.of({"v": written.append})["v"]() == written.last == 2
    commits.close()


def test_an_epoch_ends_with_the_error_of_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, commits = Written(tmp_path, monkeypatch), LaterCommits()

    def epoch() -> None:
        with commits.ended():
            commits.of({"v": written.append})["v"]()
            lance.write_dataset(rows(3), written.location.lance_uri, mode="append")
            written.go_on.set()

    with pytest.raises(CommitRefusedError, match="another process"):
        epoch()
    with pytest.raises(CommitRefusedError, match="another process"):
        written.table.snapshot()
    commits.close()


def test_work_that_fails_leaves_no_commit_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, commits = Written(tmp_path, monkeypatch), LaterCommits()

    def epoch(fail: Callable[[], None]) -> None:
        with commits.ended():
            commits.of({"v": written.append})["v"]()
            fail()

    def fail() -> None:
        Timer(0.3, written.go_on.set).start()
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        epoch(fail)
    assert written.last == 2
    commits.close()


def test_a_view_is_computed_while_the_one_below_is_written(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n"
    schema = pa.schema([("k", pa.int64())])
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": schema})
    view.run({"t": pa.table({"k": [1, 2]}, schema=schema)})
    write, above = write_fragments, Event()
    in_time = []

    def waiting(new: Any, dataset: Any, **options: Any) -> Any:
        if Path(dataset.uri).name.startswith("v.1-"):
            in_time.append(above.wait(20))
        else:
            above.set()
        return write(new, dataset, **options)

    monkeypatch.setattr(dataset_writer, "write_fragments", waiting)
    done = view.run({"t": pa.table({"k": [1, 3]}, schema=schema)})
    assert in_time == [True], "the view above does not wait for it"
    assert sorted(view.stored().to_pylist(), key=str) == [{"n": 1, "groups": 2}, {"n": 2, "groups": 1}]
    written = {span.name: span.cost.written for span in done.work if span.cost is not None}
    assert written["v.1"] == 2, "the rows of a later commit are in the trace"
    view.materializer.close()
