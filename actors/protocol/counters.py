"""The counters of a run, by the actor that counts them, each with its description; see `actors.telemetry.counted`.

A new counter is a field here, and the line that counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from operator import add, attrgetter
from typing import Any

from actors.telemetry.counted import TerminalColumn, counted
from state.tables.records import ViewClass


def _unfinished(status: str, log: str, **places: Any) -> Any:
    """The files in one state before their end; log lines have the sum of the states."""
    metric, labels = ("files_unfinished", "source"), {"status": status}
    help_text = "Files that wait or are being read."
    return counted(
        "files", help_text, kind="gauge", metric=metric, labels=labels, log=log, page=status, is_line=True, **places
    )


def _finished(status: str, **places: Any) -> Any:
    labels = {"status": status}
    return counted(
        "files", "Finished files, by status.", metric=("files", "source"), labels=labels, in_ledger=True, **places
    )


@dataclass(frozen=True)
class SourceProgress:
    """Progress of a fetch actor with one source.  Counts run from the actor's start; bytes are bytes read.

    Args:
        changes_ignored: changes of files that are noted and not read.
    """

    waiting: int = _unfinished("waiting", "waiting", column=TerminalColumn("waiting", 20, 7, 1))
    reading: int = _unfinished("reading", "waiting", column=TerminalColumn("reading", 30, 7, 6))
    done: int = _finished("done", column=TerminalColumn("done", 40, 7, 0), page="done", log="done", is_line=True)
    quarantined: int = _finished(
        "quarantined",
        column=TerminalColumn("quarantined", 50, 11, 3, is_alarm=True),
        page="quarantined",
        log="quarantined",
        is_line=True,
    )
    vanished: int = _finished("vanished")
    rows: int = counted(
        "rows",
        "Rows that were read.",
        metric=("rows", "source"),
        column=TerminalColumn("rows", 60, 11, 9, digits=11),
        page="rows",
        log="rows",
        is_line=True,
        in_ledger=True,
    )
    rows_bad: int = counted(
        "rows",
        "Records that were quarantined.",
        metric=("bad_rows", "source"),
        page="bad rows",
        log="rows_bad",
        is_line=True,
        in_ledger=True,
    )
    bytes: int = counted(
        "bytes",
        "Bytes that were read from the object store.",
        metric=("read_bytes", "source"),
        column=TerminalColumn("bytes", 80, 8, 10),
        is_line=True,
        in_ledger=True,
    )
    requests: int = counted(
        "requests",
        "LIST and GET requests.",
        metric=("requests", "source"),
        column=TerminalColumn("requests", 100, 8, 8, digits=8),
        is_line=True,
        is_news=False,
    )
    changes_ignored: int = counted("files", "Changes of files that are noted and not read.", in_ledger=True)

    def plus(self, other: SourceProgress) -> SourceProgress:
        """The sums of two."""
        return SourceProgress(*map(add, _counts_of(self), _counts_of(other)))


_counts_of = attrgetter(*(each.name for each in fields(SourceProgress)))


@dataclass(frozen=True, kw_only=True)
class ListingCounts:
    """Progress of the listings of one source.

    Args:
        listed: files in the last complete listing that the pattern takes.
        listings: complete listings since the start of the attempt.
        stretched_by: the reason why the listing period is longer than the source declares: `max_requests_per_hour` or
            `listing takes longer`; else None.
        found: new and changed files in the last complete listing; with a queue, those without an event.
        listed_at: its end; None before the first.
        paused_removals: missing files whose rows stay in the views until they are back or `Run.allow_removals` lets
            them go.
        paused: the reason why no file of the source is read, with the next step; None while it is read.
    """

    listed: int = counted(
        "files",
        "Files that the last listing has seen.",
        kind="gauge",
        metric=("listed_files", "source"),
        column=TerminalColumn("listed", 10, 7, 7),
        log="listed",
        is_line=True,
    )
    listings: int = counted("listings", "Complete listings.", metric=("listings", "source"), restarts=True)
    stretched_by: str | None = None
    found: int = 0
    listed_at: datetime | None = None
    paused_removals: int = counted(
        "files",
        "Missing files whose rows stay in the views until their removal is allowed.",
        kind="gauge",
        metric=("paused_removals", "source"),
    )
    paused: str | None = counted(
        "0 or 1",
        "1 for a source that is not read: it has met a table or a root, or lacks access.",
        default=None,
        kind="gauge",
        metric=("source_paused", "source"),
    )


@dataclass(frozen=True, kw_only=True)
class MessageCounts:
    """Counts of the messages of an event queue.

    Args:
        received: received messages; a message that is received again after a failure of the run counts again.
        redelivered: deliveries of messages that any consumer had received before.
        poison: messages that do not concern the bucket of the source; they are quarantined.
        deleted: messages that are finished and deleted.
    """

    received: int = counted(
        "messages", "Messages of a queue of events that were received.", metric=("messages", "source")
    )
    redelivered: int = counted(
        "messages", "Messages that were delivered again.", metric=("messages_redelivered", "source"), log="redelivered"
    )
    poison: int = counted(
        "messages",
        "Messages that say nothing about the source.",
        metric=("messages_poison", "source"),
        log="poison",
        note="poison",
    )
    deleted: int = counted("messages", "Messages that are finished and deleted.")

    def plus(self, other: MessageCounts) -> Mapping[str, int]:
        """The sums of two, by name."""
        return {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(MessageCounts)}


@dataclass(frozen=True)
class ViewCounts:
    """The numbers of one view.

    Args:
        view_class: `append`, `aggregate` or `full`.
        rows: its number of rows; None until this attempt has opened it.
        behind_s: its delay behind the latest rows of its sources, in seconds: only a `full` view has one.
        open_groups: for a view with `emit="on_close"`: the groups whose window is open, which it does not show.
        late_rows: for such a view, or one with `expire="by_watermark"`: the rows that came too late for it, since it
            was created.
    """

    view_class: ViewClass
    rows: int | None = counted("rows", "Rows of a view.", default=None, kind="gauge", metric=("view_rows", "view"))
    behind_s: float = counted(
        "seconds",
        "Age of the rows of a recomputed view, behind the latest rows.",
        default=0.0,
        kind="gauge",
        metric=("view_lag_seconds", "view"),
    )
    open_groups: int | None = counted(
        "groups",
        "Groups of windows that are open.",
        default=None,
        kind="gauge",
        metric=("view_open_groups", "view"),
        page="open groups",
    )
    late_rows: int | None = counted(
        "rows",
        "Rows that came too late for the view.",
        default=None,
        metric=("view_late_rows", "view"),
        page="late rows",
        note="late",
    )


@dataclass(frozen=True, kw_only=True)
class MaterializerCounts:
    """Counts of the materializer in one attempt.

    Args:
        rebuilt_indexes: view, or rows of a source, → the number of its indexes that differed from the rows in this
            attempt, and were rebuilt or dropped.
        planned_queries: queries that Spark analysed or planned during the epochs of this attempt.
    """

    rebuilt_indexes: Mapping[str, int] = counted(
        "indexes",
        "Indexes that differed from their rows, and were rebuilt or dropped.",
        default_factory=dict,
        metric=("indexes_rebuilt", "view"),
        restarts=True,
    )
    planned_queries: int = counted(
        "queries",
        "Queries that Spark analysed or planned during epochs: none once each view has its plan.",
        metric=("planned_queries",),
        restarts=True,
    )
