"""Selections of rows of a table: a range of keys, a set of vnodes, keys, prefixes of keys, or contents of a field."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

KeyRange = tuple[bytes, bytes]
"""A lowest key, and a key above the highest."""


@dataclass(frozen=True)
class Clue:
    """A condition on a field of a row.

    Args:
        field: a field of the table.
        contains: a text within the field, upper or lower case.
        equals: the exact value of the field.
        above: a number that the field exceeds.
        is_set: True for a field with a value, False for a null field.
    """

    field: str
    contains: str | None = None
    equals: str | int | bool | None = None
    above: int | None = None
    is_set: bool | None = None

    def condition(self, table: str) -> str:
        """The condition as a filter for Lance on the rows of a table."""
        column = f"{table}_row.{self.field}"
        parts = []
        if self.contains is not None:
            parts.append(f"contains(lower({column}), lower({quoted(self.contains)}))")
        if self.equals is not None:
            parts.append(f"{column} = {_literal(self.equals)}")
        if self.above is not None:
            parts.append(f"{column} > {self.above}")
        if self.is_set is not None:
            parts.append(f"{column} IS {'NOT ' if self.is_set else ''}NULL")
        return " AND ".join(parts) or "true"

    def fits(self, rows: pa.Table) -> pa.ChunkedArray:
        """True for each row that fits."""
        values = rows[self.field]
        masks = []
        if self.contains is not None:
            masks.append(pc.match_substring(pc.utf8_lower(values), self.contains.lower()))
        if self.equals is not None:
            masks.append(pc.equal(values, pa.scalar(self.equals, values.type)))
        if self.above is not None:
            masks.append(pc.greater(values, self.above))
        if self.is_set is not None:
            masks.append(pc.is_valid(values) if self.is_set else pc.is_null(values))
        return pc.fill_null(reduce(pc.and_, masks, pa.array([True] * rows.num_rows, pa.bool_())), False)


@dataclass(frozen=True)
class RowSelection:
    """Rows of some vnodes, with some keys or prefixes of keys, at least `start` and less than `end`; None for all."""

    start: bytes | None = None
    end: bytes | None = None
    vnodes: Collection[int] | None = None
    keys: Collection[bytes] | None = None
    prefixes: Collection[bytes] | None = None

    @property
    def ranges(self) -> list[KeyRange] | None:
        """The ranges of keys that hold these keys or prefixes, sorted; None without keys and prefixes."""
        if self.keys is not None:
            within = RowSelection(self.start, self.end)
            return [(key, key + b"\x00") for key in sorted(set(self.keys)) if within.holds(key, None)]
        if self.prefixes is not None:
            return [(prefix, after_prefix(prefix)) for prefix in sorted(set(self.prefixes))]
        return None

    def holds(self, key: bytes, vnode: int | None) -> bool:
        """True if a row is selected.

        Args:
            vnode: its vnode; None if it does not matter.
        """
        return (
            (self.start is None or self.start <= key)
            and (self.end is None or key < self.end)
            and (self.vnodes is None or vnode is None or vnode in self.vnodes)
            and (self.keys is None or key in self.keys)
            and (self.prefixes is None or any(prefix <= key < after_prefix(prefix) for prefix in self.prefixes))
        )


def after_prefix(prefix: bytes) -> bytes:
    """A key above all keys of the store that begin with `prefix`: no part of a key begins with a byte of 255."""
    return prefix + b"\xff"


def _literal(value: str | int | bool) -> str:
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower()


def quoted(text: str) -> str:
    """A text as a value in Lance's SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted_column(name: str) -> str:
    """A name of a column in Lance's SQL.

    Args:
        name: one that Lance can find, see `can_be_stored`; its SQL has no escape for a backtick.
    """
    return f"`{name}`"
