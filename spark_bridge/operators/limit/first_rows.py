"""The first rows of limits, kept in this process between epochs.

The datasets stay the only truth: what is kept is made from them, and used only for the version that it is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import pyarrow as pa

from spark_bridge.operators.limit.limit_plan import LimitPlan
from state.tables.records import ViewVersion


@dataclass(frozen=True)
class First:
    """The first rows below a limit, in its order.

    Args:
        rows: those; none of the others comes before the last of them.
        are_all: whether there are no others.
    """

    rows: pa.Table
    are_all: bool


class FirstRows:
    """Keeps them, for each limit those of one version of its rows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: WeakKeyDictionary[LimitPlan, tuple[str, int, First]] = WeakKeyDictionary()

    def of(self, limit: LimitPlan, version: ViewVersion) -> First | None:
        """The first rows at a version of the view with the rows; None if they are not kept."""
        with self._lock:
            path, number, first = self._kept.get(limit, ("", 0, None))
        return first if (path, number) == (version.path, version.version) else None

    def keep(self, limit: LimitPlan, version: ViewVersion, first: First) -> None:
        """Keeps those of a version, and no longer those of another one."""
        with self._lock:
            self._kept[limit] = version.path, version.version, first
