"""The values that the store hands out one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime


@dataclass(frozen=True)
class ViewVersion:
    """Which versions of which datasets hold a view at some epoch.  Paths are relative to the root.

    Args:
        state_path: of the partials; None when they sit beside the view's rows.
        distinct_path: of the values that were counted once; None when the view counts none.
        reflects_epoch: of a view that is recomputed as a whole: the epoch whose rows it shows.
        pinned_epoch: of a view that catches up: the epoch up to which it reads what was ingested before it began.
        progress: of a view that catches up: how far that is read, as JSON.
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
    def datasets(self) -> dict[str, int]:
        """Path → version of each of its datasets, the view's own first."""
        parts = [
            (self.path, self.version),
            (self.state_path, self.state_version),
            (self.distinct_path, self.distinct_version),
        ]
        return {path: version for path, version in parts if path is not None and version is not None}

    def at(self, versions: Mapping[str, int]) -> ViewVersion:
        """The same view at other versions of its datasets, by path."""
        return replace(
            self,
            version=versions[self.path],
            state_version=None if self.state_path is None else versions[self.state_path],
            distinct_version=None if self.distinct_path is None else versions[self.distinct_path],
        )


@dataclass(frozen=True)
class Head:
    """The one row that every commit swaps: whose turn it is, and what is visible.

    `run` is the run that holds the term; empty before anybody took the root over.  `tags` are epochs by name.
    """

    term: int
    epoch: int
    views: Mapping[str, ViewVersion] = field(default_factory=dict)
    run: str = ""
    tags: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept_epochs(self) -> frozenset[int]:
        """The epochs that must not expire: those with a name, and those up to which a view catches up."""
        pinned = (view.pinned_epoch for view in self.views.values() if view.pinned_epoch is not None)
        return frozenset(self.tags.values()).union(pinned)


@dataclass(frozen=True)
class EpochCounts:
    """What one epoch brought: finished files, ingested rows, and the bytes and requests it took to read them."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    requests: int = 0


@dataclass(frozen=True)
class EpochSeconds:
    """How long the phases of one epoch took, in seconds.

    `fetch`: from the epoch's opening to its barrier; `align`: until every fetch actor had passed it;
    `spark`: until every view was written; `collect`: from the barrier until every actor had reported.
    """

    fetch: float = 0.0
    align: float = 0.0
    spark: float = 0.0
    collect: float = 0.0


@dataclass(frozen=True)
class EpochRecord:
    """One committed epoch.  `trace` is an `EpochTrace` as JSON; None if that was before format 6."""

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
    """A source as the catalog keeps it: `definition` is JSON without secrets, `schema` is Arrow's, None until known.

    `declared_at` is when the run began that declared it first; None if that was before format 3.  Objects that were
    written before `not_before` are left out; None for none.
    """

    name: str
    definition: str
    schema: bytes | None
    declared_at: datetime | None = None
    not_before: datetime | None = None


@dataclass(frozen=True)
class LeftOutColumn:
    """A column that files have and their source does not: the first file, relative to the source, and its epoch."""

    source: str
    column: str
    path: str
    epoch: int


@dataclass(frozen=True)
class CatalogView:
    """A view as the catalog keeps it.

    `identity` is what must be equal for the view to go on; `definition` is its text for people; `key` names the
    columns of the result that a group is looked up by; `frozen_epoch` is set while the view is not declared;
    `visible` has for each source the columns that it had when the view was created: later ones do not exist for it;
    `missing` are the URLs of files that were ingested before the view was declared and could not be read again.
    """

    name: str
    view_class: str
    definition: str
    identity: str
    sources: tuple[str, ...]
    key: tuple[str, ...]
    created_epoch: int
    frozen_epoch: int | None = None
    visible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
