"""The history of a backfill has each ingested row once, in a fixed order."""

from __future__ import annotations

import json

import pytest

from state.tables.records import ViewVersion
from tests.simulation.model_views.model_view import EveryRow
from tests.simulation.promises.backfill_history import history_of, taken_spans
from tests.simulation.promises.store_versions import SOURCE, finished, put, waiting
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import Span

LATE = EveryRow("late", frozenset({SOURCE}))


def test_the_history_has_the_ingested_rows_that_are_in_views() -> None:
    bucket = Bucket(page_size=10)
    a, b, deleted, unread = (
        put(bucket, "a", 8, bad_records=[1]),
        put(bucket, "b"),
        put(bucket, "deleted"),
        put(bucket, "unread"),
    )
    ledger = [finished(a, 8), finished(deleted, status="replaced")]
    queue = [waiting(b, 2), waiting(unread)]
    first, second = (SOURCE, "a", a.version), (SOURCE, "b", b.version)
    assert history_of(ledger, queue, bucket.contents, LATE.sources) == [
        Span(first, 0, 1),
        Span(first, 2, 5),
        Span(first, 5, 8),
        Span(second, 0, 2),
    ]
    assert history_of(ledger, queue, bucket.contents, frozenset({"other"})) == []


@pytest.mark.parametrize(("history", "spans"), [(None, 0), ("2", 2)])
def test_the_progress_of_a_backfill_is_the_number_of_spans_that_it_has(history: str | None, spans: int) -> None:
    recorded = ViewVersion("late.next", "late", 1, pinned_epoch=4, progress=json.dumps({"history": history}))
    assert taken_spans(recorded) == spans
