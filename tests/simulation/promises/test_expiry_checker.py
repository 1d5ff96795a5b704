"""Each fault in a join whose rows expire breaks its promise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pytest

from actors.files import FileKey
from state.clock import ManualClock
from state.tables.records import ViewVersion
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot
from tests.simulation.model_views.model_view import JoinOfSources, Pairs, joined, side_rows
from tests.simulation.promises.closing_checker import LateRow, LateRowChecker
from tests.simulation.promises.expiry_checker import ExpiryChecker
from tests.simulation.promises.store_versions import breaks
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import Span, event_time_us

JOIN = JoinOfSources("near", "left", "s", "t", within=(-300, 500))
LEFT, RIGHT = ("s", "a", b"1"), ("t", "a", b"1")
AT = event_time_us(LEFT, 0)
FAR = 10**6


class _AnyFile(LateRowChecker):
    def check(self, view: str, file: FileKey, closed: int, tables: FileTables) -> None:
        pass


class Joined:
    """Versions of the join and of its sides, and their checker."""

    def __init__(self) -> None:
        disk = MemoryDisk()
        self.root, self.datasets = MemoryRoot(disk, ManualClock()), disk.datasets
        self.checker = ExpiryChecker(self.datasets, _AnyFile(Bucket(1), 0), [JOIN])

    def check(
        self,
        left: Iterable[FileKey] = (LEFT,),
        right: Iterable[FileKey] = (RIGHT,),
        *,
        watermarks: Mapping[str, int] | None = None,
        late: list[LateRow] | None = None,
        counted: int = 0,
        ingested: Iterable[FileKey] = (LEFT, RIGHT),
        shown: Pairs | None = None,
    ) -> None:
        """Checks the next version."""
        rows = dict.fromkeys(ingested, (0,))
        kept = [file for file in rows if (file, 0) not in (late or [])]
        ours, theirs = ([row for file in kept if file[0] == each for row in side_rows(file, (0,))] for each in "st")
        progress = json.dumps({"watermarks": watermarks or {}, "late": 0})
        of_left = json.dumps({"watermarks": watermarks or {}, "late": counted})
        views = [
            self._view("near", shown or Pairs(joined("left", ours, theirs, JOIN.within)), None),
            self._view("near.1", tuple(Span(file, 0, 1) for file in left), of_left),
            self._view("near.2", tuple(Span(file, 0, 1) for file in right), progress),
        ]
        late_rows = {"near": late} if late else {}
        self.checker.check(FileTables.of(None), {view.name: view for view in views}, rows, late_rows)

    def _view(self, name: str, rows: object, progress: str | None) -> ViewVersion:
        before = self.datasets[name].latest if name in self.datasets else 0
        return ViewVersion(name, name, self.root.commit_view(name, before, rows), progress=progress)


@pytest.fixture
def versions() -> Joined:
    return Joined()


def test_rows_that_leave_when_no_partner_can_come_and_late_ones_are_right(versions: Joined) -> None:
    versions.check()
    versions.check(watermarks={"s": FAR, "t": FAR})
    later = ("s", "b", b"1")
    late = [(later, 0)]
    versions.check([], [], watermarks={"s": FAR, "t": FAR + 1}, late=late, counted=1, ingested=(LEFT, RIGHT, later))


def test_a_row_that_leaves_while_a_partner_may_come_breaks_it(versions: Joined) -> None:
    versions.check()
    with breaks("time", "row 0 of a has left"):
        versions.check([], watermarks={"s": FAR, "t": AT - 500})


def test_a_row_that_stays_though_no_partner_can_come_breaks_it(versions: Joined) -> None:
    versions.check(watermarks={"s": FAR, "t": FAR})
    with breaks("time", "and they stay"):
        versions.check(watermarks={"s": FAR, "t": FAR + 1})


def test_a_row_that_was_not_ingested_breaks_it(versions: Joined) -> None:
    with breaks("G1", "in time are"):
        versions.check(ingested=(RIGHT,))


def test_another_join_than_that_of_the_rows_in_time_breaks_it(versions: Joined) -> None:
    with breaks("G1", "those in time give"):
        versions.check(shown=Pairs())


def test_a_row_that_is_late_too_early_or_is_not_counted_breaks_it(versions: Joined) -> None:
    with breaks("time", "is late, and the watermarks are"):
        versions.check([], late=[(LEFT, 0)], counted=1)
    other = Joined()
    with breaks("time", "it counts 1 late rows"):
        other.check(counted=1)


def test_a_watermark_that_goes_back_breaks_it(versions: Joined) -> None:
    versions.check(watermarks={"s": 2})
    with breaks("time", "its watermarks were"):
        versions.check(watermarks={"s": 1})
