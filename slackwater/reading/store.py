"""Store: the reading face of a root.  It needs no Ray, Spark or server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import copy
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.changes.root_difference import ViewDifference, view_difference
from slackwater.reading.changes.view_changes import ViewChange, ViewChanges
from slackwater.reading.epoch_choice import find_epoch
from slackwater.reading.notebook import as_html
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.store_handle import StoreHandle
from slackwater.reading.story import Story, tell
from slackwater.reading.tables.branch_table import branch_table
from slackwater.reading.tables.epoch_table import epoch_table
from slackwater.reading.tables.expectation_table import expectation_table, held_views, published_epoch
from slackwater.reading.tables.file_search import count_files, find_files
from slackwater.reading.tables.file_table import FileStatus, file_batches, file_table, require_source
from slackwater.reading.tables.handled_table import handled_table
from slackwater.reading.tables.hidden_view_table import hidden_view_table
from slackwater.reading.tables.page import Page
from slackwater.reading.tables.quarantine_table import find_bad_records, quarantine_table
from slackwater.reading.tables.source_table import source_table
from slackwater.reading.tables.view_table import backfill_table, view_table
from slackwater.status.trace import Trace, trace_of
from slackwater.status.view_costs import ViewCost, view_costs
from state.capabilities.store_record import read_record, root_identity
from state.clock import Clock, SystemClock
from state.errors import EpochExpiredError, EpochNotFoundError, UsageError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Owner, read_owner
from state.tables.catalog import Catalog
from state.upkeep.branches import user_tags


def open(root: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Store:
    """Opens a root for reading.

    Args:
        root: the URL or directory that a pipeline writes to.
        storage_options: as for the pipeline; without them the environment variables of the provider count.

    Raises:
        StoreNotFoundError: no pipeline has written to the root.
        StorageError: the root cannot be read.

    Examples:
        >>> store = open("s3://lake/flights")  # doctest: +SKIP
        >>> store.snapshot().view("by_carrier").to_arrow()  # doctest: +SKIP
    """
    return Store(Location(os.fspath(root), storage_options or {}), SystemClock())


class Store:
    """The committed state of a root.  Every call sees the latest epoch; those of `frozen()` see one and the same.

    Args:
        root: the root.
        clock: the clock of the handle, and of the pauses of `watch`.
    """

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._state = LanceStateStore.open(root, clock, read_only=True)
        self._is_frozen = False
        self._identity = ""
        self._cataloged: tuple[LanceStateStore, Catalog] | None = None

    def __repr__(self) -> str:
        return f"Store({str(self._root)!r})"

    def _repr_html_(self) -> str:
        views = self.views().select(["name", "class", "rows", "reads", "error"])
        return as_html(repr(self), views, f"latest epoch: {self.latest_epoch() or 'none yet'}")

    @property
    def root(self) -> str:
        """The URL of the root, without user information."""
        return self._root.url

    def identity(self) -> str:
        """The UUID that the root got when it was created; empty in a root that was not started since roots have one.

        A copy of the root, and a backup, have the same identity.  A branch has its own.

        Raises:
            StorageError: the root cannot be read.
        """
        if not self._identity:
            self._identity = root_identity(self._root)
        return self._identity

    def frozen(self) -> Store:
        """The store as it is now: all calls see the epoch that is the latest at this call, so their answers agree.

        They are cheaper too, as none looks for a later epoch.  Files of the store that a vacuum deletes are not kept
        for it: an hour later a call may raise `EpochExpiredError`.  What is not committed, `owner()` and the files and
        seconds of queues, is of the time of its call.
        """
        frozen = copy(self)
        frozen._state = self._latest()
        frozen._is_frozen = True
        return frozen

    def epochs(self, *, before: int | None = None, limit: int | None = None) -> pa.Table:
        """The retained epochs, oldest first, with counts, view versions, and the seconds of each phase.

        A page is the last `limit` epochs before one; only their records are read.

        Args:
            before: only epochs before this one; None for all.
            limit: at most this number of them, the last ones; None for all.

        Raises:
            UsageError: `limit` is not valid.

        Example:
            >>> last = store.epochs(limit=100)  # doctest: +SKIP
            >>> earlier = store.epochs(before=last.column("epoch")[0].as_py(), limit=100)  # doctest: +SKIP
        """
        return epoch_table(self._latest(), before=before, limit=limit)

    def epoch_times(self) -> pa.Table:
        """The columns `epoch` and `committed_at` of all retained epochs, oldest first; their records are not read."""
        return self._latest().epoch_times().select(["epoch", "committed_at"])

    def latest_epoch(self) -> int:
        """The last committed epoch; 0 before the first.  This is the cheapest call."""
        return self._latest().head.epoch

    def published_epoch(self) -> int:
        """The last epoch in which all views with `on_violation="hold"` fulfil their expectations; 0 before the first.

        It is the latest one if there is no such view.  Publications and `slackwater serve` show this epoch.
        """
        state = self._latest()
        return published_epoch(state, self._catalog_of(state))

    def published_snapshot(self) -> Snapshot:
        """The root as of `published_epoch`.

        Raises:
            EpochNotFoundError: there is none.
        """
        epoch = self.published_epoch()
        if not epoch and self.latest_epoch():
            raise EpochNotFoundError(
                f"{self._root}: no epoch has fulfilled the expectations of its views yet; `slackwater held` shows the "
                "rows that violate them, and `slackwater release` accepts these rows"
            )
        return self.snapshot(epoch or None)

    def expectations(self) -> pa.Table:
        """One row per expectation of a view, with the rows that violate it.

        `rows` counts those that violate it now, `accepted` those among them that a release has accepted, and `came`
        all rows that have begun to violate it.  `is_held` is true if they close the gate, since the epoch `held_since`
        of their view.  `error` says why an expectation cannot be computed, which closes the gate as well.  Of one over
        the view as a whole `rows` is 1 while it is violated, and `found` says what the view has.
        """
        return expectation_table(self._catalog_of(self._latest()))

    def held(self) -> list[dict[str, Any]]:
        """The views that close the gate: `view`, `since` (an epoch), `expectations`, `errors`, `found`, `files`.

        `expectations` are the names of the violated ones, with the number of rows; `errors` those that cannot be
        computed; `found` what the view has, for those over it as a whole.  `files` are the URLs of at most 20 files
        that brought these rows, most rows first.  Only rows of an append view of materialized sources name their file,
        and `rows_name_files` is true then.  Otherwise `files` are those that were finished in the epochs that brought
        such rows.
        """
        state = self._latest()
        return held_views(state, self._catalog_of(state))

    def tags(self) -> dict[str, int]:
        """The epoch of each tag."""
        return user_tags(self._latest().head.tags)

    def branches(self) -> pa.Table:
        """One row per branch of this root: `branch`, `epoch`, `latest_epoch`, `state` and `url`.

        `epoch` is the epoch of this root that the branch began with, and `latest_epoch` the last one of the branch.
        `state` is `ready`; `unfinished`, of a branch whose making was interrupted; `dropping`, of one whose deletion
        was interrupted; or `missing`, of one whose files were deleted by other means.

        Raises:
            StorageError: the root cannot be read.
        """
        return branch_table(self._root, self._latest().head.tags, self._clock)

    def diff(
        self,
        view: str,
        other: Store,
        *,
        epoch: int | str | None = None,
        other_epoch: int | str | None = None,
        limit: int = 20,
    ) -> ViewDifference:
        """Compares the rows of a view of this root with those of another one, most often of a branch.

        A row that is there twice counts twice.  Only columns that both have, with one type, are compared.  Files that
        both roots name are not read: the cost depends on what was written since the branch was made.  Rows that may
        differ are in memory at once.

        Args:
            view: the name of the view in both roots.
            other: the other root.
            epoch: an epoch of this root, as for `snapshot`; None for the latest.
            other_epoch: an epoch of the other root.
            limit: the largest number of rows that the result shows of either side.

        Raises:
            ViewNotFoundError: one of the roots has no such view.
            EpochNotFoundError, UsageError: as `snapshot`; the limit is not valid; or no column is in both.
            StorageError: a root cannot be read.
        """
        if limit < 0:
            raise UsageError(f"limit={limit}: give a number of rows, 0 or more")
        here, there = self.snapshot(epoch), other.snapshot(other_epoch)
        return view_difference(here.reader(view), there.reader(view), (here.epoch, there.epoch), limit)

    def files(
        self,
        source: str | None = None,
        status: FileStatus | None = None,
        *,
        where: pc.Expression | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """One row for every version of every listed file.

        The views hold exactly the first `rows_read` records of each version, in file order, less its `rows_bad`
        quarantined ones.  Of a version that is `replaced` or `forgotten` they held these records before
        `removed_epoch`, and hold none now.

        The queue of unfinished files is read, and then the ledger of the source, slice by slice, up to `limit`.  Of the
        ledger `waiting` and `reading` read nothing, and a rare status only its rows.  The result is in memory at once:
        of a ledger of millions take `count_files`, `find_files` or `file_batches`.

        Args:
            source: the name of a source; None for all.
            status: one of `waiting`, `reading`, `done`, `quarantined`, `vanished`, `replaced` or `forgotten`.
            where: a condition on columns of the result, as an expression of `pyarrow.compute`.
            limit: the largest number of rows: the first ones by source and path.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: the status, the condition or the limit is not valid.

        Example:
            >>> store.files("flights", where=pc.field("rows_bad") > 0, limit=100)  # doctest: +SKIP
        """
        state = self._latest()
        return file_table(state, self._catalog_of(state), None, source=source, status=status, where=where, limit=limit)

    def file_batches(
        self,
        source: str | None = None,
        status: FileStatus | None = None,
        *,
        where: pc.Expression | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `files`, some 100,000 at a time: a ledger of any length is read with the memory of one part.

        Rows come in the order of source and path.  A part is read when it is asked for.

        Args:
            source: the name of a source; None for all.
            status: a status, as for `files`; None for all.
            where: a condition, as for `files`.
            limit: the largest number of rows; no slice behind them is read.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: the status, the condition or the limit is not valid.

        Example:
            >>> import pyarrow.parquet
            >>> with pyarrow.parquet.ParquetWriter("files.parquet", schema) as writer:  # doctest: +SKIP
            ...     for batch in store.file_batches():
            ...         writer.write_batch(batch)
        """
        state = self._latest()
        return file_batches(state, self._catalog_of(state), source=source, status=status, where=where, limit=limit)

    def find_files(
        self,
        text: str = "",
        *,
        source: str | None = None,
        status: FileStatus | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """A page of the files whose URL contains a text: columns as `files`, ordered by source and path.

        For a ledger that is too long for `files`: of a million rows only a page is read.

        Args:
            text: a part of the path, ignoring case; or a whole URL, or the beginning of one.
            source: the name of a source; None for all.
            status: a status, as for `files`; None for all.
            after: `Page.after` of the previous page; None for the first page.
            limit: the number of rows of a page.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: `status`, `after` or `limit` is not valid.

        Example:
            >>> page = store.find_files("2013-02", status="quarantined")  # doctest: +SKIP
            >>> following = store.find_files("2013-02", status="quarantined", after=page.after)  # doctest: +SKIP
        """
        state = self._latest()
        return find_files(state, self._catalog_of(state), text, source=source, status=status, after=after, limit=limit)

    def count_files(self) -> pa.Table:
        """One row per `source` and `status`: the number of `files`, and sums over them.

        The sums are those of `rows_read`, `rows_bad`, `bytes_read` and `requests`; `files_bad` is the number of files
        with a bad record.  The store keeps these sums: the cost does not grow with the ledger.
        """
        return count_files(self._latest())

    def handled_files(self, source: str | None = None) -> pa.Table:
        """What runs have done to files after their rows were committed, in its order: deletions, moves, tags.

        The columns are `source`, `path` (the URL that the file had), `action`, `outcome`, `at`, `epoch` (the one that
        finished the file) and `error`.  `outcome` is `done`; `gone`, if the object was not there any more; `changed`,
        if it was another version, which was left; or `failed`, with the error.  A file that failed is tried again, and
        then has another row.

        Args:
            source: only files of this source.

        Raises:
            NotFoundError: the source does not exist.
        """
        catalog = self._catalog_of(self._latest())
        require_source(source, catalog)
        return handled_table(self._root, catalog, source)

    def quarantine(self, source: str | None = None) -> pa.Table:
        """One row for every bad record; the views hold the rows around it.

        A poison message of a queue of events has a row, too: its `path` is the URL of the queue with `#` and the id of
        the message, its `row` is null, and `raw` is its body.

        The columns: `source`; `path`, the whole URL of the file as in `files`; `row`, the position in the file from 0,
        as in the metadata column `_row` (messages count from 1); `raw`, the first 64 KiB of the record, for Parquet the
        row as JSON; `reason`; `epoch`, the epoch that quarantined it.

        Cleared records are left out; `rows_bad` of `files` still counts them.

        Args:
            source: the name of a source; None for all.

        Raises:
            NotFoundError: the source does not exist.
        """
        state = self._latest()
        return quarantine_table(state, self._catalog_of(state), None, source)

    def find_bad_records(self, source: str | None = None, *, after: str | None = None, limit: int = 100) -> Page:
        """A page of the bad records, ordered by source, path and row: columns as `quarantine`.

        Args:
            source: the name of a source; None for all.
            after: `Page.after` of the previous page; None for the first page.
            limit: the number of rows of a page.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: `after` or `limit` is not valid.
        """
        state = self._latest()
        return find_bad_records(state, self._catalog_of(state), source, after, limit)

    def trace(self, epoch: int | str | None = None) -> Trace:
        """The times of one epoch: its phases, and in each phase the slowest actors, views and steps.

        Args:
            epoch: an epoch, as for `snapshot`.

        Raises:
            EpochNotFoundError, UsageError: as `snapshot`.

        Example:
            >>> for span in store.trace("latest").spans:  # doctest: +SKIP
            ...     print(span.phase, span.name, span.start_s, span.seconds)
        """
        state = self._latest()
        record = find_epoch(state, self._root, epoch)
        later = state.epoch_times()["epoch"].to_pylist()
        following = next((each for each in later if each > record.epoch), None)
        return trace_of(record, None if following is None else state.epoch(following), self.owner())

    def why(self, path: str | os.PathLike[str]) -> Story:
        """The history of one object, and the reason why its rows are in the views or not.

        Args:
            path: the whole URL of the object, or its path below a source.
        """
        state = self._latest()
        return tell(os.fspath(path), self._root, state, self._catalog_of(state), self.owner(), self._clock.now())

    def warnings(self) -> list[str]:
        """Warnings about the root, one line each: capabilities that its store lacks, and wrong indexes of views.

        Raises:
            StorageError: the root cannot be read.
        """
        from slackwater.reading.wrong_indexes import wrong_indexes

        record = read_record(self._root)
        warnings = [record.warning(self._root)] if record is not None else []
        return [*filter(None, warnings), *wrong_indexes(self.owner())]

    def owner(self) -> Owner | None:
        """The process that runs on this root or ran last; None before the first run.

        Raises:
            StorageError: the root cannot be read.
        """
        return read_owner(self._root)

    def source_schemas(self) -> dict[str, pa.Schema]:
        """The schema of each source that has one: it is declared, or was taken from the first files."""
        sources = self._catalog_of(self._latest()).sources.values()
        return {each.name: pa.ipc.read_schema(pa.py_buffer(each.schema)) for each in sources if each.schema is not None}

    def sources(self) -> pa.Table:
        """One row per source.

        `left_out` has the extra columns of its files, each with its first file, and `missing` the columns that files
        lack, with the first of these; `changes_ignored` counts the files that changed after they were read and were not
        read again; `listed_at` is the end of the last listing, null if it is not known; `watermark` is the event time
        before which no row is expected, null without one.

        `queue` is null for a source without notifications.  It has the `url` of the queue; `in_flight`, the messages
        that a run works on, and `oldest_s`, the age of the oldest of them in seconds; the messages `received` and
        `redelivered` since the start of the last run; `poison`, the messages in the quarantine; and `found_by_listing`,
        the files of the last listing without an event.
        """
        state = self._latest()
        return source_table(state, self._catalog_of(state), self.owner(), self._clock.now())

    def views(self) -> pa.Table:
        """One row per view, with the path of its dataset; a view without a version was not committed yet.

        `reflects_epoch` is the epoch whose rows the view shows: the latest, unless the view is recomputed as a whole,
        is frozen, or has failed; null for a view that failed in its first epoch, and has no rows.  `error` is the
        reason of a failure; null for a view that has not failed.  `missing` lists ingested files that were gone at
        their turn in the backfill; the view lacks them.  `reads` are the sources and views that its query reads.

        With `emit="on_close"`, `closed_until` is the watermark up to which the windows of the view are closed.
        `late_rows` counts the rows that came too late for such a view, or for one with `expire="by_watermark"`.  For
        other views they are null.
        """
        state = self._latest()
        return view_table(state, self._catalog_of(state), self._root)

    def hidden_views(self) -> pa.Table:
        """One row per dataset that views keep for their joins, windows and groups within.

        `names` are the hidden views with these rows, and `used_by` the views that they belong to: views with the same
        rows share them.  `bytes` is the size of its files, without those of its indices.

        `rows_in_memory` and `bytes_in_memory` are the rows that the run keeps in its memory: all of them, or 0.  They
        are null if no pipeline runs on this root.  A run tells them every few seconds.
        """
        state = self._latest()
        return hidden_view_table(state, self._catalog_of(state), self._root, self.owner())

    def view_costs(self, epochs: int = 100) -> dict[str, ViewCost]:
        """Name of a view, or of a hidden view, → what an epoch has cost it, over the last epochs.

        Args:
            epochs: at most this number of epochs, the last ones.
        """
        return view_costs(self._latest().epochs(last=epochs))

    def backfills(self) -> pa.Table:
        """One row per view whose backfill is not complete: `name`, `class`, and `fraction`.

        `fraction` is the part of the earlier rows that the view has, from 0 to 1; null for a view that is computed as a
        whole.
        """
        state = self._latest()
        return backfill_table(state, self._catalog_of(state))

    def snapshot(
        self, epoch: int | str | None = None, *, as_of: datetime | str | None = None, tag: str | None = None
    ) -> Snapshot:
        """The root as of one epoch; without arguments the latest.

        Args:
            epoch: an epoch; -1 is the one before the latest, and so on; as text also `latest`, `#57` (the number in
                `epochs`), a tag, or an ISO time.
            as_of: a time, or an ISO time: the last epoch that was committed up to it.  A time without a zone is UTC;
                a text without digits below a second is the end of that second.
            tag: the name of an epoch.

        Raises:
            EpochNotFoundError: the epoch does not exist; EpochExpiredError if it may have been retained before.
            NotFoundError: the tag does not exist.
            UsageError: the epoch is not valid, or more than one argument is given.
        """
        state = self._latest()
        return Snapshot(self._root, state, find_epoch(state, self._root, epoch, as_of=as_of, tag=tag))

    def handle(self) -> StoreHandle:
        """The root, its tables and the clock: for functions over a store, such as `publish` and `verify`.

        Raises:
            StorageError: the root cannot be read.
        """
        return StoreHandle(self._root, self._latest(), self._clock)

    def watch(self, view: str, *, since: int | str | None = None, poll_s: float = 0.5) -> Iterator[ViewChange]:
        """Follows a view: yields the changes of each epoch, and waits for the next one without end.

        The right to read is enough, in any process.  An epoch that does not change the rows of the view is skipped.
        The cost of a change depends on the rows that were written, not on the size of the view.

        A reader does not keep epochs from expiring: a reader that falls behind the retention gets an error.  Between
        two retained epochs, as thinning or a tag leave them, all changes are one change.

        Args:
            view: the name of the view.
            since: the epoch to begin after, as for `snapshot`; with the last handled epoch no change is missed or
                repeated.  None begins with a change that has all rows of the latest epoch.
            poll_s: the time between two looks at the store, in seconds; a look is a few requests.

        Raises:
            ViewNotFoundError: the view does not exist.
            EpochExpiredError: the changes are no longer retained: begin again without `since`.
            EpochNotFoundError, UsageError: as `snapshot`; or `poll_s` is negative, or the store is frozen.
            StorageError: the root cannot be read now; continue with the last epoch as `since`.

        Examples:
            >>> for change in store.watch("by_carrier"):  # doctest: +SKIP
            ...     for key in change.removed.to_pylist():
            ...         table.pop(tuple(key.values()), None)
            ...     for row in change.rows.to_pylist():
            ...         table[tuple(row[name] for name in change.key)] = row
        """
        if not poll_s >= 0:
            raise UsageError(f"poll_s={poll_s!r}: give a number of seconds, 0 or more")
        if self._is_frozen:
            raise UsageError("a frozen store sees no later epoch: watch with the store that `slackwater.open` returns")
        state = self._latest()
        latest = find_epoch(state, self._root)
        start = None
        if since is not None:
            try:
                start = find_epoch(state, self._root, since)
            except EpochExpiredError as error:
                raise EpochExpiredError(f"{error}; watch without `since` to begin again with all rows") from None
        if start is None or view not in start.views:
            Snapshot(self._root, state, latest).view(view)
        return iter(ViewChanges(self._root, self._latest, self._clock, view, since=start, poll_s=poll_s))

    def _latest(self) -> LanceStateStore:
        if not self._is_frozen:
            self._state = self._state.reopen()
        return self._state

    def _catalog_of(self, state: LanceStateStore) -> Catalog:
        if self._cataloged is None or self._cataloged[0] is not state:
            self._cataloged = (state, Catalog.of(state.scan("catalog")))
        return self._cataloged[1]
