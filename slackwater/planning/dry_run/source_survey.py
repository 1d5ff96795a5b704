"""The survey of a source, without reading it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.formats.options import Parquet
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.listing.seen_index import Sight
from actors.objects.listing_page import microseconds_of, time_of
from actors.objects.object_store import ObjectStore
from actors.recovery.committed_files import CommittedFiles
from actors.settings import FetchSettings, RequestSettings
from actors.sources.discovery import Notifications
from actors.sources.path_filter import PathFilter
from actors.sources.source import SourceDefinition
from slackwater.planning.dry_run.prices import DAY_S, HOUR_S, Prices, Requests, idle_queue_requests
from slackwater.planning.shown_schema import shown_schema
from state.errors import SchemaError, StorageError, UsageError
from state.tables.fingerprint import path_fingerprints, version_fingerprints


class GetEstimate:
    """Counts files by size.  Small ones are one GET each, large text is read in blocks.

    A large Parquet file takes its footer and ranges that only its own footer tells: the first one is measured, and
    the others are taken to be like it, by size.

    Args:
        source: whose files they are.
        settings: sizes of requests.
    """

    def __init__(self, source: SourceDefinition, settings: RequestSettings) -> None:
        self._is_parquet = isinstance(source.format, Parquet)
        self._settings = settings
        self._gets = self._large_files = self._large_bytes = 0
        self._measured: tuple[int, int] | None = None
        self.first_large: FileVersion | None = None

    def add(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Counts files of these sizes; returns which of them are large ones whose footers tell."""
        large = sizes > self._settings.whole_object_bytes
        self._gets += int(np.count_nonzero(~large & (sizes > 0)))
        if self._is_parquet:
            self._large_files += int(np.count_nonzero(large))
            self._large_bytes += int(sizes[large].sum())
            return np.flatnonzero(large)
        # A last block is never a short one.
        self._gets += int(np.maximum(1, sizes[large] // self._settings.block_bytes).sum())
        return np.empty(0, np.intp)

    def measure(self, size: int, gets: int) -> None:
        """A large Parquet file of this size takes so many GETs, with all columns."""
        self._measured = size, gets

    @property
    def gets(self) -> int:
        """How many GETs it takes, about."""
        if not self._large_files:
            return self._gets
        size, gets = self._measured or (self._settings.max_span_bytes, 2)
        ranges = self._large_bytes * (gets - 1) / size
        return self._gets + self._large_files + max(self._large_files, round(ranges))


_NOTHING = Requests()


@dataclass(frozen=True)
class Files:
    """How many files, and how many bytes they have in the store."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Files) -> Files:
        return Files(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """One source.  Every listed file is either known, left out, waiting, new, or changed.

    Args:
        name: of the source.
        url: where it is listed.
        pattern: which of the names count.
        listed: what the listing has shown, of names that count.
        known: of these, what is not read: it was, or it has changed since and `on_change` ignores that.
        left_out: what was written before `modified_after` or, with `include_existing=False`, before the source.
        waiting: what the root's queue has already.
        new: what the root has never seen.
        changed: what has changed since it was read, and is read again.
        first_pass: requests of one listing, and about those of reading what is to be read, with all columns.
        first_pass_dollars: what these cost; 0 where requests cost nothing, as in a directory.
        period_s: seconds from one listing to the next.
        idle_day: requests of a day on which nothing comes.
        idle_day_dollars: what these cost.
        asked: what the dry run itself has asked for.
        schema: as the root keeps it, as it is declared, or as the first files show it; None if nothing does.
        notes: what is worth knowing, a line each.
        refused: why a run would not start, or would end, because of this source; None if it would not.
    """

    name: str
    url: str
    pattern: str
    listed: Files = Files()
    known: Files = Files()
    left_out: Files = Files()
    waiting: Files = Files()
    new: Files = Files()
    changed: Files = Files()
    first_pass: Requests = _NOTHING
    first_pass_dollars: float = 0.0
    period_s: float = 0.0
    idle_day: Requests = _NOTHING
    idle_day_dollars: float = 0.0
    asked: Requests = _NOTHING
    schema: pa.Schema | None = None
    notes: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def to_read(self) -> Files:
        """What a run would read."""
        return self.waiting + self.new + self.changed


_KEPT_FILES = 64
_READ_AGAIN = ("append", "replace")
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KnownSource:
    """What the root knows of a source.

    Args:
        files: of all sources.
        schema: None while it is neither kept nor declared.
        not_before: what was written earlier is left out; None for nothing.
    """

    files: CommittedFiles
    schema: pa.Schema | None
    not_before: datetime | None


class SourceSurvey:
    """Lists a source once and reads no more of it than its schema and a footer take.

    Args:
        source: which.
        known: what the root knows of it.
        settings: how it would be read.
        prices: of requests.
    """

    def __init__(self, source: SourceDefinition, known: KnownSource, settings: FetchSettings, prices: Prices) -> None:
        self._source, self._known, self._settings, self._prices = source, known, settings, prices
        self._store = ObjectStore(source.location, requests=settings.requests, max_attempts=settings.max_attempts)
        self._filter = PathFilter(source.pattern)
        files = known.files
        waiting = [each.file.path for each in files.unfinished if each.file.source == source.name]
        self._waiting = pa.array(waiting, pa.string())
        self._without_rows: Set[str] = {path for name, path, _ in files.without_rows if name == source.name}
        self._counts: dict[str, Files] = {}
        self._gets = GetEstimate(source, settings.requests)
        self._first: list[FileVersion] = []
        self._lists = 0
        self._changed: str | None = None

    def plan(self) -> SourcePlan:
        """What a run would do with the source; what is wrong with it is in `refused`."""
        plan = SourcePlan(
            name=self._source.name,
            url=self._source.location.url,
            pattern=self._source.pattern,
            schema=self._known.schema,
        )
        try:
            for page in self._store.list_pages():
                self._lists += page.requests
                for batch in page.table.to_batches():
                    self._add(self._filter.taken(batch))
            plan = replace(plan, asked=Requests(lists=self._lists))
            schema, gets = self._schema()
            gets += self._measure()
            return self._costed(replace(plan, schema=schema, asked=Requests(self._lists, gets)))
        except (StorageError, UsageError) as error:
            return self._costed(replace(plan, refused=str(error)))

    def _add(self, rows: pa.RecordBatch) -> None:
        """Counts one page's files."""
        if not rows.num_rows:
            return
        keys = path_fingerprints(self._source.name, rows["path"])
        versions = version_fingerprints(rows["etag"], rows["size"], rows["modified_us"])
        sights = self._known.files.seen[self._source.name].show(keys, versions)
        waits = pc.is_in(rows["path"], value_set=self._waiting).to_numpy(zero_copy_only=False)
        new, changed = sights == Sight.NEW, sights == Sight.CHANGED
        old = np.zeros(rows.num_rows, bool)
        if self._known.not_before is not None:
            old = new & (rows["modified_us"].to_numpy() < microseconds_of(self._known.not_before))
        again = changed & self._is_read_again(rows, changed)
        if self._source.policy.on_change == "replace":
            again |= sights == Sight.BACK
        if self._source.policy.on_change == "fail" and self._changed is None and (changed & ~again & ~waits).any():
            self._changed = rows["path"][int(np.flatnonzero(changed & ~again & ~waits)[0])].as_py()
        sizes = rows["size"].to_numpy()
        parts = {"waiting": waits, "new": new & ~old & ~waits, "changed": again & ~waits, "left_out": old & ~waits}
        to_read = parts["waiting"] | parts["new"] | parts["changed"]
        parts["known"] = ~to_read & ~parts["left_out"]
        for name, mask in {**parts, "listed": np.ones(rows.num_rows, bool)}.items():
            self._counts[name] = self._counts.get(name, Files()) + Files(int(mask.sum()), int(sizes[mask].sum()))
        self._keep_first(rows, to_read)
        large = self._gets.add(sizes[to_read])
        if len(large) and self._gets.first_large is None:
            self._gets.first_large = self._file(rows, int(np.flatnonzero(to_read)[large[0]]))

    def _is_read_again(self, rows: pa.RecordBatch, changed: _Mask) -> _Mask:
        """Of the changed files: a version of which no row was ingested never blocks the next one."""
        if self._source.policy.on_change in _READ_AGAIN:
            return changed
        again = np.zeros(len(changed), bool)
        for at in np.flatnonzero(changed).tolist():
            again[at] = rows["path"][at].as_py() in self._without_rows
        return again

    def _keep_first(self, rows: pa.RecordBatch, to_read: _Mask) -> None:
        missing = _KEPT_FILES - len(self._first)
        if missing > 0:
            self._first += [self._file(rows, at) for at in np.flatnonzero(to_read)[:missing].tolist()]

    def _file(self, rows: pa.RecordBatch, at: int) -> FileVersion:
        row = rows.slice(at, 1)
        (version,) = version_fingerprints(row["etag"], row["size"], row["modified_us"])
        (values,) = row.to_pylist()
        modified = time_of(values["modified_us"])
        return FileVersion(self._source.name, values["path"], version, values["etag"], values["size"], modified)

    def _schema(self) -> tuple[pa.Schema | None, int]:
        if self._known.schema is not None:
            return self._known.schema, 0
        return shown_schema(self._source, self._settings, self._first)

    def _measure(self) -> int:
        """Asks a large Parquet file for its footer; returns how many GETs that took."""
        file = self._gets.first_large
        if file is None:
            return 0
        content = self._store.open(file)
        try:
            self._gets.measure(file.size, ParquetReader(self._settings.limits).planned_gets(content))
        except (ObjectChanged, ObjectVanished, SchemaError, UnreadableFile):
            pass  # the file will be quarantined, or is another one by now: the estimate does without
        content.settle()
        return content.requests

    def _costed(self, plan: SourcePlan) -> SourcePlan:
        discovery, location = self._source.discovery, self._source.location
        period_s = discovery.relist_s
        if not location.is_local:
            period_s = max(period_s, HOUR_S / discovery.max_requests_per_hour * self._lists)
        idle = Requests(lists=DAY_S / period_s * self._lists)
        if isinstance(discovery, Notifications):
            idle += Requests(queue=idle_queue_requests(discovery.pollers, DAY_S))
        first = Requests(self._lists, self._gets.gets)
        is_priced = not (location.is_local or location.is_web)
        counts: dict[str, Any] = self._counts
        return replace(
            plan,
            **counts,
            first_pass=first,
            first_pass_dollars=first.dollars(self._prices) if is_priced else 0.0,
            period_s=period_s,
            idle_day=idle,
            idle_day_dollars=idle.dollars(self._prices) if is_priced else 0.0,
            notes=tuple(self._notes(period_s)),
            refused=plan.refused or self._failure(),
        )

    def _failure(self) -> str | None:
        if self._changed is None:
            return None
        return (
            f'{self._changed} has changed since it was read, and on_change="fail" ends the run: restore it, or declare '
            "the source with another on_change"
        )

    def _notes(self, period_s: float) -> list[str]:
        notes = []
        discovery = self._source.discovery
        if period_s > discovery.relist_s:
            notes.append(
                f"listings are {period_s:,.0f} s apart instead of {discovery.relist_s:,.0f}: max_requests_per_hour is "
                f"{discovery.max_requests_per_hour:,}, and one takes {self._lists:,}"
            )
        gone = len(self._waiting) - self._counts.get("waiting", Files()).files
        if gone > 0:
            notes.append(f"{gone:,} of the files that wait are not there any more")
        if not self._counts.get("listed", Files()).files and self._lists:
            notes.append("the listing shows no file of this pattern")
        return notes
