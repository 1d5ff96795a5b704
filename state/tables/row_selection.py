"""Selections of rows of a table: a range of keys, a set of vnodes, single keys, or contents of a field."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Clue:
    """A condition on a field of rows as they were written; since then the row may have been patched or deleted.

    Args:
        field: a field of the table.
        contains: a text within the field, upper or lower case.
        equals: the exact text of the field.
        above: a number that the field exceeds.
    """

    field: str
    contains: str | None = None
    equals: str | None = None
    above: int | None = None

    def condition(self, table: str) -> str:
        """The condition as a filter for Lance on the rows of a table."""
        column = f"{table}_row.{self.field}"
        parts = []
        if self.contains is not None:
            parts.append(f"contains(lower({column}), lower({_quoted(self.contains)}))")
        if self.equals is not None:
            parts.append(f"{column} = {_quoted(self.equals)}")
        if self.above is not None:
            parts.append(f"{column} > {self.above}")
        return " AND ".join(parts) or "true"


@dataclass(frozen=True)
class RowSelection:
    """Rows with one of `keys`, at least `start` and less than `end`, in one of `vnodes`; None sets no limit."""

    start: bytes | None = None
    end: bytes | None = None
    vnodes: Collection[int] | None = None
    keys: Collection[bytes] | None = None

    @classmethod
    def of_key(cls, key: bytes) -> RowSelection:
        """The one row with this key."""
        return cls(key, key + b"\x00")

    def holds(self, key: bytes, vnode: int) -> bool:
        """True if a row is selected."""
        return (
            (self.start is None or self.start <= key)
            and (self.end is None or key < self.end)
            and (self.vnodes is None or vnode in self.vnodes)
            and (self.keys is None or key in self.keys)
        )

    def condition(self, table: str) -> str:
        """The selection as a filter for Lance on the rows of all tables.

        Every written row has the key and the vnode, so the filter may be applied before `resolve`.
        """
        parts = [f"`table` = '{table}'"]
        if self.start is not None:
            parts.append(f"key >= X'{self.start.hex()}'")
        if self.end is not None:
            parts.append(f"key < X'{self.end.hex()}'")
        if self.vnodes is not None:
            parts.append(f"vnode IN ({', '.join(map(str, sorted(self.vnodes)))})" if self.vnodes else "false")
        if self.keys is not None:
            literals = ", ".join(f"X'{key.hex()}'" for key in self.keys)
            parts.append(f"key IN ({literals})" if literals else "false")
        return " AND ".join(parts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
