"""Verification: the report, with one check for each view."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from slackwater.verification.comparison import Differences


class Outcome(StrEnum):
    """The result of the check of one view."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True)
class FileProblem:
    """A file that cannot be read as it was ingested.

    Args:
        path: the URL of the file.
        problem: `changed` or `deleted`.
    """

    path: str
    problem: str


LEDGER = "ledger"
"""The name in `ViewCheck.engine` for stored rows, which are compared with the ledger."""


@dataclass(frozen=True)
class ViewCheck:
    """The check of one view, or of the stored rows of one source (`source.rows`).

    Args:
        view: the name of the view.
        outcome: equal, different, or not checkable.
        engine: the engine that decided, `duckdb` or `spark`; `ledger` for stored rows; None if not checkable.
        epoch: the epoch of the ledger: the verified epoch, or the epoch at which the view stopped.
        rows: the number of rows of the view.
        expected_rows: the number of rows of the engine's result; None without a result.
        differences: the differences; None without any.  For stored rows an example is a file.
        files: the files that prevent the check.
        by_parents: for a view over views, the outcome of its query over the stored rows of these, by DuckDB: for a
            different view it shows whether the view itself is wrong.  None for other views, and where DuckDB cannot
            decide.
        reason: the reason why the view is not checkable, why the ledger is wrong, or why DuckDB did not decide; the
            error of a failed view before it; may be empty.
    """

    view: str
    outcome: Outcome
    engine: str | None
    epoch: int
    rows: int
    expected_rows: int | None = None
    differences: Differences | None = None
    files: tuple[FileProblem, ...] = ()
    reason: str = ""
    by_parents: Outcome | None = None


@dataclass(frozen=True)
class WrongIndex:
    """An index of a view's dataset that returns other rows than the dataset has.

    Args:
        dataset: the path of the dataset, below the root.
        column: the column of the index.
        missing: rows that the index does not return, of random keys.
        wrong: rows that the index returns for a key although they have another key.
    """

    dataset: str
    column: str
    missing: int
    wrong: int


@dataclass(frozen=True)
class Verification:
    """The checks of all views at one epoch.

    Args:
        views: one check for each view.
        wrong_indexes: the indexes that differ from the rows.
    """

    epoch: int
    views: tuple[ViewCheck, ...]
    wrong_indexes: tuple[WrongIndex, ...] = ()

    @property
    def all_equal(self) -> bool:
        """True if every view was computed again and is equal, and no index is wrong."""
        views = (view.outcome is Outcome.EQUAL and view.by_parents is not Outcome.DIFFERENT for view in self.views)
        return not self.wrong_indexes and all(views)
