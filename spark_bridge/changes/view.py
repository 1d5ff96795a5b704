"""The interface of an append or aggregate view, and the progress of one view that readers see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from actors.protocol.counters import ViewCounts
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.ingest.epoch_rows import EpochRows
from state.epoch import epoch_time
from state.tables.records import ViewVersion

if TYPE_CHECKING:
    from spark_bridge.changes.change_set import ChangeLog
    from spark_bridge.changes.corrections import CorrectedRows
    from spark_bridge.plans.view_plan import ViewPlan


@dataclass(frozen=True)
class ShownView(ViewCounts):
    """Progress of one view."""

    name: str = field(kw_only=True)


Guard = Callable[[str], AbstractContextManager[None]]
"""Name of a view -> a context for work on it: an error of this view alone is raised as `ViewFailedError`."""


def no_guard(_: str) -> AbstractContextManager[None]:
    """Lets errors pass as they are."""
    return nullcontext()


class View(Protocol):
    """The datasets of one view, written epoch by epoch.

    Attributes:
        changes: of the view's rows, if other views read them.
    """

    changes: ChangeLog

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the view in this epoch, with its rows."""

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Brings the view up to date with an epoch's rows."""

    def correct(self, rows: CorrectedRows) -> ViewVersion:
        """Brings the view up to date with files whose rows were replaced or removed."""

    @property
    def num_rows(self) -> int:
        """Number of rows of the view."""

    def tidy(self, audit: IndexAudit | None) -> bool:
        """Does one bounded task that keeps the view's datasets fast.  Returns whether one was due.

        Args:
            audit: checks the indexes of a dataset that was tidied; None for no check.
        """


class Computed(NamedTuple):
    """Rows that are computed, and not in the view yet.

    Args:
        merge: adds them, between two epochs.
        groups: the number of groups that they touch; 0 in a view without groups.
    """

    merge: Callable[[], ViewVersion]
    groups: int = 0


@runtime_checkable
class ComputesBeside(Protocol):
    """A view that can compute rows in another thread, while an epoch changes it.

    Attributes:
        computes_beside: whether this one can.
    """

    @property
    def computes_beside(self) -> bool: ...

    def computed(self, rows: EpochRows) -> Computed:
        """Computes rows.  The rest of `apply` comes between two epochs."""


class GroupedView(View, Protocol):
    """The datasets of one view that is made of the groups of the one that it replaces.

    Attributes:
        lacks: the numbers of the measures, helper aggregates among them, that have no rows from before that; set it
            after `open`, if there are some.
    """

    lacks: Sequence[int]

    def take_over(self, epoch: int, before: ViewPlan, version: ViewVersion) -> ViewVersion:
        """Makes the view of the groups of another one.

        Args:
            epoch: the epoch in which the view takes the place of the other one.
            before: the plan of the other view.
            version: of the other view.
        """

    @property
    def earlier_columns(self) -> Mapping[str, frozenset[str]]:
        """Source → the columns that `complete` needs of its rows."""

    def complete(self, rows: EpochRows) -> ViewVersion:
        """Merges rows from before that into the measures that lack them."""


def seconds_behind(version: ViewVersion, rows_epoch: int) -> float:
    """Seconds between the epoch that a version reflects and the last epoch with rows.

    Args:
        version: of the view; without `reflects_epoch` it has all rows.
        rows_epoch: the last epoch with rows.
    """
    if version.reflects_epoch is None or version.reflects_epoch >= rows_epoch:
        return 0.0
    return (epoch_time(rows_epoch) - epoch_time(version.reflects_epoch)).total_seconds()
