"""Survey of a source: its plan, from one listing and a few GETs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from actors.file_errors import REFUSALS, ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion, microseconds_of
from actors.formats.options import Parquet
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.names.seen_index import SeenIndex, Sight
from actors.objects.enclosing_table import requests_above
from actors.objects.object_store import ObjectStore
from actors.recovery.committed_files import CommittedFiles
from actors.settings import FetchSettings, RequestSettings
from actors.sources.discovery import Notifications
from actors.sources.foreign_tables import ForeignTables
from actors.sources.source import SourceDefinition
from slackwater.extensions.planned_files import NO_FILES, Files
from slackwater.planning.dry_run.prices import DAY_S, HOUR_S, Prices, Requests, idle_queue_requests
from slackwater.planning.samples.likely_mistakes import look_at, without_files
from slackwater.planning.shown_schema import listed_files
from state.errors import SchemaError, StorageError, UsageError
from state.tables.fingerprint import path_fingerprints, version_fingerprints


class GetEstimate:
    """The estimated number of GETs for the files of a source.

    A small file takes one GET, and large text is read in blocks.  A large Parquet file takes one GET for its footer
    and a number of ranges that only the footer shows: the first such file is measured, and the others are scaled by
    size.

    Args:
        source: the source of the files.
    """

    def __init__(self, source: SourceDefinition, settings: RequestSettings) -> None:
        self._is_parquet = isinstance(source.format, Parquet)
        self._settings = settings
        self._gets = self._large_files = self._large_bytes = 0
        self._measured: tuple[int, int] | None = None
        self.first_large: FileVersion | None = None

    def add(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Adds files of these sizes in bytes; returns the positions of large Parquet files."""
        large = sizes > self._settings.whole_object_bytes
        self._gets += int(np.count_nonzero(~large & (sizes > 0)))
        if self._is_parquet:
            self._large_files += int(np.count_nonzero(large))
            self._large_bytes += int(sizes[large].sum())
            return np.flatnonzero(large)
        # The last block takes the rest: it is never a short one.
        self._gets += int(np.maximum(1, sizes[large] // self._settings.block_bytes).sum())
        return np.empty(0, np.intp)

    def measure(self, size: int, gets: int) -> None:
        """Sets the measure: the size in bytes and the number of GETs, with all columns, of a large Parquet file."""
        self._measured = size, gets

    @property
    def gets(self) -> int:
        """The estimated number of GETs."""
        if not self._large_files:
            return self._gets
        size, gets = self._measured or (self._settings.max_span_bytes, 2)
        ranges = self._large_bytes * (gets - 1) / size
        return self._gets + self._large_files + max(self._large_files, round(ranges))


_NOTHING = Requests()


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """The plan of one source.  Each listed file is either known, left out, waiting, new, or changed.

    Args:
        name: the name of the source.
        url: the listed URL.
        pattern: the pattern that a name must match to be counted.
        listed: the listed files that match the pattern.
        known: the listed files that are not read: they were read, or changed later and `on_change` ignores that.
        left_out: the files from before `modified_after` or, with `include_existing=False`, from before the declaration.
        waiting: the files that are in the queue of the root.
        new: the files that the root has never seen.
        changed: the files that changed after they were read, and are read again.
        first_pass: the requests of one listing, and an estimate of the GETs for `to_read`, with all columns.
        first_pass_dollars: their price; 0 where requests are free, as in a directory.
        period_s: the time between two listings, in seconds.
        idle_day: the requests of a day without new files.
        asked: the requests of the dry run itself.
        schema: the stored schema, else the declared one, else the schema by the first files; None without any.
        notes: remarks, one line each.
        refused: the reason why a run would not start, or would fail, because of this source; None without one.
        paused: the reason why a run would start, and pause the source; None without one.
    """

    name: str
    url: str
    pattern: str
    listed: Files = NO_FILES
    known: Files = NO_FILES
    left_out: Files = NO_FILES
    waiting: Files = NO_FILES
    new: Files = NO_FILES
    changed: Files = NO_FILES
    first_pass: Requests = _NOTHING
    first_pass_dollars: float = 0.0
    period_s: float = 0.0
    idle_day: Requests = _NOTHING
    idle_day_dollars: float = 0.0
    asked: Requests = _NOTHING
    schema: pa.Schema | None = None
    notes: tuple[str, ...] = ()
    refused: str | None = None
    paused: str | None = None

    @property
    def to_read(self) -> Files:
        """The files that a run would read."""
        return self.waiting + self.new + self.changed


_KEPT_FILES = 64
_STATIC = "its rows come with the pipeline: the start stores those that are new"
_READ_AGAIN = ("append", "replace")
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KnownSource:
    """The state of a source at the root.

    Args:
        files: the committed files of all sources.
        seen: the versions that were handed on.
        schema: the stored or declared schema; None without one.
        not_before: the time before which files are left out; None for no limit.
        is_committed: an earlier run has read the source: a run starts without it if its access is refused.
    """

    files: CommittedFiles
    seen: SeenIndex
    schema: pa.Schema | None
    not_before: datetime | None
    is_committed: bool = False


class SourceSurvey:
    """Lists a source once, and reads only enough for its schema and one footer.

    Args:
        known: its state at the root.
    """

    def __init__(self, source: SourceDefinition, known: KnownSource, settings: FetchSettings, prices: Prices) -> None:
        self._source, self._known, self._settings, self._prices = source, known, settings, prices
        self._store = ObjectStore(source.location, requests=settings.requests, max_attempts=settings.max_attempts)
        self._filter = source.path_filter
        files = known.files
        waiting = [each.file.path for each in files.unfinished if each.file.source == source.name]
        self._waiting = pa.array(waiting, pa.string())
        self._counts: dict[str, Files] = {}
        self._gets = GetEstimate(source, settings.requests)
        self._first: list[FileVersion] = []
        self._lists = 0
        self._changed: str | None = None
        self._foreign = ForeignTables(source.location.url)
        self._names = 0
        self._likely_mistakes: tuple[str, ...] = ()

    def plan(self) -> SourcePlan:
        """The plan of the source; an error of the source is in `refused` or `paused`."""
        plan = SourcePlan(
            name=self._source.name,
            url=self._source.location.url,
            pattern=self._source.pattern,
            schema=self._known.schema,
        )
        if self._source.table == "frame":
            return replace(self._costed(plan), notes=(_STATIC,))
        try:
            above = self._store.enclosing_table()
            above = None if above is None else f"the source is in {above}"
            for page in self._store.list_pages():
                self._lists += page.requests
                self._names += page.table.num_rows
                batches = [self._filter.taken(batch) for batch in page.table.to_batches()]
                self._foreign.take_page(replace(page, above=above), batches)
                for batch in batches:
                    self._add(batch)
            lists, gets = requests_above(self._source.location)
            asked = Requests(self._lists + lists, gets)
            plan = replace(plan, asked=asked)
            schema, gets = self._schema()
            gets += self._measure()
            return self._costed(replace(plan, schema=schema, asked=asked + Requests(gets=gets)))
        except REFUSALS as error:
            found = replace(plan, paused=str(error)) if self._known.is_committed else replace(plan, refused=str(error))
            return self._costed(found)
        except (StorageError, UsageError) as error:
            return self._costed(replace(plan, refused=str(error)))

    def _add(self, rows: pa.RecordBatch) -> None:
        """Counts the files of one page."""
        if not rows.num_rows:
            return
        keys = path_fingerprints(self._source.name, rows["path"])
        versions = version_fingerprints(rows["etag"], rows["size"], rows["modified_us"])
        sights = self._known.seen.show(keys, versions)
        waits = pc.is_in(rows["path"], value_set=self._waiting).to_numpy(zero_copy_only=False)
        new, changed = sights == Sight.NEW, sights == Sight.CHANGED
        old = np.zeros(rows.num_rows, bool)
        if self._known.not_before is not None:
            old = new & (rows["modified_us"].to_numpy() < microseconds_of(self._known.not_before))
        again = changed & self._is_read_again(rows, keys, changed)
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
            first_large = rows.slice(int(np.flatnonzero(to_read)[large[0]]), 1)
            (self._gets.first_large,) = listed_files(self._source.name, first_large)

    def _is_read_again(self, rows: pa.RecordBatch, keys: Sequence[bytes], changed: _Mask) -> _Mask:
        """True for each changed file that is read again: a version without ingested rows does not block the next."""
        if self._source.policy.on_change in _READ_AGAIN:
            return changed
        again, without_rows = np.zeros(len(changed), bool), self._known.files.without_rows
        for at in np.flatnonzero(changed).tolist():
            (before,) = self._known.seen.lookup([keys[at]])
            again[at] = before is not None and (self._source.name, rows["path"][at].as_py(), before) in without_rows
        return again

    def _keep_first(self, rows: pa.RecordBatch, to_read: _Mask) -> None:
        missing = _KEPT_FILES - len(self._first)
        if missing > 0:
            first = rows.take(pa.array(np.flatnonzero(to_read)[:missing]))
            self._first += listed_files(self._source.name, first)

    def _schema(self) -> tuple[pa.Schema | None, int]:
        if self._known.is_committed and self._known.schema is not None:
            return self._known.schema, 0
        found = look_at(self._source, self._settings, self._first)
        self._likely_mistakes = found.notes
        return self._known.schema or found.schema, found.gets

    def _measure(self) -> int:
        """Reads the footer of a large Parquet file; returns the number of GETs that this took."""
        file = self._gets.first_large
        if file is None:
            return 0
        content = self._store.open(file)
        try:
            self._gets.measure(file.size, ParquetReader(self._settings.limits).planned_gets(content))
        except (ObjectChanged, ObjectVanished, SchemaError, UnreadableFile):
            pass  # the file will be quarantined, or was changed since the listing: the estimate does without it
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
            paused=plan.paused or self._foreign.paused,
        )

    def _failure(self) -> str | None:
        if self._changed is None:
            return None
        return (
            f'{self._changed} has changed since it was read, and on_change="fail" would end the run: restore it, or '
            "declare the source with another on_change"
        )

    def _notes(self, period_s: float) -> list[str]:
        notes = list[str]()
        discovery = self._source.discovery
        if period_s > discovery.relist_s:
            notes.append(
                f"listings are {period_s:,.0f} s apart instead of {discovery.relist_s:,.0f}: max_requests_per_hour is "
                f"{discovery.max_requests_per_hour:,}, and one listing takes {self._lists:,}"
            )
        gone = len(self._waiting) - self._counts.get("waiting", Files()).files
        if gone > 0:
            notes.append(f"{gone:,} files in the queue are deleted")
        if not self._counts.get("listed", Files()).files and self._lists:
            notes.append(without_files(self._source, self._names))
        return [*notes, *self._likely_mistakes]
