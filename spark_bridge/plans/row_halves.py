"""A view in two halves: the rows that fulfil all conditions, and the others, each with the names of those it violates.

Each half is a view like any other, so that a removed file takes its rows out of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Half: TypeAlias = Literal["fulfilling", "violating"]
"""A half of the rows of a view."""

VIOLATED = "violated"
"""The column with the names of the violated conditions, separated by `; `."""


def half_of_query(query: str, half: Half, conditions: Mapping[str, str]) -> str:
    """The query of one half, in SQL that Spark and DuckDB read alike.

    Args:
        conditions: name → condition.
    """
    rows = f"(\n{query.strip().rstrip(';').rstrip()}\n) AS all_rows"
    if half == "fulfilling":
        return f"SELECT * FROM {rows}\nWHERE {_fulfils(conditions)}"
    return f"SELECT *, {_names(conditions)} AS {VIOLATED} FROM {rows}\nWHERE NOT ({_fulfils(conditions)})"


def half_of_frame(frame: DataFrame, half: Half, conditions: Mapping[str, str]) -> DataFrame:
    """The rows of one half of a frame."""
    if half == "fulfilling":
        return frame.where(_fulfils(conditions))
    return frame.where(f"NOT ({_fulfils(conditions)})").selectExpr("*", f"{_names(conditions)} AS {VIOLATED}")


def _fulfils(conditions: Mapping[str, str]) -> str:
    return " AND ".join(map(_is_true, conditions.values()))


def _names(conditions: Mapping[str, str]) -> str:
    """The names of the conditions that a row violates, as one text."""
    cases = (f"CASE WHEN NOT {_is_true(each)} THEN {_text(name)} END" for name, each in conditions.items())
    return f"concat_ws('; ', {', '.join(cases)})"


def _is_true(condition: str) -> str:
    """Whether a row fulfils a condition, never null.  A comment may end the condition."""
    return f"coalesce(({condition}\n), false)" if "--" in condition else f"coalesce(({condition}), false)"


def _text(words: str) -> str:
    """A literal that is the same in every dialect: quotes and backslashes are written by their numbers."""
    parts, plain = list[str](), ""
    for sign in words:
        if sign in "'\\":
            parts += [f"'{plain}'", f"chr({ord(sign)})"]
            plain = ""
        else:
            plain += sign
    parts.append(f"'{plain}'")
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
