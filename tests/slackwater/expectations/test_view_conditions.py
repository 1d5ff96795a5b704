"""Expectations over a view as a whole are judged at each epoch, and hold results back as those over rows do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import lance
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.expectations.expectation_counts import ExpectationCounts
from slackwater.expectations.release import Release
from slackwater.expectations.view_facts import Records
from slackwater.expectations.view_rows import StoredRows
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.plans.view_conditions import ViewCondition
from spark_bridge.plans.view_definition import ViewDefinition
from state.epoch import epoch_time
from state.errors import SettingsError, ViewError
from state.location import Location
from state.tables.expectations import Expectation, ViewExpectations
from state.tables.records import ViewVersion
from tests.slackwater.expectations.arrow_conditions import DuckDBConditions

_FIRST = int(datetime(2026, 1, 2, tzinfo=UTC).timestamp() * 1000) << 16
"""An epoch."""
AT = epoch_time(_FIRST)


class JudgedView:
    """A view `v` with a time in each row, whose expectations are judged after each change."""

    def __init__(self, root: Location, minutes: list[float], **expect: ViewCondition | str) -> None:
        self.root, self.epoch = root, _FIRST
        self.definition = ViewDefinition("v", query="SELECT", expect=expect, on_violation="hold")
        self.path = view_path("v", 1)
        self.table = ViewTable.create(root.child(self.path), rows(minutes))
        self.counts = ExpectationCounts(partial(StoredRows, root), {}, {}, DuckDBConditions, Release())

    def judged(self, after_s: int = 0, *, came: int = 0, bad: int = 0) -> ViewExpectations:
        """The expectations at an epoch so many seconds after the first, in which so many records came."""
        self.epoch = _FIRST + (after_s * 1000 << 16)
        versions = {"v": ViewVersion("v", self.path, self.table.version)}
        self.counts.after_epoch(self.epoch, {"v": self.definition}, versions, {}, {"v": Records(came, bad)})
        return self.counts.views["v"]

    def minutes(self) -> list[float]:
        dataset = lance.dataset(str(self.root.child(self.path).path), version=self.table.version)
        return [float(each) for each in dataset.to_table()["minutes"].to_pylist()]


def rows(minutes: list[float]) -> pa.Table:
    """Rows whose times are so many minutes before the first epoch."""
    times = [AT - timedelta(minutes=each) for each in minutes]
    return pa.table({"at": pa.array(times, pa.timestamp("us", tz="UTC")), "minutes": pa.array(minutes, pa.float64())})


@pytest.fixture
def root(tmp_path: Path) -> Location:
    return Location(str(tmp_path / "root"))


def test_the_number_of_rows_holds_back_until_it_is_right(root: Location) -> None:
    view = JudgedView(root, [1.0, 2.0], enough=sw.expect.row_count(at_least=3, at_most=4))
    first = view.judged()
    assert first.expectations == {"enough": Expectation("row_count(at_least=3, at_most=4)", 1, 0, 1, None, "2 rows")}
    assert (first.held_since, first.epochs) == (view.epoch, (view.epoch,))
    view.table.append(rows([3.0, 4.0]))
    second = view.judged()
    assert (second.expectations["enough"].rows, second.held_since) == (0, None)
    view.table.append(rows([5.0]))
    third = view.judged()
    assert (third.expectations["enough"].found, third.expectations["enough"].came) == ("5 rows", 2)
    assert third.held_since == view.epoch


def test_a_release_accepts_the_view_until_it_is_right_again(root: Location) -> None:
    view = JudgedView(root, [1.0], enough=sw.expect.row_count(at_most=1))
    assert view.judged().held_since is None
    view.table.append(rows([2.0]))
    assert view.judged().held_since is not None
    view.counts.release()
    assert view.judged().held_since is None
    view.table.append(rows([3.0]))
    assert view.judged().held_since is None, "it violates as before"
    view.table.delete_where("minutes > 1")
    assert view.judged().expectations["enough"] == Expectation("row_count(at_most=1)", 0, 0, 1, None, "1 row")
    view.table.append(rows([2.0]))
    assert view.judged().held_since is not None


def test_a_view_gets_stale_by_time_and_fresh_by_rows(root: Location) -> None:
    view = JudgedView(root, [5.0, 9.0], fresh=sw.expect.freshness("at", within="10 min"), known="minutes > -5")
    assert view.judged().held_since is None
    stale = view.judged(after_s=301)
    assert stale.held_since == view.epoch, "no row has changed"
    assert stale.expectations["fresh"].found == f"newest {AT - timedelta(minutes=5):%Y-%m-%d %H:%M:%S} UTC"
    view.table.append(rows([-1.0]))
    assert view.judged(after_s=301).held_since is None


@pytest.mark.more
def test_the_newest_time_is_that_of_all_rows_whatever_changes(root: Location) -> None:
    random = Random(5)
    view = JudgedView(root, [], fresh=sw.expect.freshness("at", within="30 min"))
    assert view.judged().expectations["fresh"].found == "no time"
    for number in range(60):
        if random.random() < 0.6:
            view.table.append(rows([float(random.randrange(60)) for _ in range(random.randrange(1, 4))]))
        elif view.minutes():
            view.table.delete_where(f"minutes {random.choice('<>')} {random.randrange(60)}")
        if number % 13 == 0:
            view.counts = ExpectationCounts(
                partial(StoredRows, root), view.counts.views, {}, DuckDBConditions, Release()
            )  # another attempt
        fresh, youngest = view.judged().expectations["fresh"], min(view.minutes(), default=None)
        wanted = "no time" if youngest is None else f"newest {AT - timedelta(minutes=youngest):%Y-%m-%d %H:%M:%S} UTC"
        assert (fresh.found, fresh.rows) == (wanted, 0 if youngest is not None and youngest <= 30 else 1), number


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.date32()], ids=str)
def test_a_time_that_no_calendar_of_python_has_is_young_and_ends_no_epoch(root: Location, kind: pa.DataType) -> None:
    view = JudgedView(root, [], fresh=sw.expect.freshness("at", within="1 h"))
    days = 50 * 146_097  # the calendar repeats after 400 years
    value = days if kind == pa.date32() else days * 86_400_000_000
    at = pa.array([value], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    view.path = view_path("v", 2)
    view.table = ViewTable.create(root.child(view.path), pa.table({"at": at}))
    fresh = view.judged().expectations["fresh"]
    assert (fresh.rows, fresh.found) == (0, "newest 21970-01-01 00:00:00 UTC")


def test_the_bad_records_of_an_epoch_with_too_many_hold_back_until_a_release(root: Location) -> None:
    view = JudgedView(root, [1.0], readable=sw.expect.share_of_bad_records(at_most=0.1))
    assert view.judged(came=10, bad=1).held_since is None
    held = view.judged(came=10, bad=2)
    assert held.expectations["readable"] == Expectation(
        "share_of_bad_records(at_most=0.1)", 2, 0, 2, None, "2 of 10 records"
    )
    later = view.judged(1, came=1_000)
    assert (later.held_since, later.epochs) == (held.held_since, held.epochs), "good files do not mend a bad one"
    more = view.judged(2, came=4, bad=4)
    assert (more.expectations["readable"].rows, more.epochs) == (6, (_FIRST, view.epoch))
    view.counts.release()
    assert view.judged(3).held_since is None
    assert view.judged(3, came=8).expectations["readable"].found == "0 of 8 records"
    assert view.judged(3).expectations["readable"].found == "0 of 8 records", "no record has come since"
    again = view.judged(4, came=1, bad=1)
    assert (again.held_since, again.expectations["readable"].accepted) == (view.epoch, 6)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: sw.expect.row_count(), "every view has so many rows; write at_least= or at_most="),
        (lambda: sw.expect.row_count(at_least=3, at_most=2), r"row_count\(at_least=3, at_most=2\): at_most must be"),
        (lambda: sw.expect.row_count(at_least=-1), "both whole numbers from 0 on"),
        (lambda: sw.expect.row_count(at_least=cast(int, 1.5)), "both whole numbers from 0 on"),
        (lambda: sw.expect.freshness("at", within="soon"), "within='soon': give a duration such as"),
        (lambda: sw.expect.freshness("at", within="0 s"), "give a duration above 0"),
        (lambda: sw.expect.freshness("", within="1 h"), "name a column with a time"),
        (lambda: sw.expect.share_of_bad_records(at_most=1), "at_most is a share from 0 to below 1"),
        (lambda: sw.expect.share_of_bad_records(at_most=-0.1), "at_most is a share from 0 to below 1"),
        (lambda: sw.expect.share_of_bad_records(at_most=cast(float, "1 %")), "at_most is a share from 0 to below 1"),
    ],
)
def test_what_cannot_be_expected_is_refused(made: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        made()


@pytest.mark.parametrize(
    ("column", "said"),
    [("when", "there is no such column; there are at, n"), ("n", "the column is of type int64; name a date")],
)
def test_a_column_without_a_time_is_refused(column: str, said: str) -> None:
    schema = pa.schema([("at", pa.date32()), ("n", pa.int64())])
    with pytest.raises(ViewError, match=f"view 'v': expectation 'fresh': freshness.*: {said}"):
        sw.expect.freshness(column, within="1 h").check("view 'v': expectation 'fresh'", schema)
    sw.expect.freshness("at", within="1 h").check("view 'v'", schema)


def test_a_condition_over_the_view_takes_no_rows_out() -> None:
    with pytest.raises(ViewError, match="on_violation='quarantine' needs expectations"):
        ViewDefinition("v", query="SELECT 1", expect={"n": sw.expect.row_count(at_least=1)}, on_violation="quarantine")
    expect: dict[str, str | ViewCondition] = {"n": sw.expect.row_count(at_least=1), "x": "x > 0"}
    kept, left_out = ViewDefinition("v", query="SELECT x FROM s", expect=expect, on_violation="quarantine").parts
    assert (list(kept.expect), kept.on_violation) == (["n"], "count")
    assert (list(left_out.expect), left_out.on_violation) == (["x"], "quarantine")


def test_a_date_is_fresh_until_its_day_is_too_old() -> None:
    fresh = sw.expect.freshness("day", within="1 day")
    noon_us = int(datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp() * 1_000_000)
    day_us = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)
    assert fresh.is_fulfilled(day_us, noon_us)
    assert not fresh.is_fulfilled(day_us - 1, noon_us)
    assert not fresh.is_fulfilled(None, noon_us)


def test_what_nobody_has_counted_is_judged_by_the_next_epoch_which_comes_without_files(root: Location) -> None:
    view = JudgedView(root, [1.0, 2.0], some=sw.expect.row_count(at_least=1), right="minutes > 0")
    versions = {"v": ViewVersion("v", view.path, view.table.version)}
    taken = view.judged().taken(view.epoch, "its rows are from a branch")
    assert taken.holds_back
    view.counts = ExpectationCounts(partial(StoredRows, root), {"v": taken}, versions, DuckDBConditions, Release())
    assert view.counts.has_news({"v": view.definition})
    judged = view.judged(after_s=1)
    assert (judged.held_since, [each.error for each in judged.expectations.values()]) == (None, [None, None])
    assert not view.counts.has_news({"v": view.definition})
