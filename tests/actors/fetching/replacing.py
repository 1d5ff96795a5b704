"""A fetch executor over files that replace others, and a store for its epochs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from actors.coordination.instructions import Commit
from actors.coordination.ledger_corrections import corrected_delta
from actors.exchange.edge import Outlet
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import Ending, FileProgress
from actors.fetching.file_versions import FileVersions
from actors.fetching.instructions import FetchInstruction
from actors.fetching.read_outcomes import FileEnded, PieceRead
from actors.fetching.version_set import VersionSet
from actors.files import ChangedFile, FileKey, FileVersion, PathKey
from actors.protocol.blocks import Correction, StoredBlock
from actors.protocol.instructions import Send
from actors.protocol.messages import ChangedFiles
from actors.rows import Rows
from actors.settings import FetchSettings
from actors.sources.source import FilePolicy, OnChange
from state.clock import SystemClock
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds
from tests.actors.flow import INITIAL, file, of, report

STORED = StoredBlock("views/s.rows-1.lance", pa.schema([("x", pa.int64())]), ("{}",))


def executor(
    unfinished: Iterable[FileProgress] = (),
    without_rows: Iterable[FileKey] = (),
    held: Iterable[PathKey] = (),
    on_change: OnChange = "replace",
    **settings: int,
) -> FetchExecutor:
    replacing = ["s"] if on_change == "replace" else []
    appending = ["s"] if on_change == "append" else []
    return FetchExecutor(
        actor="fetch-0",
        settings=FetchSettings(**settings),  # type: ignore[arg-type]
        num_fetchers=1,
        outlet=Outlet("fetch-0", None),
        files=FileVersions(unfinished, VersionSet(keys=without_rows), appending, replacing, held),
        known_schemas=["s"],
        poisoned={},
        policies={"s": FilePolicy(on_change=on_change)},
    )


def started(*unfinished: FileProgress, **options: object) -> FetchExecutor:
    made = executor(unfinished, **options)  # type: ignore[arg-type]
    made.on_message(INITIAL, 0.0)
    return made


def changed(path: str, before: str = "1", now: str = "2") -> ChangedFiles:
    return ChangedFiles((ChangedFile(file(path, before).version, file(path, now)),))


def piece(fetch: FetchExecutor, version: FileVersion, read: Rows, *, last: bool = True) -> list[FetchInstruction]:
    return fetch.on_read([PieceRead(version, read, last=last, requests=1, bytes_read=100)], 0.0)


def staged(fetch: FetchExecutor, version: FileVersion) -> list[FetchInstruction]:
    return fetch.on_staged(version, STORED, 0.0)


def ended(fetch: FetchExecutor, version: FileVersion, ending: Ending) -> list[FetchInstruction]:
    return fetch.on_read([FileEnded(version, ending, requests=1, bytes_read=0)], 0.0)


def corrections(instructions: Iterable[FetchInstruction]) -> list[Correction]:
    return [each.message for each in of(Send, instructions) if isinstance(each.message, Correction)]


class Store:
    """A Lance store for the epochs of one fetch actor."""

    def __init__(self, root: Path) -> None:
        clock = SystemClock()
        self.store = LanceRoot(Location(str(root)), clock).create_or_open()
        self.store.take_over("test")

    def commit(self, epoch: int, sealed: list[FetchInstruction], *others: Delta) -> None:
        collected = report(sealed)
        counts, seconds = EpochCounts(), EpochSeconds()
        commit = Commit(epoch, Delta.merge([collected.delta, *others]), {}, counts, seconds, collected.corrected)
        delta = corrected_delta(self.store, commit)
        self.store.commit(epoch=epoch, delta=delta, views={}, counts=counts, seconds=seconds)

    def ledger(self) -> dict[str, tuple[object, ...]]:
        rows = self.store.rows("ledger")
        return {row["etag"]: (row["status"], row["rows_read"], row["removed_epoch"], row["error"]) for row in rows}
