"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from slackwater.verification.comparison import Differences


class Outcome(StrEnum):
    """What can be said of a view."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True)
class FileProblem:
    """A file that cannot be read as it was when its rows were ingested.

    Args:
        path: its whole URL.
        problem: `changed` or `gone`.
    """

    path: str
    problem: str


LEDGER = "ledger"
"""What stored rows are compared with, in place of an engine."""


@dataclass(frozen=True)
class ViewCheck:
    """One view, or the stored rows of one source (`source.rows`).

    Args:
        outcome: equal, different, or not checkable.
        engine: `duckdb` or `spark`, whichever decided; `ledger` for stored rows; None when the view is not checkable.
        epoch: whose ledger was used: that of the verification, or the one at which the view was frozen.
        rows: of the view.
        expected_rows: of the engine's result, if there was one.
        differences: None unless there are any; those of stored rows have a row for each file.
        files: those that stand in the way of a check.
        reason: why it is not checkable, why the ledger itself is wrong, or why DuckDB did not decide; may be empty.
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


@dataclass(frozen=True)
class Verification:
    """Every view at one epoch."""

    epoch: int
    views: tuple[ViewCheck, ...]

    @property
    def all_equal(self) -> bool:
        """Whether every view was computed again, and is equal."""
        return all(view.outcome is Outcome.EQUAL for view in self.views)
