"""Short names for the messages, the executors and the results of a flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import pyarrow as pa

from actors.exchange.edge import Outlet
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_progress import FileProgress
from actors.fetching.file_versions import FileVersions
from actors.fetching.instructions import EmitBlock, ReadFiles, ReadPiece
from actors.fetching.version_set import VersionSet
from actors.files import FileKey, FileVersion
from actors.listing.list_executor import ListExecutor
from actors.listing.listing_pace import ListingPace
from actors.listing.request_budget import RequestBudget
from actors.names.seen_index import SeenIndex
from actors.objects.listing_page import ListingPage
from actors.protocol.barrier import Barrier, BarrierKind, Mutation
from actors.protocol.instructions import Collect, Instruction, Send
from actors.protocol.messages import NewFiles
from actors.protocol.reports import CollectReport
from actors.rows import Rows
from actors.settings import FetchSettings
from actors.sources.path_filter import PathFilter
from actors.sources.source import FilePolicy
from state.epoch import EpochPair
from state.tables.fingerprint import version_fingerprint

AT = datetime(2026, 1, 1, tzinfo=UTC)
LARGE = 1 << 20
"""The size of a file that is read by itself."""
INITIAL = Barrier(EpochPair(0, 1), BarrierKind.INITIAL, list_budget={"s": 100})


def barrier(prev: int, mutation: Mutation | None = None, budget: int = 100) -> Barrier:
    return Barrier(EpochPair(prev, prev + 1), mutation=mutation, list_budget={"s": budget})


def file(path: str, etag: str = "1", source: str = "s", size: int = LARGE) -> FileVersion:
    return FileVersion(source, path, version_fingerprint(etag, size, AT), etag, size, AT)


def files(*paths: str, size: int = LARGE) -> NewFiles:
    return NewFiles(tuple(file(path, size=size) for path in paths))


def page(*names: str, etag: str = "1") -> ListingPage:
    count = len(names)
    return ListingPage.of(list(names), [etag] * count, [LARGE] * count, [AT] * count, 1)


def rows(count: int, first_row: int = 0) -> Rows:
    return Rows(pa.table({"x": pa.array(range(count), pa.int64())}), first_row)


def fetcher(
    *,
    settings: FetchSettings = FetchSettings(),
    credit_bytes: int | None = None,
    unfinished: Iterable[FileProgress] = (),
    without_rows: Iterable[FileKey] = (),
    known_schemas: Iterable[str] = ("s",),
    poisoned: Mapping[FileKey, str] = {},
) -> FetchExecutor:
    return FetchExecutor(
        actor="fetch-0",
        settings=settings,
        num_fetchers=settings.fetcher_bounds[0],
        outlet=Outlet("fetch-0", credit_bytes),
        files=FileVersions(unfinished, VersionSet(keys=without_rows)),
        known_schemas=known_schemas,
        poisoned=poisoned,
        policies={"s": FilePolicy(), "t": FilePolicy()},
    )


def of(kind: type, instructions: Iterable[Instruction]) -> list:  # type: ignore[type-arg]
    return [each for each in instructions if isinstance(each, kind)]


def report(instructions: Iterable[Instruction]) -> CollectReport:
    (collect,) = of(Collect, instructions)
    assert isinstance(collect, Collect)
    return collect.report


def delta_rows(instructions: Iterable[Instruction], table: str) -> list[dict[str, object]]:
    tables = report(instructions).delta.tables
    if table not in tables:
        return []
    return [{"op": row["op"], **(row["row"] or {})} for row in tables[table].to_pylist()]


def reads(instructions: Iterable[Instruction]) -> list[tuple[str, int]]:
    """The reads, alone or in batches, as path and row."""
    batches = [each.reads if isinstance(each, ReadFiles) else (each,) for each in instructions]
    return [(each.file.path, each.offset.row) for batch in batches for each in of(ReadPiece, batch)]


def emitted(instructions: Iterable[Instruction]) -> list[int]:
    return [each.rows for each in of(EmitBlock, instructions)]


def sent(instructions: Iterable[Instruction]) -> list[object]:
    return [each.message for each in of(Send, instructions)]


def lister(**changes: object) -> ListExecutor:
    options = {
        "actor": "list-s",
        "source": "s",
        "url": "s3://raw",
        "path_filter": PathFilter("**"),
        "pace": ListingPace(10.0, RequestBudget(None)),
        "seen": SeenIndex(),
        "schema_known": True,
        "must_settle": False,
    }
    return ListExecutor(**{**options, **changes})  # type: ignore[arg-type]
