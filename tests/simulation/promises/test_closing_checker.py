"""Each fault in windows that close breaks its promise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from state.clock import ManualClock
from state.tables.records import ViewVersion
from state.upkeep.quarantine import late_row_key
from tests.simulation.memory.memory_disk import MemoryDisk, Row
from tests.simulation.memory.memory_root import MemoryRoot
from tests.simulation.model_views.model_view import ClosedWindows, Groups, window_end_us
from tests.simulation.promises.closing_checker import ClosingChecker, LateRowChecker
from tests.simulation.promises.store_versions import SOURCE, breaks, file_tables, finished, put
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import Span, event_time_us

BUCKET = Bucket(page_size=10)
FILES = {(SOURCE, name, file.version): file for name in "abcdef" for file in [put(BUCKET, name)]}
EARLY_KEY, *_, LAST_KEY = sorted(FILES, key=lambda key: event_time_us(key, 0))
EARLY, LAST = FILES[EARLY_KEY], FILES[LAST_KEY]
MODEL = ClosedWindows("closed", frozenset({SOURCE}))
LATENESS_US = 25
CLOSED = event_time_us(LAST_KEY, 2) - LATENESS_US
EARLY_GROUPS = MODEL.after(None, [Span(EARLY_KEY, 0, 3)])
LAST_GROUPS = MODEL.after(None, [Span(LAST_KEY, 0, 3)])
BOTH = {EARLY_KEY: (0, 1, 2), LAST_KEY: (0, 1, 2)}
REASON = "view closed: its window was closed, by the watermark 1970-01-01"


class Windows:
    """Versions of a view, and their checker."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.root = MemoryRoot(self.disk, ManualClock())
        self.files = LateRowChecker(BUCKET, LATENESS_US)
        self.checker = ClosingChecker(self.disk.datasets, self.files, [MODEL])

    def check(
        self,
        closed: Groups,
        left: Groups,
        *,
        until: int | None = CLOSED,
        late: Mapping[bytes, Row] | None = None,
        counted: int = 0,
        ingested: Mapping[tuple[str, str, bytes], tuple[int, ...]] = BOTH,
        ledger: Sequence[Row] = (),
    ) -> None:
        """Checks the next version of the view."""
        versions = []
        for path, rows in (("rows", closed), ("state", left)):
            before = self.disk.datasets[path].latest if path in self.disk.datasets else 0
            versions.append(self.root.commit_view(path, before, rows))
        progress = json.dumps({"closed": until, "late": counted})
        view = ViewVersion("closed", "rows", versions[0], "state", versions[1], progress=progress)
        tables = replace(file_tables([finished(LAST), *ledger]), quarantine=late or {})
        self.checker.check(tables, [view], ingested, self.files.take(tables))
        self.files.on_checked(tables)


def late_rows(reason: str = REASON, rows: int = 3) -> dict[bytes, Row]:
    """The rows of the early file, as late ones."""
    fields = {"source": SOURCE, "path": EARLY.path, "version": None, "reason": reason}
    raw = json.dumps({"version": EARLY.version.hex()}).encode()
    return {
        late_row_key(SOURCE, EARLY.path, row, "closed", 2, b""): {**fields, "row": row, "raw": raw, "epoch": 2}
        for row in range(rows)
    }


@pytest.fixture
def windows() -> Windows:
    assert window_end_us(EARLY_KEY, 2) <= CLOSED < window_end_us(LAST_KEY, 0)
    return Windows()


def test_rows_in_open_and_closed_windows_and_late_ones_are_all_rows(windows: Windows) -> None:
    windows.check(EARLY_GROUPS, LAST_GROUPS)
    other = Windows()
    other.check({}, LAST_GROUPS, ingested={LAST_KEY: (0, 1, 2)})
    listed = finished(EARLY, listed_epoch=2)
    other.check({}, LAST_GROUPS, late=late_rows(), counted=3, ledger=[listed])


def test_a_row_that_is_in_no_window_breaks_it(windows: Windows) -> None:
    with breaks("G1", "the ingested rows give"):
        windows.check({}, LAST_GROUPS)


def test_a_closed_window_that_changes_or_goes_breaks_it(windows: Windows) -> None:
    windows.check(EARLY_GROUPS, LAST_GROUPS)
    with breaks("time", "its closed windows were"):
        windows.check({}, LAST_GROUPS)


def test_an_open_window_that_is_shown_and_one_that_is_overdue_break_it(windows: Windows) -> None:
    with breaks("time", "are shown"):
        windows.check({**EARLY_GROUPS, **LAST_GROUPS}, {})
    with breaks("time", "are open"):
        windows.check({}, {**EARLY_GROUPS, **LAST_GROUPS})


def test_a_watermark_that_goes_back_breaks_it(windows: Windows) -> None:
    windows.check(EARLY_GROUPS, LAST_GROUPS)
    with breaks("time", "its windows were closed up to"):
        windows.check(EARLY_GROUPS, LAST_GROUPS, until=CLOSED - 1)


def test_a_late_row_that_is_not_kept_or_not_counted_or_has_another_reason_breaks_it(windows: Windows) -> None:
    first = {LAST_KEY: (0, 1, 2)}
    listed = finished(EARLY, listed_epoch=2)
    windows.check({}, LAST_GROUPS, ingested=first)
    with breaks("time", "it counts 3 late rows"):
        windows.check({}, LAST_GROUPS, counted=3, ledger=[listed])
    with breaks("time", "it counts 0 late rows"):
        windows.check({}, LAST_GROUPS, late=late_rows(), ledger=[listed])
    other = Windows()
    with breaks("time", "has the reason nothing"):
        other.check({}, LAST_GROUPS, late=late_rows("nothing"), counted=3)


def test_a_late_row_of_an_open_window_or_of_a_backlog_breaks_it(windows: Windows) -> None:
    with breaks("time", "its window is open until None"):
        windows.check({}, LAST_GROUPS, late=late_rows(), counted=3)
    other = Windows()
    other.check({}, LAST_GROUPS, ingested={LAST_KEY: (0, 1, 2)})
    with breaks("time", "which was listed before the watermark"):
        other.check({}, LAST_GROUPS, late=late_rows(), counted=3, ledger=[finished(EARLY)])
