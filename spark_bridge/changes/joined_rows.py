"""The rows of a join: all of them, or those that an epoch changes.  Nobody stores them.

A row of one side finds its partners by the hash of its key, in `__sw_join`.  Equal hashes of different keys do no harm:
the condition of the join is computed by Spark's expressions, over the rows that meet.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from spark_bridge.analysis.computed_leaves import LEFT, RIGHT, JoinPlan
from spark_bridge.catalyst.leaves import LeafRows, graft
from spark_bridge.changes.joined_changes import changed_rows
from spark_bridge.changes.parents import Parents
from spark_bridge.changes.sides import stored_names
from spark_bridge.hand_over.dataset_frame import WantedRows


class JoinedRows:
    """Makes the rows of joins.

    Args:
        parents: the sides of the joins are among them.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    def changed(self, join: JoinPlan, columns: list[str]) -> pa.Table:
        """The rows that leave and those that come, with their weights at the end.

        Args:
            join: the join.
            columns: of its result that are wanted, in its order.
        """
        left, right = map(self._parents.side, join.sides)
        return changed_rows(join, columns, left, right, self._parents.queries)

    def all(self, join: JoinPlan, columns: list[str], values: Mapping[str, pa.Array]) -> tuple[LeafRows, int]:
        """All rows, or at least those with these values, and the size of the rows that they are made of, in bytes.

        Args:
            join: the join.
            columns: of its result that are wanted, in its order.
            values: column of the result → its values.
        """
        frames, nbytes = {}, 0
        for side, name in zip((LEFT, RIGHT), join.sides, strict=True):
            wanted = {
                stored: values[column]
                for column, of, stored in join.columns
                if of == side and column in values and stored
            }
            # A row without a partner has nulls, and is wanted by the values of the other side.
            is_kept = join.kind == "inner" or (join.kind != "full" and side == LEFT)
            known = WantedRows(values=wanted if is_kept else {})
            frames[side], size = self._parents.all(name, stored_names(self._parents.by_name[name]), known)
            nbytes += size
        catalyst = self._parents.catalyst_for(nbytes)
        frame = catalyst.frame(graft(catalyst, join.plan, join.leaves, frames))
        return LeafRows.of_frame(frame.select(*columns)), nbytes
