"""Each fault in the datasets of views breaks its promise."""

from __future__ import annotations

from typing import get_args

import pytest

from spark_bridge.changes.joined_positions import JoinKind
from state.clock import ManualClock
from state.tables.records import ViewVersion
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDisk, Row
from tests.simulation.memory.memory_root import MemoryRoot
from tests.simulation.model_views.model_view import (
    EveryRow,
    GroupedRows,
    JoinOfSources,
    ModelView,
    Pair,
    Pairs,
    joined,
    side_rows,
)
from tests.simulation.promises.store_versions import SOURCE, breaks, file_tables, finished, put, record
from tests.simulation.promises.view_checker import ViewChecker
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import RowsByFile, Span

BUCKET = Bucket(page_size=10)
FILE = put(BUCKET, "a")
put(BUCKET, "failing", fails="rows")
KEY = SOURCE, "a", FILE.version
INGESTED: RowsByFile = {KEY: (0, 1, 2)}
WHOLE = (Span(KEY, 0, 3),)
SOURCES = frozenset({SOURCE})
MODELS: tuple[ModelView, ...] = (
    EveryRow("rows", SOURCES),
    GroupedRows("groups", SOURCES),
    EveryRow("late", SOURCES),
    EveryRow("full", SOURCES, is_full=True),
)


class Views:
    """Datasets of views, and their checker."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.root = MemoryRoot(self.disk, ManualClock())
        self.checker = ViewChecker(self.disk.datasets, BUCKET.contents, MODELS)

    def write(self, path: str, rows: object) -> int:
        """Writes the next version of a dataset."""
        before = self.disk.datasets[path].latest if path in self.disk.datasets else 0
        return self.root.commit_view(path, before, rows)

    def rows(self, *spans: Span) -> ViewVersion:
        """A version of the view `rows`."""
        return ViewVersion("rows", "rows", self.write("rows", spans))

    def check(self, *views: ViewVersion, epoch: int = 1) -> None:
        self.checker.check(epoch, views, INGESTED, _no_tables)


def _no_tables(epoch: int) -> FileTables:
    raise AssertionError("only a backfill needs them")


@pytest.fixture
def views() -> Views:
    return Views()


@pytest.mark.parametrize("spans", [(), (Span(KEY, 0, 2),), (*WHOLE, Span(KEY, 2, 3))], ids=["none", "lost", "twice"])
def test_a_view_with_other_rows_breaks_exactly_once(spans: tuple[Span, ...], views: Views) -> None:
    views.check(views.rows(*WHOLE))
    with breaks("G1", "rows at version 2: it has the rows"):
        views.check(views.rows(*spans))


def test_wrong_partials_or_a_wrong_result_break_exactly_once(views: Views) -> None:
    groups = MODELS[1]
    right, twice = groups.after(None, WHOLE), groups.after(None, WHOLE * 2)
    for partials, rows, why in (
        (twice, groups.result(twice), "the ingested rows give"),
        (right, {0: (9, 9)}, "its rows are {0: (9, 9)}"),
    ):
        version, state_version = views.write("groups", rows), views.write("partials", partials)
        with breaks("G1", why):
            views.check(ViewVersion("groups", "groups", version, "partials", state_version))


def test_a_backfill_that_lacks_more_than_the_rest_of_its_history_breaks_exactly_once(views: Views) -> None:
    history = file_tables([finished(FILE)])
    begun, complete = '{"history": null}', '{"history": "1"}'
    for progress, spans in ((begun, ()), (complete, WHOLE)):
        late = ViewVersion("late.next", "late", views.write("late", spans), pinned_epoch=1, progress=progress)
        views.checker.check(1, [late], INGESTED, lambda epoch: history)
    lost = ViewVersion("late.next", "late", views.write("late", ()), pinned_epoch=1, progress=complete)
    with breaks("G1", "late.next at version 3"):
        views.checker.check(1, [lost], INGESTED, lambda epoch: history)


def test_a_version_that_does_not_exist_breaks_one_moment(views: Views) -> None:
    for path in ("rows", "elsewhere"):
        views.rows(*WHOLE)
        with breaks("G2", f"version 7 of {path}, which does not exist"):
            views.check(ViewVersion("rows", path, 7))


def test_a_tag_on_rows_of_no_epoch_breaks_one_moment(views: Views) -> None:
    view = views.rows(*WHOLE)
    views.check(view)
    views.root.tag_committed(view)
    views.checker.check_tag("rows")
    views.root.tag_committed(views.rows())
    with breaks("G2", "version 2 of rows is tagged"):
        views.checker.check_tag("rows")


def test_a_retained_version_that_changes_breaks_monotonic(views: Views) -> None:
    view = views.rows(*WHOLE)
    views.check(view)
    records = [record(1, views=[view])]
    views.checker.check_unchanged(records)
    views.disk.datasets["rows"].versions[1] = ()
    with breaks("G3", "version 1 of rows has changed after epoch 1"):
        views.checker.check_unchanged(records)
    del views.disk.datasets["rows"].versions[1]
    with breaks("G2", "version 1 of rows, which does not exist"):
        views.checker.check_unchanged(records)


def test_a_declared_view_that_does_not_exist_breaks_exactly_once(views: Views) -> None:
    views.checker.check_declared(["rows", "groups"], [], {})
    with breaks("G1", "the views ['groups'] do not exist"):
        views.checker.check_declared(["rows", "groups"], [], {"rows": ViewVersion("rows", "rows", 1)})


def test_a_full_view_with_other_rows_than_those_of_its_epoch_breaks_exactly_once(views: Views) -> None:
    views.check(ViewVersion("full.next", "full", views.write("full", ())))
    views.check(ViewVersion("full", "full", views.write("full", WHOLE), reflects_epoch=3), epoch=4)
    with breaks("G1", "full at version 3, of epoch 1: it has the rows"):
        views.check(ViewVersion("full", "full", views.write("full", ()), reflects_epoch=3), epoch=5)
    with breaks("G1", "full.next reflects no epoch, and has rows"):
        views.check(ViewVersion("full.next", "full", views.write("full", WHOLE)))


def test_a_full_view_without_the_files_of_the_mark_breaks_exactly_once(views: Views) -> None:
    views.checker.check(0, [], {}, _no_tables)
    behind = ViewVersion("full", "full", views.write("full", ()), reflects_epoch=0)
    views.check(behind)
    views.checker.check_caught_up([behind], [])
    with breaks("G1", "caught up, and full at version 1: it has the rows []"):
        views.checker.check_caught_up([behind], [KEY])


def test_a_dropped_view_that_exists_breaks_exactly_once(views: Views) -> None:
    views.checker.check_declared(["rows"], ["groups"], {"rows": ViewVersion("rows", "rows", 1)})
    with breaks("G1", "the views ['groups'] were dropped and exist"):
        views.checker.check_declared(["rows"], ["groups"], {"groups": ViewVersion("groups", "groups", 1)})


def test_a_stopped_view_that_changes_breaks_exactly_once(views: Views) -> None:
    views.check(views.rows(*WHOLE))
    views.checker.check(2, [views.rows(*WHOLE)], {}, _no_tables, stopped=_stopped(1))
    with breaks("G1", "is stopped, and has changed"):
        views.checker.check(3, [views.rows()], {}, _no_tables, stopped=_stopped(1))


def test_a_stopped_view_with_rows_of_another_epoch_breaks_exactly_once(views: Views) -> None:
    views.checker.check(1, [views.rows()], {}, _no_tables)
    views.checker.check(2, [views.rows(*WHOLE)], INGESTED, _no_tables)
    with breaks("G1", "rows, which is stopped at epoch 1: it has the rows [0, 1, 2] of a"):
        views.checker.check(3, [views.rows(*WHOLE)], INGESTED, _no_tables, stopped=_stopped(1))
    views.checker.check(3, [views.rows(*WHOLE)], INGESTED, _no_tables, stopped=_stopped(2))


def test_a_view_that_failed_in_its_first_epoch_has_no_rows(views: Views) -> None:
    failing = {"rows": {**_stopped(0)["rows"], "error": "too wet"}}
    views.checker.check(1, [views.rows()], INGESTED, _no_tables, stopped=failing)
    other = Views()
    with breaks("G1", "rows, which is stopped at epoch 0: it has the rows [0, 1, 2] of a"):
        other.checker.check(1, [other.rows(*WHOLE)], INGESTED, _no_tables, stopped=failing)


def test_a_view_that_fails_without_a_row_that_fails_it_breaks_exactly_once(views: Views) -> None:
    with breaks("G1", "groups has failed (too wet), and no row is the cause"):
        views.checker._check_error({"name": "groups", "error": "too wet"})


def _stopped(epoch: int) -> dict[str, Row]:
    return {"rows": {"name": "rows", "stopped_epoch": epoch, "created_epoch": 1, "error": None}}


@pytest.mark.parametrize("kind", get_args(JoinKind))
def test_a_row_of_a_join_that_is_missing_or_there_twice_breaks_it(kind: JoinKind) -> None:
    model = JoinOfSources("pairs", kind, SOURCE, SOURCE)
    rows = joined(kind, side_rows(KEY, (0, 1, 2)), side_rows(KEY, (0, 1, 2)))
    assert model.difference(Pairs(rows), INGESTED) is None
    other = Pair(None, "elsewhere")
    for wrong in (rows[1:] or (other,), (*rows, *(rows[:1] or (other,)))):
        assert model.difference(Pairs(wrong), INGESTED) is not None
