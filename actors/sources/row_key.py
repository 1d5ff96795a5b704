"""The key of the rows of a source: of the rows with one key, the last one counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from actors.schemas.metadata_columns import PATH, ROW
from state.errors import SchemaError, SettingsError

METADATA = ("path", "row")
"""The metadata columns of a source with a key: they order the rows that `order_by` does not show apart."""
NUMBER = "__sw_number"

Quoted = Callable[[str], str]
"""Makes a name a part of an SQL text."""


@dataclass(frozen=True, init=False)
class Key:
    """The key of the rows of a source.  Views see the last row of each key, unless that row is a deletion.

    The last row has the highest values of `order_by`.  Rows with equal values follow in the order of their paths, and
    in a file in its order.  So the answer does not depend on the order in which files are read.  A row with a null in
    `columns` or `order_by` is a bad record.

    Args:
        columns: the column of the key, or several.
        order_by: the column, or columns, that order the rows of a key.
        deleted: an SQL condition over the columns of the source that is true for a deletion, such as `"op = 'D'"`.
            Views see no row of a key whose last row is a deletion.  None is `"__op = 'd'"` with `format="debezium"`;
            in other formats no row is a deletion.

    Raises:
        SettingsError: a column is named twice, no column is named, or the condition is empty.
    """

    columns: tuple[str, ...]
    order_by: tuple[str, ...]
    deleted: str | None

    def __init__(
        self, columns: str | Iterable[str], *, order_by: str | Iterable[str] = (), deleted: str | None = None
    ) -> None:
        object.__setattr__(self, "columns", _names(columns))
        object.__setattr__(self, "order_by", _names(order_by))
        object.__setattr__(self, "deleted", deleted)
        if not self.columns:
            raise SettingsError('Key(columns=()): name at least one column, as in Key("id")')
        for option, names in (("columns", self.columns), ("order_by", self.order_by)):
            if not all(isinstance(name, str) and name for name in names):
                raise SettingsError(f'Key({option}={names!r}): name columns of the source, as in Key("id")')
        named = [name.lower() for name in self.required]
        if twice := [name for name in self.required if named.count(name.lower()) > 1]:
            raise SettingsError(f"Key: columns and order_by name the column {twice[0]} twice; name it once")
        if deleted is not None and not (isinstance(deleted, str) and deleted.strip()):
            raise SettingsError(
                f"Key(deleted={deleted!r}): write an SQL condition such as deleted=\"op = 'D'\", or leave it out"
            )

    @property
    def required(self) -> tuple[str, ...]:
        """The columns in which every row has a value."""
        return (*self.columns, *self.order_by)

    def require_columns(self, source: str, names: Collection[str]) -> None:
        """Refuses a source without one of the columns.

        Raises:
            SchemaError: naming the source and the column.
        """
        for option, columns in (("key", self.columns), ("Key(order_by)", self.order_by)):
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
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
