"""Tables that follow views: their commits, in memory, and their faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from state.errors import CommitRefusedError, StorageUnavailableError
from tests.simulation.world.file_rows import Span
from tests.simulation.world.simulated_clock import SimulatedClock

if TYPE_CHECKING:
    from slackwater.plugins.publish.publication import PublishedEpoch

Items = Counter[object]
"""The rows of a view, or of a table that follows it: each with its number."""


def items_of(rows: object) -> Items:
    """The rows of a model view, each with its number."""
    if isinstance(rows, Mapping):
        return Counter(rows.items())
    assert isinstance(rows, tuple)
    return Counter(_rows_of(rows))


def _rows_of(spans: tuple[Span, ...]) -> list[object]:
    return [(span.file, row) for span in spans for row in range(span.start, span.end)]


@dataclass(frozen=True)
class TableCommit:
    """One commit of a table.

    Args:
        published: the epoch that it names; None for a commit of another program.
        rows: the rows of the table after it.
    """

    published: PublishedEpoch | None
    rows: Items


@dataclass
class ModelTable:
    """A table that follows a view.

    Args:
        view: the name of the view.
        commits: its commits.
        cuts: the number of next commits that are carried out and not answered.
    """

    view: str
    commits: list[TableCommit] = field(default_factory=list)
    cuts: int = 0

    @property
    def epoch(self) -> int | None:
        """The last epoch that it names; None without one."""
        named = [each.published.epoch for each in self.commits if each.published is not None]
        return named[-1] if named else None

    @property
    def is_spoilt(self) -> bool:
        """True if another program has written to it last: nothing is published to it any more."""
        return bool(self.commits) and self.commits[-1].published is None

    def spoil(self) -> None:
        """Another program commits to it."""
        rows = self.commits[-1].rows if self.commits else Counter[object]()
        self.commits.append(TableCommit(None, rows))


class PublishedTables:
    """All tables of a root.

    Attributes:
        by_view: view → its table.
        is_down: whether the place of the tables answers nothing.

    Args:
        views: the published views.
        clock: of the world.
    """

    def __init__(self, views: tuple[str, ...], clock: SimulatedClock) -> None:
        self.by_view = {view: ModelTable(view) for view in views}
        self._clock, self._down_until_s = clock, 0.0

    def fail_for(self, seconds: float) -> None:
        """The place of the tables answers nothing for a while."""
        self._down_until_s = self._clock.monotonic() + seconds

    def end_faults(self) -> None:
        """Every request is answered from now on."""
        self._down_until_s = 0.0
        for table in self.by_view.values():
            table.cuts = 0

    def require_up(self) -> None:
        """A request for a table.

        Raises:
            StorageUnavailableError: there is no answer.
        """
        if self._clock.monotonic() < self._down_until_s:
            raise StorageUnavailableError("the place of the tables does not answer: try again later")

    def commit(self, view: str, expected: int, commit: TableCommit) -> None:
        """A commit arrives.

        Args:
            view: of the table.
            expected: the number of commits from which it was made.
            commit: the commit.

        Raises:
            CommitRefusedError: there are more commits by now.
            StorageUnavailableError: there is no answer; the commit may have been carried out.
        """
        self.require_up()
        table = self.by_view[view]
        if len(table.commits) != expected:
            raise CommitRefusedError(f"the table of {view} was written meanwhile; publish again")
        table.commits.append(commit)
        if table.cuts:
            table.cuts -= 1
            raise StorageUnavailableError(f"the table of {view}: the connection was cut before the answer came")
