"""Selection of columns and rows of a view; Lance reads nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import lance

from state.errors import UsageError
from state.tables.stored_rows import HIDDEN_PREFIX, hidden

_TEXT_LITERAL = re.compile(r"'(?:[^']|'')*'")
_UNKNOWN_COLUMN = re.compile(r"No field named (.+?)\.(?:[\s,]|$)")
_PLACE_IN_LANCE = re.compile(r",? /\S+:\d+:\d+.*$", re.DOTALL)
_BAD_CONDITION = ("Invalid user input", "Not supported", "Schema error")
_BAD_ON_A_ROW = ("Arrow error", "applying filter expression")


@dataclass(frozen=True)
class Selection:
    """Columns and rows of a view.

    Args:
        columns: columns of the result, in this order.
        filter: the condition of the rows, in Lance's SQL; None for all rows.
    """

    columns: tuple[str, ...]
    filter: str | None

    @property
    def condition(self) -> str | None:
        """The filter for Lance; in brackets, since Lance ignores text behind a condition, such as a LIMIT."""
        return None if self.filter is None else f"({self.filter}\n)"

    @classmethod
    def checked(
        cls, view: str, dataset: lance.LanceDataset, columns: Sequence[str] | None, filter: str | None
    ) -> Selection:
        """A selection that was checked against the view; no rows are read.

        Args:
            view: the name of the view, for messages.
            columns: columns of the result; None for all.
            filter: a condition on columns of the result.

        Raises:
            UsageError: a column does not exist, is named twice or is hidden, or the condition is not valid.
        """
        known = [name for name in dataset.schema.names if not hidden(name)]
        there_are = f"the columns of view {view!r} are: {', '.join(known)}"
        selected = _columns(view, columns, known, there_are)
        if filter is None:
            return cls(selected, None)
        if not isinstance(filter, str) or not filter.strip():
            raise UsageError(f"view {view!r} is filtered by a condition in SQL, as 'n > 3', not by {filter!r}")
        if HIDDEN_PREFIX in _TEXT_LITERAL.sub("", filter).casefold():
            raise UsageError(f"filter {filter!r} names a column that is hidden ({HIDDEN_PREFIX}...); {there_are}")
        selection = cls(selected, filter)
        try:
            dataset.scanner(columns=list(selected), filter=selection.condition).explain_plan()
        except ValueError as error:
            if not any(mark in str(error) for mark in _BAD_CONDITION):
                raise
            unknown = _UNKNOWN_COLUMN.search(str(error))
            if unknown:
                name = unknown.group(1).strip('"`')
                raise UsageError(f"filter {filter!r} names {name!r}, which does not exist; {there_are}") from None
            raise UsageError(f"filter {filter!r} on view {view!r} is not understood: {_reason(error)}") from None
        return selection

    def refused(self, view: str, error: Exception) -> UsageError | None:
        """The error for a condition that cannot be computed for a row; None for another error."""
        if self.filter is None or not any(mark in str(error) for mark in _BAD_ON_A_ROW):
            return None
        return UsageError(f"filter {self.filter!r} fails on a row of view {view!r}: {_reason(error)}")


def _columns(view: str, columns: Sequence[str] | None, known: list[str], there_are: str) -> tuple[str, ...]:
    if columns is None:
        return tuple(known)
    if isinstance(columns, str) or not columns:
        raise UsageError(f"columns={columns!r} of view {view!r}: give a list of one or more names; {there_are}")
    for at, name in enumerate(columns):
        if name not in known:
            raise UsageError(f"view {view!r} has no column {name!r}; {there_are}")
        if name in columns[:at]:
            raise UsageError(f"column {name!r} of view {view!r} is named twice: name it once")
    return tuple(columns)


def _reason(error: Exception) -> str:
    """The last part of an error of Lance, in one line, without the position in its source."""
    text = " ".join(_PLACE_IN_LANCE.sub("", str(error)).split())
    for beginning in (*_BAD_CONDITION, "Arrow error"):
        text = text.rpartition(f"{beginning}: ")[2]
    return text
