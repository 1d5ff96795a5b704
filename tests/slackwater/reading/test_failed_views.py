"""A view that has failed, as its readers see it."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.reading.store import Store
from tests.slackwater.reading.failed_views import OVERFLOW, fail_view
from tests.slackwater.reading.written_root import WrittenRoot

HALF = "day=2/big.csv"
"""A file whose rows come from the fourth epoch on."""


@pytest.fixture
def store(written: WrittenRoot) -> Store:
    return sw.open(written.root.url)


def views(store: Store) -> dict[str, tuple[str | None, int | None, bool]]:
    return {
        row["name"]: (row["error"], row["reflects_epoch"], row["stopped"]) for row in store.views.table().to_pylist()
    }


def test_the_views_tell_why_one_failed_and_where_it_stands(store: Store, written: WrittenRoot) -> None:
    assert views(store)["late"] == (None, written.epochs[3], False)
    epoch = fail_view(written.root, "late", written.epochs[2])
    assert views(store) == {"late": (OVERFLOW, written.epochs[2], True), "by_carrier": (None, epoch, False)}
    names = store.views.table().column_names
    assert names.index("error") == names.index("stopped") + 1


def test_a_view_that_failed_in_its_first_epoch_reflects_none(store: Store, written: WrittenRoot) -> None:
    fail_view(written.root, "late", None)
    assert views(store)["late"] == (OVERFLOW, None, True)
    fail_view(written.root, "late", 0, error=None)
    assert views(store)["late"] == (None, None, True), "it is rebuilt, and has no rows until then"


def test_a_full_view_stops_at_its_rows_though_it_was_created_after_them(store: Store, written: WrittenRoot) -> None:
    fail_view(written.root, "late", None, reflects_epoch=written.epochs[2])
    assert views(store)["late"] == (OVERFLOW, written.epochs[2], True)


def test_a_failed_view_is_read_as_it_stands(store: Store, written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[3])
    fail_view(written.root, "by_carrier", None)
    view = store.snapshot().view("late")
    assert (view.reflects_epoch, view.count_rows()) == (written.epochs[3], 3)
    assert store.snapshot().view("by_carrier").reflects_epoch < store.latest_epoch()
    assert store.snapshot(written.epochs[2]).view("late").reflects_epoch == written.epochs[2]


@pytest.mark.more
def test_the_history_of_a_file_has_the_failed_views_that_lack_its_rows(store: Store, written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=f"{OVERFLOW}\nat line 1")
    history = store.ledger.why(HALF)
    assert history.lacking_views == ("late",)
    assert history.text.splitlines()[-1] == (
        f"View late does not have its rows: it failed, and is stale since epoch {written.epochs[2]} "
        f"(2026-01-31 12:00:02 UTC). The error: {OVERFLOW} at line 1"
    )
    before = store.ledger.why("day=1/a.csv")
    assert before.lacking_views == () and "View" not in before.text, "all of it was read before"
    for path in ("day=2/bad.csv", "day=3/new.csv", "day=9/none.csv"):
        assert store.ledger.why(path).lacking_views == (), "it has no rows in any view"


def test_the_history_of_a_file_has_the_views_that_have_a_part_of_it(store: Store, written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[3])
    history = store.ledger.why(HALF)
    assert history.lacking_views == ("late",)
    assert f"View late has its rows only up to epoch {written.epochs[3]} (" in history.text
    assert store.ledger.why("day=1/a.csv").lacking_views == ()


def test_the_history_of_a_file_has_a_view_without_rows(store: Store, written: WrittenRoot) -> None:
    epoch = fail_view(written.root, "late", None)
    history = store.ledger.why("day=1/a.csv")
    assert history.lacking_views == ("late",)
    assert f"View late does not have its rows: it failed in its first epoch, epoch {epoch} (" in history.text


def test_a_stopped_view_is_no_failed_one_in_a_file_history(store: Store, written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=None)
    assert store.ledger.why(HALF).lacking_views == ()
