"""Store: the reading face of a root.  It needs no Ray, Spark or server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import copy
from datetime import datetime

import pyarrow as pa

from slackwater.reading.changes.root_difference import ViewDifference, view_difference
from slackwater.reading.changes.view_changes import ViewChange, ViewChanges
from slackwater.reading.epoch_choice import find_epoch
from slackwater.reading.ledger import Ledger
from slackwater.reading.notebook import as_html
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.store_handle import StoreHandle
from slackwater.reading.tables.branch_table import branch_table
from slackwater.reading.tables.epoch_table import epoch_table
from slackwater.reading.tables.expectation_table import published_epoch
from slackwater.reading.views import Views
from slackwater.status.trace import Trace, trace_of
from state.capabilities.store_record import read_record, root_identity
from state.clock import Clock, SystemClock
from state.errors import EpochExpiredError, EpochNotFoundError, UsageError
from state.location import Location
from state.ownership.owner import Owner
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
    """The committed state of a root.  Every call sees the latest epoch; the calls of `frozen()` all see the same epoch.

    Args:
        root: the root.
        clock: the clock of the handle, and of the pauses of `watch`.
    """

    def __init__(self, root: Location, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._handle = StoreHandle.open(root, clock)
        self._identity = ""

    def __repr__(self) -> str:
        return f"Store({str(self._root)!r})"

    def _repr_html_(self) -> str:
        views = self.views.table().select(["name", "class", "rows", "reads", "error"])
        return as_html(repr(self), views, f"latest epoch: {self.latest_epoch() or 'none yet'}")

    @property
    def root(self) -> str:
        """The URL of the root, without user information."""
        return self._root.url

    @property
    def ledger(self) -> Ledger:
        """The files of the root, their bad records, and their sources."""
        return Ledger(self._handle)

    @property
    def views(self) -> Views:
        """The views of the root: their state, cost and expectations."""
        return Views(self._handle)

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
        for it: an hour later a call may raise `EpochExpiredError`.  Uncommitted facts, `owner()` and the files and
        seconds of queues, are as of the time of the call.
        """
        frozen = copy(self)
        frozen._handle = self._handle.frozen()
        return frozen

    def epochs(self, *, before: int | None = None, limit: int | None = None) -> pa.Table:
        """The retained epochs, oldest first, with counts, view versions, and the seconds of each phase.

        A page is the last `limit` epochs before one; only their records are read.

        Args:
            before: only epochs before this one; None for all.
            limit: the number of last epochs to return at most; None for all.

        Raises:
            UsageError: `limit` is not valid.

        Example:
            >>> last = store.epochs(limit=100)  # doctest: +SKIP
            >>> earlier = store.epochs(before=last.column("epoch")[0].as_py(), limit=100)  # doctest: +SKIP
        """
        return epoch_table(self._handle.latest(), before=before, limit=limit)

    def epoch_times(self) -> pa.Table:
        """The columns `epoch` and `committed_at` of all retained epochs, oldest first; their records are not read."""
        return self._handle.latest().epoch_times().select(["epoch", "committed_at"])

    def latest_epoch(self) -> int:
        """The last committed epoch; 0 before the first.  This is the cheapest call."""
        return self._handle.latest().head.epoch

    def published_epoch(self) -> int:
        """The last epoch in which all views with `on_violation="hold"` fulfil their expectations; 0 before the first.

        It is the latest one if there is no such view.  Publications and `slackwater serve` show this epoch.
        """
        state, catalog = self._handle.cataloged()
        return published_epoch(state, catalog)

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

    def tags(self) -> dict[str, int]:
        """The epoch of each tag."""
        return user_tags(self._handle.latest().head.tags)

    def branches(self) -> pa.Table:
        """One row per branch of this root: `branch`, `epoch`, `latest_epoch`, `state` and `url`.

        `epoch` is the epoch of this root that the branch began with, and `latest_epoch` the last epoch of the branch.
        `state` is `ready`; `unfinished`, of a branch whose making was interrupted; `dropping`, of one whose deletion
        was interrupted; or `missing`, of one whose files were deleted by other means.

        Raises:
            StorageError: the root cannot be read.
        """
        return branch_table(self._root, self._handle.latest().head.tags, self._clock)

    def diff(
        self,
        view: str,
        other: Store,
        *,
        epoch: int | str | None = None,
        other_epoch: int | str | None = None,
        limit: int = 20,
    ) -> ViewDifference:
        """Compares the rows of a view of this root with the rows of another root, most often a branch.

        Duplicate rows count separately.  Only columns that both have, with one type, are compared.  Files that
        both roots name are not read: the cost depends on the rows written since the branch was made.  Rows that may
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
        state = self._handle.latest()
        record = find_epoch(state, self._root, epoch)
        later = state.epoch_times()["epoch"].to_pylist()
        following = next((each for each in later if each > record.epoch), None)
        return trace_of(record, None if following is None else state.epoch(following), self.owner())

    def warnings(self) -> list[str]:
        """Warnings about the root, one line each: capabilities that its store lacks, and wrong indexes of views.

        Raises:
            StorageError: the root cannot be read.
        """
        from slackwater.status.wrong_indexes import wrong_indexes

        record = read_record(self._root)
        warnings = [record.warning(self._root)] if record is not None else []
        return [*filter(None, warnings), *wrong_indexes(self.owner())]

    def owner(self) -> Owner | None:
        """The process that runs on this root or ran last; None before the first run.

        Raises:
            StorageError: the root cannot be read.
        """
        return self._handle.owner()

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
        state = self._handle.latest()
        return Snapshot(self._root, state, find_epoch(state, self._root, epoch, as_of=as_of, tag=tag))

    def handle(self) -> StoreHandle:
        """The root, its tables and the clock: for functions over a store, such as `publish` and `verify`."""
        return self._handle

    def watch(self, view: str, *, since: int | str | None = None, poll_s: float = 0.5) -> Iterator[ViewChange]:
        """Follows a view: yields the changes of each epoch, and waits for the next epoch without end.

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
        if self._handle.is_frozen:
            raise UsageError("a frozen store sees no later epoch: watch with the store that `slackwater.open` returns")
        state = self._handle.latest()
        latest = find_epoch(state, self._root)
        start = None
        if since is not None:
            try:
                start = find_epoch(state, self._root, since)
            except EpochExpiredError as error:
                raise EpochExpiredError(f"{error}; watch without `since` to begin again with all rows") from None
        if start is None or view not in start.views:
            Snapshot(self._root, state, latest).view(view)
        return iter(ViewChanges(self._root, self._handle.latest, self._clock, view, since=start, poll_s=poll_s))
