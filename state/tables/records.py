"""Values of the store: the head, an epoch record, a view version, a source and a view of the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

ViewClass: TypeAlias = Literal["append", "aggregate", "full"]
"""The kind of maintenance of a view: rows are appended, groups are merged, or all rows are computed again."""


@dataclass(frozen=True)
class ViewVersion:
    """The datasets of a view at one epoch, with their versions.  Paths are relative to the root.

    Args:
        name: the name of the view.
        path: the dataset of its rows.
        version: the version of that dataset.
        state_path: the dataset of its partials; None if they are columns of its rows.
        state_version: the version of that dataset.
        distinct_path: the dataset of the values that a DISTINCT has counted; None for a view without it.
        distinct_version: the version of that dataset.
        reflects_epoch: for a view that is recomputed as a whole: the epoch of the rows that it shows.
        pinned_epoch: for a backfill: the last epoch of the earlier rows that it reads.
        progress: see `noted`; for a view that is recomputed as a whole, and for stored rows, the data they were
            made from.
    """

    name: str
    path: str
    version: int
    state_path: str | None = None
    state_version: int | None = None
    distinct_path: str | None = None
    distinct_version: int | None = None
    reflects_epoch: int | None = None
    pinned_epoch: int | None = None
    progress: str | None = None

    @property
    def noted(self) -> Mapping[str, Any]:
        """The notes of an incremental view on its progress, from the JSON in `progress`; empty for other views.

        * backfill: its progress through the earlier rows
        * temporal filter: the time for which the rows are correct
        * time to live: the watermark for which the rows are correct
        * closed windows, expiry: the watermarks that the view follows, and the number of late rows
        * rows over internal views: the names of the internal views in the origins of the rows
        """
        noted: Mapping[str, Any] = json.loads(self.progress) if self.progress and self.reflects_epoch is None else {}
        return noted

    @property
    def datasets(self) -> dict[str, int]:
        """Path → version of each of its datasets, the view's own first."""
        parts = [
            (self.path, self.version),
            (self.state_path, self.state_version),
            (self.distinct_path, self.distinct_version),
        ]
        return {path: version for path, version in parts if path is not None and version is not None}

    def at(self, versions: Mapping[str, int]) -> ViewVersion:
        """The same view at other versions of its datasets.

        Args:
            versions: path of a dataset → its version.
        """
        return replace(
            self,
            version=versions[self.path],
            state_version=None if self.state_path is None else versions[self.state_path],
            distinct_version=None if self.distinct_path is None else versions[self.distinct_path],
        )


@dataclass(frozen=True)
class Head:
    """The head: the one row that every commit swaps.

    Args:
        term: the number of take-overs of the root; a commit of an older term is refused.
        views: the views by name, at this epoch.
        run: the run that holds the term; empty before the first take-over.
        tags: epochs by name.
    """

    term: int
    epoch: int
    views: Mapping[str, ViewVersion] = field(default_factory=dict)
    run: str = ""
    tags: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept_epochs(self) -> frozenset[int]:
        """The epochs that must not expire: a tag names them, or a backfill reads them."""
        pinned = (view.pinned_epoch for view in self.views.values() if view.pinned_epoch is not None)
        return frozenset(self.tags.values()).union(pinned)


@dataclass(frozen=True)
class EpochCounts:
    """Counts of one epoch: finished files, ingested rows, and the bytes and requests of their reads."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    requests: int = 0


@dataclass(frozen=True)
class EpochSeconds:
    """Durations of the phases of one epoch, in seconds.

    Args:
        fetch: from the opening of the epoch to its barrier.
        align: from the barrier until every fetch actor has passed it.
        spark: from then until every view is written.
        collect: from the barrier until every actor has reported.
    """

    fetch: float = 0.0
    align: float = 0.0
    spark: float = 0.0
    collect: float = 0.0

    @property
    def collect_alone(self) -> float:
        """The seconds of `collect` after the phases `align` and `spark`, as a phase of its own."""
        return max(0.0, self.collect - self.align - self.spark)


@dataclass(frozen=True)
class EpochRecord:
    """One committed epoch.

    Args:
        term: the term of the process that committed it.
        committed_at: the wall time of the commit, in UTC.
        state_version: the version of `state.lance` that this commit made.
        counts: its files, rows, bytes and requests.
        seconds: the durations of its phases.
        views: the views by name, at this epoch.
        trace: an `EpochTrace` as JSON; None for a commit without a trace.
    """

    epoch: int
    term: int
    committed_at: datetime
    state_version: int
    counts: EpochCounts
    seconds: EpochSeconds
    views: Mapping[str, ViewVersion]
    trace: str | None = None


@dataclass(frozen=True)
class CatalogSource:
    """A source in the catalog.

    Args:
        name: the name of the source.
        definition: its declaration as JSON, without secrets.
        schema: its Arrow schema, serialized; None until it is known.
        declared_at: the start of the run that declared it first; None if unknown.
        not_before: objects written before this time are ignored; None to read all.
    """

    name: str
    definition: str
    schema: bytes | None
    declared_at: datetime | None = None
    not_before: datetime | None = None


@dataclass(frozen=True)
class SourceWatermark:
    """The watermark of a source with an event time, in microseconds since 1970.

    Args:
        source: the name of the source.
        at: no row is expected before it; None until a listing was read to its end.
        high: the highest event time of all rows that came; None without rows.
    """

    source: str
    at: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class UnmatchedColumn:
    """A column that files and their source do not share, or that has another name in files.

    Args:
        source: the name of the source.
        column: the name of the column.
        path: the first such file, relative to the source.
        epoch: the epoch in which this file was read.
        is_missing: True for a column that the file lacks, and that is null in its rows.
        was: the name in the file, of a column that the source has by another name; None for an extra column, which is
            left out, and for a missing one.
    """

    source: str
    column: str
    path: str
    epoch: int
    is_missing: bool = False
    was: str | None = None


@dataclass(frozen=True)
class CatalogView:
    """A view in the catalog.

    Args:
        name: the name of the view.
        view_class: `append`, `aggregate` or `full`.
        definition: the text of its query, for people.
        identity: a text of its plan; a declaration with another identity is another view.
        sources: the names of its sources, including sources that it reads through other views.
        key: the columns of the result that identify a group.
        created_epoch: the epoch of its first version.
        stopped_epoch: the last epoch whose rows it has, if it is maintained no longer, since it is not declared, has
            failed, or is rebuilt; 0 if it failed in its first epoch.  None while it is maintained.
        error: why it has failed; None for a view that has not.
        visible: source or view that it reads → its columns when the view was created; it sees no later columns.
            An internal view that it reads is listed without columns.
        missing: URLs of files that were ingested before the view was declared and could not be read again.
    """

    name: str
    view_class: ViewClass
    definition: str
    identity: str
    sources: tuple[str, ...]
    key: tuple[str, ...]
    created_epoch: int
    stopped_epoch: int | None = None
    error: str | None = None
    visible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def version_name(self) -> str:
        """The name of this version of the view: a rebuilt view has another epoch of creation."""
        return f"{self.name}@{self.created_epoch}"

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the declared views that it reads."""
        return tuple(name for name in self.visible if name not in self.sources and name not in self.internal_views)

    @property
    def internal_views(self) -> tuple[str, ...]:
        """The internal views that it reads; then it reads no source itself, and follows their changes."""
        return tuple(name for name in self.visible if "." in name)
