"""Every version of a store that is written by hand is checked once, and each broken promise is found by its id."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.protocol.run_state import RunState
from state.tables.records import EpochCounts, Head, ViewVersion
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDataset, MemoryDisk, MemoryVersion
from tests.simulation.model_views.model_view import EveryRow
from tests.simulation.promises.outside.exit_checker import ExitChecker
from tests.simulation.promises.outside.kept_file_checker import KeptFileChecker
from tests.simulation.promises.outside.publication_checker import PublicationChecker
from tests.simulation.promises.promises import Promises
from tests.simulation.promises.store_versions import (
    SOURCE,
    bad_record,
    breaks,
    file_tables,
    finished,
    put,
    record,
    store_version,
    waiting,
)
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import Span
from tests.simulation.world.published_tables import PublishedTables
from tests.simulation.world.simulated_clock import SimulatedClock

RUN = "run-1"


class Store:
    """A store of two epochs over the files `a` and `b`; `b` has one bad record."""

    def __init__(self) -> None:
        self.bucket = Bucket(page_size=10)
        self.a, self.b = put(self.bucket, "a"), put(self.bucket, "b", bad_records=[1])
        self.rows = Span((SOURCE, "a", self.a.version), 0, 3), Span((SOURCE, "b", self.b.version), 0, 1)
        self.dataset = MemoryDataset()
        self.disk = MemoryDisk(datasets={"rows": self.dataset})
        one, two = (ViewVersion("rows", "rows", self.dataset.add(self.rows[:end])) for end in (1, 2))
        self.records = record(1, rows=3, views=[one]), record(2, rows=1, views=[two])
        self.half_read = waiting(self.b, 2, rows_bad=1, listed_epoch=2)
        self.bad = bad_record(self.b, 1)
        self.heads = Head(0, 0), Head(1, 1, {"rows": one}, RUN), Head(1, 2, {"rows": two}, RUN)
        self.disk.add(store_version(self.heads[0]))
        self.disk.add(
            store_version(self.heads[1], self.records[:1], file_tables([finished(self.a)], [waiting(self.b)]))
        )
        self.disk.add(self.last(file_tables([finished(self.a)], [self.half_read], [self.bad])))
        clock = SimulatedClock()
        tables = PublishedTables((), clock)
        published = PublicationChecker(self.disk.datasets, tables.by_view)
        self.promises = Promises(
            self.disk,
            self.bucket,
            [EveryRow("rows", frozenset({SOURCE}))],
            order="name",
            kept=KeptFileChecker(self.disk, self.bucket, clock, None, (), tables, published),
            published=published,
            exits=ExitChecker(published, {}),
        )

    def last(self, tables: FileTables) -> MemoryVersion:
        """The last version, with these rows about files."""
        return store_version(self.heads[2], self.records, tables)


def test_a_store_that_keeps_every_promise_is_accepted() -> None:
    store = Store()
    promises = store.promises
    promises.on_version()
    promises.on_version()
    store.dataset.committed = 2
    promises.on_tag("rows")
    promises.on_acknowledged(store.records[1])
    promises.on_state(RUN, RunState(1, "running", 1, 2))
    promises.on_stopped(RUN, RunState(1, "stopped", 1, 2, epochs=2, totals=EpochCounts(rows=4)), store.heads[2].views)
    promises.on_caught_up({(SOURCE, "a"): store.bucket.present()[SOURCE, "a"].file}, ["rows"], is_settled=True)
    promises.on_message_deleted("queue", "m", ((SOURCE, "a"), 1))
    promises.check_retained()
    assert promises.epochs == 2


def _loses_a_row(store: Store) -> None:
    store.dataset.versions[2] = (Span(store.rows[0].file, 0, 2), store.rows[1])


def _deletes_a_view(store: Store) -> None:
    del store.dataset.versions[2]


def _changes_a_finished_file(store: Store) -> None:
    store.disk.versions[3] = store.last(
        file_tables([finished(store.a, status="quarantined")], [store.half_read], [store.bad])
    )


def _notes_a_present_file_as_deleted(store: Store) -> None:
    store.disk.versions[3] = store.last(
        file_tables([finished(store.a, deleted_epoch=2)], [store.half_read], [store.bad])
    )


def _commits_an_older_term(store: Store) -> None:
    store.disk.versions[1] = store_version(Head(2, 0))


def _drops_a_bad_record(store: Store) -> None:
    store.disk.versions[3] = store.last(file_tables([finished(store.a)], [store.half_read]))


def _passes_an_earlier_file_over(store: Store) -> None:
    earlier = waiting(put(store.bucket, "_"))
    store.disk.versions[3] = store.last(file_tables([finished(store.a)], [store.half_read, earlier], [store.bad]))


@pytest.mark.parametrize(
    ("promise", "why", "fault"),
    [
        ("G1", "rows at version 2: it has the rows [0, 1] of a", _loses_a_row),
        ("G2", "version 2 of rows, which does not exist", _deletes_a_view),
        ("G3", "a was done with 3 rows, and is quarantined", _changes_a_finished_file),
        ("G4", "a counts as deleted", _notes_a_present_file_as_deleted),
        ("G5", "term 1 has committed after term 2", _commits_an_older_term),
        ("G6", "b has the bad records [1]; [] are in quarantine", _drops_a_bad_record),
        ("order", "b was read before _, which was known", _passes_an_earlier_file_over),
    ],
)
def test_a_version_with_a_fault_breaks_its_promise(promise: str, why: str, fault: Callable[[Store], None]) -> None:
    store = Store()
    fault(store)
    with breaks(promise, why):
        store.promises.on_version()
