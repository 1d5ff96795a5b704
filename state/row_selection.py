"""Which rows of a table are asked for: a range of keys and a set of vnodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class RowSelection:
    """Rows whose key is at least `start` and less than `end`, in one of `vnodes`; what is None does not limit."""

    start: bytes | None = None
    end: bytes | None = None
    vnodes: Collection[int] | None = None

    @classmethod
    def of_key(cls, key: bytes) -> RowSelection:
        """The one row with this key."""
        return cls(key, key + b"\x00")

    def holds(self, key: bytes, vnode: int) -> bool:
        """Whether a row is asked for."""
        return (
            (self.start is None or self.start <= key)
            and (self.end is None or key < self.end)
            and (self.vnodes is None or vnode in self.vnodes)
        )

    def condition(self, table: str) -> str:
        """The same as a filter for Lance on the rows of all tables.

        All that was ever written for a row has its key and vnode, so that it may be applied before `resolve`.
        """
        parts = [f"`table` = '{table}'"]
        if self.start is not None:
            parts.append(f"key >= X'{self.start.hex()}'")
        if self.end is not None:
            parts.append(f"key < X'{self.end.hex()}'")
        if self.vnodes is not None:
            parts.append(f"vnode IN ({', '.join(map(str, sorted(self.vnodes)))})" if self.vnodes else "false")
        return " AND ".join(parts)
