"""The key of the rows of a source: of the rows with one key, the last one counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from actors.schemas.metadata_columns import PATH, ROW
from state.errors import SchemaError, SettingsError

METADATA = ("path", "row")
"""The metadata columns of a source with a key: they order the rows that `order_by` does not tell apart."""
NUMBER = "__sw_number"

Quoted = Callable[[str], str]
"""Makes a name a part of an SQL text."""


@dataclass(frozen=True)
class RowKey:
    """The rows that views see of a source: for each key the last row, unless it is a deletion.

    The last row has the highest values of `order_by`; of equal ones the row of the last path, and in a file the last
    row.  So the answer does not depend on the order in which files are read.

    Args:
        columns: the columns of the key.
        order_by: the columns that order the rows of a key.
        deleted: an SQL condition over the columns of the source that is true for a deletion; None without one.

    Raises:
        SettingsError: a column is named twice, or no column is named.
    """

    columns: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    deleted: str | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise SettingsError('key=(): name at least one column, as in key="id"')
        for option, names in (("key", self.columns), ("order_by", self.order_by)):
            if not all(isinstance(name, str) and name for name in names):
                raise SettingsError(f'{option}={names!r}: name columns of the source, as in {option}="id"')
        named = [name.lower() for name in self.required]
        if twice := [name for name in self.required if named.count(name.lower()) > 1]:
            raise SettingsError(f"key and order_by name the column {twice[0]} twice; name it once")
        if self.deleted is not None and not self.deleted.strip():
            raise SettingsError(
                "deleted: the condition is empty; write one as in deleted=\"op = 'D'\", or leave it out"
            )

    @classmethod
    def of(
        cls, key: str | Iterable[str], order_by: str | Iterable[str] | None = None, deleted: str | None = None
    ) -> RowKey:
        """The key of these options of a source, where one column may be its name alone."""
        return cls(_names(key), _names(() if order_by is None else order_by), deleted)

    @property
    def required(self) -> tuple[str, ...]:
        """The columns in which every row has a value."""
        return (*self.columns, *self.order_by)

    def require_columns(self, source: str, names: Collection[str]) -> None:
        """Refuses a source without one of the columns.

        Raises:
            SchemaError: naming the source and the column.
        """
        for option, columns in (("key", self.columns), ("order_by", self.order_by)):
            for name in columns:
                if name not in names:
                    raise SchemaError(
                        f"source {source}: {option} names the column {name}, which it does not have; "
                        f"it has {', '.join(names)}"
                    )

    def number(self, quoted: Quoted) -> str:
        """SQL for the number of a row among those of its key, from 1 for the last one."""
        keys = ", ".join(map(quoted, self.columns))
        order = ", ".join(f"{quoted(name)} DESC" for name in (*self.order_by, PATH, ROW))
        return f"row_number() OVER (PARTITION BY {keys} ORDER BY {order})"

    def is_current(self, quoted: Quoted) -> str:
        """SQL condition: a row with its `number` in the column `NUMBER` is one that views see."""
        is_last = f"{quoted(NUMBER)} = 1"
        # The line end closes a comment of the condition.
        return is_last if self.deleted is None else f"{is_last} AND NOT coalesce(({self.deleted}\n), false)"

    @property
    def text(self) -> str:
        """The rows that views see, for people."""
        by = " and ".join([*self.order_by, "file"])
        without = "" if self.deleted is None else f", without those where {' '.join(self.deleted.split())}"
        return f"the last row of each {' and '.join(self.columns)} by {by}{without}"


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
